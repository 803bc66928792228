"""The documentation's site, opened from the file system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.browser import needs_browser, new_browser
from tests.support.scripts import ROOT


@needs_browser
def test_search_works_without_a_server_and_asks_nobody_else(tmp_path: Path) -> None:
    build = pytest.importorskip("mkdocs.commands.build")
    pytest.importorskip("material")
    yaml = pytest.importorskip("yaml")
    from mkdocs.config import load_config

    class Loader(yaml.SafeLoader):
        """Settings as they are written."""

    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    script = "javascripts/iframe-worker.js"
    assert settings["extra"]["polyfills"] == [script]
    docs = tmp_path / "docs"
    (docs / "javascripts").mkdir(parents=True)
    (docs / script).write_bytes((ROOT / "docs" / script).read_bytes())
    (docs / "index.md").write_text("# Start\n\nNothing to see.\n", encoding="utf-8")
    (docs / "other.md").write_text("# Other\n\nAbout walruses.\n", encoding="utf-8")
    small = {name: settings[name] for name in ("theme", "extra", "use_directory_urls")}
    small |= {"site_name": "small", "plugins": ["search", "offline"]}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(small), encoding="utf-8")
    site = tmp_path / "site"
    build.build(load_config(str(tmp_path / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(site)))

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
