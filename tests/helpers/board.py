"""Boards made by hand: two problems' worth of results without a single training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedarena.board.board import Board, BoardCell, CleanRun, ProblemInfo
from fedarena.board.references import facts
from fedarena.goals.metrics.gain import gain, unfederated

SEEDS = (0, 1, 2)


def make_problem(**changes: Any) -> ProblemInfo:
    """Digits, on which FedAvg reaches 90 to 92 %, and clients 50 % alone."""
    usual: dict[str, Any] = {
        "name": "digits",
        "description": "digits, mlp, 10 clients (iid), 2 corrupted when attacked, FedSGD, 50 rounds",
        "dataset": "digits",
        "measure": "accuracy",
        "chance": 0.1,
        "reference_accuracy": {s: 0.90 + 0.01 * (s % 3) for s in SEEDS},
        "local_only": dict.fromkeys(SEEDS, 0.5),
    }
    return ProblemInfo(**{**usual, **changes})


def make_clean_run(defense: str = "fedavg", seeds: Sequence[int] = SEEDS, **changes: Any) -> CleanRun:
    """A run without an attack; `utility` 1.0 unless said."""
    level = changes.pop("level", 1.0)
    usual: dict[str, Any] = {
        "problem": "digits",
        "defense": defense,
        "status": "ok",
        "reason": "",
        "accuracy": {s: level * (0.90 + 0.01 * (s % 3)) for s in seeds},
        "utility": dict.fromkeys(seeds, level),
        "bytes_up": 4000.0,
        "bytes_down": 4000.0,
        "relative_seconds": 1.0,
        "peak_bytes": 100000.0,
        "guarantees": {},
        "warnings": (),
        "curve": ((0, 0.1), (10, 0.6 * level), (20, 0.8 * level), (50, 0.9 * level)),
        "keys": tuple(f"{defense}-honest-{s}" for s in seeds),
        "command": f"bench run --defense {defense} --attack dlg",
    }
    return CleanRun(**{**usual, **changes})


def make_cell(
    defense: str = "fedavg",
    attack: str = "dlg",
    score: float | Sequence[float] = 0.5,
    seeds: Sequence[int] = SEEDS,
    **changes: Any,
) -> BoardCell:
    """One cell. `score` is the mean (seeds lie 0.01 apart around it) or one score a seed.

    Poisoning where `axis="integrity"` is given, inference by the server in adaptive form otherwise; what is neither ok,
    diverged nor mixed has no scores.
    """
    poisoning = changes.get("axis") == "integrity"
    spread = [score + 0.01 * (i - (len(seeds) - 1) / 2) for i in range(len(seeds))] if _one(score) else list(score)
    scores = {s: min(1.0, max(0.0, v)) for s, v in zip(seeds, spread, strict=True)}
    status = changes.get("status", "ok")
    bare = status not in ("ok", "diverged", "mixed")
    metric = "accuracy" if poisoning else "recovered"
    form = changes.get("form", "paper" if poisoning else "adaptive")
    party = "client" if poisoning else changes.get("party", "server")
    usual: dict[str, Any] = {
        "problem": "digits",
        "defense": defense,
        "attack": attack,
        "axis": "privacy",
        "goal": "" if poisoning else "reconstruction",
        "party": party,
        "form": form,
        "knows": "own" if poisoning else "",
        "status": "ok",
        "reason": "" if status == "ok" else f"the reason why {attack} is {status}",
        "statuses": dict.fromkeys(seeds, status),
        "reading": "",
        "scores": {} if bare else scores,
        "metrics": {} if bare else {metric: {s: v if poisoning else 1 - v for s, v in scores.items()}},
        "curve": ((0, 0.1), (10, 0.3), (20, 0.4), (50, 0.45)) if poisoning and not bare else (),
        "keys": {s: f"{defense}-{attack}-{party}-{form}-{s}" for s in seeds},
        "settings": "aaaa",
        "versions": {"defense": 1, "attack": 1},
        "command": f"bench run --defense {defense} --attack {attack} --seeds {','.join(map(str, seeds))}",
    }
    return BoardCell(**{**usual, **changes})


def make_board(
    cells: Sequence[BoardCell] | None = None, clean_runs: Sequence[CleanRun] | None = None, **changes: Any
) -> Board:
    """Three defenses that met an inference and a poisoning attack, unless cells and clean runs are given."""
    names = ("fedavg", "dbcl", "two-stage")
    if cells is None:
        privacy = {"fedavg": 0.0, "dbcl": 0.4, "two-stage": 0.95}
        left = {"fedavg": 0.2, "dbcl": 0.3, "two-stage": 0.9}
        cells = [
            *(make_cell(d, "dlg", privacy[d], form=form) for d in names for form in ("paper", "adaptive")),
            *(make_cell(d, "sign-flip", left[d], axis="integrity") for d in names),
        ]
    if clean_runs is None:
        clean_runs = [
            make_clean_run("fedavg"),
            make_clean_run("dbcl", level=0.98),
            make_clean_run("two-stage", level=0.9),
        ]
    usual: dict[str, Any] = {
        "suite": "play",
        "title": "Results made by hand",
        "seeds": SEEDS,
        "problems": (make_problem(),),
        "provenance": {"fedarena": "0.1.0", "commit": "0123456789ab", "newest": "2026-01-31"},
    }
    return Board(clean_runs=tuple(clean_runs), cells=tuple(cells), **{**usual, **changes})


def consistent(board: Board) -> Board:
    """With the metrics, utilities and FedAvg's accuracies that its scores and accuracies stand for."""
    plain = {h.problem: h.accuracy for h in board.clean_runs if h.defense == "fedavg"}
    arenas = tuple(replace(a, reference_accuracy=a.reference_accuracy | plain.get(a.name, {})) for a in board.problems)
    by_name = {a.name: a for a in arenas}
    runs = {h.place: h for h in board.clean_runs}

    def left(c: BoardCell) -> dict[int, float]:
        run, problem = runs.get((c.problem, c.defense)), by_name[c.problem]
        learned, server = (run.accuracy, run.server_only) if run is not None else ({}, {})
        floors = {s: unfederated(facts(problem, s, None, server)) or problem.chance for s in c.scores}
        return {s: floors[s] + v * (learned.get(s, 1.0) - floors[s]) for s, v in c.scores.items()}

    def metrics(c: BoardCell) -> dict[str, dict[int, float]]:
        return {"accuracy": left(c)} if c.knows else {"recovered": {s: 1 - v for s, v in c.scores.items()}}

    return replace(
        board,
        problems=arenas,
        clean_runs=tuple(replace(h, utility=_utility(h, by_name[h.problem])) for h in board.clean_runs),
        cells=tuple(replace(c, metrics=metrics(c)) for c in board.cells),
    )


def _utility(run: CleanRun, problem: ProblemInfo) -> dict[int, float]:
    """What its accuracies keep of FedAvg's gain."""
    plain = problem.reference_accuracy
    accuracies = {s: a for s, a in run.accuracy.items() if s in plain}
    kept = {s: gain(facts(problem, s, None, run.server_only, a)) for s, a in accuracies.items()}
    return {s: v for s, v in kept.items() if v is not None}


def without_references(board: Board) -> Board:
    """As boards were measured before there were references."""
    return replace(board, problems=tuple(replace(p, local_only={}) for p in board.problems))


def with_references(board: Board, local_only: float = 0.5, servers: Mapping[str, float] | None = None) -> Board:
    """With the accuracy of clients that train alone and of the servers of some defenses; utilities follow from them."""
    plain = {h.problem: h.accuracy for h in board.clean_runs if h.defense == "fedavg"}
    references = {p.name: plain.get(p.name, p.reference_accuracy) for p in board.problems}
    problems = {
        p.name: replace(
            p, reference_accuracy=references[p.name], local_only=dict.fromkeys(references[p.name], local_only)
        )
        for p in board.problems
    }

    def compared(run: CleanRun) -> CleanRun:
        alone = (servers or {}).get(run.defense)
        run = replace(run, server_only={} if alone is None else dict.fromkeys(run.accuracy, alone))
        return replace(run, utility=_utility(run, problems[run.problem]))

    return replace(board, problems=tuple(problems.values()), clean_runs=tuple(map(compared, board.clean_runs)))


def _one(score: float | Sequence[float]) -> bool:
    return isinstance(score, (int, float))
