"""The ranking of the page in a real browser: the scores, ranks and columns that Python gives."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import pytest
from helpers.big_board import big_board, with_exclusions
from helpers.board import make_cell
from helpers.browser import Open, find, phone, rows
from helpers.paths import REPORTS

from fedarena.board.advice import advice
from fedarena.board.board import Board
from fedarena.board.load import load_board
from fedarena.board.page.board_data import levels_of
from fedarena.board.page.html import page
from fedarena.board.rank_rule import rank_rule
from fedarena.board.ranking import RankingRow, rank_defenses
from fedarena.board.score_text import average, counts, defense_name, rank, score, times, worst_case
from fedarena.board.threat_filter import ThreatFilter, threats_on
from fedarena.core.threat import EVERYONE, KNOWLEDGE

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
    levels = levels_of(board)
    cuts = [(p, k, i, weights) for p in _subsets(EVERYONE) for k in _subsets(levels) for i in range(3)]
    found = show(text).execute_script(READ_ALL, cuts)
    assert len(found) == 192
    for (parties, knows, i, _), seen in zip(cuts, found, strict=True):
        threats = ThreatFilter(parties, KNOWLEDGE if knows == levels else knows, (names[i],) if i else ())
        ranking = rank_defenses(board, threats, weights)
        assert seen["advice"] == advice(board, threats, ranking, weights), threats
        assert seen["rule"] == rank_rule(threats.axes, weights)
        for row, line in zip(ranking, seen["rows"], strict=True):
            _assert_the_same(line, row, threats)


def test_fake_clients_without_data_are_a_choice_where_the_board_has_them(show: Open) -> None:
    board = big_board(odd=True)
    none = make_cell(board.defenses[0], "poisoned-fl", 0.05, axis="integrity", knows="none", problem="digits")
    board = replace(board, cells=(*board.cells, none))
    cuts = [(EVERYONE, knows, 0, None) for knows in _subsets(KNOWLEDGE)]
    found = show(page(board)).execute_script(READ_ALL, cuts)
    for (parties, knows, _, _), seen in zip(cuts, found, strict=True):
        threats = ThreatFilter(parties, knows)
        ranking = rank_defenses(board, threats)
        assert seen["advice"] == advice(board, threats, ranking), threats
        for row, line in zip(ranking, seen["rows"], strict=True):
            _assert_the_same(line, row, threats)


def test_weights_of_zero_rank_nothing_and_name_no_command(board: Board, show: Open) -> None:
    """`--weights` refuses them, so that the page does not advise to give them."""
    zero = dict.fromkeys(("utility", "integrity", "privacy"), 0.0)
    (seen,) = show(page(board)).execute_script(READ_ALL, [(EVERYONE, levels_of(board), 0, zero)])
    assert {line["rank"]["text"] for line in seen["rows"]} == {"–"}
    told = "No score that counts here has a weight, so nothing is ranked. utility, integrity and privacy can have one."
    assert seen["advice"] == [told]


@pytest.mark.parametrize("weights", WEIGHTS, ids=["lowest", "integrity twice", "without integrity"])
def test_fedavg_with_the_best_scores_has_no_rank(board: Board, show: Open, weights: dict[str, float] | None) -> None:
    best = [replace(c, scores=dict.fromkeys(c.scores, 1.0)) if c.defense == "fedavg" else c for c in board.cells]
    board = replace(board, cells=tuple(best))
    cuts = [(p, k, 0, weights) for p in ((), ("server",), EVERYONE) for k in ((), KNOWLEDGE)]
    found = show(page(board, ThreatFilter(), None, [], weights)).execute_script(READ_ALL, cuts)
    for (parties, knows, _, _), seen in zip(cuts, found, strict=True):
        threats = ThreatFilter(parties, knows)
        ranking = rank_defenses(board, threats, weights)
        assert seen["advice"] == advice(board, threats, ranking, weights), threats
        assert "no defense here scores above plain fedavg, which is none" in seen["advice"][0]
        for row, line in zip(ranking, seen["rows"], strict=True):
            _assert_the_same(line, row, threats)
        (plain,) = [line for line in seen["rows"] if line["defense"]["text"] == "fedavg"]
        told = "no rank: it is no defense, and stands for comparison"
        assert (plain["rank"]["text"], plain["defense"]["small"]) == ("–", told)


@pytest.mark.parametrize("name", ["digits", "iid"])
def test_a_published_board_is_ranked_as_python_ranks_it(show: Open, name: str) -> None:
    """With defenses that gain nothing over not federating, cells that are excluded, and attacks in one form alone."""
    board = load_board(REPORTS / name)
    problems = ["", *(p.name for p in board.problems)]
    cuts = [(p, k, i, None) for p, k in ((EVERYONE, KNOWLEDGE), (("server",), ("own",))) for i in range(len(problems))]
    found = show(page(board, threats_on(board), None, [f"bench leaderboard reports/{name}"])).execute_script(
        READ_ALL, cuts
    )
    for (parties, knows, i, _), seen in zip(cuts, found, strict=True):
        threats = ThreatFilter(parties, knows, (problems[i],) if i else ())
        for row, line in zip(rank_defenses(board, threats), seen["rows"], strict=True):
            _assert_the_same(line, row, threats)
    assert any("gains less than" in row.unranked for row in rank_defenses(board))


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
    ranking = rank_defenses(board)
    ranked, others = ([defense_name(r) for r in ranking if (r.rank is None) == none] for none in (False, True))
    assert names() == [*ranked, *others]
    find(browser, 'th[data-key="rank"] button').click()
    assert names() == [*ranked[::-1], *others]  # without a rank: last either way


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


def test_no_name_in_the_picture_is_cut_on_a_phone(show: Open) -> None:
    board = load_board(REPORTS / "heterogeneous")
    long = max((run.defense for run in board.clean_runs), key=len)
    assert len(long) >= len("nnm+trimmed-mean")
    browser = show(page(board))
    phone(browser, 390)
    browser.execute_script("window.dispatchEvent(new Event('resize'))")
    lefts = browser.execute_script(
        "const frame = document.querySelector('#drawing').getBoundingClientRect().left;"
        "return [...document.querySelectorAll('#drawing a.name text')]"
        ".map((t) => t.getBoundingClientRect().left - frame)"
    )
    assert len(lefts) == 9
    assert min(lefts) >= 0


def test_without_threats_there_is_no_picture_and_no_overview(text: str, show: Open) -> None:
    browser = show(text)
    browser.execute_script(READ_ALL, [[[], [], 0, None]])
    assert not find(browser, "#picture").is_displayed()
    assert not find(browser, "#map").is_displayed()
