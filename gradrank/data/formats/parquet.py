"""Parquet files, or folders of them as Spark writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.data.roles import Columns, LabelChoice, resolve_roles
from gradrank.data.tables import (
    arrow,
    arrow_errors,
    assemble,
    block_rows,
    check_numeric,
    checked,
    existing,
    is_numeric,
    recorded_roles,
    require,
    row_groups,
    write_errors,
)
from gradrank.errors import DataError
from gradrank.runtime.files import replacing
from gradrank.runtime.suggestions import known_keywords


@known_keywords
def read_parquet(
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
    """Read a Parquet file, or a folder of them in order of their names (as Spark writes).

    Features go by blocks of rows straight into the matrix; no whole table is held besides it.

    Parameters
    ----------
    path
        The file or folder.
    qid, labels, docid, weight, features, keep, ignore, regroup
        Which column is what; see :func:`gradrank.data.frames.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
    >>> write_parquet(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> read_parquet(path)
    RankingData(1 queries, 2 documents, 1 features, labels: label)
    """
    pa, pq = arrow(), require("pyarrow.parquet", "parquet")
    columns = Columns(qid=qid, labels=labels, docid=docid, weight=weight, features=features, keep=keep, ignore=ignore)
    path = existing(path)
    parts = parquet_parts(path)
    with arrow_errors(path, "Parquet"):
        schema = pq.read_schema(parts[0])
        for part in parts[1:]:
            if pq.read_schema(part).names != schema.names:
                raise DataError(f"has other columns than {parts[0].name}", path=part)
        roles = resolve_roles(schema.names, columns, recorded_roles(schema), path)
        wrong = [name for name in roles.features if not is_numeric(schema.field(name).type)]
        if wrong:
            table = _columns(parts[0], wrong)
            check_numeric({name: table.column(name) for name in wrong}, path)
        # Types may differ from part to part (an integer column with a null elsewhere): let them meet.
        named = pa.concat_tables([_columns(part, roles.named()) for part in parts], promote_options="permissive")
        n_docs = sum(pq.read_metadata(part).num_rows for part in parts)
        return assemble(named, n_docs, roles, lambda: _blocks(parts, roles.features), regroup, path)


def parquet_parts(path: Path) -> list[Path]:
    """The files of a table: a file alone, or those of a folder in order of their names."""
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.glob("*.parquet") if not part.name.startswith((".", "_")))
    if not parts:
        raise DataError("holds no .parquet file", path=path)
    return parts


def _columns(path: Path, names: list[str]) -> Any:
    with require("pyarrow.parquet", "parquet").ParquetFile(path) as file:
        return checked(file.read(columns=names))


def _blocks(parts: Sequence[Path], names: Sequence[str]) -> Iterator[list[Any]]:
    """Blocks of rows of some columns; one file is open at a time, for there may be thousands."""
    for part in parts if names else ():
        with require("pyarrow.parquet", "parquet").ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=block_rows(len(names)), columns=list(names)):
                checked(batch)
                yield [batch.column(name) for name in names]


def write_parquet(data: RankingData, path: str | Path) -> None:
    """Write a Parquet file that :func:`read_parquet` reads back the same.

    >>> import tempfile, pyarrow.parquet
    >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
    >>> write_parquet(RankingData.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7]), path)
    >>> pyarrow.parquet.read_schema(path).names
    ['qid', 'label', 'f1']
    """
    pq = require("pyarrow.parquet", "parquet")
    with replacing(path) as temporary, write_errors(path):
        tables = row_groups(data)
        first = next(tables)
        # A dictionary of a feature's many values only makes the file larger.
        repeating = [name for name in first.column_names if name not in data.feature_names]
        with pq.ParquetWriter(temporary, first.schema, compression="zstd", use_dictionary=repeating) as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
