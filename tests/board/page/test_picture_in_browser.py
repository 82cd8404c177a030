"""The picture of the page in a real browser: points, references, and the front."""

from __future__ import annotations

import pytest
from helpers.big_board import big_board, with_exclusions
from helpers.board import with_references, without_references
from helpers.browser import Open, find, until

from fedarena.board.board import Board
from fedarena.board.page.html import page
from fedarena.board.ranking import rank_defenses
from fedarena.board.score_text import rank, score, worst_case
from fedarena.board.threat_filter import ThreatFilter

POINTS = """return [...document.querySelectorAll("#drawing a.point")].map((a) => {
  const { x, y } = a.querySelector(".dot").getBoundingClientRect();
  return [a.getAttribute("aria-label"), a.getAttribute("href"), x, y]; });"""


@pytest.mark.parametrize(
    "weights", [None, {"utility": 1.0, "integrity": 2.0, "privacy": 1.0}], ids=["lowest", "weights"]
)
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
    shown = [t.text for t in browser.find_elements("css selector", "#drawing text")]
    assert any(text.startswith("not federating: constant, local-only, server-only") for text in shown)
    told = find(browser, "#drawing text title").get_attribute("textContent").splitlines()
    assert told[1] == "local-only: 50 % (digits 50 ± 0 %, fashion 50 ± 0 %)"
    assert len(browser.find_elements("css selector", "#drawing .reference")) == 1
