"""Methods that no longer have any effect. Equal accuracies reveal them; a test of scores would need a large loss.

A defense that became FedAvg gives exactly FedAvg's accuracy. Corrupted clients that follow the protocol give exactly
the accuracy of the clean run, since all random streams are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.board.board import Board, BoardCell
from fedarena.contracts.baseline import BASELINE

NO_DEFENSE = "it seems to do nothing: on every seed its accuracy is exactly FedAvg's, which it was not before"
NO_ATTACK = "it seems to do nothing: on every seed the accuracy is exactly the clean run's, which it was not before"

ENOUGH = 6
"""How many runs of an attack must agree. One accuracy over some hundred samples may be equal by chance."""

Place = tuple[str, ...]


def undefended_now(base: Board, new: Board) -> set[Place]:
    """Places of clean runs that have exactly FedAvg's accuracy on every seed, and did not before."""
    present = {run.place for run in base.clean_runs if run.status != "missing"}
    return (_undefended(new) - _undefended(base)) & present


def harmless_now(base: Board, new: Board) -> set[Place]:
    """Places of poisoning cells that have exactly the clean run's accuracy on every seed, and did not before.

    An attack is reported only if most of its cells became harmless, on at least two defenses and in at least `ENOUGH`
    runs.
    """
    before, now = _harmless(base), _harmless(new)
    runs = {c.place: len(c.scores) for c in new.cells}
    groups: dict[Place, list[BoardCell]] = {}
    for c in base.cells:
        if before.get(c.place) is False and c.place in now:
            groups.setdefault((c.attack, c.form, c.knows), []).append(c)
    places: set[Place] = set()
    for cells in groups.values():
        idle = [c for c in cells if now[c.place]]
        if 2 * len(idle) > len(cells) and _enough(idle, runs):
            places |= {c.place for c in idle}
    return places


def _enough(idle: Sequence[BoardCell], runs: Mapping[Place, int]) -> bool:
    """Whether so many cells agree that it is not by chance."""
    return len({c.defense for c in idle}) > 1 and sum(runs[c.place] for c in idle) >= ENOUGH


def _undefended(board: Board) -> set[Place]:
    reference = {p.name: p.reference_accuracy for p in board.problems}
    return {
        run.place
        for run in board.clean_runs
        if run.defense != BASELINE and _equal(run.accuracy, reference.get(run.problem, {}))
    }


def _harmless(board: Board) -> dict[Place, bool]:
    """Place of a poisoning cell → whether it has exactly its clean run's accuracies on the seeds that both have."""
    clean = {run.place: run.accuracy for run in board.clean_runs}
    harmless = {}
    for c in board.cells:
        own, attacked = clean.get((c.problem, c.defense), {}), c.metrics.get("accuracy", {})
        if c.axis == "integrity" and set(attacked) & set(own):
            harmless[c.place] = _equal(attacked, own)
    return harmless


def _equal(a: Mapping[int, float], b: Mapping[int, float]) -> bool:
    shared = set(a) & set(b)
    return bool(shared) and all(a[seed] == b[seed] for seed in shared)
