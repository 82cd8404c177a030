"""How numbers are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.big_board import big_board
from helpers.board import make_board, make_cell, make_clean_run, make_problem, without_references

from fedarena.board.board import Board
from fedarena.board.notes import notes, seeds_text, unmeasured_threats, warning_lines
from fedarena.board.ranking import Score, rank_defenses, worst
from fedarena.board.score_text import counts, defense_name, interval, score, times, worst_case
from fedarena.board.threat_filter import ThreatFilter, read_threat_filter, threats_on
from fedarena.core.text.numbers import Mean


@pytest.mark.parametrize(
    ("mean", "text"),
    [
        (None, "–"),
        (Mean(0.426, None, 1), "0.43"),
        (Mean(0.426, 0.05, 3), "0.43 ± 0.05"),
        (Mean(0.98, 0.05, 3), "0.98 (0.93 to 1.00)"),
        (Mean(0.02, 0.05, 3), "0.02 (0.00 to 0.07)"),
        (Mean(0.5, 0.9, 2), "0.50 (0.00 to 1.00)"),
        (Mean(0.5, None, 3, (0.3, 0.8)), "0.50 (0.30 to 0.80)"),
        (Mean(0.5, None, 3, (-0.3, 0.8)), "0.50 (0.00 to 0.80)"),
    ],
)
def test_an_interval_never_leaves_the_scale(mean: Mean | None, text: str) -> None:
    assert interval(mean) == text


def note_lines(board: Board, threats: ThreatFilter) -> list[str]:
    return notes(board, threats, rank_defenses(board, threats))


def test_a_board_without_references_is_noted() -> None:
    (line,) = notes(without_references(make_board()), ThreatFilter(), [])
    text = "digits: not measured what can be had without a federation; utility is accuracy over FedAvg's"
    assert line == f"{text}, and integrity what the last round has left of the gain over a constant answer"
    assert notes(without_references(make_board([make_cell()])), ThreatFilter(), []) == [text]  # nobody poisoned
    assert notes(make_board(), ThreatFilter(), []) == []


def test_where_utility_is_measured_and_privacy_is_not_attacked_is_noted() -> None:
    """A defense could send nothing on the one federation, and be useful on the other."""
    names = ("large", "small")
    large, small = (make_problem(name=name, utility=name == "large") for name in names)
    runs = [make_clean_run(problem=name) for name in names]
    private, poisoned = make_cell(problem="small"), make_cell(attack="sign-flip", axis="integrity", problem="large")
    board = make_board([private, poisoned], runs, problems=(large, small))
    text = "large: counts as utility, and its privacy was not attacked: a defense may send more there"
    assert text in note_lines(board, ThreatFilter())
    for cells in ([private, poisoned, replace(private, problem="large")], [poisoned]):
        assert text not in note_lines(replace(board, cells=tuple(cells)), ThreatFilter())


def test_scores_and_worst_cases_are_written_out() -> None:
    assert score(Score(None)) == worst_case(Score(None), False) == "–"
    untouched = worst([make_cell(status="n/a")])
    assert (score(untouched), worst_case(untouched, False)) == ("n/a", "no attack could start")
    found = worst([make_cell(seeds=(4,), score=0.5)])
    assert (score(found), worst_case(found, True)) == ("0.50", "dlg: server, adaptive, on digits")


def test_counts_are_ordered_and_costs_are_relative_to_fedavg() -> None:
    assert counts({"failed": 1, "ok": 12, "odd": 2, "n/a": 3}) == "12 ok, 3 n/a, 1 failed, 2 odd"
    assert (counts({}), times(None), times(1.5)) == ("none", "–", "1.50 ×")


def test_seeds_say_what_they_can_show() -> None:
    assert "no interval" in seeds_text(make_board(seeds=(3,)))
    assert "nothing was measured" in seeds_text(make_board(seeds=()))
    assert "3 seeds (0, 1, 2)" in seeds_text(make_board())


def test_records_of_several_versions_are_noted() -> None:
    board = replace(make_board(), provenance={"commit": "abc, def", "torch": "2.13.0", "fedarena": ""})
    assert note_lines(board, ThreatFilter()) == ["measured by 2 commits: abc, def"]


def test_notes_hold_damage_subsets_warnings_and_contributors() -> None:
    text = "\n".join(note_lines(big_board(), ThreatFilter()))
    assert "1 damaged record left out" in text
    assert "fashion: a subset of the data, 100 of 60000 images" in text
    assert "baffle: simulated: secure sums are added in the clear" in text
    assert "fashion" not in "\n".join(note_lines(big_board(), ThreatFilter(problems=("digits",))))
    assert unmeasured_threats(make_board(), ThreatFilter()) == [
        "a curious client",
        "a curious eavesdropper",
        "a curious outsider",
        "corrupted clients (omniscient)",
    ]
    assert note_lines(make_board(), read_threat_filter("server,own")) == []
    found = make_board([make_cell(found_by="A. Reader")])
    assert "attacks by others: dlg (A. Reader)" in note_lines(found, read_threat_filter("server"))


LOST = "recovered gradients lost up to 5.6 of their decimal digits to rounding"


def test_a_defense_with_a_warning_has_a_dagger_and_the_notes_name_its_runs() -> None:
    arenas = (make_problem(), make_problem(name="model"))
    runs = [make_clean_run(d, problem=p) for d in ("fedavg", "pbpfl", "baffle", "dbcl") for p in ("digits", "model")]
    runs = [replace(h, warnings=(LOST,)) if (h.defense, h.problem) == ("pbpfl", "model") else h for h in runs]
    runs = [replace(h, warnings=("simulated",)) if h.defense == "baffle" else h for h in runs]
    cells = [make_cell(d, axis="integrity", attack="alie") for d in ("fedavg", "pbpfl", "baffle", "dbcl")]
    cells[-1] = replace(cells[-1], warnings=("diverged",))  # of the poisoned run alone
    board = make_board(cells, runs, problems=arenas)
    every = {row.defense: defense_name(row) for row in rank_defenses(board, ThreatFilter())}
    assert every == {"fedavg": "fedavg", "pbpfl": "pbpfl †", "baffle": "baffle †", "dbcl": "dbcl †"}
    assert warning_lines(board) == [f"† pbpfl on model: {LOST}", "† baffle: simulated", "† dbcl on digits: diverged"]
    threats = ThreatFilter(knows=(), problems=("digits",))
    assert {row.defense: defense_name(row) for row in rank_defenses(board, threats)} == {
        **every,
        "pbpfl": "pbpfl",
        "dbcl": "dbcl",
    }
    assert warning_lines(board, threats) == ["† baffle: simulated"]


def test_warnings_that_differ_in_their_numbers_are_one_line() -> None:
    warnings = tuple(f"the run stopped in round {t}" for t in (7, 11, 4))
    board = make_board(clean_runs=[replace(make_clean_run("dbcl"), warnings=warnings)])
    assert warning_lines(board) == ["† dbcl: the run stopped in round 4–11"]


def test_a_mean_over_fewer_seeds_than_its_parts_is_noted() -> None:
    """A reader who takes the mean of what stands beside it gets another number."""
    left = make_cell("dbcl", "sign-flip", 0.3, (0,), axis="integrity")
    cells = [make_cell("dbcl"), left, make_cell(), make_cell(attack="sign-flip", axis="integrity")]
    found = note_lines(make_board(cells), read_threat_filter("server,own"))
    assert found == ["dbcl: its mean is over 1 of 3 seeds, since on others it has no integrity"]


def test_an_axis_of_which_no_cell_counts_is_noted() -> None:
    why = "uninformative: the model is at chance"
    out = replace(make_cell(attack="dlg"), counts=False, excluded=why)
    board = make_board([out, make_cell(attack="sign-flip", axis="integrity")])
    wanted = f"privacy is left out of the ranking, since none of its 1 cell counts: {why}"
    assert wanted in note_lines(board, threats_on(board))
    assert not any("left out of the ranking" in line for line in note_lines(board, ThreatFilter()))
    counting = make_board([make_cell(attack="dlg"), out, make_cell(attack="sign-flip", axis="integrity")])
    assert not any("left out of the ranking" in line for line in note_lines(counting, threats_on(counting)))


def test_a_lower_cell_that_the_suite_does_not_count_is_noted() -> None:
    told = make_cell("dbcl", "alie", 0.6, axis="integrity")
    lower = replace(make_cell("dbcl", "min-max", 0.1, axis="integrity"), counts=False)
    cells = [told, lower, make_cell(attack="alie", axis="integrity")]
    found = note_lines(make_board(cells), read_threat_filter("own"))
    assert [line for line in found if "does not count" in line] == [
        "dbcl: its integrity of 0.60 leaves out cells that the suite does not count: min-max on digits (corrupted "
        "clients (own), paper) leaves 0.10 ± 0.02"
    ]
    above = replace(lower, scores=dict.fromkeys(lower.scores, 0.7))
    assert not any(
        "does not count" in line for line in note_lines(make_board([told, above, cells[2]]), read_threat_filter("own"))
    )


def test_problems_that_count_in_no_score_are_noted() -> None:
    cells = [make_cell(), replace(make_cell(attack="model-inversion"), counts=False, problem="model")]
    board = make_board(cells)
    board = replace(board, problems=(*board.problems, replace(board.problems[0], name="model")))
    assert "model: its attacks are on the board and count in no score" in note_lines(board, ThreatFilter())
    assert not any("digits: its" in note for note in note_lines(board, ThreatFilter()))
