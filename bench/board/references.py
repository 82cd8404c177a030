"""What a defense is compared with: FedAvg, and what can be had without a federation.

The references without a federation are a constant answer, clients that train alone, and a server that trains on its
own samples (`fedarena.goals.metrics.gain`). They stand on every board beside the defenses and are never ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fedarena.board.board import Board, BySeed, CleanRun, ProblemInfo
from fedarena.core.text.numbers import Mean, mean
from fedarena.goals.metrics.gain import LEAST_GAIN, gained, mean_gain, unfederated


@dataclass(frozen=True)
class Reference:
    """Something that needs no federation.

    Attributes:
        name: `constant`, `local-only` or `server-only`.
        title: what it is, in words.
        accuracy: its accuracy by problem.
    """

    name: str
    title: str
    accuracy: dict[str, Mean]


def facts(
    problem: ProblemInfo,
    seed: int,
    local_only: BySeed | None = None,
    server_only: BySeed | None = None,
    accuracy: float | None = None,
) -> dict[str, Any]:
    """What a record's `utility` holds, from a board (`fedarena.records.schema.Utility`).

    Args:
        local_only, server_only, accuracy: the clean run's. A protocol that trains the problem with another loss has
            clients of its own that train alone.
    """
    own = {"local_only": {**problem.local_only, **(local_only or {})}, "server_only": server_only or {}}
    return {
        "chance": problem.chance,
        "references": {name: values[seed] for name, values in own.items() if seed in values},
        "fedavg_accuracy": problem.reference_accuracy.get(seed),
        "clean_accuracy": accuracy,
    }


def references(board: Board, problems: Sequence[str]) -> list[Reference]:
    """The references on these problems. None on boards that were measured before there were any."""
    rows: dict[str, dict[str, Mean]] = {"constant": {}, "local-only": {}, "server-only": {}}
    best_of: dict[str, None] = {}
    for p in board.problems:
        if p.name not in problems or not p.local_only:
            continue
        rows["constant"][p.name] = Mean(p.chance, None, len(p.local_only))
        rows["local-only"][p.name] = mean(list(p.local_only.values()))
        if best := best_server(board, p.name):
            rows["server-only"][p.name] = mean(list(best.server_only.values()))
            best_of[best.defense] = None
    titles = {
        "constant": "always the most frequent class",
        "local-only": "each client trains alone",
        "server-only": f"a server trains on its own samples alone (that of {' or '.join(best_of)}, the best)",
    }
    return [Reference(name, titles[name], accuracy) for name, accuracy in rows.items() if accuracy]


def best_server(board: Board, problem: str) -> CleanRun | None:
    """Of the runs on a problem whose server holds samples, the one whose server does best alone."""
    runs = [run for run in board.clean_runs if run.problem == problem and run.server_only]
    return max(runs, key=lambda run: fmean(run.server_only.values()), default=None)


def gain_of_fedavg(problem: ProblemInfo) -> tuple[float, float] | None:
    """FedAvg's mean accuracy on a problem, and b without a server; None where it was not measured."""
    return mean_gain([facts(problem, seed) for seed in sorted(problem.reference_accuracy)])


def measures_utility(problem: ProblemInfo) -> bool:
    """Whether FedAvg gains something over not federating, or it is not known."""
    known = gain_of_fedavg(problem)
    return known is None or gained(*known)


def without_gain(board: Board, defense: str, problems: Sequence[str]) -> str:
    """Why a defense is not worth a federation: on none of these problems it gains `LEAST_GAIN`. Empty if it does.

    A server that trains well on its own samples may end a little above its reference, which is chosen on a part of
    them. That little is no reason to stand above a defense that keeps much and loses an axis whole.
    """
    told, best = [], None
    for run in board.clean_runs:
        if run.defense != defense or run.problem not in problems:
            continue
        problem = next(p for p in board.problems if p.name == run.problem)
        floors = floors_of(problem, run)
        if not floors or len(floors) < len(run.utility):
            return ""  # measured before there were references
        gains = [run.utility[s] * (problem.reference_accuracy[s] - floor) for s, floor in floors.items()]
        best = max(best or 0.0, fmean(gains))
        told.append(f"{run.problem}: {fmean(run.accuracy.values()):.2f} against {fmean(floors.values()):.2f}")
    if best is None or gained(best, 0.0):
        return ""
    return f"it gains less than {LEAST_GAIN:g} over what can be had without a federation ({', '.join(told)})"


def floors_of(problem: ProblemInfo, run: CleanRun) -> dict[int, float]:
    """b of a run by seed, for seeds with a utility; none that was measured before there were references."""
    known = {s: unfederated(facts(problem, s, run.local_only, run.server_only)) for s in sorted(run.utility)}
    return {seed: floor for seed, floor in known.items() if floor is not None}


def no_better_than_alone(utility: Mapping[int, float]) -> bool:
    """Whether the interval of a utility over seeds holds 0, which is what can be had without a federation."""
    if not utility:
        return False
    value = mean(list(utility.values()))
    return value.value - (value.half or 0.0) <= 0
