"""Where things stand in figures: nothing is threats off, nothing hides anything else, and words are whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from helpers.board import make_board, make_cell
from helpers.report import crowded_board, rich_board, save_pictures
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from fedarena.board.board import Board
from fedarena.board.report.accuracy_figures import accuracy_by_round
from fedarena.board.report.cost_figure import cost_and_score
from fedarena.board.report.epsilon_figures import privacy_and_epsilon
from fedarena.board.report.heat_maps import heat_maps
from fedarena.board.report.reconstruction_figures import reconstructions
from fedarena.board.report.roc_curves import roc_curves

KINDS: dict[str, Callable[[Board, Path], object]] = {
    "scores": lambda board, _: heat_maps(board),
    "rounds": lambda board, _: accuracy_by_round(board),
    "images": reconstructions,
    "roc": lambda board, _: roc_curves(board),
    "epsilon": lambda board, _: privacy_and_epsilon(board),
    "cost": lambda board, _: cost_and_score(board),
}
BOARDS = {"rich": rich_board, "crowded": lambda: crowded_board((0.5, 2.0, 8.0))}


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Every figure that a test writes, in order. It is laid out as in the file, and no pixel is drawn."""
    found: list[Figure] = []

    def keep(self: Figure, file: BinaryIO, *, dpi: int, **kwargs: Any) -> None:
        self.set_dpi(dpi)
        self.draw_without_rendering()
        Image.new("RGB", (1, 1)).save(file, "PNG")
        found.append(self)

    monkeypatch.setattr(Figure, "savefig", keep)
    return found


def words(figure: Figure) -> list[Text]:
    """All that is written beside axes' own ticks."""
    return [t for t in [*figure.texts, *(t for legend in figure.legends for t in legend.get_texts())] if t.get_text()]


def overlap(one: Bbox, other: Bbox) -> bool:
    found = Bbox.intersection(one, other)
    return found is not None and found.width > 1 and found.height > 1


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaves_the_figure_and_no_legend_lies_on_anything(
    kind: str, name: str, figures: list[Figure], tmp_path: Path
) -> None:
    board = BOARDS[name]()
    save_pictures(board, tmp_path, side=40)
    KINDS[kind](board, tmp_path)
    assert figures
    for figure in figures:
        page = Bbox.from_bounds(0, 0, *figure.get_size_inches()).padded(0.01)
        whole = figure.get_tightbbox()
        assert Bbox.union([page, whole]).bounds == page.bounds, whole
        around = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
        around += [t.get_window_extent() for t in figure.texts]
        for legend in figure.legends:
            assert not any(overlap(legend.get_window_extent(), box) for box in around if box is not None)
        boxes = [t.get_window_extent() for t in words(figure)]
        assert not any(overlap(one, other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize("side", [8, 40])
def test_captions_of_pictures_are_whole(side: int, figures: list[Figure], tmp_path: Path) -> None:
    board = crowded_board()
    save_pictures(board, tmp_path, side=side)
    reconstructions(board, tmp_path)
    shown = [t.get_text() for t in figures[0].texts]
    assert shown.count("eavesdropper: score 0.08 (0.00 to 0.42)") == 8
    assert not any("…" in text for text in shown)


def rows_of(figure: Figure) -> list[str]:
    return [t.get_text() for t in figure.axes[0].get_yticklabels()]


def points_of(figure: Figure, panel: int) -> Sequence[tuple[float, float]]:
    return [(*bar.lines[0].get_xdata(), *bar.lines[0].get_ydata()) for bar in figure.axes[panel].containers]


def test_each_defense_s_cost_has_its_own_row(figures: list[Figure]) -> None:
    board = crowded_board()
    cost_and_score(board)
    assert sorted(rows_of(figures[0])) == sorted(board.defenses)
    for panel in range(3):
        assert [y for _, y in points_of(figures[0], panel)] == list(range(25))


def test_costs_are_in_the_order_of_scores(figures: list[Figure]) -> None:
    (drawn,) = cost_and_score(rich_board())
    assert rows_of(figures[0]) == ["dp-sgd+krum", "fedavg"]
    scores = [x for x, _ in points_of(figures[0], 0)]
    assert scores == sorted(scores, reverse=True)
    assert drawn.alt.index("dp-sgd+krum") < drawn.alt.index("fedavg ")


def test_an_unmeasured_cost_is_named(figures: list[Figure]) -> None:
    board = rich_board()
    unmeasured = [replace(h, relative_seconds=None) if h.defense == "fedavg" else h for h in board.clean_runs]
    (drawn,) = cost_and_score(replace(board, clean_runs=tuple(unmeasured)))
    assert [[t.get_text() for t in axes.texts] for axes in figures[0].axes] == [[], [], ["not measured"]]
    assert "fedavg" not in drawn.alt.split("Training time / FedAvg's: ")[1]


def test_a_common_epsilon_stands_below_the_scores(figures: list[Figure]) -> None:
    privacy_and_epsilon(crowded_board())
    (axes,) = figures[0].axes
    assert axes.get_xlabel() == "privacy, worst case, where ε (add remove) is 2"
    assert [y for _, y in points_of(figures[0], 0)] == list(range(24))


def test_several_epsilons_have_a_panel_and_order_the_rows(figures: list[Figure]) -> None:
    (drawn,) = privacy_and_epsilon(crowded_board((8.0, 0.5, 2.0)))
    left, right = figures[0].axes
    assert left.get_xlabel() == "ε (add remove)"
    assert right.get_xlabel() == "privacy, worst case"
    assert [x for x, _ in points_of(figures[0], 0)] == [0.5] * 8 + [2.0] * 8 + [8.0] * 8
    assert drawn.alt.index("ε 0.5") < drawn.alt.index("ε 2 ") < drawn.alt.index("ε 8")


def test_roc_has_a_panel_for_each_defense_with_the_area_of_the_alt_text(figures: list[Figure]) -> None:
    seen = {"series": {"roc": [[0.0, 0.2], [0.5, 0.8], [1.0, 1.0]]}, "metrics": {"auc": {0: 0.68}}}
    cells = [make_cell(d, "joint-membership", 0.4, **seen) for d in ("fedavg", "dbcl")]
    cells.append(make_cell("dbcl", "marginal-membership", 0.4, **seen))
    (drawn,) = roc_curves(make_board(cells, []))
    panels = {axes.get_title(): [t.get_text() for t in axes.texts] for axes in figures[0].axes if axes.axison}
    assert panels == {"fedavg": ["0.68, –"], "dbcl": ["0.68, 0.68"]}
    assert "marginal-membership: dbcl 0.68 (" in drawn.alt
