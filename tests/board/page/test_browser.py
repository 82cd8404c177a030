"""The page in a real browser. Skipped where there is none."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.big_board import DEFENSES, HOSTILE, big_board, with_exclusions
from helpers.board import make_board, make_cell, with_references, without_references
from helpers.pictures import save_pictures

from fedarena.board.advice import advice
from fedarena.board.board import Board
from fedarena.board.page.html import page
from fedarena.board.rank_rule import rank_rule
from fedarena.board.ranking import RankingRow, rank_defenses, worst
from fedarena.board.score_text import average, counts, defense_name, rank, score, times, worst_case
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter, threats_on
from fedarena.core.threat import EVERYONE, KNOWLEDGE

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium and chromedriver are not installed")

SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

Open = Callable[[str], Any]
"""Load a page's text; gives the browser."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
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
        return browser

    yield load
    assert browser.get_log("browser") == []
    assert browser.execute_script("return window.pwned") is None


@pytest.fixture(scope="module")
def board() -> Board:
    return big_board()


@pytest.fixture(scope="module")
def text(board: Board, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the large board, with pictures of one attack in both forms."""
    folder = tmp_path_factory.mktemp("records")
    originals = np.random.default_rng(0).random((3, 1, 8, 8))
    for c in board.cells:
        if (c.problem, c.defense, c.attack, c.party) == ("digits", "dbcl", "dlg", "server"):
            save_pictures(folder, c.keys[0], originals, 1 - originals if c.form == "paper" else originals**2)
    return page(board, ThreatFilter(), folder, ["bench leaderboard play --format html --out board.html"])


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


READ_ALL = """
const [cuts] = arguments, found = [];
const select = document.getElementById("problem"), form = document.getElementById("cut");
for (const [parties, knows, problem, weights] of cuts) {
  document.getElementById(weights ? "weighted" : "by-lowest").checked = true;
  for (const axis of ["utility", "integrity", "privacy"])
    document.getElementById(`weight-${axis}`).value = weights?.[axis] ?? 0;
  for (const box of form.querySelectorAll("[type=checkbox]"))
    box.checked = (box.name === "party" ? parties : knows).includes(box.value);
  select.selectedIndex = problem;
  select.dispatchEvent(new Event("input", { bubbles: true }));
  const keys = [...document.querySelectorAll("#board thead th")];
  const rows = [...document.querySelectorAll("#board tbody tr")].map((row) => Object.fromEntries(
    [...row.children].map((cell, i) => [keys[i].dataset.key, {
      text: [...cell.childNodes].filter((n) => n.nodeName !== "SMALL").map((n) => n.textContent).join(""),
      small: cell.querySelector("small")?.textContent ?? "",
      value: cell.dataset.value ?? null, hidden: cell.hidden || keys[i].hidden }])));
  found.push({ rows, rule: document.getElementById("rule").textContent,
    advice: [...document.querySelectorAll("#advice p")].map((p) => p.textContent) });
}
return found;
"""


def expected(row: RankingRow, key: str) -> tuple[str, str, float | None]:
    """What a cell must say, in large and small print, and its exact number."""
    if key == "rank":
        return rank(row), "", None
    if key == "defense":
        return defense_name(row), f"no rank: {row.unranked}" if row.unranked else "", None
    if key in ("bytes", "time"):
        return times(row.bytes if key == "bytes" else row.seconds), "", None
    if key == "cells":
        return counts(row.counts), "", None
    if key.startswith("average:"):
        return average(getattr(row, key.removeprefix("average:"))), "", None
    found = row.by_party[key.removeprefix("party:")] if key.startswith("party:") else getattr(row, key)
    small = {"lowest": row.lowest_axis}.get(key, worst_case(found, True) if key in ("integrity", "privacy") else "")
    return score(found), small, found.value.value if found.value is not None else None


WEIGHTS = (None, {"utility": 1.0, "integrity": 2.0, "privacy": 1.0}, {"utility": 0.3, "integrity": 0.0, "privacy": 0.1})


def _subsets(names: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return list(chain.from_iterable(combinations(names, n) for n in range(len(names) + 1)))


def _assert_the_same(line: dict[str, Any], row: RankingRow, threats: ThreatFilter) -> None:
    """Compares a row of the page with the row of the ranking."""
    for key, cell in line.items():
        nobody = (key.endswith("integrity") and not threats.knows) or (key.endswith("privacy") and not threats.parties)
        gone = key.startswith("party:") and key.removeprefix("party:") not in threats.parties
        assert cell["hidden"] == (nobody or gone or (key == "weighted" and row.weighted is None)), (threats, key)
        if not cell["hidden"]:
            large, small, value = expected(row, key)
            assert (cell["text"], cell["small"]) == (large, small), (threats, row.defense, key)
            assert (None if cell["value"] is None else float(cell["value"])) == value, (threats, row.defense, key)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["lowest", "integrity twice", "without integrity"])
def test_scores_and_ranks_are_python_s_for_every_filter(show: Open, weights: dict[str, float] | None) -> None:
    board = with_exclusions(big_board(odd=True))
    text = page(board, ThreatFilter(), None, ["bench leaderboard play"], weights)
    names = ["", "digits", "fashion"]
    cuts = [(p, k, i, weights) for p in _subsets(EVERYONE) for k in _subsets(KNOWLEDGE) for i in range(3)]
    found = show(text).execute_script(READ_ALL, cuts)
    assert len(found) == 192
    for (parties, knows, i, _), seen in zip(cuts, found, strict=True):
        threats = ThreatFilter(parties, knows, (names[i],) if i else ())
        ranking = rank_defenses(board, threats, weights)
        assert seen["advice"] == advice(board, threats, ranking, weights), threats
        assert seen["rule"] == rank_rule(threats.axes, weights)
        for row, line in zip(ranking, seen["rows"], strict=True):
            _assert_the_same(line, row, threats)


def test_weights_of_the_reader_rank_anew(board: Board, text: str, show: Open) -> None:
    weights = {"utility": 1.0, "integrity": 0.5, "privacy": 2.0}
    (seen,) = show(text).execute_script(READ_ALL, [[EVERYONE, KNOWLEDGE, 0, weights]])
    ranking = rank_defenses(board, ThreatFilter(), weights)
    for row, line in zip(ranking, seen["rows"], strict=True):
        _assert_the_same(line, row, ThreatFilter())
    assert seen["advice"][0].startswith(
        f"{ranking[0].defense} has the highest weighted mean, {score(ranking[0].deciding)}."
    )
    assert seen["advice"][1] == "The command below says why, with --weights utility=1,integrity=0.5,privacy=2."


def test_the_table_equals_the_one_without_javascript(text: str, show: Open) -> None:
    body = text.split("<tbody>")[1].split("</tbody>")[0]
    lines = [re.findall(r"<t[dh].*?</t[dh]>", line) for line in re.findall(r"<tr.*?</tr>", body)]
    shown = [[c for c in line if not re.match(r"<\w+[^>]* hidden>", c)] for line in lines]
    still = [[html.unescape(re.sub(r"<[^>]*>", "", c)) for c in line] for line in shown]
    browser = show(text)
    assert rows(browser) == still
    classes = [[(re.match(r'<\w+[^>]*? class="([^"]*)"', c) or ["", ""])[1] for c in line] for line in lines]
    script = (
        'return [...document.querySelectorAll("#board tbody tr")].map((r) => [...r.children].map((c) => c.className))'
    )
    assert browser.execute_script(script) == classes


def test_the_ranking_can_be_read_without_javascript(text: str, show: Open, browser: Any) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(text)
        assert find(browser, "#board").is_displayed()
        assert find(browser, "#advice").text.startswith("For all threats on the board: no defense here keeps 0.5")
        assert not find(browser, "#cut").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_columns_are_sorted_by_click_and_by_keyboard(board: Board, text: str, show: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(text)
    head = find(browser, 'th[data-key="utility"]')
    by_name = {defense_name(row): row.utility.value.value for row in rank_defenses(board) if row.utility.value}

    def names() -> list[str]:
        script = 'return [...document.querySelectorAll("#board tbody th button")].map((b) => b.textContent)'
        found: list[str] = browser.execute_script(script)
        return found

    def order() -> list[float]:
        return [by_name[name] for name in names()]

    assert find(browser, 'th[data-key="rank"]').get_attribute("aria-sort") == "ascending"
    find(browser, 'th[data-key="utility"] button').click()
    assert (head.get_attribute("aria-sort"), order()) == ("descending", sorted(by_name.values(), reverse=True))
    find(browser, 'th[data-key="utility"] button').send_keys(Keys.ENTER)
    assert (head.get_attribute("aria-sort"), order()) == ("ascending", sorted(by_name.values()))
    assert len(browser.find_elements("css selector", "th[aria-sort]")) == 1
    find(browser, 'th[data-key="rank"] button').send_keys(Keys.SPACE)
    ranking = [defense_name(row) for row in rank_defenses(board)]
    assert names() == ranking
    find(browser, 'th[data-key="rank"] button').click()
    assert names() == [*ranking[-2::-1], ranking[-1]]  # without a rank: last either way


def test_further_columns_are_folded_away(text: str, show: Open) -> None:
    browser = show(text)

    def heads() -> list[str]:
        return [h.get_attribute("data-key") for h in browser.find_elements("css selector", "th") if h.is_displayed()][
            :20
        ]

    first = ["rank", "defense", "lowest", "utility", "integrity", "privacy", "overall"]
    assert [head for head in heads() if head] == first
    more = find(browser, "#more")
    assert (more.text, more.get_attribute("aria-expanded")) == ("More columns", "false")
    more.click()
    assert (more.text, more.get_attribute("aria-expanded")) == ("Fewer columns", "true")
    assert {"paper_privacy", "party:server", "bytes", "cells"} < set(heads())
    phone(browser, 390)
    more.click()
    assert [head for head in heads() if head] == first[:3]


POINTS = """return [...document.querySelectorAll("#drawing a.point")].map((a) => {
  const { x, y } = a.querySelector(".dot").getBoundingClientRect();
  return [a.getAttribute("aria-label"), a.getAttribute("href"), x, y]; });"""


@pytest.mark.parametrize("weights", WEIGHTS[:2], ids=["lowest", "weights"])
def test_the_picture_has_a_point_per_ranked_defense(show: Open, weights: dict[str, float] | None) -> None:
    board = with_exclusions(big_board())
    ranked = {r.defense: r for r in rank_defenses(board, ThreatFilter(), weights) if r.rank is not None}
    points = {
        name.split(", rank")[0]: place
        for name, *place in show(page(board, None, None, [], weights)).execute_script(POINTS)
    }
    assert points.keys() == ranked.keys()
    assert len(ranked) > 3
    guarded = {name: min(r.integrity.level, r.privacy.level) for name, r in ranked.items()}
    by_x, by_y = (sorted(points, key=lambda name: (points[name][k], name)) for k in (1, 2))
    levels = [ranked[name].utility.level for name in by_x]
    assert levels == pytest.approx(sorted(levels), abs=0.02)  # the square of FedAvg is wider than a circle
    heights = [guarded[name] for name in by_y]
    assert heights == pytest.approx(sorted(heights, reverse=True), abs=0.02)


def test_a_point_says_what_it_is_and_leads_to_its_worst_cell(board: Board, text: str, show: Open) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser = show(text)
    row = next(r for r in rank_defenses(board) if r.defense == "two-stage")
    (point,) = [
        a
        for a in browser.find_elements("css selector", "#drawing a.point")
        if "two-stage" in a.get_attribute("aria-label")
    ]
    assert not find(browser, "#tip").is_displayed()
    lower = min((row.integrity, row.privacy), key=lambda s: s.level)
    told = [
        f"two-stage, rank {rank(row)}",
        "; ".join(f"{axis} {score(row.score(axis))}" for axis in ("utility", "integrity", "privacy")),
        f"worst case: {worst_case(lower, True)}",
    ]
    ActionChains(browser).move_to_element(point.find_element("css selector", ".dot")).perform()
    until(browser, lambda: find(browser, "#tip").text.split("\n") == told)
    ActionChains(browser).move_to_element(find(browser, "h1")).perform()
    until(browser, lambda: not find(browser, "#tip").is_displayed())
    browser.execute_script("arguments[0].focus()", point)
    assert find(browser, "#tip").text.split("\n") == told
    (label,) = [a for a in browser.find_elements("css selector", "#drawing a[tabindex]") if a.text == "two-stage"]
    assert label.get_attribute("href") == point.get_attribute("href")
    point.find_element("css selector", ".dot").click()
    assert lower.worst is not None
    title = f"{lower.worst.attack} against two-stage"
    until(browser, lambda: find(browser, "#cell-title").text == title)
    assert f"as {lower.worst.threat}, on {lower.worst.problem}" in find(browser, "#cell").text


def test_the_pareto_front_goes_through_what_nothing_surpasses(board: Board, text: str, show: Open) -> None:
    browser = show(text)
    best = {
        a.get_attribute("aria-label").split(", rank")[0]
        for a in browser.find_elements("css selector", "#drawing a.best")
    }
    places = {
        r.defense: (r.utility.level, min(r.integrity.level, r.privacy.level)) for r in rank_defenses(board) if r.rank
    }
    assert best == {
        name
        for name, (x, y) in places.items()
        if not any((a >= x and b >= y) and (a > x or b > y) for a, b in places.values())
    }
    assert find(browser, "#drawing .front").get_attribute("d").count("H") == len(best)


def test_references_are_in_the_picture_and_below_the_ranking(board: Board, show: Open) -> None:
    browser = show(page(without_references(board)))
    assert not find(browser, "#references").is_displayed()
    assert browser.find_elements("css selector", "#drawing .reference") == []
    browser = show(page(with_references(board, 0.5, {"two-stage": 0.6})))
    lines = [line.text for line in browser.find_elements("css selector", "#references tbody tr")]
    assert [line.split()[0] for line in lines] == ["constant", "local-only", "server-only"]
    assert "50 % (digits 50 ± 0 %, fashion 50 ± 0 %) 0 – 1" in lines[1]
    assert "not federating" in [t.text for t in browser.find_elements("css selector", "#drawing text")]
    assert len(browser.find_elements("css selector", "#drawing .reference")) == 1


def test_without_threats_there_is_no_picture_and_no_overview(text: str, show: Open) -> None:
    browser = show(text)
    browser.execute_script(READ_ALL, [[[], [], 0, None]])
    assert not find(browser, "#picture").is_displayed()
    assert not find(browser, "#map").is_displayed()


def test_the_overview_links_to_the_lowest_cell_of_each_attack(show: Open) -> None:
    board = with_exclusions(big_board())
    script = """return [...document.querySelectorAll("#overview tbody tr")].map((r) => [
      r.querySelector("th").textContent, [...r.querySelectorAll("a")].map(
        (a) => [a.getAttribute("href"), a.textContent, a.className, a.title])])"""
    lines = show(page(board)).execute_script(script)
    assert [name for name, _ in lines] == [r.defense for r in rank_defenses(board)]
    seen = 0
    for name, links in lines:
        for address, words, look, title in links:
            cell = board.cells[int(address.rsplit("-", 1)[1])]
            same = [c for c in board.cells if (c.defense, c.attack) == (name, cell.attack)]
            least = worst([c for c in same if c.counts]) if cell.counts else worst(same)
            assert cell.defense == name
            assert ("excluded" in look) == bool(cell.excluded)
            if cell.excluded:
                assert title.endswith(f"It does not count: {cell.excluded}")
                assert words.startswith("(")
            if least.worst is not None:
                assert words.strip("()*") == f"{least.level:.2f}"
                assert cell == least.worst or not cell.counts
            seen += 1
    assert seen == len({(c.defense, c.attack) for c in board.cells if c.counts or c.excluded})


def test_an_excluded_cell_is_shown_with_its_reason(show: Open) -> None:
    board = with_exclusions(big_board())
    browser = show(page(board))
    place = next(i for i, c in enumerate(board.cells) if c.excluded)
    go(browser, place, board)
    assert f"no: {board.cells[place].excluded}" in find(browser, "#cell").text


def test_a_text_filter_keeps_ranks_and_counts_rows(text: str, show: Open) -> None:
    browser = show(text)
    find(browser, "#settings summary").click()
    before = {line[1]: line[0] for line in rows(browser)}
    find(browser, "#search").send_keys("BAFFLE")
    assert {line[1]: line[0] for line in rows(browser)} == {"baffle †": before["baffle †"]}
    assert find(browser, "#shown").text == "1 of 8 defenses shown"
    find(browser, "#search").clear()
    find(browser, "#search").send_keys("no such thing")
    assert rows(browser) == []
    assert find(browser, "#shown").text == "0 of 8 defenses shown"


def test_threats_are_chosen_by_keyboard(board: Board, text: str, show: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(text)
    find(browser, "#settings summary").send_keys(Keys.SPACE)
    for value in ("client", "eavesdropper", "outsider", "omniscient"):
        find(browser, f'input[value="{value}"]').send_keys(Keys.SPACE)
    assert find(browser, "#advice").text.split("\n")[0] == advice(board, read_threat_filter("server,own"))[0]
    ranking = rank_defenses(board, read_threat_filter("server,own"))
    assert [line[2] for line in rows(browser)] == [score(r.lowest) + r.lowest_axis for r in ranking]


def test_a_reader_goes_from_a_defense_to_a_cell_and_back(board: Board, text: str, show: Open) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = show(text)
    find(
        browser, f"#board tbody tr:nth-child({1 + [r.defense for r in rank_defenses(board)].index('dbcl')}) button"
    ).click()
    until(browser, lambda: find(browser, "#detail-title").text == "dbcl")
    assert browser.switch_to.active_element == find(browser, "#detail-title")
    assert not find(browser, "#cell").is_displayed()
    heat = browser.find_elements("css selector", "#detail .heat button")
    assert len(heat) == len([c for c in board.cells if c.defense == "dbcl"])
    names = [b.get_attribute("aria-label") for b in heat]
    chosen = next(
        c for c in board.cells if (c.defense, c.attack, c.party, c.form) == ("dbcl", "dlg", "server", "paper")
    )
    assert any(name.startswith("dlg as client, paper: n/a") for name in names)
    heat[next(i for i, name in enumerate(names) if name.startswith("dlg as server, paper"))].send_keys(Keys.ENTER)
    until(browser, lambda: find(browser, "#cell-title").text == "dlg against dbcl")
    cell_text = find(browser, "#cell").text
    for key in chosen.keys.values():
        assert key in cell_text
    for value in chosen.scores.values():
        assert f"{value:.3f}" in cell_text
    assert "over 5 seeds" in cell_text
    assert chosen.command in cell_text
    pictures = browser.find_elements("css selector", "#cell img")
    assert [p.get_attribute("alt").split(";")[0] for p in pictures] == [
        "originals that dlg was after",
        "what dlg made of them as server, paper",
        "what dlg made of them as server, adaptive",
    ]
    assert all(browser.execute_script("return arguments[0].naturalWidth", p) == 3 * 8 + 2 * 2 for p in pictures)
    find(browser, "#cell .copy").click()
    until(browser, lambda: find(browser, "#cell .copy + span").text in ("copied", "selected: press Ctrl+C"))
    browser.back()
    until(browser, lambda: not find(browser, "#cell").is_displayed())
    browser.back()
    until(browser, lambda: not find(browser, "#detail").is_displayed())


def test_curves_are_drawn_and_described(board: Board, text: str, show: Open) -> None:
    browser = show(text)
    for attack, labels in (
        ("sign-flip", ["accuracy by round, least seed: under sign-flip from 0.1 to 0.45; without poisoning from 0.1"]),
        ("joint-membership", ["ROC, least seed: joint-membership from 0 to 1; guessing from 0 to 1"]),
    ):
        i = next(i for i, c in enumerate(board.cells) if (c.defense, c.attack) == ("dbcl", attack) and c.scores)
        go(browser, i, board)
        drawn = [s.get_attribute("aria-label") for s in browser.find_elements("css selector", "#cell svg")]
        assert len(drawn) == len(labels)
        assert all(one.startswith(label) for one, label in zip(drawn, labels, strict=True))
    cell_text = find(browser, "#cell").text
    assert "sum of two rounds" in cell_text  # the reading, and what the other one says
    assert "one round 0.90" in cell_text


def test_reasons_and_warnings_are_shown_as_text(board: Board, text: str, show: Open) -> None:
    browser = show(text)
    failed = next(i for i, c in enumerate(board.cells) if c.status == "failed")
    go(browser, failed, board)
    assert f"failed: ValueError: {HOSTILE}" in find(browser, "#cell").text
    marked = next(i for i, c in enumerate(board.cells) if c.defense == "baffle")
    go(browser, marked, board)
    assert "simulated: secure sums are added in the clear" in find(browser, "#cell").text
    own = next(i for i, c in enumerate(board.cells) if c.warnings)
    go(browser, own, board)
    assert "lost up to 5.6 of their decimal digits" in find(browser, "#cell").text
    private = next(i for i, c in enumerate(board.cells) if c.defense == "two-stage")
    go(browser, private, board)
    assert "epsilon 8" in find(browser, "#detail").text


def go(browser: Any, cell: int, board: Board) -> None:
    """By the address, as a link would."""
    place = f"defense-{DEFENSES.index(board.cells[cell].defense)}-{cell}"
    browser.execute_async_script(
        "const done = arguments[1]; addEventListener('hashchange', () => setTimeout(done, 0), { once: true });"
        "location.hash = arguments[0];",
        place,
    )


@pytest.mark.parametrize(("width", "dark"), [(360, False), (360, True), (390, False)])
def test_a_phone_never_scrolls_the_page_sideways(
    board: Board, text: str, show: Open, browser: Any, width: int, dark: bool
) -> None:
    phone(browser, width, dark)
    show(text)
    for attack in (None, "sign-flip", "dlg", "joint-membership"):
        if attack is not None:
            go(browser, next(i for i, c in enumerate(board.cells) if (c.defense, c.attack) == (HOSTILE, attack)), board)
        wide = browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth, innerWidth]"
        )
        assert wide == [width, width, width], attack
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(22, 22, 22)" if dark else "rgb(255, 255, 255)")


def test_nothing_is_fetched(text: str, show: Open) -> None:
    browser = show(text)
    names = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in names if not name.startswith("data:")] == []


def test_the_page_can_be_read_by_a_screen_reader(board: Board, text: str, show: Open) -> None:
    browser = show(text)
    go(browser, next(i for i, c in enumerate(board.cells) if (c.defense, c.attack) == ("dbcl", "dlg")), board)
    script = """
    const all = (s) => [...document.querySelectorAll(s)];
    return { lang: document.documentElement.lang,
      unnamed: all("button, input, select")
        .filter((x) => !(x.textContent.trim() || x.ariaLabel || x.labels?.length)).length,
      images: all("img:not([alt]), svg:not([aria-label])").length,
      heads: all("th:not([scope])").length, regions: all(".scroll:not([tabindex])").length,
      ids: all("[id]").length - new Set(all("[id]").map((x) => x.id)).size };"""
    found = browser.execute_script(script)
    assert found == {"lang": "en", "unnamed": 0, "images": 0, "heads": 0, "regions": 0, "ids": 0}


@pytest.mark.parametrize(
    "little",
    [
        make_board([], [], seeds=(), problems=()),
        make_board([make_cell(seeds=(0,))], seeds=(0,)),
        make_board([make_cell(status="failed"), make_cell("__proto__", "constructor", 0.5)]),
    ],
    ids=["empty", "one seed", "failed"],
)
def test_boards_with_few_results_are_shown(little: Board, show: Open) -> None:
    browser = show(page(little))
    threats = threats_on(little)
    assert [p.text for p in browser.find_elements("css selector", "#advice p")] == advice(little, threats)
    assert [line[1].split("no rank")[0] for line in rows(browser)] == [
        r.defense for r in rank_defenses(little, threats)
    ]
    for i, c in enumerate(little.cells):
        browser.execute_script("location.hash = arguments[0]", f"defense-{little.defenses.index(c.defense)}-{i}")
        title = f"{c.attack} against {c.defense}"
        until(browser, lambda title=title: find(browser, "#cell-title").text == title)
    browser.execute_script("location.hash = 'defense-99-99'")
    until(browser, lambda: not find(browser, "#detail").is_displayed())
