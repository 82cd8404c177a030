"""Scores and ranks: worst cases, n/a, what keeps a defense from a rank, cuts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from helpers.big_board import big_board
from helpers.board import make_board, make_cell, make_clean_run, make_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.board.lowest_mean import lowest_mean_interval
from fedarena.board.rank_range import RankRange, rank_ranges, wholly_above
from fedarena.board.ranking import rank_defenses, worst
from fedarena.board.score_text import rank
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter, threats_on, within
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import Mean, mean
from fedarena.core.threat import KNOWLEDGE


def test_the_worst_case_has_the_interval_of_the_lowest_true_mean() -> None:
    found = worst([make_cell(score=[0.9, 0.1, 0.5]), make_cell(attack="ig", score=[0.4, 0.4, 0.4])])
    assert found.worst is not None
    assert found.worst.attack == "ig"
    assert found.value is not None
    assert (found.value.value, found.value.half, found.value.seeds) == (pytest.approx(0.4), None, 3)
    other = mean([0.9, 0.1, 0.5]).interval
    assert other is not None
    assert found.value.interval == (pytest.approx(other[0]), pytest.approx(0.4))
    assert (found.average, found.cells) == (pytest.approx(0.45), 2)


def test_the_worst_case_is_one_and_has_no_cell_if_no_attack_can_start() -> None:
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
        make_cell("krum", score=0.1, party="client"),
        make_cell("dbcl", status="n/a", party="client"),
        make_cell("two-stage", score=0.8, party="client"),
    ]
    honest = [make_clean_run(d) for d in ("krum", "dbcl", "two-stage")]
    rows = rank_defenses(make_board(cells, honest), read_threat_filter("client"))
    assert [(r.defense, rank(r)) for r in rows] == [("dbcl", "1"), ("two-stage", "2"), ("krum", "3")]


def test_a_defense_without_every_attack_has_no_rank() -> None:
    cells = [make_cell(d, a, 0.5) for d in ("krum", "dbcl") for a in ("dlg", "ig")]
    cells[3] = make_cell("dbcl", "ig", status="failed")
    honest = [make_clean_run("krum"), make_clean_run("dbcl"), make_clean_run("two-stage")]
    rows = {r.defense: r for r in rank_defenses(make_board(cells, honest), read_threat_filter("server"))}
    assert rows["krum"].rank == RankRange(1, 1)
    assert (rows["dbcl"].rank, rows["dbcl"].unranked) == (None, "1 of 2 attacks and threats not met")
    assert (rows["two-stage"].rank, rows["two-stage"].unranked) == (None, "no privacy score")


@pytest.mark.parametrize("broken", [{"status": "failed"}, {"excluded": "it is not tuned", "counts": False}])
def test_an_attack_that_breaks_down_in_one_form_is_not_met(broken: dict[str, Any]) -> None:
    """Otherwise a defense would lead because the stronger form of an attack did not run on it."""
    cells = [make_cell(d, score=0.5, form=form) for d in ("two-stage", "dbcl") for form in ("paper", "adaptive")]
    cells[3] = make_cell("dbcl", score=0.5, form="adaptive", **broken)
    rows = {r.defense: r for r in rank_defenses(make_board(cells), read_threat_filter("server"))}
    assert rows["two-stage"].rank == RankRange(1, 1)
    assert (rows["dbcl"].rank, rows["dbcl"].unranked[:6]) == (None, "1 of 1")


def test_ties_go_to_fewer_bytes() -> None:
    sent = {"fedavg": 4e3, "krum": 4e3, "dbcl": 9e3, "two-stage": 5e3}
    cells, honest = [make_cell(d, score=0.5) for d in sent], [make_clean_run(d, bytes_up=b) for d, b in sent.items()]
    rows = rank_defenses(make_board(cells, honest), read_threat_filter("server"))
    assert [r.defense for r in rows] == ["krum", "two-stage", "dbcl", "fedavg"]


@pytest.mark.parametrize("score", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("weights", [None, {"utility": 1.0, "privacy": 1.0}])
def test_fedavg_has_no_rank_whatever_its_scores(score: float, weights: dict[str, float] | None) -> None:
    """It is no defense. The ranks of the others are those of a board without it."""
    cells = [make_cell(d, score=[v] * 3) for d, v in (("fedavg", score), ("dbcl", 0.5), ("two-stage", 0.2))]
    honest = [make_clean_run("fedavg"), make_clean_run("dbcl", level=0.9), make_clean_run("two-stage", level=0.9)]
    rows = rank_defenses(make_board(cells, honest), None, weights)
    assert [(r.defense, rank(r)) for r in rows] == [("dbcl", "1"), ("two-stage", "2"), ("fedavg", "–")]
    assert rows[-1].unranked == "it is no defense, and stands for comparison"
    assert rows[-1].privacy.level == pytest.approx(score)
    without = rank_defenses(make_board(cells[1:], honest[1:]), None, weights)
    assert [(r.defense, r.rank) for r in without] == [(r.defense, r.rank) for r in rows[:-1]]
    (alone,) = rank_defenses(make_board(cells[:1], honest[:1]), None, weights)
    assert (alone.rank, alone.unranked) == (None, rows[-1].unranked)


def test_a_restricted_board_has_the_same_ranking() -> None:
    board, threats = big_board(), read_threat_filter("server,own", ["digits"])
    kept = within(board, threats)
    assert (
        {c.problem for c in kept.cells}
        == {h.problem for h in kept.clean_runs}
        == {a.name for a in kept.problems}
        == {"digits"}
    )
    assert {c.party for c in kept.cells if c.axis == "privacy"} == {"server"}
    assert {c.knows for c in kept.cells if c.axis == "integrity"} == {"own"}
    assert rank_defenses(kept, threats) == rank_defenses(board, threats)
    assert within(board, ThreatFilter()) == board


def test_threats_are_read_from_words() -> None:
    assert read_threat_filter("own, server") == ThreatFilter(("server",), ("own",))
    assert read_threat_filter("server").axes == ("utility", "privacy")
    for text in ("", ",", "sever", "server,clients"):
        with pytest.raises(UserError, match=r"option 'threats' is '.*', allowed: server, client,"):
            read_threat_filter(text)


def test_a_ranking_equals_one_computed_by_hand() -> None:
    """Two problems, two seeds; overall is the mean of the three, seed by seed, over seeds that all have."""
    cells = [
        make_cell("krum", "dlg", [0.2, 0.4], (0, 1)),
        make_cell("krum", "ig", [0.5, 0.0], (0, 1), party="client"),
        make_cell("krum", "sign-flip", [0.6, 0.8, 0.1], axis="integrity", problem="other"),
    ]
    honest = [
        make_clean_run("krum", utility={0: 1.0, 1: 0.8, 2: 0.9}),
        make_clean_run("krum", utility={0: 0.8, 1: 1.0}, problem="other", bytes_up=8000.0),
        *(make_clean_run("fedavg", problem=problem) for problem in ("digits", "other")),
    ]
    row, _ = rank_defenses(make_board(cells, honest, problems=(make_problem(), make_problem(name="other"))))
    assert row.utility.by_seed == {0: pytest.approx(0.9), 1: pytest.approx(0.9)}
    assert row.privacy.by_seed == {0: 0.5, 1: 0.0}  # mean 0.25 against 0.3
    assert row.integrity.by_seed == {0: 0.6, 1: 0.8, 2: 0.1}
    assert row.overall.by_seed == {0: pytest.approx(2.0 / 3), 1: pytest.approx(1.7 / 3)}
    assert row.overall.value is not None
    assert row.overall.value.value == pytest.approx(3.7 / 6)
    # t of one degree of freedom at 97.5 % is 12.7062; the standard error of two values is half their distance.
    assert row.overall.value.half == pytest.approx(12.7062 * 0.05, rel=1e-4)
    assert (row.bytes, row.rank, row.privacy.average) == (1.25, RankRange(1, 1), pytest.approx((0.3 + 0.25) / 2))
    assert {p: s.value.value for p, s in row.by_party.items() if s.value} == {
        "server": pytest.approx(0.3),
        "client": 0.25,
    }


def test_failed_seeds_are_not_averaged_away_and_missing_ones_are() -> None:
    """Both leave a cell mixed."""
    for status, ranked in (("failed", False), ("missing", True), ("n/a", True)):
        cell = make_cell("dbcl", score=[0.9], seeds=(0,), status="mixed", statuses={0: "ok", 1: status})
        (row,) = rank_defenses(make_board([cell], [make_clean_run("dbcl")]), read_threat_filter("server"))
        assert row.rank == (RankRange(1, 1) if ranked else None)
        assert row.unranked == ("" if ranked else "1 of 1 attacks and threats not met")


CELLS = st.builds(
    make_cell,
    st.sampled_from(["fedavg", "dbcl", "two-stage"]),
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=3, max_size=3),
    axis=st.sampled_from(["privacy", "integrity"]),
    form=st.sampled_from(["paper", "adaptive"]),
    status=st.sampled_from(["ok", "ok", "ok", "n/a", "failed", "diverged"]),
)


def test_an_axis_without_attacks_does_not_count() -> None:
    private = [make_cell("fedavg"), make_cell("dbcl", status="failed")]
    assert threats_on(make_board(private)) == ThreatFilter(knows=())
    assert threats_on(make_board([make_cell(axis="integrity")])) == ThreatFilter(parties=())
    assert threats_on(make_board([*private, make_cell(axis="integrity", status="missing")])) == ThreatFilter()
    assert threats_on(make_board([*private, make_cell(axis="integrity", counts=False)])) == ThreatFilter(knows=())
    assert threats_on(make_board([])) == ThreatFilter()
    elsewhere = make_board([*private, make_cell(axis="integrity", problem="other")])
    assert threats_on(elsewhere) == ThreatFilter()
    assert threats_on(elsewhere, ["digits"]) == ThreatFilter(knows=(), problems=("digits",))


@given(st.lists(CELLS, max_size=12, unique_by=lambda c: c.place), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_cells_and_cells_that_do_not_count_change_nothing(cells: list[Any], rng: Any) -> None:
    honest = [make_clean_run(d, level=level) for d, level in (("fedavg", 1.0), ("dbcl", 0.9), ("two-stage", 0.8))]
    rows = rank_defenses(make_board(cells, honest), ThreatFilter())
    shuffled = list(cells)
    rng.shuffle(shuffled)
    assert rank_defenses(make_board(shuffled, honest), ThreatFilter()) == rows
    beside = [make_cell(d, "beside", 0.0, counts=False, status=s) for d in ("fedavg", "dbcl") for s in ("ok", "failed")]
    assert rank_defenses(make_board([*beside, *cells], honest), ThreatFilter()) == rows
    assert rank_defenses(make_board(cells, honest), ThreatFilter(problems=("digits",))) == rows
    for row in rows:  # another attack can only take away
        more = make_cell(row.defense, "d", 0.125, form="paper")
        (again,) = [
            r for r in rank_defenses(make_board([*cells, more], honest), ThreatFilter()) if r.defense == row.defense
        ]
        assert again.privacy.value is not None
        if row.privacy.value is not None:
            assert again.privacy.value.value <= row.privacy.value.value + 1e-12


def test_a_problem_without_cells_that_count_is_no_utility() -> None:
    """It may be there for a few defenses only, whose utility would not be the others'."""
    board = make_board()
    beside = make_cell("dbcl", "model-extraction", 0.0, problem="odd", counts=False)
    odd = replace(
        board,
        problems=(*board.problems, make_problem(name="odd")),
        clean_runs=(*board.clean_runs, make_clean_run("dbcl", problem="odd", level=0.1)),
        cells=(*board.cells, beside),
    )
    assert [row.utility for row in rank_defenses(odd)] == [row.utility for row in rank_defenses(board)]


def test_an_omniscient_attacker_can_do_what_one_with_own_data_can() -> None:
    own = make_cell("dbcl", "sign-flip", 0.1, axis="integrity", knows="own")
    more = make_cell("dbcl", "alie", 0.9, axis="integrity", knows="omniscient")
    board = make_board([own, more], [make_clean_run("dbcl")])
    (row,) = rank_defenses(board, ThreatFilter(parties=(), knows=("omniscient",)))
    assert row.integrity.worst == own
    (row,) = rank_defenses(make_board([own, more], [make_clean_run("dbcl")]), ThreatFilter(parties=(), knows=("own",)))
    assert row.counts == {"ok": 1}


def test_fake_clients_without_data_count_wherever_corrupted_clients_do() -> None:
    none = make_cell("dbcl", "poisoned-fl", 0.1, axis="integrity", knows="none")
    own = make_cell("dbcl", "sign-flip", 0.9, axis="integrity", knows="own")
    board = make_board([none, own], [make_clean_run("dbcl")])
    for knows in (("own",), ("omniscient",), KNOWLEDGE):
        (row,) = rank_defenses(board, ThreatFilter(parties=(), knows=knows))
        assert row.integrity.worst == none
    (row,) = rank_defenses(board, ThreatFilter(parties=(), knows=("none",)))
    assert row.counts == {"ok": 1}


def test_naming_all_kinds_of_knowledge_but_the_least_names_all() -> None:
    assert read_threat_filter("server,own,omniscient").knows == KNOWLEDGE
    assert read_threat_filter("own").knows == ("own",)


def test_scores_that_share_no_seed_have_a_lowest_and_no_mean() -> None:
    cells = [make_cell(d, score=0.5, seeds=(0, 1)) for d in ("krum", "dbcl")]
    rows = {
        r.defense: r
        for r in rank_defenses(
            make_board(cells, [make_clean_run("krum"), make_clean_run("dbcl", seeds=(2,))]),
            read_threat_filter("server"),
        )
    }
    assert rows["dbcl"].rank == RankRange(1, 2)
    assert rows["dbcl"].overall.value is None


def test_an_attempt_in_adaptive_form_alone_counts_in_paper_form_too() -> None:
    """Else plain FedAvg would look better there than defenses that met the attack in paper form."""
    cells = [
        make_cell("fedavg", "dlg", 0.0, form="adaptive"),
        make_cell("fedavg", "membership-inference", 0.9, form="paper"),
        make_cell("dbcl", "dlg", 0.6, form="paper"),
        make_cell("dbcl", "dlg", 0.1, form="adaptive"),
        make_cell("fedavg", "bank", 0.2, form="adaptive"),
        make_cell("dbcl", "bank", 0.0, form="adaptive"),
    ]
    rows = {r.defense: r.paper_privacy for r in rank_defenses(make_board(cells), read_threat_filter("server"))}
    for name, attack, value in (("fedavg", "dlg", 0.0), ("dbcl", "dlg", 0.6)):
        assert rows[name].worst is not None
        assert rows[name].worst.attack == attack
        assert rows[name].value.value == pytest.approx(value, abs=0.02)


def test_the_lowest_axis_decides_and_the_mean_breaks_ties() -> None:
    cells = [
        *(make_cell(d, score=score) for d, score in (("median", 0.0), ("dbcl", 0.4), ("krum", 0.0))),
        *(make_cell(d, "ipm", v, axis="integrity") for d, v in (("median", 0.3), ("dbcl", 0.4), ("krum", 1.0))),
    ]
    honest = [make_clean_run("median"), make_clean_run("dbcl", level=0.5), make_clean_run("krum")]
    rows = rank_defenses(make_board(cells, honest))
    assert [(r.defense, r.lowest_axis) for r in rows] == [
        ("dbcl", "integrity"),
        ("krum", "privacy"),
        ("median", "privacy"),
    ]
    assert [rank(r) for r in rows] == ["1", "2–3", "2–3"]
    best = rows[0].lowest.value
    assert best is not None
    assert best.interval == lowest_mean_interval([[0.39, 0.4, 0.41], [0.5, 0.5, 0.5]])


def test_equal_scores_of_one_seed_share_their_ranks() -> None:
    cells = [make_cell(d, score=v, seeds=(0,)) for d, v in (("median", 0.1), ("dbcl", 0.5), ("krum", 0.5))]
    honest = [make_clean_run(d, (0,)) for d in ("median", "dbcl", "krum")]
    rows = rank_defenses(make_board(cells, honest, seeds=(0,)))
    assert [rank(r) for r in rows] == ["1–2", "1–2", "3"]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.5)), min_size=1, max_size=8))
def test_a_range_holds_the_place_of_its_score(values: list[tuple[float, float]]) -> None:
    scores = [Mean(value, half, 3) for value, half in values]
    ordered = sorted(range(len(scores)), key=lambda i: -scores[i].value)
    ranges = rank_ranges(scores)
    for place, i in enumerate(ordered, 1):
        assert 1 <= ranges[i].first <= place <= ranges[i].last <= len(scores)
    assert [r.first == r.last == 1 for r in ranges] == [
        all(i == k or wholly_above(scores[i], scores[k]) for k in range(len(scores))) for i in range(len(scores))
    ]


def test_weights_rank_by_a_weighted_mean() -> None:
    board, threats = make_board(), read_threat_filter("server,own")
    rows = rank_defenses(board, threats, {"utility": 3.0, "privacy": 1.0})
    by_name = {r.defense: r for r in rows}
    assert [r.defense for r in rows] == ["two-stage", "dbcl", "fedavg"]
    assert by_name["dbcl"].weighted is not None
    assert by_name["dbcl"].weighted.by_seed == {s: pytest.approx((3 * 0.98 + 0.39 + 0.01 * s) / 4) for s in (0, 1, 2)}
    assert by_name["dbcl"].weighted.value == mean(list(by_name["dbcl"].weighted.by_seed.values()))
    assert [r.defense for r in rank_defenses(board, threats, {"utility": 1.0})] == ["dbcl", "two-stage", "fedavg"]
    assert all(r.rank is None for r in rank_defenses(board, read_threat_filter("server"), {"integrity": 1.0}))


def test_an_excluded_cell_counts_for_nothing_and_says_why() -> None:
    why = "uninformative: the model that is attacked reaches .12, and a constant answer .10"
    cells = [make_cell(d, a, 0.5) for d in ("median", "dbcl", "krum") for a in ("dlg", "ig")]
    cells[3] = replace(cells[3], counts=False, excluded=why)
    cells[4:] = [replace(c, counts=False, excluded=why) for c in cells[4:]]
    honest = [make_clean_run(d) for d in ("median", "dbcl", "krum")]
    rows = {r.defense: r for r in rank_defenses(make_board(cells, honest), read_threat_filter("server"))}
    assert rows["dbcl"].unranked == f"1 of 2 attacks and threats do not count against it: {why}"
    assert rows["krum"].unranked == f"no privacy score: {why}"
    assert rows["median"].rank == RankRange(1, 1)
