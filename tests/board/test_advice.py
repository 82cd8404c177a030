"""The advice claims what the board has measured, and no more."""

from __future__ import annotations

from dataclasses import replace

from helpers.board import make_board, make_cell, make_honest

from fedarena.board.advice import advice
from fedarena.board.board import Board, BoardCell
from fedarena.board.lead import difference, excludes_zero
from fedarena.board.ranking import Score
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter
from fedarena.core.text.mean import mean

NAMES = ("fedavg", "dbcl", "two-stage")


def told(board: Board, threats: str | None = "server,own") -> str:
    return "\n".join(advice(board, read_threat_filter(threats)))


def cells(privacy: dict[str, float], left: dict[str, float], seeds: tuple[int, ...] = (0, 1, 2)) -> list[BoardCell]:
    return [
        *(make_cell(d, "dlg", privacy[d], seeds) for d in privacy),
        *(make_cell(d, "sign-flip", left[d], seeds, axis="integrity") for d in left),
    ]


def test_it_names_the_first_its_worst_cases_its_cost_and_what_the_next_one_loses() -> None:
    text = told(make_board())
    assert text.startswith("For curious server; corrupted clients (own): take two-stage (overall 0.92 ± 0.0")
    assert "worst case of integrity is sign-flip by corrupted clients (own) in paper form, which leaves 0.90" in text
    assert "Its worst case of privacy is dlg by the server in paper form, which leaves 0.95" in text
    assert "It costs 1.00 × FedAvg's bytes and 1.00 × its training time." in text
    assert "The next, dbcl, has overall 0.56" in text
    assert "it loses most in integrity, where it has 0.30" in text
    assert "is the better one in utility 0.98" in text
    assert "Over 3 paired seeds the 95 % interval of its lead leaves out 0 for each of the others with a rank." in text
    assert "Nobody withstands" not in text


def test_a_low_score_behind_a_good_mean_is_a_warning() -> None:
    """The mean may recommend what leaves a reader bare to one of the threats that were named."""
    board = make_board(
        cells({"fedavg": 0.0, "dbcl": 0.0, "two-stage": 0.45}, {"fedavg": 0.1, "dbcl": 0.9, "two-stage": 0.3})
    )
    text = told(board)
    assert "no defense here keeps 0.5 of each; the highest overall score has dbcl" in text
    assert "Beware: its privacy is 0.00 (0.00 to 0.02). Of all with a rank two-stage has the most, 0.45 ± 0.02," in text
    assert "its integrity is" not in text
    text = told(make_board(cells({"fedavg": 0.1, "dbcl": 0.3}, {})), "server")
    assert "Beware: its privacy is 0.30 ± 0.02, and none with a rank has more." in text
    assert "Beware" not in told(make_board())


def test_it_says_which_cannot_be_told_apart() -> None:
    noisy = [make_cell("dbcl", score=[0.1, 0.9, 0.5]), make_cell("fedavg", score=[0.5, 0.4, 0.5])]
    noisy.append(make_cell("two-stage", score=[0.0, 0.0, 0.01]))
    text = told(make_board(noisy, [make_honest(d) for d in NAMES]), "server")
    assert "the 95 % interval of its lead includes 0 for fedavg (0.017 ± " in text
    assert "two-stage (0." in text.split("includes 0 for")[1]
    steady = [make_cell("dbcl", score=0.9), make_cell("fedavg", score=0.5), make_cell("two-stage", score=0.9)]
    text = told(make_board(steady, [make_honest(d) for d in NAMES]), "server")
    assert "includes 0 for two-stage (0.000 ± 0.000): they cannot be told apart" in text
    assert "fedavg" not in text.split("includes 0 for")[1].split(":")[0]


def test_one_seed_has_no_interval() -> None:
    board = make_board(
        cells({"fedavg": 0.1, "dbcl": 0.9}, {"fedavg": 0.8, "dbcl": 0.8}, (0,)),
        [make_honest("fedavg", (0,)), make_honest("dbcl", (0,))],
        seeds=(0,),
    )
    text = told(board)
    assert "take dbcl" in text
    assert "One seed: there is no interval" in text
    assert "±" not in text
    assert "paired seeds" not in text


def test_with_nothing_it_recommends_nothing() -> None:
    assert told(make_board([], [])) == "No records: nothing was measured, so nothing can be said about any defense."
    failed = [make_cell(d, status="failed") for d in NAMES]
    text = told(make_board(failed), "server")
    assert "No defense can be recommended for curious server" in text
    assert "none of its 3 cells gave a result" in text
    assert "fedavg, dbcl and two-stage: no privacy score" in text
    assert "take" not in text
    assert "no attack that counts poses these threats" in told(make_board(), "outsider")


def test_plain_fedavg_in_front_is_called_no_defense() -> None:
    text = told(make_board(cells({"fedavg": 0.9, "dbcl": 0.5}, {"fedavg": 0.9, "dbcl": 0.5})))
    assert "no defense ranks above plain fedavg" in text


def test_what_nobody_withstands_is_told_with_the_best() -> None:
    text = told(make_board(cells({"fedavg": 0.1, "dbcl": 0.3}, {"fedavg": 0.9, "dbcl": 0.9})))
    assert "Nobody withstands, that is keeps 0.5 against: dlg by the server (best: dbcl, 0.30)." in text
    board = make_board([*cells({"fedavg": 0.1, "dbcl": 0.3}, {}), make_cell("two-stage", status="n/a")])
    assert "Nobody withstands" not in told(board, "server")  # of two-stage it could not even start


def test_a_threat_that_was_not_posed_is_told_though_a_lesser_one_ranks() -> None:
    board = make_board([make_cell(d, "sign-flip", 0.8, axis="integrity") for d in ("fedavg", "dbcl")])
    text = told(board, "omniscient")
    assert "For no curious party; corrupted clients (omniscient): " in text
    assert "Nothing is said about corrupted clients (omniscient): no attack that counts comes from there." in text


def test_a_tie_is_called_one() -> None:
    even = cells({"fedavg": 0.5, "dbcl": 0.5}, {"fedavg": 0.5, "dbcl": 0.5})
    honest = [make_honest("fedavg"), make_honest("dbcl", bytes_up=2000.0)]
    text = "\n".join(advice(make_board(even, honest), read_threat_filter("server,own")))
    assert "the highest overall score has dbcl" in text or "take dbcl" in text
    assert "The next, fedavg, has overall 0.67 ± 0.02, the same to three digits: cost decides." in text


def test_an_attack_that_few_met_is_told_with_how_many_did() -> None:
    board = make_board([*cells({"fedavg": 0.1, "dbcl": 0.3}, {}), make_cell("fedavg", "ig", 0.2)])
    assert "ig by the server (best: fedavg, 0.20; 1 of 2 defenses met it)" in told(board, "server")


def test_an_attack_that_failed_everywhere_is_not_withstood_and_not_fatal() -> None:
    board = make_board([*cells({"fedavg": 0.9}, {}), make_cell("fedavg", "ig", status="failed")])
    assert "Nobody withstands" not in told(board, "server")


def test_threats_without_any_attack_are_admitted() -> None:
    text = told(make_board(), None)
    assert "Nothing is said about a curious client, a curious eavesdropper, a curious outsider or corrupted" in text
    assert "Nothing is said" not in told(make_board())


def test_an_only_defense_and_unranked_ones_are_said() -> None:
    board = make_board([make_cell("dbcl", score=0.7), make_cell("fedavg", status="failed")], [make_honest("dbcl")])
    text = told(board, "server")
    assert "It is the only defense with a rank" in text
    assert "Without a rank, and so not compared: fedavg." in text
    assert "What it costs was not measured" not in text  # its time was
    bare = make_board([make_cell("dbcl", score=0.7)], [make_honest("dbcl", relative_seconds=None)])
    assert "What it costs was not measured." in told(bare, "server")


def test_where_no_attack_could_start_it_says_so() -> None:
    board = make_board([make_cell("dbcl", status="n/a"), make_cell("fedavg", score=0.2)])
    text = told(board, "server")
    assert "take dbcl (overall 0.99 ± 0.00, the mean of utility 0.98 ± 0.00 and privacy n/a)" in text
    assert "Of the attacks on privacy none could start against it, which is no proof that none can." in text


def test_marks_of_the_first_stand_beside_its_numbers() -> None:
    honest = [make_honest("dbcl", warnings=("simulated sums",)), make_honest("fedavg", warnings=("foreign",))]
    text = told(make_board([make_cell("dbcl", score=0.9), make_cell("fedavg", score=0.2)], honest), "server")
    assert "Beside its numbers stands: simulated sums." in text
    assert "foreign" not in text


def test_differences_are_paired_over_shared_seeds() -> None:
    one = Score(mean([0.5, 0.7]), {0: 0.5, 1: 0.7, 2: 0.9})
    other = Score(mean([0.4, 0.6]), {1: 0.6, 2: 0.8, 5: 0.0})
    found = difference(one, other)
    assert found is not None
    assert found.seeds == 2
    assert abs(found.value - 0.1) < 1e-12
    assert excludes_zero(found)
    assert not excludes_zero(difference(one, one))
    assert difference(one, Score(None)) is None
    assert not excludes_zero(None)


def test_a_defense_that_leads_on_the_shared_seeds_alone_is_told() -> None:
    seeds = (0, 1, 2, 3)
    board = make_board(
        [make_cell("dbcl", score=[0.5, 0.5, 0.5, 1.0], seeds=seeds), make_cell("fedavg", score=[0.6, 0.6, 0.6])],
        [make_honest("dbcl", seeds), make_honest("fedavg")],
        seeds=seeds,
    )
    text = told(board, "server")
    assert "take dbcl" in text
    assert "On the seeds that they share, it is behind fedavg (-0.050 ± 0.000)." in text


def test_every_cut_has_something_to_say() -> None:
    for threats in (
        ThreatFilter((), ()),
        ThreatFilter((), ("own",)),
        ThreatFilter(("client",), ()),
        ThreatFilter(problems=("digits",)),
    ):
        assert all(advice(make_board(), threats))


def test_a_board_that_is_not_finished_says_so() -> None:
    whole = make_board()
    first = whole.cells[0]
    part = replace(first, status="mixed", statuses={**first.statuses, 2: "missing"})
    begun = replace(whole, cells=(part, *whole.cells[1:]))
    planned = sum(len(c.statuses) for c in whole.cells if ThreatFilter().counts(c))
    assert "are missing" not in told(whole, None)
    assert f"Beware: 1 of {planned} trials are missing, and what they say may change all of this." in told(begun, None)


def test_several_seeds_of_which_none_is_shared_are_not_called_one() -> None:
    cells = [make_cell("fedavg", seeds=(0, 1, 2)), make_cell("dbcl", seeds=(3, 4, 5))]
    honest = [make_honest("fedavg"), make_honest("dbcl", seeds=(3, 4, 5))]
    text = told(make_board(cells, honest), "server")
    assert "One seed" not in text
    assert "Too few seeds in common: there is no interval" in text
