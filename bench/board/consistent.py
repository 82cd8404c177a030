"""Checks whether a published board's scores follow from its own metrics.

A published board is a file that anyone may edit. A score without its metrics, or one that does not follow from them,
is no result, whichever of the two was changed. `fedarena.board.doubtful_record` checks records in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from fedarena import goals
from fedarena.board.board import Board, BoardCell, CleanRun, ProblemInfo
from fedarena.board.references import facts
from fedarena.contracts.baseline import BASELINE
from fedarena.goals.metrics.gain import gain

CLOSE = 1e-4
"""The tolerance of the check. Boards keep six decimals, and a score divides rounded numbers by at least 0.05."""


def contradictions(board: Board) -> Iterator[str]:
    """Values of a board that contradict each other, each with its place, run by run and cell by cell."""
    problems = {p.name: p for p in board.problems}
    runs = {run.place: run for run in board.clean_runs}
    for run in board.clean_runs:
        if fault := _clean_run_fault(run, problems[run.problem]):
            yield f"{run.problem} · {run.defense} · clean run: {fault}"
    for c in board.cells:
        if fault := _cell_fault(c, problems[c.problem], runs.get((c.problem, c.defense))):
            yield f"{c.problem} · {c.defense} · {c.attack} · {c.threat}: {fault}"


def _clean_run_fault(run: CleanRun, problem: ProblemInfo) -> str:
    for seed, reference in sorted(problem.reference_accuracy.items()):
        if run.defense == BASELINE and abs(run.accuracy.get(seed, reference) - reference) > CLOSE:
            return f"accuracy of seed {seed} is {run.accuracy[seed]:g}, and its problem has {reference:g} ({BASELINE})"
        # A diverged model has utility 0, however often it is right.
        if seed not in run.utility or (run.status in ("diverged", "failed", "mixed") and run.utility[seed] == 0):
            continue
        expected = gain(facts(problem, seed, run.local_only, run.server_only, run.accuracy[seed]))
        if expected is None or abs(run.utility[seed] - expected) > CLOSE:
            gives = "none" if expected is None else f"{expected:g}"
            return f"utility of seed {seed} is {run.utility[seed]:g}, and its accuracy gives {gives}"
    return ""


def _cell_fault(c: BoardCell, problem: ProblemInfo, run: CleanRun | None) -> str:
    for seed, score in sorted(c.scores.items()):
        # Without its clean run and FedAvg's, the share that poisoning leaves is unknown.
        if c.axis == "integrity" and (
            run is None or seed not in run.accuracy or seed not in problem.reference_accuracy
        ):
            continue
        try:
            expected = _expected_scores(c, seed, problem, run)
        except KeyError as missing:
            return f"metrics has no {missing.args[0]} of seed {seed}, from which its score follows"
        if c.axis not in expected:
            return f"score of seed {seed} is {score:g}, and its clean run learned nothing that could be lost"
        if abs(expected[c.axis] - score) > CLOSE:
            return f"score of seed {seed} is {score:g}, and its metrics give {expected[c.axis]:g}"
    return ""


def _expected_scores(c: BoardCell, seed: int, problem: ProblemInfo, run: CleanRun | None) -> dict[str, float]:
    """The scores that a seed's metrics give. Raises KeyError for a metric that is missing."""
    metrics = {name: values[seed] for name, values in c.metrics.items() if seed in values}
    if run is None:
        utility = facts(problem, seed)
    else:
        utility = facts(problem, seed, run.local_only, run.server_only, run.accuracy.get(seed))
    return goals.recorded(c.goal).scores(metrics, utility)
