"""The page of all results, made from kept results: verdict, claims and tables of each table and figure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradrank.errors import DataError
from gradrank.evaluation.tables import Column, Table
from gradrank.experiments.claims import Claim, overall, verdict_table, verdicts
from gradrank.experiments.registry import RECIPES, recipe
from gradrank.experiments.result import shown

INTRODUCTION = """# Results

What came out for each table and figure of the four papers, on artificial data, made from the files in `docs/results` by
`python docs/make_results.py`. A finding *holds* if all of its claims are significant at 5 % (Holm's correction over the
claims of a table), *does not hold* if one is significantly otherwise, and is *undecided* else. Queries are observations
within runs, and runs with different seeds have different data: both count (`gradrank/experiments/claims.py`). Runs are
small where their queries and seeds say so; what was *not run* under the settings of today has no verdict. Beside each
mean stands what the paper states of it, on its own data, where it prints a number. Where a finding does not hold or is
undecided, a sentence says whether that is for the size of the runs, for the data, or for the claim.
"""


def kept_results(folder: str | Path) -> list[dict[str, Any]]:
    """Results that ``gradrank experiment run --out`` wrote into a folder, in the order of the registry."""
    found = []
    for name in RECIPES:
        path = Path(folder) / f"{name}.json"
        if path.exists():
            try:
                found.append(json.loads(path.read_text(encoding="utf-8")))
            except ValueError as error:
                raise DataError(f"is no JSON: {error}", path=path) from None
    return found


def kept_reasons(folder: str | Path) -> dict[str, str]:
    """Why findings do not hold or are undecided, by recipe."""
    reasons: dict[str, str] = json.loads((Path(folder) / "reasons.json").read_text(encoding="utf-8"))
    return reasons


def results_page(results: Sequence[Mapping[str, Any]], reasons: Mapping[str, str] | None = None) -> str:
    """The page in Markdown; ``reasons`` say why findings do not hold or are undecided.

    >>> print(results_page([]).splitlines()[0])
    # Results
    """
    words = {result["name"]: overall(_claims(result)) for result in results}
    counted = Counter(words.values())
    total = ", ".join(f"{word} {counted[word]}" for word in ("holds", "undecided", "does not hold"))
    counts = {result["name"]: _held(_claims(result)) for result in results}
    sizes = {result["name"]: _size(result) for result in results}
    rows = tuple(
        (f"[{name}](#{name})" if name in words else name, recipe(name).finding, words.get(name, "not run"),
         counts.get(name, ""), sizes.get(name, ""))
        for name in RECIPES
    )  # fmt: skip
    heads = ("id", "the paper's finding", "verdict", "claims that hold", "run")
    table = Table(tuple(Column(head) for head in heads), rows)
    sections = [_section(result, (reasons or {}).get(result["name"])) for result in results]
    parts = [INTRODUCTION, f"Of {len(results)} that were run: {total}.", table.to_markdown()]
    return "\n\n".join(part.strip("\n") for part in [*parts, *sections]) + "\n"


def _claims(result: Mapping[str, Any]) -> list[Claim]:
    return [Claim.from_dict(claim) for claim in result["claims"]]


def _held(claims: Sequence[Claim]) -> str:
    return f"{sum(word == 'holds' for word, _ in verdicts(claims))} of {len(claims)}"


def _size(result: Mapping[str, Any]) -> str:
    """Training queries and seeds of a run, in words."""
    runs = max((len(claim["samples"]) for claim in result["claims"]), default=1)
    queries = result["settings"].get("queries")
    seeds = f"{runs} seed{'s' if runs != 1 else ''}"
    # Curves that look at no data have the least that there can be.
    return seeds if queries is None or queries <= 2 else f"{queries:,} queries, {seeds}"


def _section(result: Mapping[str, Any], reason: str | None) -> str:
    name = result["name"]
    claims = _claims(result)
    settings = ", ".join(f"{key} {shown(_tuple(value))}" for key, value in result["settings"].items())
    lines = [
        f"## {name}",
        f"{recipe(name).title[0].upper()}{recipe(name).title[1:]} ({recipe(name).paper}, {recipe(name).shows}). "
        f"The paper: {recipe(name).finding} **{overall(claims)[0].upper()}{overall(claims)[1:]}.**",
        *([] if reason is None else [reason]),
        verdict_table(claims).to_markdown().rstrip("\n"),
        *result["notes"],
        *(_table(table) for table in result["tables"]),
        f"Settings: {settings}.",
        f"`{result['command']}`, {result['seconds']:.0f} s, "
        + ", ".join(f"{package} {version}" for package, version in result["versions"].items())
        + ".",
    ]
    return "\n\n".join(lines) + "\n"


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _table(table: Mapping[str, Any]) -> str:
    """A kept table: numbers to four digits."""
    rows = table["rows"]
    names = list(rows[0]) if rows else []
    columns = tuple(Column(name, _kind([row[name] for row in rows])) for name in names)
    return (
        Table(columns, tuple(tuple(row[name] for name in names) for row in rows), table["title"])
        .to_markdown()
        .rstrip("\n")
    )


def _kind(values: Sequence[Any]) -> Any:
    numbers = [value for value in values if value is not None]
    if not numbers or any(isinstance(value, str | bool) for value in numbers):
        return "text"
    return "count" if all(isinstance(value, int) for value in numbers) else "number"
