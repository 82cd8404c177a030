"""In a terminal of 80 columns no line is longer, and no word is broken or cut."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.paths import REPORTS

from fedarena.board.leaderboard import render
from fedarena.board.load import load_board
from fedarena.cli.output import leaderboard, suite
from fedarena.cli.output.rows import show_rows
from fedarena.cli.output.terminal import Terminal
from fedarena.runs.suite.plan import Plan, Planned

BOARDS = ("digits", "heterogeneous", "baseline")


def printed(show: Callable[[Terminal], None], width: int) -> str:
    out = io.StringIO()
    show(Terminal(file=out, width=width))
    return out.getvalue()


def assert_whole(show: Callable[[Terminal], None], width: int = 80) -> None:
    """Every word of a narrow terminal is one of a very wide terminal, but for rules."""
    narrow, wide = printed(show, width), printed(show, 500)
    assert max(map(len, narrow.splitlines())) <= width
    assert {word for word in narrow.split() if "─" not in word} <= set(wide.split())


@pytest.mark.parametrize("board", BOARDS)
def test_a_leaderboard_is_whole(board: str) -> None:
    rendered = render(load_board(REPORTS / board))
    assert_whole(lambda console: leaderboard.show(rendered, [], console))


def test_the_widest_column_is_not_kept_at_the_last_one_s_expense() -> None:
    titles, rows = ("defense", "of single nodes", "bytes per edge"), [("d-sgd+nnm+trimmed-mean", "1 ± 2", "19.3 kB")]
    for width in range(40, 60):
        assert_whole(lambda console: show_rows(console, titles, rows), width)


def test_the_plan_of_a_suite_is_whole() -> None:
    """A plan with an attack of a long name, and with one of every form and party."""
    place = {"defense": "two-stage-hardened", "seed": 0, "goal": "", "key": "k", "shown": True, "counts": True}
    trials = tuple(
        Planned(name=(attack, party), problem="property", attack=attack, party=party, form=form, knows=knows, **place)  # type: ignore[arg-type]
        for attack in ("none", "model-replacement+pixel-trigger", "marginal-membership")
        for party in ("server", "eavesdropper", "outsider")
        for form, knows in (("paper", ""), ("adaptive", "omniscient"))
    )
    about = {"suite": "s", "title": "S", "about": "It is a suite.", "digest": "d", "seeds": (0,)}
    planned = Plan(**about, problems={}, aside=(), trials=trials)  # type: ignore[arg-type]
    assert_whole(lambda console: console.print(suite._plan_table(planned, {"k"}, {("none", "server")})))
    empty = Plan(**about, problems={}, aside=(), trials=())  # type: ignore[arg-type]
    assert "problem" in printed(lambda console: console.print(suite._plan_table(empty, (), ())), 80)


def test_rows_stand_below_each_other_where_a_table_is_too_wide() -> None:
    titles, rows = ("where", "path"), [("first", "a" * 60), ("second", "-"), ("third" * 4, "words in a row")]
    text = printed(lambda console: show_rows(console, titles, rows), 80)
    assert text.splitlines() == ["first", f"  path: {'a' * 60}", "second", "third" * 4, "  path: words in a row"]
    assert printed(lambda console: show_rows(console, titles, rows), 100).splitlines()[0].split() == ["where", "path"]


def test_cells_of_several_lines_stand_below_each_other_in_narrow_tables() -> None:
    titles = ("clients know", "no defense", "krum")
    rows = [("nothing", "accuracy 95 %", "accuracy 94 %\nrejected: honest 80 %"), ("own", "-", "accuracy 3 %\ndead")]
    text = printed(lambda console: show_rows(console, titles, rows, ruled=True), 40)
    assert [line.rstrip() for line in text.splitlines()] == [
        "",
        "clients know: nothing",
        "  no defense: accuracy 95 %",
        "  krum:",
        "    accuracy 94 %",
        "    rejected: honest 80 %",
        "",
        "clients know: own",
        "  krum:",
        "    accuracy 3 %",
        "    dead",
        "",
    ]
    table = printed(lambda console: show_rows(console, titles, rows, ruled=True), 80)
    assert table.split()[:5] == ["clients", "know", "no", "defense", "krum"]
    empty = printed(lambda console: show_rows(console, ("attacker", "krum"), [("server", "")], ruled=True), 40)
    assert empty.split()[-1] == "server"


def test_a_path_that_no_terminal_holds_is_not_broken(tmp_path: Path) -> None:
    long = "/" + "x" * 150
    assert long in printed(lambda console: show_rows(console, ("name", "path"), [("one", long)]), 80)
