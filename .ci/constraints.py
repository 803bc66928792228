"""Print the newest versions that fit pyproject.toml, one ``name==version`` a line: the content of constraints.txt.

Only the packages' descriptions are fetched and nothing is installed, so that any Python of the project can run it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What torch brings along for graphics cards depends on where its wheel comes from.
_FOR_GRAPHICS_CARDS = re.compile(r"(nvidia|cuda|triton)\b.*")


def newest(extras: str) -> list[str]:
    """Name and version of everything that the project needs with these extras."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        call = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*call, "--report", str(report), f"{ROOT}[{extras}]"], check=True)
        packages = [item["metadata"] for item in json.loads(report.read_text(encoding="utf-8"))["install"]]
    lines = []
    for package in packages:
        name = re.sub(r"[-_.]+", "-", package["name"]).lower()
        if name != "gradrank" and not _FOR_GRAPHICS_CARDS.fullmatch(name):
            lines.append(f"{name}=={package['version'].partition('+')[0]}")
    return sorted(lines)


if __name__ == "__main__":
    sys.stdout.write("\n".join(newest("dev")) + "\n")
