"""Write the numbers of docs/benchmarks.json into README.md and docs/speed.md.

Run: python docs/make_benchmarks.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
SPEED = DOCS / "speed.md"
START, END = "<!-- made by docs/make_benchmarks.py -->\n", "<!-- end -->\n"
AUTO = "`auto`, ten minutes per fold"


def kept() -> dict[str, Any]:
    """The numbers that were measured, with their dates."""
    found: dict[str, Any] = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    return found


def row(cells: list[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(cells) + " |\n"


def readme_table(results: dict[str, Any]) -> str:
    """What the peers do, and the numbers that are told first."""
    columns = results["columns"]
    values = results["quality"]["values"]
    ours = [values[name]["value"] for name in ("LambdaMART", "LightGBM", "XGBoost")]
    numbers = [[item["readme"]["task"], *item["readme"]["cells"]] for item in results["speed"] if "readme" in item]
    ours[0] += f", `auto` {values[AUTO]['value']}"
    rows = [*results["facts"], [results["quality"]["task"], *ours, ""], *numbers]
    return row(columns) + "|---" * len(columns) + "|\n" + "".join(map(row, rows))


def speed_page(results: dict[str, Any]) -> str:
    """All numbers, with the days on which they came."""
    quality = results["quality"]
    lines = [
        "# Speed and quality beside the peers\n\n",
        f"Measured on {results['machine']}, each beside its peers in the same run (`{results['run']}`).\n",
        "The day is that on which the number was written down; where the peers' is another one, both stand there.\n",
        "The numbers are kept in `docs/benchmarks.json`, from which this page is made.\n\n",
        "## Speed\n\n",
        row(["", "gradrank", "peers", "measured"]),
        "|---|---|---|---|\n",
    ]
    for item in results["speed"]:
        days = sorted({item["date"], item.get("peers_date") or item["date"]})
        lines.append(row([item["task"], item["gradrank"], item["peers"], ", ".join(days)]))
    lines += ["\n", results["note"], "\n\n## Quality\n\n", f"{quality['task']}: {quality['settings']}.\n\n"]
    lines += [row(["", "mean on test data", "measured"]), "|---|---|---|\n"]
    lines += [row([name, found["value"], found["date"]]) for name, found in quality["values"].items()]
    return "".join([*lines, "\n", quality["note"], "\n"])


def with_table(text: str, table: str) -> str:
    """The README with a table in its place."""
    before, rest = text.split(START)
    return before + START + table + END + rest.split(END)[1]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8"), readme_table(kept())), encoding="utf-8")
    SPEED.write_text(speed_page(kept()), encoding="utf-8")
