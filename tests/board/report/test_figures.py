"""What figures show: the numbers of their alt texts are the board's, and they can be read without colour."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from helpers.board import make_board, make_cell, make_clean_run
from helpers.report import rich_board, save_pictures
from matplotlib import colormaps

from fedarena.board.report.accuracy_figures import accuracy_by_round
from fedarena.board.report.cost_figure import cost_and_score
from fedarena.board.report.epsilon_figures import privacy_and_epsilon
from fedarena.board.report.figure_style import LONGEST, curve_style, label, marker_points
from fedarena.board.report.heat_maps import MAPS, SHADES, _luminance, heat_maps
from fedarena.board.report.reconstruction_figures import reconstructions
from fedarena.board.report.report_figure import file_name
from fedarena.board.report.roc_curves import roc_curves
from fedarena.board.report.score_squares import Square, square, squares


def test_a_square_is_the_worst_over_threats_and_marks_missing_results() -> None:
    two = [make_cell(score=0.4), make_cell(score=0.1, party="client")]
    assert square(two) == Square("0.10", pytest.approx(0.1))
    assert square([*two, make_cell(status="n/a", party="eavesdropper")]) == Square("0.10", pytest.approx(0.1))
    assert square([*two, make_cell(status="failed", party="eavesdropper")]).text == "0.10*"
    assert square([make_cell(status="n/a")]) == Square("n/a", None)
    assert square([make_cell(status="n/a"), make_cell(status="failed", party="client")]).text == "failed"
    assert square([make_cell(status="missing")]).text == "missing"
    assert square([]).text == "–"
    aside = make_cell(score=0.3, counts=False)
    assert square([aside]) == Square("(0.30)", pytest.approx(0.3))
    assert square([aside, make_cell(score=0.4)]).text == "0.40"
    assert square([make_cell(status="n/a", counts=False)]).text == "n/a"


def test_an_adaptive_attacker_may_do_what_the_paper_tried() -> None:
    board = make_board([make_cell(score=0.2, form="paper"), make_cell(score=0.7)], [])
    assert squares(board, "digits", "paper")["fedavg", "dlg"].text == "0.20"
    assert squares(board, "digits", "adaptive")["fedavg", "dlg"].text == "0.20"
    board = make_board([make_cell(score=0.9, form="paper"), make_cell(score=0.7)], [])
    assert squares(board, "digits", "paper")["fedavg", "dlg"].text == "0.90"
    assert squares(board, "digits", "adaptive")["fedavg", "dlg"].text == "0.70"


def test_the_heat_map_s_alt_text_has_each_defense_s_lowest_score() -> None:
    board = rich_board()
    digits, years = heat_maps(board)
    for form, title in MAPS.items():
        words = digits.alt.split(f"{title[0].upper()}{title[1:]}: ")[1].split(". ")[0]
        for defense in board.defenses:
            mine = [c for c in board.cells if c.problem == "digits" and c.defense == defense and c.scores]
            means = [fmean(c.scores.values()) for c in mine if form == "adaptive" or c.form == "paper"]
            if means:
                assert f"{defense} lowest {min(means):.2f} (" in words
    assert "baffle 1 missing, 1 n/a" in digits.alt
    assert "baffle lowest 0.85 (joint-membership), 1 missing, 1 n/a" in digits.alt
    assert "By an attacker who may adapt: fedavg lowest 0.40 (bank)." in years.alt
    assert "baffle" not in years.alt


def test_a_map_without_information_is_left_out() -> None:
    (drawn,) = heat_maps(make_board([make_cell(score=0.3, form="paper")], []))
    assert "who may adapt" not in drawn.alt
    assert "there is one map" in drawn.caption
    (drawn,) = heat_maps(make_board([make_cell(score=0.3)], []))
    assert "As the papers" not in drawn.alt


def test_the_heat_map_keeps_its_order_in_grey_and_its_numbers_stand_out() -> None:
    light = [_luminance(colormaps[SHADES](v / 20)) for v in range(21)]
    assert all(a < b for a, b in pairwise(light))
    for v in light:
        ink = 0.0 if v > 0.18 else 1.0
        high, low = max(v, ink), min(v, ink)
        assert (high + 0.05) / (low + 0.05) >= 4.5  # WCAG 2.2, AA


def test_25_curves_differ_without_colour_and_from_the_clean_run() -> None:
    looks = [curve_style(i) for i in range(25)]
    assert len({(at["marker"], at["fillstyle"]) for at in looks}) == 25
    assert all(at["linestyle"] != "--" and at["color"] != "#000000" for at in looks)


def test_neighbouring_curves_have_their_markers_at_different_points() -> None:
    for points in range(1, 60):
        shown = [set(range(points)[(at := marker_points(i, points))[0] :: at[1]]) for i in range(12)]
        assert all(shown)
        assert points < 4 or all(not one & other for one, other in pairwise(shown))


def test_the_alt_text_has_the_last_accuracy_of_each_panel() -> None:
    digits, years = accuracy_by_round(rich_board())
    assert "fedavg 0.90 without poisoning, 0.45 under sign-flip" in digits.alt
    assert "dp-sgd+krum 0.72 without poisoning, 0.45 under sign-flip" in digits.alt
    assert "baffle" not in digits.alt
    assert "R² by round on years. In the end: fedavg 0.50 without poisoning, -40.00 under bank" in years.alt
    assert "below -0.2 is drawn there" in years.caption


def test_the_curve_drawn_is_that_of_the_threat_with_the_lowest_score() -> None:
    mild = make_cell("fedavg", "sign-flip", 0.9, axis="integrity", curve=((0, 0.1), (9, 0.88)))
    harsh = make_cell("fedavg", "sign-flip", 0.2, axis="integrity", knows="omniscient", curve=((0, 0.1), (9, 0.22)))
    (drawn,) = accuracy_by_round(make_board([mild, harsh], [make_clean_run("fedavg")]))
    assert "0.22 under sign-flip" in drawn.alt
    assert "0.88" not in drawn.alt


def test_the_area_is_that_of_the_seed_drawn() -> None:
    (drawn,) = roc_curves(rich_board())
    assert "joint-membership: fedavg 0.84 (server, adaptive)" in drawn.alt
    assert not roc_curves(make_board())


@pytest.mark.parametrize("points", [[[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]])
def test_roc_of_perfect_and_of_blind_attacks_can_be_drawn(points: list[list[float]]) -> None:
    metrics = {"auc": {0: 1.0 if len(points) == 3 else 0.5}}
    cell = make_cell("dbcl", "joint-membership", series={"roc": points}, metrics=metrics)
    (drawn,) = roc_curves(make_board([cell], []))
    assert f"dbcl {metrics['auc'][0]:.2f} (" in drawn.alt


def test_the_cost_figure_has_both_numbers_and_names_defenses_left_out() -> None:
    board = rich_board()
    (drawn,) = cost_and_score(board)
    assert "dp-sgd+krum 3.50 × for" in drawn.alt.split("Training time")[1]
    assert "fedavg 1.00 × for" in drawn.alt
    assert "no lowest score: baffle" in drawn.caption
    assert "baffle" not in drawn.alt
    assert not cost_and_score(make_board([], []))


def test_epsilon_is_drawn_where_it_is_promised() -> None:
    board = rich_board()
    (drawn,) = privacy_and_epsilon(board)
    words = "dp-sgd+krum ε 2 and privacy 0.71; fedavg promises nothing and has 0.02"
    assert drawn.alt == f"Privacy against ε (replace one) on digits: {words}."
    assert not privacy_and_epsilon(make_board())


def test_pictures_show_the_party_that_recovers_most_and_its_score(tmp_path: Path) -> None:
    board = rich_board()
    save_pictures(board, tmp_path)
    (drawn,) = reconstructions(board, tmp_path)
    assert "fedavg paper form server: score 0.05" in drawn.alt
    assert "adaptive form server: score 0.02" in drawn.alt
    assert "dp-sgd+krum paper form server: score 0.93" in drawn.alt
    assert "baffle paper form server: n/a, adaptive form server: n/a" in drawn.alt
    assert not reconstructions(board, tmp_path / "nowhere")


def test_damaged_pictures_are_no_pictures(tmp_path: Path) -> None:
    board = rich_board()
    save_pictures(board, tmp_path)
    for path in (tmp_path / "pictures").iterdir():
        path.write_bytes(path.read_bytes()[:40])
    assert not reconstructions(board, tmp_path)


def test_names_in_figures_are_short_and_no_formulas() -> None:
    assert label("dp-sgd+nnm+krum") == "dp-sgd+nnm+krum"
    assert len(label("x" * 100)) == LONGEST
    assert label("dp-sgd+bucketing+nnm+geometric-median") != label("dp-sgd+bucketing+nnm+coordinate-median")
    assert label("a$b\nc$") == r"a\$b c\$"
    assert label("a\x1b[2J\x9b") == "a␛[2J�"


def test_file_names_are_plain() -> None:
    assert file_name("roc", "Faces/LFW (20)") == "roc-faces-lfw-20"
    assert re.fullmatch(r"[a-z0-9-]+", file_name("images", "é", "../.."))
