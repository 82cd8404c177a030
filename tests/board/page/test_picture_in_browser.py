"""The picture of the page in a real browser: scores, intervals, references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const line = a.querySelector(".whisker").getBoundingClientRect();
  return { told: a.getAttribute("aria-label"), lowest: a.classList.contains("lowest"), ends: [line.left, line.right],
           place: middle(a.querySelector(".dot").getBoundingClientRect()) }; });"""

AXES = ("utility", "integrity", "privacy")


def scale(browser: Any) -> Callable[[float], float]:
    """Score → where it lies on the screen, from the lines of the grid at 0 and 1."""
    lines = browser.find_elements("css selector", "#drawing line.grid[y2]")
    upright = [line.rect["x"] for line in lines if line.get_attribute("x1") == line.get_attribute("x2")]
    return lambda v: min(upright) + v * (max(upright) - min(upright))


@pytest.mark.parametrize(
    "weights", [None, {"utility": 1.0, "integrity": 2.0, "privacy": 1.0}], ids=["lowest", "weights"]
)
def test_the_picture_has_each_score_with_its_interval(show: Open, weights: dict[str, float] | None) -> None:
    board = with_exclusions(big_board())
    rows = rank_defenses(board, ThreatFilter(), weights)
    browser = show(page(board, None, None, [], weights))
    points = browser.execute_script(POINTS)
    scores = [(r, axis, r.score(axis)) for r in rows for axis in AXES if r.score(axis).cells]
    assert [p["told"].split(". ")[:2] for p in points] == [
        [f"{r.defense}, {f'rank {rank(r)}' if r.rank else 'no rank'}", f"{axis} {score(s)}"] for r, axis, s in scores
    ]
    assert len(points) > 12
    place = scale(browser)
    for p, (_, _, s) in zip(points, scores, strict=True):
        assert p["place"][0] == pytest.approx(place(s.level), abs=0.6)
        assert s.value is not None
        low, high = s.value.interval if s.value.ends or s.value.half is not None else (s.level, s.level)
        assert p["ends"] == pytest.approx([place(max(0, low)), place(min(1, high))], abs=1.1)
    heights = [p["place"][1] for p in points]
    assert heights == sorted(heights)


def test_of_each_defense_the_lowest_score_is_filled(board: Board, text: str, show: Open) -> None:
    filled = {tuple(p["told"].split(". ")[:2]) for p in show(text).execute_script(POINTS) if p["lowest"]}
    assert filled == {
        (f"{r.defense}, {f'rank {rank(r)}' if r.rank else 'no rank'}", f"{axis} {score(r.score(axis))}")
        for r in rank_defenses(board)
        for axis in AXES
        if r.score(axis).cells and r.score(axis).level == min(r.score(name).level for name in AXES)
    }


def test_a_score_says_what_it_is_and_leads_to_its_worst_cell(board: Board, text: str, show: Open) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser = show(text)
    row = next(r for r in rank_defenses(board) if r.defense == "two-stage")
    (point,) = [
        a
        for a in browser.find_elements("css selector", "#drawing a.privacy")
        if a.get_attribute("aria-label").startswith("two-stage, ")
    ]
    assert not find(browser, "#tip").is_displayed()
    told = [
        f"two-stage, rank {rank(row)}",
        f"privacy {score(row.privacy)}",
        f"worst case: {worst_case(row.privacy, True)}",
    ]
    ActionChains(browser).move_to_element(point.find_element("css selector", ".dot")).perform()
    until(browser, lambda: find(browser, "#tip").text.split("\n") == told)
    ActionChains(browser).move_to_element(find(browser, "h1")).perform()
    until(browser, lambda: not find(browser, "#tip").is_displayed())
    browser.execute_script("arguments[0].focus()", point)
    assert find(browser, "#tip").text.split("\n") == told
    point.find_element("css selector", ".dot").click()
    assert row.privacy.worst is not None
    title = f"{row.privacy.worst.attack} against two-stage"
    until(browser, lambda: find(browser, "#cell-title").text == title)
    assert f"as {row.privacy.worst.threat}, on {row.privacy.worst.problem}" in find(browser, "#cell").text


def test_bold_names_are_the_pareto_front(board: Board, text: str, show: Open) -> None:
    bold = {a.text.split(maxsplit=1)[1] for a in show(text).find_elements("css selector", "#drawing a.best")}
    places = {r.defense: [r.score(axis).level for axis in AXES] for r in rank_defenses(board) if r.rank}
    assert bold == {
        name if len(name) <= 26 else f"{name[:25]}…"
        for name, mine in places.items()
        if not any(other != mine and all(a >= b for a, b in zip(other, mine, strict=True)) for other in places.values())
    }
    assert 0 < len(bold) < len(places)


def test_a_name_leads_to_its_defense(text: str, show: Open) -> None:
    browser = show(text)
    (name,) = [a for a in browser.find_elements("css selector", "#drawing a.name") if a.text.split()[-1] == "two-stage"]
    name.click()
    until(browser, lambda: "two-stage" in find(browser, "#detail-title").text)


def test_references_are_in_the_picture_and_below_the_ranking(board: Board, show: Open) -> None:
    browser = show(page(without_references(board)))
    assert not find(browser, "#references").is_displayed()
    assert browser.find_elements("css selector", "#drawing .reference") == []
    browser = show(page(with_references(board, 0.5, {"two-stage": 0.6})))
    lines = [line.text for line in browser.find_elements("css selector", "#references tbody tr")]
    assert [line.split()[0] for line in lines] == ["constant", "local-only", "server-only"]
    assert "50 % (digits 50 ± 0 %, fashion 50 ± 0 %) 0 – 1" in lines[1]
    said = "Dotted: utility without a federation (constant, local-only, server-only)"
    assert said in find(browser, "#keys").text
    told = str(find(browser, "#keys span").get_attribute("title")).splitlines()
    assert told[1] == "local-only: 50 % (digits 50 ± 0 %, fashion 50 ± 0 %)"
    assert len(browser.find_elements("css selector", "#drawing .reference")) == 1
