"""A headless Chromium for the pages of the reports."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CONTRAST = """
const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const parse = text => text.match(/[\\d.]+/g).map(Number);
const ground = e => {
    for (; e; e = e.parentElement) {
        const c = parse(getComputedStyle(e).backgroundColor);
        if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
};
const low = new Map();
for (const e of document.querySelectorAll('body *')) {
    const words = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!words || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const ink = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const [a, b] = [light(parse(ink)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.set(e.tagName + '.' + e.className, ratio);
}
return [...low];
"""
"""Texts with a contrast below what WCAG 2 AA wants of small ones."""


class Browser:
    """One window. width in CSS pixels, scheme light or dark."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def open(self, page: Path, width: int, scheme: str) -> None:
        """Shows a page from its file, as a phone does where the window is narrow."""
        self._driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self._driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        self._driver.get(page.as_uri())

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        return self._driver.execute_script(script)

    def click(self, selector: str) -> str:
        """Follows a link; where it led."""
        self._driver.find_element("css selector", selector).click()
        return str(self._driver.current_url)

    def save(self, file: Path) -> None:
        """What the window shows, as a PNG."""
        assert self._driver.save_screenshot(str(file)), f"{file} cannot be written"

    def messages(self) -> list[str]:
        """What the console has had since the last call."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser")]


@contextmanager
def headless_browser() -> Iterator[Browser]:
    """Debian's Chromium. Skips the test where there is none."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no Chromium here: tools/setup.sh installs it (chromium, chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options, Service(driver))
    try:
        yield Browser(opened)
    finally:
        opened.quit()
