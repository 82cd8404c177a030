"""The advice claims what the board has measured, and no more."""

from __future__ import annotations

from dataclasses import replace

from helpers.board import make_board, make_cell, make_clean_run

from fedarena.board.advice import advice
from fedarena.board.board import Board, BoardCell
from fedarena.board.differences import difference
from fedarena.board.ranking import Score
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter
from fedarena.core.text.numbers import mean

NAMES = ("fedavg", "dbcl", "two-stage")


def advice_text(board: Board, threats: str | None = "server,own") -> str:
    return "\n".join(advice(board, read_threat_filter(threats)))


def cells(privacy: dict[str, float], left: dict[str, float], seeds: tuple[int, ...] = (0, 1, 2)) -> list[BoardCell]:
    return [
        *(make_cell(d, "dlg", privacy[d], seeds) for d in privacy),
        *(make_cell(d, "sign-flip", left[d], seeds, axis="integrity") for d in left),
    ]


def test_advice_names_the_best_its_worst_cases_its_cost_and_the_runner_up() -> None:
    text = advice_text(make_board())
    assert text.startswith("For curious server; corrupted clients (own): take two-stage (lowest score 0.90 (0.8")
    assert "worst case of integrity is sign-flip by corrupted clients (own) in paper form, which leaves 0.90" in text
    assert "Its worst case of privacy is dlg by the server in paper form, which leaves 0.95" in text
    assert "It costs 1.00 × FedAvg's bytes and 1.00 × its training time." in text
    assert "); utility 0.90 ± 0.00, integrity 0.90 ± 0.02 and privacy 0.95 " in text
    assert "; mean 0.92 ± 0.0" in text
    assert "The next, dbcl, has lowest score 0.30" in text
    assert "it loses most in integrity, where it has 0.30" in text
    assert "is the better one in utility 0.98" in text
    assert "The interval of two-stage lies wholly above that of each other ranked defense." in text
    assert "Nobody withstands" not in text


def test_a_low_score_of_the_best_defense_is_a_warning() -> None:
    """A board may recommend what leaves a reader bare to one of the threats that were named."""
    board = make_board(
        cells({"fedavg": 0.0, "dbcl": 0.0, "two-stage": 0.45}, {"fedavg": 0.1, "dbcl": 0.9, "two-stage": 0.3})
    )
    text = advice_text(board)
    assert "no defense here keeps 0.5 of each; two-stage comes nearest" in text
    assert (
        "Warning: its integrity is 0.30 ± 0.02. Of the ranked defenses dbcl has the most, 0.90 ± 0.02, and its lowest "
        "score is 0.00 (0.00 to 0.03)." in text
    )
    assert "its utility is" not in text
    text = advice_text(make_board(cells({"two-stage": 0.1, "dbcl": 0.3}, {})), "server")
    assert "Warning: its privacy is 0.30 ± 0.02, and no ranked defense has more." in text
    assert "Beware" not in advice_text(make_board())


def test_advice_names_defenses_that_intervals_do_not_separate() -> None:
    honest = [make_clean_run(d) for d in ("krum", "dbcl", "two-stage")]
    noisy = [make_cell("dbcl", score=[0.1, 0.9, 0.5]), make_cell("krum", score=[0.5, 0.4, 0.5])]
    noisy.append(make_cell("two-stage", score=[0.0, 0.0, 0.01]))
    text = advice_text(make_board(noisy, honest), "server")
    assert "The intervals do not separate dbcl from krum and two-stage." in text
    steady = [make_cell("dbcl", score=0.9), make_cell("krum", score=0.5), make_cell("two-stage", score=0.9)]
    text = advice_text(make_board(steady, honest), "server")
    assert "The intervals do not separate dbcl from two-stage." in text


def test_one_seed_has_no_interval() -> None:
    board = make_board(
        cells({"krum": 0.1, "dbcl": 0.9}, {"krum": 0.8, "dbcl": 0.8}, (0,)),
        [make_clean_run("krum", (0,)), make_clean_run("dbcl", (0,))],
        seeds=(0,),
    )
    text = advice_text(board)
    assert "take dbcl" in text
    assert "dbcl has no interval, so it is unknown" in text
    assert "±" not in text
    assert "separate" not in text


def test_a_board_without_results_recommends_nothing() -> None:
    assert (
        advice_text(make_board([], [])) == "No records: nothing was measured, so nothing can be said about any defense."
    )
    failed = [make_cell(d, status="failed") for d in NAMES]
    text = advice_text(make_board(failed), "server")
    assert "No defense can be recommended for curious server" in text
    assert "none of the 3 cells gave a result" in text
    assert "(fedavg: it is no defense, and stands for comparison; dbcl and two-stage: no privacy score)" in text
    assert "take" not in text
    assert "no attack that counts poses these threats" in advice_text(make_board(), "outsider")


def test_plain_fedavg_in_front_is_called_no_defense() -> None:
    text = advice_text(make_board(cells({"fedavg": 0.9, "dbcl": 0.5}, {"fedavg": 0.9, "dbcl": 0.5})))
    assert ": no defense here scores above plain fedavg, which is none; dbcl comes next (lowest score 0.50" in text
    assert "not compared: fedavg" not in text
    text = advice_text(make_board(cells({"fedavg": 0.9, "dbcl": 0.5}, {"fedavg": 0.4, "dbcl": 0.5})))
    assert ": take dbcl (lowest score 0.50" in text


def test_an_attack_that_no_defense_withstands_is_named_with_the_best() -> None:
    text = advice_text(make_board(cells({"fedavg": 0.1, "dbcl": 0.3}, {"fedavg": 0.9, "dbcl": 0.9})))
    assert "No defense keeps 0.5 against: dlg by the server (best: dbcl, 0.30)." in text
    board = make_board([*cells({"fedavg": 0.1, "dbcl": 0.3}, {}), make_cell("two-stage", status="n/a")])
    assert "Nobody withstands" not in advice_text(board, "server")  # of two-stage it could not even start


def test_an_unmeasured_threat_is_named_even_if_a_lesser_one_is_ranked() -> None:
    board = make_board([make_cell(d, "sign-flip", 0.8, axis="integrity") for d in ("fedavg", "dbcl")])
    text = advice_text(board, "omniscient")
    assert "For no curious party; corrupted clients (omniscient): " in text
    assert "Nothing is known about corrupted clients (omniscient): no attack that counts poses this threat." in text


def test_a_tie_is_called_one() -> None:
    even = cells({"krum": 0.5, "dbcl": 0.5}, {"krum": 0.5, "dbcl": 0.5})
    honest = [make_clean_run("krum"), make_clean_run("dbcl", bytes_up=2000.0), make_clean_run("fedavg")]
    text = "\n".join(advice(make_board(even, honest), read_threat_filter("server,own")))
    assert "take dbcl" in text
    assert "The next, krum, has lowest score 0.50" in text
    assert ", the same to three digits: cost decides." in text
    honest[0] = make_clean_run("krum", level=0.9)
    text = "\n".join(advice(make_board(even, honest), read_threat_filter("server,own")))
    assert ", the same to three digits: the next lowest decides, 1.00 ± 0.00 against 0.90 ± 0.00" in text


def test_weights_decide_which_defense_to_take() -> None:
    threats, weights = read_threat_filter("server,own"), {"utility": 1.0, "privacy": 0.0}
    (first, *_) = advice(make_board(), threats, None, weights)
    assert "no defense here scores above plain fedavg, which is none; dbcl comes next" in first
    assert "(weighted mean 0.98 ± 0.00; utility 0.98" in first


def test_an_attack_on_few_defenses_is_named_with_their_number() -> None:
    board = make_board([*cells({"fedavg": 0.9, "krum": 0.1, "dbcl": 0.3}, {}), make_cell("krum", "ig", 0.2)])
    text = advice_text(board, "server")
    assert "ig by the server (best: krum, 0.20; 1 of 2 defenses met it)" in text
    assert "dlg by the server (best: dbcl, 0.30)" in text  # FedAvg, which keeps more, is no defense


def test_fedavg_that_met_fewer_attacks_is_not_compared() -> None:
    board = make_board([*cells({"fedavg": 0.9, "dbcl": 0.8}, {}), make_cell("dbcl", "ig", 0.7)])
    assert "take dbcl" in advice_text(board, "server")


def test_an_attack_that_failed_everywhere_is_not_withstood_and_not_fatal() -> None:
    board = make_board([*cells({"fedavg": 0.9}, {}), make_cell("fedavg", "ig", status="failed")])
    assert "Nobody withstands" not in advice_text(board, "server")


def test_threats_without_an_attack_are_named() -> None:
    text = advice_text(make_board(), None)
    assert "Nothing is known about a curious client, a curious eavesdropper, a curious outsider or corrupted" in text
    assert "Nothing is said" not in advice_text(make_board())


def test_a_single_ranked_defense_and_unranked_ones_are_named() -> None:
    board = make_board([make_cell("dbcl", score=0.7), make_cell("krum", status="failed")], [make_clean_run("dbcl")])
    text = advice_text(board, "server")
    assert "It is the only defense with a rank" in text
    assert "Without a rank, and so not compared: krum." in text
    assert "What it costs was not measured" not in text  # its time was
    bare = make_board([make_cell("dbcl", score=0.7)], [make_clean_run("dbcl", relative_seconds=None)])
    assert "What it costs was not measured." in advice_text(bare, "server")


def test_advice_says_that_no_attack_could_start() -> None:
    board = make_board([make_cell("dbcl", status="n/a"), make_cell("fedavg", score=0.2)])
    text = advice_text(board, "server")
    assert "take dbcl (lowest score 0.98 ± 0.00; utility 0.98 ± 0.00 and privacy n/a; mean 0.99 ± 0.00)" in text
    assert "Of the attacks on privacy none could start against it, which is no proof that none can." in text


def test_warnings_of_the_best_are_repeated() -> None:
    honest = [make_clean_run("dbcl", warnings=("simulated sums",)), make_clean_run("krum", warnings=("foreign",))]
    text = advice_text(make_board([make_cell("dbcl", score=0.9), make_cell("krum", score=0.2)], honest), "server")
    assert "Its numbers have a warning: simulated sums." in text
    assert "foreign" not in text


def test_differences_are_paired_over_shared_seeds() -> None:
    one = Score(mean([0.5, 0.7]), {0: 0.5, 1: 0.7, 2: 0.9})
    other = Score(mean([0.4, 0.6]), {1: 0.6, 2: 0.8, 5: 0.0})
    found = difference(one, other)
    assert found is not None
    assert found.seeds == 2
    assert abs(found.value - 0.1) < 1e-12
    assert difference(one, Score(None)) is None


def test_every_filter_has_advice() -> None:
    for threats in (
        ThreatFilter((), ()),
        ThreatFilter((), ("own",)),
        ThreatFilter(("client",), ()),
        ThreatFilter(problems=("digits",)),
    ):
        assert all(advice(make_board(), threats))


def test_an_unfinished_board_says_so() -> None:
    whole = make_board()
    first = whole.cells[0]
    part = replace(first, status="mixed", statuses={**first.statuses, 2: "missing"})
    begun = replace(whole, cells=(part, *whole.cells[1:]))
    planned = sum(len(c.statuses) for c in whole.cells if ThreatFilter().counts(c))
    assert "are missing" not in advice_text(whole, None)
    assert f"Warning: 1 of {planned} trials are missing, and their results may change all of this." in advice_text(
        begun, None
    )
