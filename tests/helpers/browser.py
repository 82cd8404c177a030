"""A real browser for tests of the page: what they ask of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from fedarena.board.board import Board
from helpers.big_board import DEFENSES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

Open = Callable[[str], Any]
"""Load a page's text; gives the browser."""


def phone(browser: Any, width: int, dark: bool = False) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def until(browser: Any, condition: Callable[[], object]) -> None:
    """Waits for what the page says: a new address is answered by an event, after the call that caused it."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver.support.wait import WebDriverWait

    passing = (NoSuchElementException, StaleElementReferenceException)  # while the page is drawn anew
    WebDriverWait(browser, 60, ignored_exceptions=passing).until(lambda _: condition())


def rows(browser: Any) -> list[list[str]]:
    """Text of the visible cells of the visible rows."""
    script = """return [...document.querySelectorAll("#board tbody tr")].filter((r) => !r.hidden).map(
        (r) => [...r.children].filter((c) => !c.hidden).map((c) => c.textContent))"""
    found: list[list[str]] = browser.execute_script(script)
    return found


def go(browser: Any, cell: int, board: Board) -> None:
    """By the address, as a link would."""
    place = f"defense-{DEFENSES.index(board.cells[cell].defense)}-{cell}"
    browser.execute_async_script(
        "const done = arguments[1]; addEventListener('hashchange', () => setTimeout(done, 0), { once: true });"
        "location.hash = arguments[0];",
        place,
    )
