"""What an attack reached, in a sentence."""

from __future__ import annotations

from fedarena import goals
from fedarena.board.board import Board, BoardCell
from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core.text.numbers import Mean, level, mean, quality
from fedarena.goals.nodes import honest_nodes_line
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import rate


def outcome(c: BoardCell, board: Board) -> str:
    """What came of an attack; empty where nothing was measured."""
    metrics = {name: mean(list(values.values())) for name, values in c.metrics.items() if values}
    return _poisoning(c, metrics, board) if c.axis == "integrity" else _inference(c, metrics)


def _poisoning(c: BoardCell, metrics: dict[str, Mean], board: Board) -> str:
    if "accuracy" not in metrics:
        return ""
    measure = next((p.measure for p in board.problems if p.name == c.problem), "accuracy")
    clean = [run.accuracy for run in board.clean_runs if run.place == (c.problem, c.defense) and run.accuracy]
    before = f" (without poisoning: {level(mean(list(clean[0].values())), measure)})" if clean else ""
    success = metrics.get("attack_success_rate")
    trigger = f"; its trigger works on {rate(metrics, 'attack_success_rate')} of inputs" if success else ""
    reached = quality(metrics["accuracy"], measure)
    if nodes := honest_nodes_line(metrics, measure):
        whose, others = nodes.split(": ", 1)
        return f"Under {c.attack} {whose} end with {reached} on average{before}, {others}{trigger}."
    return f"Under {c.attack} the model ends with {reached}{before}{trigger}."


def _inference(c: BoardCell, metrics: dict[str, Mean]) -> str:
    if c.goal not in GOAL_NAMES:
        return ""
    wording = goals.find(c.goal).text.wording(list(metrics))
    if wording.metric not in metrics:
        return ""
    cell = Cell(
        status=c.status,
        reason=c.reason,
        reading=c.reading,
        metrics=metrics,
        keys=tuple(c.keys.values()),
    )
    where = "Without a defense" if c.defense == BASELINE else f"Against {c.defense}"
    return f"{where}, {c.attack} {wording.finds.format(outcome=wording.outcome(cell))}."
