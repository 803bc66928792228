"""Reading queries and documents from JSON lines, CSV, TSV and TREC topics; each record knows its line."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradrank.errors import DataError
from gradrank.runtime.json_text import parse_json

# Passages are longer than what csv takes for a field by default.
_LONGEST_FIELD = 1 << 30
# No "<" within a tag: a file of nothing but "<top" would be read anew from each of them.
_TOPIC = re.compile(r"<(top|topic)\b([^<>]*)>(.*?)(?=</\1>|<\1\b|\Z)", re.DOTALL | re.IGNORECASE)
_PART = re.compile(r"<([a-z]+)>(.*?)(?=<[a-z/]|\Z)", re.DOTALL | re.IGNORECASE)
# Words that TREC's files repeat after their tags.
_LABEL = re.compile(r"\s*(Number|Topic|Description|Narrative|Question)\s*:", re.IGNORECASE)


@dataclass(frozen=True)
class Fault:
    """Something wrong with a file.

    >>> print(Fault(Path("queries.tsv"), 3, "has 1 field, expected id and text"))
    queries.tsv:3: has 1 field, expected id and text
    """

    path: Path
    line: int | None
    message: str

    def __str__(self) -> str:
        return str(DataError(self.message, path=self.path, line=self.line))


@dataclass(frozen=True)
class Row:
    """The fields of one record, by name in lower case."""

    line: int
    fields: dict[str, object]

    def first(self, names: Iterable[str]) -> str:
        """The first of the named fields that holds something, as text without blanks around it."""
        for name in names:
            value = self.fields.get(name)
            if value is not None and not isinstance(value, list | dict) and (text := str(value).strip()):
                return text
        return ""

    def many(self, names: Iterable[str]) -> list[str]:
        """The values of the first named field that is there: a list's, or one."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, list):
                return [str(item).strip() for item in value if str(item).strip()]
            if value is not None and str(value).strip():
                return [str(value).strip()]
        return []


def read_records(
    path: Path,
    columns: dict[int, tuple[str, ...]],
    ids: Sequence[str],
    faults: list[Fault],
    *,
    open_ended: bool = False,
) -> Iterator[Row]:
    """The records of a JSONL, CSV or TSV file, known by its name or else by its first line.

    A first line of CSV or TSV that holds one of the names ``ids`` names the columns; without one, the number of
    fields does, by ``columns``. With ``open_ended``, the last column of TSV may hold tabs, as crawled texts do; how
    many columns there are is then what most lines say.
    """
    text = read_text(path, faults)
    if text is None:
        return
    form = _form(path, text)
    if form == "jsonl":
        yield from _json_lines(path, text, faults)
    else:
        rows = _tab_rows(text) if form == "tsv" else _comma_rows(path, text, faults)
        if form == "tsv" and open_ended:
            rows = _joined(list(rows), columns, ids)
        yield from _named(path, rows, columns, ids, faults)


def read_topics(path: Path, faults: list[Fault]) -> list[Row] | None:
    """The topics of a TREC topics file, in its old form or in XML; None if the file is something else."""
    text = read_text(path, faults)
    if text is None:
        return []
    if not re.match(r"\s*<", text):
        return None
    records = []
    line, counted = 1, 0
    for found in _TOPIC.finditer(text):
        if found[1].lower() == "topic" and not re.search(r"<(query|title|question)\b", found[3], re.IGNORECASE):
            continue
        line += text.count("\n", counted, found.start())
        counted = found.start()
        fields: dict[str, object] = {}
        if number := re.search(r"""(?:number|id)\s*=\s*["']([^"']*)["']""", found[2]):
            fields["number"] = number[1]
        for part in _PART.finditer(found[3]):
            value = " ".join(html.unescape(_LABEL.sub("", part[2], count=1)).split())
            fields.setdefault({"num": "number"}.get(part[1].lower(), part[1].lower()), value)
        records.append(Row(line, fields))
    if not records:
        faults.append(Fault(path, 1, "begins with '<' but holds no <top> or <topic>"))
    return records


def read_text(path: Path, faults: list[Fault]) -> str | None:
    """The text of a file, decompressed if need be; None and a fault if it cannot be read."""
    from gradrank.data.formats.compressed import read_bytes

    try:
        content = read_bytes(path).tobytes()
    except DataError as error:
        faults.append(Fault(path, error.line, error.message))
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        faults.append(Fault(path, line, "is not UTF-8 text"))
        return None


def _form(path: Path, text: str) -> str:
    from gradrank.data.formats.compressed import without_compression_suffix

    suffix = without_compression_suffix(path).suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".json"):
        return "jsonl"
    if suffix in (".csv", ".tsv"):
        return suffix[1:]
    first = text.lstrip().partition("\n")[0]
    if first.startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in first else "csv"


def _json_lines(path: Path, text: str, faults: list[Fault]) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
            if "\\u" in line:
                json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start]).strip("'")
            faults.append(Fault(path, number, f"holds {half}, half of a character"))
            continue
        except ValueError as error:
            faults.append(Fault(path, number, f"is not JSON: {error}"))
            continue
        if not isinstance(value, dict):
            faults.append(Fault(path, number, f"is {type(value).__name__}, expected an object in {{}}"))
            continue
        yield Row(number, {str(key).lower(): item for key, item in value.items()})


def _tab_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Tabs separate, quotes mean nothing, as in the files of MS MARCO."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r").split("\t")


def _joined(
    rows: list[tuple[int, list[str]]], columns: dict[int, tuple[str, ...]], ids: Sequence[str]
) -> Iterator[tuple[int, list[str]]]:
    """Fields beyond the last column put back into it."""
    if rows and _heads(rows[0][1], ids):
        width = len(rows[0][1])
    else:
        counts = Counter(len(row) for _, row in rows if len(row) in columns)
        width = counts.most_common(1)[0][0] if counts else max(columns)
    for line, row in rows:
        yield line, row if len(row) <= width else [*row[: width - 1], " ".join(row[width - 1 :])]


def _heads(row: Sequence[str], ids: Sequence[str]) -> tuple[str, ...] | None:
    """The names of the columns, if the row holds them."""
    heads = tuple(field.strip().lower() for field in row)
    return heads if set(heads) & set(ids) else None


def _comma_rows(path: Path, text: str, faults: list[Fault]) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        faults.append(Fault(path, line, f"is not CSV: {error}"))


def _named(
    path: Path,
    rows: Iterator[tuple[int, list[str]]],
    columns: dict[int, tuple[str, ...]],
    ids: Sequence[str],
    faults: list[Fault],
) -> Iterator[Row]:
    names: tuple[str, ...] | None = None
    for position, (line, row) in enumerate(rows):
        if position == 0 and (names := _heads(row, ids)) is not None:
            continue
        wanted = names or columns.get(len(row))
        if wanted is None or len(row) != len(wanted):
            some = f"{len(row)} field" + "s" * (len(row) != 1)
            expected = _layouts(columns) if names is None else f"{len(names)}, as the first line has"
            faults.append(Fault(path, line, f"has {some}, expected {expected}"))
            continue
        yield Row(line, dict(zip(wanted, row, strict=True)))


def _layouts(columns: dict[int, tuple[str, ...]]) -> str:
    return " or ".join(f"{count} ({', '.join(names)})" for count, names in columns.items())
