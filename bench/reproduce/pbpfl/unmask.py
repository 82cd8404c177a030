"""PBPFL unmasked over training: the errors of γ̂, and what the canonical form and the release give away.

One client of two reads its broadcasts (`fedarena.defenses.pbpfl.gamma`), or someone who merely listens: `by broadcasts`
takes no data. Against the paper's Lemma 3, by which a client can tell neither prediction nor model.

Tables have one output, or two. `r constant` is the released code's law for dense layers. With one output it takes more
than the masks of two broadcasts (`fedarena.defenses.pbpfl.gamma_steady`): a step of SGD between them, or with Adam,
which the code has for Bank Marketing, the broadcasts of the last hundred rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.defense import State
from fedarena.contracts.transcript import Round, cut
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.gamma import gamma_from_columns, gamma_from_labels
from fedarena.defenses.pbpfl.gamma_estimate import NEAREST, estimate_gamma
from fedarena.defenses.pbpfl.protocol import PBPFL
from fedarena.defenses.pbpfl.wire import GAMMA
from fedarena.federation import rounds as federation
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.goals.metrics.extraction import agreement
from fedarena.models.scaling.positive_scaling import canonical
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.place import Where

SETTING = (
    "2 clients, FedSGD: |γ̂ − γ| by own labels and by columns of one broadcast, and by broadcasts without data; "
    "predictions that agree with the server's (of numbers R²); cosines of the update and of the released model in the "
    "canonical form and as sent"
)


@dataclass(frozen=True)
class Cell:
    """One federation.

    Attributes:
        data, model: from the registry. lr: learning rate. options: the model's. loss: mse or regression.
        batch: samples of a client and round. optimizer: the server's. defense: PBPFL's options. setting: what `--only`
            picks it by, beside data and model.
    """

    data: str
    model: str
    lr: float
    options: dict[str, str] = field(default_factory=dict)
    loss: str = "mse"
    batch: int = 16
    optimizer: str = "sgd"
    defense: dict[str, str] = field(default_factory=dict)
    setting: str = ""

    @property
    def title(self) -> str:
        """What `--only` picks it by."""
        return ", ".join(filter(None, (self.data, self.model, self.setting)))


CONSTANT = {"r": "constant"}
CELLS = (
    Cell("digits", "mlp", 0.3),
    Cell("digits", "lenet-baffle", 0.1, {"activation": "relu", "norm": "none"}),
    Cell("mnist", "mlp", 0.1),
    Cell("mnist", "cnn-mnist", 0.05),
    Cell("breast-cancer", "mlp", 0.1),
    Cell("breast-cancer", "mlp", 0.1, defense=CONSTANT, setting="r constant"),
    Cell("diabetes", "mlp", 0.1, loss="regression"),
    Cell("diabetes", "mlp", 0.1, loss="regression", defense=CONSTANT, setting="r constant"),
    Cell(
        *("bank-marketing", "mlp", 0.001, {"widths": "50,50", "bias": "false"}, "regression", 512, "adam", CONSTANT),
        setting="r constant",
    ),
)
PIECES = tuple(cell.title for cell in CELLS)
MEASURED = (
    *("accuracy", "by labels", "by columns", "by broadcasts", "masked agrees", "projected agrees", "unmasked agrees"),
    *("update", "update as sent", "release", "release as sent"),
)
ROUNDS, LOOKS = 1000, (0, 100, 300, 997)
"""Rounds in all, and those that are looked at, with the one after each."""


def rows(piece: str, where: Where, seed: int, progress: Callable[[float, str], None]) -> list[dict[str, Any]]:
    """One row for every round looked at."""
    (cell,) = (cell for cell in CELLS if cell.title == piece)
    model = registry.find("model", cell.model)
    times = Schedule(ROUNDS, batch_size=cell.batch, lr=cell.lr, loss=cell.loss, server_optimizer=cell.optimizer)
    spec = ProblemSpec(cell.data, model.name, "iid", 2, model.parse(cell.options), schedule=times)
    return measure(cell, build(spec, seed, where.data_dir, where.device), seed, lambda share: progress(share, piece))


def measure(cell: Cell, problem: Problem, seed: int, report: Callable[[float], None]) -> list[dict[str, Any]]:
    """Train, and look at the rounds of `LOOKS` that there are."""
    defense = make_defense(parse_defense("pbpfl", cell.defense), problem.task)
    assert isinstance(defense, PBPFL)
    before = NEAREST if cell.optimizer == "adam" else 0
    watch = {s for t in LOOKS for s in range(max(0, t - before), t + 2)}
    run = federation.run(defense, problem, Rng(seed).child("federation"), watch, report)
    by_round = {r.index: r for r in run.rounds}
    found = []
    for t in (t for t in LOOKS if t + 1 in by_round):
        row: dict[str, Any] = {"federation": cell.title, "round": t}
        near = [by_round[s] for s in range(max(0, t - before), t + 2)]
        found.append(row | _look(defense, problem, near))
    return found


def _look(defense: PBPFL, problem: Problem, near: Sequence[Round]) -> dict[str, float]:
    """At the last but one of these rounds."""
    now, after = near[-2:]
    sent, then = (defense.wire.open(r.down) for r in (now, after))
    truth, criterion = float(now.secret[GAMMA]), problem.task.criterion
    own = problem.data_of(Threat("client", "adaptive"))
    assert own is not None
    seen = cut(near, Threat("eavesdropper", "adaptive"))
    gamma, gamma_after = (estimate_gamma(defense, defense.wire, seen, r.index) for r in (now, after))
    freed, freed_after = sent.without(gamma), then.without(gamma_after)
    plain, *guesses = (problem.predictions(p) for p in (now.params, sent.params, sent.projected(), freed))
    masked, projected, unmasked = (agreement(criterion, guess, plain) for guess in guesses)
    released = defense.release(State(now.params), Rng(now.index).child("release"))

    def canon(params: Tensors) -> Tensors:
        return canonical(defense.wire.plan, {name: p.double() for name, p in params.items()})

    def hidden(params: Tensors) -> Tensor:
        return flatten({name: p.double() for name, p in params.items() if name not in defense.wire.additive})

    true_update = hidden(canon(now.params)) - hidden(canon(now.after))
    return {
        "accuracy": criterion.quality(plain, problem.y_test),
        "by labels": abs(gamma_from_labels(sent, defense.wire.wide, criterion, *own.images()) - truth),
        "by columns": abs(gamma_from_columns(sent) - truth),
        "by broadcasts": abs(gamma - truth),
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
