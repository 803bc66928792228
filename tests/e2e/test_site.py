"""The documentation's site, opened from the file system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.browser import needs_browser, new_browser
from tests.support.scripts import ROOT, script


def built(folder: Path, pages: dict[str, str], **more: Any) -> Path:
    """A site of some pages with the theme, style and scripts of the documentation."""
    build = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("material")
    yaml = pytest.importorskip("yaml")
    from mkdocs.config import load_config

    class Loader(yaml.SafeLoader):
        """Settings as they are written."""

    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    docs = folder / "docs"
    for name in (*settings["extra"]["polyfills"], *settings["extra_css"]):
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes((ROOT / "docs" / name).read_bytes())
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")
    kept = ("theme", "extra", "extra_css", "use_directory_urls", "markdown_extensions")
    small = {name: settings[name] for name in kept}
    small |= {"site_name": "small", "plugins": ["search", "offline"], **more}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(small), encoding="utf-8")
    site = folder / "site"
    build.build(load_config(str(folder / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(site)))
    return site


@needs_browser
def test_search_works_without_a_server_and_asks_nobody_else(tmp_path: Path) -> None:
    pages = {"index.md": "# Start\n\nNothing to see.\n", "other.md": "# Other\n\nAbout walruses.\n"}
    site = built(tmp_path, pages)

    browser = new_browser(logs=("browser", "performance"))
    try:
        browser.get((site / "index.html").as_uri())
        field = browser.find_element(By.CSS_SELECTOR, ".md-search__input")
        browser.execute_script("arguments[0].focus()", field)
        WebDriverWait(browser, 30).until(lambda _: field.is_displayed())
        field.send_keys("walruses")
        found = WebDriverWait(browser, 60).until(
            lambda _: browser.find_elements(By.CSS_SELECTOR, ".md-search-result__item a")
        )
        assert "other.html" in found[0].get_attribute("href")
        told = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = [item["params"]["request"]["url"] for item in told if item["method"] == "Network.requestWillBeSent"]
        assert any(address.endswith("search_index.js") for address in asked)
        assert all(address.startswith(("file:", "data:", "about:")) for address in asked)
        assert browser.get_log("browser") == []
    finally:
        browser.quit()


# Tables that must be moved sideways to be read, code that shows a sign of Markdown, names of options in two lines.
LOOK = """
const wide = [...document.querySelectorAll("article table")].filter(
  table => table.parentElement.scrollWidth > table.parentElement.clientWidth + 1);
const code = [...document.querySelectorAll("article td code")];
const options = [...document.querySelectorAll("article .option")];
return {
  tables: document.querySelectorAll("article table").length,
  options: options.map(name => name.textContent),
  wide: wide.map(table => table.innerText.slice(0, 80)),
  escaped: code.map(part => part.textContent).filter(text => text.includes("\\\\")),
  broken: options.filter(name => name.getClientRects().length > 1).map(name => name.textContent),
};
"""


@needs_browser
def test_parameters_of_learners_are_read_without_moving_them_sideways(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    script("docs/run_tutorials.py")
    generate = script("docs/generate.py")
    (tmp_path / "hooks.py").write_text("from generate import on_page_content\n", encoding="utf-8")
    pages = {"index.md": generate.learners_page(), "other.md": "# Other\n"}
    site = built(tmp_path, pages, hooks=["hooks.py"])
    browser = new_browser()
    try:
        browser.set_window_size(1280, 900)
        browser.get((site / "index.html").as_uri())
        seen = browser.execute_script(LOOK)
    finally:
        browser.quit()
    assert seen["tables"] == len(generate.ALGORITHMS)
    assert "--early-stopping-rounds" in seen["options"]
    assert (seen["wide"], seen["escaped"], seen["broken"]) == ([], [], [])
