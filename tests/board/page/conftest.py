"""A browser, and the page of a large board, for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.big_board import big_board
from helpers.browser import CHROMEDRIVER, CHROMIUM, SWITCHES, Open, phone, until
from helpers.pictures import save_pictures

from fedarena.board.board import Board
from fedarena.board.page.html import page
from fedarena.board.threat_filter import ThreatFilter


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser without a window; tests that need one are skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not (CHROMIUM and CHROMEDRIVER):
        pytest.skip("chromium and chromedriver are not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page, and fails the test if the browser had anything to complain of."""
    browser.get_log("browser")
    phone(browser, 1280)

    def load(text: str) -> Any:
        path = tmp_path / "board.html"
        path.write_text(text, encoding="utf-8")
        browser.get(path.as_uri())
        # On a busy machine the driver may return before the page's script has run.
        ready = "return document.readyState === 'complete' && location.href.startsWith(arguments[0])"
        until(browser, lambda: browser.execute_script(ready, path.as_uri()))
        return browser

    yield load
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.pwned") is None


@pytest.fixture(scope="session")
def board() -> Board:
    return big_board()


@pytest.fixture(scope="session")
def text(board: Board, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the large board, with pictures of one attack in both forms."""
    folder = tmp_path_factory.mktemp("records")
    originals = np.random.default_rng(0).random((3, 1, 8, 8))
    for c in board.cells:
        if (c.problem, c.defense, c.attack, c.party) == ("digits", "dbcl", "dlg", "server"):
            save_pictures(folder, c.keys[0], originals, 1 - originals if c.form == "paper" else originals**2)
    return page(board, ThreatFilter(), folder, ["bench leaderboard play --format html --out board.html"])
