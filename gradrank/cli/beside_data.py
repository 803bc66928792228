"""What stands beside the numbers of data: texts and segments, from columns of the data or from files of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gradrank.cli.reading import Reading
from gradrank.errors import DataError

if TYPE_CHECKING:
    from gradrank.data.ranking_data import RankingData
    from gradrank.data.texts import Texts


@dataclass(frozen=True)
class Beside:
    """Values by id from files, and by row from columns of the data."""

    query_texts: Mapping[str, str] | str | None = None
    """By query id, or the name of a column."""
    document_texts: Mapping[str, str] | str | None = None
    segments: Mapping[str, Mapping[str, str] | str] = field(default_factory=dict)
    columns: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    """Columns of the data that are used, in the order of its rows as given."""

    def texts(self, data: RankingData) -> Texts | None:
        """The texts of the data's queries and documents, if any were given."""
        from gradrank.data.texts import Texts

        if self.query_texts is None and self.document_texts is None:
            return None
        queries = self.query_texts
        if isinstance(queries, str):
            queries = {qid: values[0] for qid, values in _by_query(data, self.columns[queries]).items() if values}
        if isinstance(self.document_texts, str):
            return Texts(queries or {}, rows=self.columns[self.document_texts])
        return Texts(queries or {}, self.document_texts or {})

    def segments_of(self, data: RankingData, path: Path) -> dict[str, Mapping[str, str]]:
        """What the queries are divided by, by name; values by query id."""
        found: dict[str, Mapping[str, str]] = {}
        for name, source in self.segments.items():
            if not isinstance(source, str):
                found[name] = source
                continue
            by_query = _by_query(data, self.columns[source])
            mixed = next((qid for qid, values in by_query.items() if len(values) > 1), None)
            if mixed is not None:
                first, second = by_query[mixed][:2]
                raise DataError(
                    f"query {mixed} has {first!r} and {second!r} in column {source!r}, expected one {name} per query",
                    path=path,
                )
            found[name] = {qid: values[0] for qid, values in by_query.items() if values}
        return found


def find_beside(
    data: Path,
    reading: Reading,
    query_texts: str | None,
    document_texts: str | None,
    segments: Sequence[str] | None,
) -> tuple[Beside, Reading]:
    """What the options name, and how to read the data without the columns that hold text.

    A name is a column of the data if it has one, else a file.
    """
    if query_texts is None and document_texts is None and not segments:
        return Beside(), reading
    form, names = _columns(data, reading)
    wanted: dict[str, str] = {}

    def source(flag: str, word: str, what: str) -> Mapping[str, str] | str:
        if word in names:
            wanted[word] = flag
            return word
        if not Path(word).exists():
            listed = f"its columns are {', '.join(names)}" if names else "it has no columns with names"
            raise DataError(f"{flag} is {word!r}: there is no such file, and no such column of {data} ({listed})")
        from gradrank.data.texts import read_texts

        return read_texts(word, what)

    found = Beside(
        None if query_texts is None else source("--query-texts", query_texts, "text"),
        None if document_texts is None else source("--document-texts", document_texts, "text"),
        {name: source("--segments", word, name) for name, word in _named(segments)},
    )
    if not wanted:
        return found, reading
    from gradrank.data.formats.text_columns import read_text_columns

    columns = read_text_columns(data, form, list(wanted), reading.options.get("delimiter"))
    hidden = [name for name, flag in wanted.items() if flag != "--segments" or not _are_numbers(columns[name])]
    return replace(found, columns=columns), _without(reading, hidden)


def _columns(data: Path, reading: Reading) -> tuple[str, list[str]]:
    from gradrank.data.formats import registry
    from gradrank.data.formats.text_columns import column_names
    from gradrank.models.systems import is_qrels

    if reading.format is None and is_qrels(data):
        return "qrels", []
    form = registry.format_to_read(data, reading.format).name
    return form, column_names(data, form, reading.options.get("delimiter"))


def _named(segments: Sequence[str] | None) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for option in segments or ():
        name, equals, word = option.partition("=")
        if not equals:
            name, word = Path(option).name.split(".")[0] if Path(option).suffix else option, option
        if not (name and word):
            raise DataError(f"--segments is {option!r}, expected COLUMN, FILE or NAME=FILE")
        if name in found:
            raise DataError(f"--segments names {name!r} twice")
        found[name] = word
    return list(found.items())


def _without(reading: Reading, columns: Sequence[str]) -> Reading:
    """Reading that leaves columns out, unless it was told what they are."""
    told: set[str] = set()
    for name in ("qid", "docid", "weight"):
        told.add(reading.options.get(name) or "")
    for name in ("features", "keep", "ignore"):
        told.update(reading.options.get(name) or ())
    told.update((reading.options.get("labels") or {}).values())
    ignored = (*reading.options.get("ignore", ()), *(name for name in columns if name not in told))
    return replace(reading, options={**reading.options, "ignore": ignored}) if ignored else reading


def _are_numbers(values: Sequence[str | None]) -> bool:
    try:
        for value in values:
            float(value or 0)
    except ValueError:
        return False
    return True


def _by_query(data: RankingData, column: Sequence[str | None]) -> dict[str, list[str]]:
    """The different values in the rows of each query."""
    if len(column) != data.n_docs:
        raise DataError(f"a column has {len(column)} values for {data.n_docs} documents")
    rows = range(data.n_docs) if data.rows is None else data.rows.tolist()
    found: dict[str, list[str]] = {}
    edges = data.indptr.tolist()
    for number, qid in enumerate(data.qid):
        values = (column[rows[row]] for row in range(edges[number], edges[number + 1]))
        found[qid] = [value for value in dict.fromkeys(values) if value]
    return found
