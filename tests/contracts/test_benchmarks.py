"""The numbers of README and the page on speed are those that are kept."""

from __future__ import annotations

import datetime
from types import ModuleType

import pytest

from tests.support.scripts import script


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The script that writes them."""
    return script("docs/make_benchmarks.py")


def test_the_pages_hold_what_is_kept(pages: ModuleType) -> None:
    results = pages.kept()
    readme = pages.README.read_text(encoding="utf-8")
    assert pages.with_table(readme, pages.readme_table(results)) == readme
    assert pages.SPEED.read_text(encoding="utf-8") == pages.speed_page(results)


def test_another_number_is_another_page(pages: ModuleType) -> None:
    results = pages.kept()
    results["speed"][0]["gradrank"] = "1 document/s"
    results["speed"][0]["readme"]["cells"][0] = "1"
    assert pages.speed_page(results) != pages.SPEED.read_text(encoding="utf-8")
    readme = pages.README.read_text(encoding="utf-8")
    assert pages.with_table(readme, pages.readme_table(results)) != readme


def test_every_number_has_a_day_and_the_readme_tells_no_other(pages: ModuleType) -> None:
    results = pages.kept()
    for item in results["speed"]:
        told = f"{item['gradrank']} {item['peers']}"
        assert ("peers_date" in item) == bool(item["peers"])
        for name in ("date", "peers_date"):
            assert datetime.date.fromisoformat(item.get(name, item["date"]))
        for cell in item.get("readme", {}).get("cells", ()):
            for part in cell.split(", "):
                assert part in told
    for found in results["quality"]["values"].values():
        assert datetime.date.fromisoformat(found["date"])
