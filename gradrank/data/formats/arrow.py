"""Arrow IPC files, which is what Feather (version 2) is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradrank.data.ranking_data import RankingData
from gradrank.data.roles import Columns, LabelChoice
from gradrank.data.tables import arrow, arrow_errors, checked, data_of_table, existing, row_groups, write_errors
from gradrank.runtime.files import replacing
from gradrank.runtime.suggestions import known_keywords


@known_keywords
def read_arrow(
    path: str | Path,
    *,
    qid: str | None = None,
    labels: LabelChoice = None,
    docid: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    regroup: bool = True,
) -> RankingData:
    """Read an Arrow IPC file, which is what Feather (version 2) is; streams are read too.

    Parameters
    ----------
    path
        The file.
    qid, labels, docid, weight, features, keep, ignore, regroup
        Which column is what; see :func:`gradrank.data.frames.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.arrow"
    >>> write_arrow(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> read_arrow(path)
    RankingData(1 queries, 2 documents, 1 features, labels: label)
    """
    pa = arrow()
    columns = Columns(qid=qid, labels=labels, docid=docid, weight=weight, features=features, keep=keep, ignore=ignore)
    path = existing(path)
    with arrow_errors(path, "Arrow"):
        source = pa.memory_map(str(path))
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
        return data_of_table(checked(table), columns, regroup=regroup, path=path)


def write_arrow(data: RankingData, path: str | Path) -> None:
    """Write an Arrow IPC (Feather) file that :func:`read_arrow` reads back the same.

    >>> import tempfile, pyarrow.feather
    >>> path = Path(tempfile.mkdtemp()) / "a.feather"
    >>> write_arrow(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> pyarrow.feather.read_table(path).column_names
    ['qid', 'label', 'f1']
    """
    pa = arrow()
    with replacing(path) as temporary, write_errors(path):
        tables = row_groups(data)
        first = next(tables)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(str(temporary), first.schema, options=options) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
