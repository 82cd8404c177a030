"""Scores and ranks: worst cases, n/a, what keeps a defense from a rank, cuts."""

from __future__ import annotations

import pytest
from big_board import big_board
from board_play import make_board, make_cell, make_honest

from fedarena.board.standing import Cut, read_cut, standings, within, worst
from fedarena.errors import UserError


def test_the_worst_case_is_the_lowest_mean_and_keeps_its_own_interval() -> None:
    found = worst([make_cell(score=[0.9, 0.1, 0.5]), make_cell(attack="ig", score=[0.4, 0.4, 0.4])])
    assert found.worst is not None
    assert found.worst.attack == "ig"
    assert found.value is not None
    assert (found.value.value, found.value.half, found.value.seeds) == (pytest.approx(0.4), pytest.approx(0), 3)
    assert (found.average, found.cells) == (pytest.approx(0.45), 2)


def test_where_no_attack_can_start_the_worst_case_is_one_and_no_cell_s() -> None:
    found = worst([make_cell(status="n/a"), make_cell(attack="ig", status="n/a")])
    assert found.value is not None
    assert (found.value.value, found.worst, found.cells, found.by_seed) == (1.0, None, 0, {0: 1.0, 1: 1.0, 2: 1.0})
    assert worst([make_cell(status="n/a"), make_cell(attack="ig", status="failed")]).value is None
    assert worst([]).value is None
    mixed = worst([make_cell(status="n/a"), make_cell(attack="ig", score=0.7)])
    assert mixed.value is not None
    assert mixed.value.value == pytest.approx(0.7)


def test_a_party_that_sees_nothing_of_a_defense_does_not_cost_it_its_rank() -> None:
    """Otherwise the defense that leaks to clients would be recommended before the one that shows them nothing."""
    cells = [
        make_cell("fedavg", score=0.1, party="client"),
        make_cell("dbcl", status="n/a", party="client"),
        make_cell("two-stage", score=0.8, party="client"),
    ]
    rows = standings(make_board(cells), read_cut("client"))
    assert [(r.defense, r.rank) for r in rows] == [("dbcl", 1), ("two-stage", 2), ("fedavg", 3)]


def test_no_rank_without_every_attack() -> None:
    cells = [make_cell(d, a, 0.5) for d in ("fedavg", "dbcl") for a in ("dlg", "ig")]
    cells[3] = make_cell("dbcl", "ig", status="failed")
    honest = [make_honest("fedavg"), make_honest("dbcl"), make_honest("two-stage")]
    rows = {r.defense: r for r in standings(make_board(cells, honest), read_cut("server"))}
    assert rows["fedavg"].rank == 1
    assert (rows["dbcl"].rank, rows["dbcl"].unranked) == (None, "1 of 2 attacks and threats not met")
    assert (rows["two-stage"].rank, rows["two-stage"].unranked) == (None, "no privacy score")


def test_ties_go_to_fewer_bytes() -> None:
    cells = [make_cell(d, score=0.5) for d in ("fedavg", "dbcl", "two-stage")]
    honest = [make_honest(d, bytes_up=b) for d, b in (("fedavg", 4e3), ("dbcl", 9e3), ("two-stage", 5e3))]
    rows = standings(make_board(cells, honest), read_cut("server"))
    assert [r.defense for r in rows] == ["fedavg", "two-stage", "dbcl"]


def test_within_keeps_what_counts_and_ranks_alike() -> None:
    board, cut = big_board(), read_cut("server,own", ["digits"])
    kept = within(board, cut)
    assert (
        {c.problem for c in kept.cells}
        == {h.problem for h in kept.honest}
        == {a.name for a in kept.arenas}
        == {"digits"}
    )
    assert {c.party for c in kept.cells if c.axis == "privacy"} == {"server"}
    assert {c.knows for c in kept.cells if c.axis == "integrity"} == {"own"}
    assert standings(kept, cut) == standings(board, cut)
    assert within(board, Cut()) == board


def test_threats_are_read_from_words() -> None:
    assert read_cut("own, server") == Cut(("server",), ("own",))
    assert read_cut("server").axes == ("utility", "privacy")
    for text in ("", ",", "sever", "server,clients"):
        with pytest.raises(UserError, match=r"option 'threats' is '.*', allowed: server, client,"):
            read_cut(text)
