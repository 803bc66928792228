"""The report in a real browser: no errors, no requests, nothing cut off on a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver.common.keys import Keys

from gradrank.data.artificial import make_data
from gradrank.data.texts import Texts
from gradrank.evaluation import compare, evaluate
from gradrank.measures import parse_measure
from gradrank.models.trees.ensemble import Tree, TreeEnsemble
from gradrank.report import write_report, write_report_comparison
from tests.support.browser import color, contrast, needs_browser, new_browser

pytestmark = needs_browser

HOSTILE = "<script>document.title = 'broken'</script><img src=x onerror=\"document.title = 'broken'\">"
LONG_NAME = "runs/" + "a-very-long-file-name-without-any-space_" * 3 + ".txt"


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    data = make_data(60, n_docs=10, n_features=30, random_state=1)
    rng = np.random.default_rng(2)
    truth = data.label().astype(np.float64)
    systems = {
        "weak": truth + 3 * rng.standard_normal(data.n_docs),
        LONG_NAME: truth + rng.standard_normal(data.n_docs),
        "<script>document.title = 'broken'</script>": truth + 1.2 * rng.standard_normal(data.n_docs),
    }
    result = evaluate(data, systems, [parse_measure(name) for name in ("NDCG@10", "MAP", "MRR", "ERR@10")])
    trees = [
        Tree.numerical(split_feature=[i], threshold=[0.0], left=[-1], right=[-2], leaf_value=[0.0, 1.0])
        for i in range(30)
    ]
    curve = (0.8 - np.exp(-np.arange(1, 101) / 20) / 2).tolist()
    model = TreeEnsemble(trees, data.feature_names, training={"curves": {"valid": {"NDCG@10": curve}}, "best": 90})
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        path,
        title="A report",
        evaluation=result,
        comparison=compare(result),
        models={LONG_NAME: model},
        data={"test": data},
        texts=Texts({qid: f"{HOSTILE} query {qid}" for qid in data.qid}, rows=[HOSTILE * 3] * data.n_docs),
        segments={f"market {LONG_NAME}": ["de", LONG_NAME, HOSTILE] * 20},
        scores=systems,
        effects=4,
        commands=[f"gradrank report test.txt --scores {LONG_NAME} -o report.html"],
    )
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = new_browser(logs=("browser", "performance"))
    yield driver
    driver.quit()


def show(browser: Any, report: Path, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(report.as_uri())


@pytest.mark.parametrize("width", [400, 1280])
def test_loads_without_errors_or_requests(browser, report, width) -> None:
    for log in ("browser", "performance"):
        browser.get_log(log)
    show(browser, report, width)
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    assert browser.title == "A report"


@pytest.mark.parametrize("width", [320, 400, 1280])
def test_nothing_is_wider_than_the_window(browser, report, width) -> None:
    show(browser, report, width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 1280])
def test_headings_tables_and_charts_are_visible(browser, report, width) -> None:
    show(browser, report, width)
    for selector, least in (("h1", 1), ("#verdict", 1), ("h2", 6), ("table", 8), (".dot", 9), ("polyline.curve", 1)):
        found = browser.find_elements("css selector", selector)
        assert len(found) >= least, selector
        for element in found:
            if element.find_elements("xpath", "ancestor::details[not(@open)]"):
                continue
            box = element.rect
            assert element.is_displayed(), selector
            assert box["width"] > 0, selector
            assert box["height"] > 0, selector


def test_rankings_segments_and_effects_are_there(browser, report) -> None:
    show(browser, report, 1280)
    for selector, least in ((".ranking li", 20), ("#segments", 1), (".losses .dot", 1), (".smallplots polyline", 2)):
        assert len(browser.find_elements("css selector", selector)) >= least, selector
    views = browser.find_elements("css selector", "details.view")
    first, second = views[0].find_elements("css selector", ".columns > div")
    assert first.rect["y"] == second.rect["y"]  # side by side
    assert HOSTILE in views[0].text
    assert not views[1].find_element("css selector", "ol").is_displayed()
    # By a key: the page scrolls smoothly, so that a click may come before the place is reached.
    views[1].find_element("css selector", "summary").send_keys(Keys.ENTER)
    assert views[1].find_element("css selector", "ol").is_displayed()
    show(browser, report, 400)
    first, second = browser.find_elements("css selector", "details.view[open] .columns > div")
    assert second.rect["y"] > first.rect["y"]
    assert browser.find_elements("css selector", "img") == []


@pytest.mark.parametrize("width", [320, 1280])
def test_several_reports_on_one_page(browser, report, tmp_path, width) -> None:
    page = tmp_path / "all.html"
    write_report_comparison(page, [report, report], title="All reports")
    browser.get_log("browser")
    show(browser, page, width)
    assert browser.get_log("browser") == []
    assert browser.title == "All reports"
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert len(browser.find_elements("css selector", ".means tbody tr")) == 6
    browser.find_element("css selector", ".verdict a").click()
    assert browser.title == "A report"


def test_readable_without_scripts(browser, report) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, report, 1280)
        assert browser.find_element("id", "verdict").is_displayed()
        assert len(browser.find_elements("css selector", ".means tbody tr")) == 3
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_columns_sort(browser, report) -> None:
    show(browser, report, 1280)

    def values() -> list[float]:
        cells = browser.find_elements("css selector", ".means tbody td:nth-child(2)")
        return [float(cell.get_attribute("data-value")) for cell in cells]

    given = values()
    button = browser.find_element("css selector", ".means thead th:nth-child(2) button")
    button.click()
    assert values() == sorted(given, reverse=True)
    button.click()
    assert values() == sorted(given)


def test_text_stands_out_in_light_and_dark(browser, report) -> None:
    """Contrast of text and its background, by WCAG 2's formula; 4.5 is its level AA."""
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        show(browser, report, 1280)
        page = color(browser, "body", "backgroundColor")
        for selector in ("body", "caption", ".better", ".worse", ".equal", "a"):
            assert contrast(color(browser, selector, "color"), page) >= 4.5, (scheme, selector)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
