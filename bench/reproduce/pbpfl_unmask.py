"""PBPFL unmasked over training: the errors of γ̂, and what the canonical form and the release give away.

One client of two reads its broadcasts (`fedarena.attacks.unmask`). Against the paper's Lemma 3, by which a client can
tell neither prediction nor model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedarena import federation, registry
from fedarena.attacks.unmask import Masked, gamma_from_columns, gamma_from_labels, gammas_from_two
from fedarena.compose import make_defense, parse_defense
from fedarena.defense import State
from fedarena.defenses.pbpfl import PBPFL
from fedarena.defenses.pbpfl_wire import GAMMA
from fedarena.positive_scaling import canonical
from fedarena.problem import Problem, ProblemSpec, build
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.tensors import Tensors, flatten
from fedarena.threat import Threat
from fedarena.transcript import Round

SETTING = (
    "2 clients, FedSGD, batch 16, mse: |γ̂ − γ| by own labels, by columns, by two broadcasts; predictions that agree "
    "with the server's; cosines of the update and of the released model in the canonical form and as sent"
)
MODELS: dict[str, tuple[str, dict[str, str], float]] = {
    "digits, mlp": ("digits", {}, 0.3),
    "digits, lenet-baffle": ("digits", {"activation": "relu", "norm": "none"}, 0.1),
    "mnist, mlp": ("mnist", {}, 0.1),
    "mnist, cnn-mnist": ("mnist", {}, 0.05),
}
"""Piece → (data, the model's options, learning rate)."""
PIECES = tuple(MODELS)
MEASURED = (
    *("accuracy", "by labels", "by columns", "by two", "masked agrees", "projected agrees", "unmasked agrees"),
    *("update", "update as sent", "release", "release as sent"),
)
ROUNDS, LOOKS = 1000, (0, 100, 300, 997)
"""Rounds in all, and those that are looked at, with the two after each."""


def rows(piece: str, data_dir: Path | None, seed: int, progress: Callable[[float, str], None]) -> list[dict[str, Any]]:
    """One row for every round looked at."""
    data, options, lr = MODELS[piece]
    model = registry.find("model", piece.split(", ")[1])
    schedule = Schedule(rounds=ROUNDS, batch_size=16, lr=lr, loss="mse")
    spec = ProblemSpec(data, model.name, "iid", 2, model.parse(options), schedule=schedule)
    return measure(piece, build(spec, seed, data_dir), seed, lambda share: progress(share, piece))


def measure(piece: str, problem: Problem, seed: int, report: Callable[[float], None]) -> list[dict[str, Any]]:
    """Train, and look at the rounds of `LOOKS` that there are."""
    defense = make_defense(parse_defense("pbpfl"), problem.task)
    assert isinstance(defense, PBPFL)
    watch = {t + i for t in LOOKS for i in (0, 1)}
    run = federation.run(defense, problem, Rng(seed).child("federation"), watch, report)
    by_round = {r.index: r for r in run.rounds}
    found = []
    for t in (t for t in LOOKS if t + 1 in by_round):
        row: dict[str, Any] = {"federation": piece, "round": t}
        found.append(row | _look(defense, problem, by_round[t], by_round[t + 1]))
    return found


def _look(defense: PBPFL, problem: Problem, now: Round, after: Round) -> dict[str, float]:
    sent, then = (Masked(*defense.open(r.down), defense.additive) for r in (now, after))
    truth = float(now.secret[GAMMA])
    own = problem.data_of(Threat("client", "adaptive"))
    assert own is not None
    both = gammas_from_two(sent, then, defense.plan)
    assert both is not None  # ten outputs, whose masks are far from parallel
    gamma, gamma_after = both
    freed, freed_after = sent.without(gamma), then.without(gamma_after)
    plain, *guesses = (problem.predictions(p) for p in (now.params, sent.params, sent.projected(), freed))
    masked, projected, unmasked = (float((g.argmax(1) == plain.argmax(1)).double().mean()) for g in guesses)
    released = defense.release(State(now.params), Rng(now.index).child("release"))

    def canon(params: Tensors) -> Tensors:
        return canonical(defense.plan, {name: p.double() for name, p in params.items()})

    def hidden(params: Tensors) -> Tensor:
        return flatten({name: p.double() for name, p in params.items() if name not in defense.additive})

    true_update = hidden(canon(now.params)) - hidden(canon(now.after))
    return {
        "accuracy": problem.task.criterion.quality(plain, problem.y_test),
        "by labels": abs(gamma_from_labels(sent, defense.wide, problem.task.criterion, *own.images()) - truth),
        "by columns": abs(gamma_from_columns(sent) - truth),
        "by two": abs(gamma - truth),
        "masked agrees": masked,
        "projected agrees": projected,
        "unmasked agrees": unmasked,
        "update": _cosine(hidden(canon(freed)) - hidden(canon(freed_after)), true_update),
        "update as sent": _cosine(hidden(sent.params) - hidden(then.params), hidden(now.params) - hidden(now.after)),
        "release": _cosine(flatten(canon(released)), flatten(canon(now.params))),
        "release as sent": _cosine(flatten(released), flatten(now.params)),
    }


def _cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(a.double(), b.double(), dim=0))
