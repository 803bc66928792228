"""Click labels as files of tab-separated rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gradrank.data.clicks.labels import ClickLabels
from gradrank.data.clicks.row_files import read_rows
from gradrank.data.formats.compressed import read_bytes
from gradrank.errors import DataError
from gradrank.runtime.files import replacing

_COLUMNS = ("qid", "docid", "label", "impressions", "clicks", "last_clicks")


def write_click_labels(labels: ClickLabels, path: str | Path) -> None:
    """Write labels as tab-separated rows with the header ``qid docid label impressions clicks last_clicks``.

    >>> import tempfile
    >>> from gradrank.data.clicks.click_log import click_log
    >>> from gradrank.data.clicks.labels import click_labels
    >>> path = Path(tempfile.mkdtemp()) / "clicks.tsv"
    >>> write_click_labels(click_labels(click_log([("q", ["a"], ["a"])])), path)
    >>> path.read_text().splitlines()[1].split()
    ['q', 'a', '1.0', '1', '1', '1']
    """
    queries, documents = labels.queries.to_list(), labels.documents.to_list()
    for value in (*queries, *documents):
        if "\t" in value or "\n" in value or "\r" in value:
            raise DataError(f"id {value!r} holds a tab or line end and cannot be written as a row", path=path)
    rows = zip(
        labels.query.tolist(),
        labels.document.tolist(),
        labels.label.tolist(),
        labels.impressions.tolist(),
        labels.clicks.tolist(),
        labels.last_clicks.tolist(),
        strict=True,
    )
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(_COLUMNS) + "\n")
        for query, document, label, impressions, clicks, last_clicks in rows:
            file.write(f"{queries[query]}\t{documents[document]}\t{label!r}\t{impressions}\t{clicks}\t{last_clicks}\n")


def read_click_labels(path: str | Path) -> ClickLabels:
    """Read what :func:`write_click_labels` wrote, or a file like it; a label may be ``nan`` or empty."""
    rows = read_rows(read_bytes(path), path, "\t", _COLUMNS)
    query, queries = rows.codes("qid")
    document, documents = rows.codes("docid")
    impressions, clicks, last_clicks = (rows.numbers(column) for column in _COLUMNS[3:])
    label = np.empty(len(query))
    for row in range(len(query)):
        text = rows.text("label", row).strip() or "nan"
        try:
            label[row] = float(text)
        except ValueError:
            label[row] = -1.0
        if not (np.isnan(label[row]) or 0 <= label[row] <= 1):
            rows.fail("label", row, "a number from 0 to 1, or nan")
    keys = query.astype(np.int64) * max(1, len(documents)) + document
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = np.ones(len(keys), dtype=bool)
        again[first] = False
        row = int(np.flatnonzero(again)[0])
        rows.fail("docid", row, f"each document once for query {rows.text('qid', row)!r}, but it came before")
    return ClickLabels(queries, documents, query, document, label, impressions, clicks, last_clicks)
