"""The way from the overview to a defense and a cell in a real browser, on any screen and by keyboard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers.big_board import HOSTILE, big_board, with_exclusions
from helpers.board import consistent, make_board, make_cell
from helpers.browser import Open, find, go, phone, rows, until

from fedarena.board.advice import advice
from fedarena.board.board import Board
from fedarena.board.page.html import page
from fedarena.board.ranking import rank_defenses, worst
from fedarena.board.score_text import score
from fedarena.board.threat_filter import read_threat_filter, threats_on


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


def test_a_curve_stands_beside_what_needs_no_federation(board: Board, show: Open) -> None:
    alone = {seed: 0.25 + 0.1 * seed for seed in board.seeds}
    measured = replace(board, problems=tuple(replace(p, local_only=alone) for p in board.problems))
    browser = show(page(consistent(measured)))
    i = next(i for i, c in enumerate(board.cells) if (c.defense, c.attack) == ("dbcl", "sign-flip") and c.scores)
    go(browser, i, board)
    (drawn,) = [s.get_attribute("aria-label") for s in browser.find_elements("css selector", "#cell svg")]
    assert "what needs no federation (b = 0.25) from 0.25 to 0.25" in drawn
    assert "dotted: what needs no federation (b = 0.25)" in find(browser, "#cell .charts").text


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
