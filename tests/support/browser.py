"""A headless Chromium or Chrome, where there is one."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is missing")


def new_browser(*, logs: tuple[str, ...] = ("browser",), script: str = "") -> Any:
    """Start a browser that keeps the named logs and runs a script before those of each page."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # Root in a container has no sandbox; the only pages that are opened are ours.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    for argument in ("--disable-background-networking", "--disable-component-update", "--no-first-run"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    if script:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    return driver


def color(browser: Any, selector: str, name: str) -> list[float]:
    """Red, green and blue, from 0 to 1, of a property of the first element that a selector finds."""
    text = browser.execute_script(
        "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, name
    )
    return [float(part) / 255 for part in text[text.index("(") + 1 : -1].split(",")[:3]]


def contrast(one: list[float], other: list[float]) -> float:
    """Contrast of two colors, by WCAG 2's formula; 4.5 is its level AA."""

    def luminance(rgb: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
