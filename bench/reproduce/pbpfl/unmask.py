"""PBPFL unmasked during training: the errors of γ̂, and what the canonical form and the release reveal.

The attacker is one client of two that reads its broadcasts (`fedarena.defenses.pbpfl.gamma`), or an eavesdropper: `by
broadcasts` needs no data. This contradicts the paper's Lemma 3, by which a client learns neither prediction nor model.

Tables have one output, or two. `r constant` is the released code's distribution for dense layers. With one output, the
masks of two broadcasts do not suffice (`fedarena.defenses.pbpfl.gamma_steady`): the attack needs a step of SGD between
them, or with Adam, which the code uses for Bank Marketing, the broadcasts of the last hundred rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
from fedarena.federation import rounds
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.goals.metrics.extraction import agreement
from fedarena.models.scaling.positive_scaling import canonical
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

SETTING = (
    "2 clients, FedSGD: |γ̂ − γ| by own labels and by columns of one broadcast, and by broadcasts without data; "
    "predictions that agree with the server's (of numbers R²); cosines of the update and of the released model in the "
    "canonical form and as sent"
)


@dataclass(frozen=True)
class Federation:
    """One federation.

    Attributes:
        data, model: from the registry. lr: learning rate. options: the model's. loss: mse or regression.
        batch: samples of a client and round. optimizer: the server's. defense: PBPFL's options. setting: the name by
            which `--only` selects it, in addition to data and model.
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
        """The name by which `--only` selects it."""
        return ", ".join(filter(None, (self.data, self.model, self.setting)))


CONSTANT = {"r": "constant"}
FEDERATIONS = (
    Federation(data="digits", model="mlp", lr=0.3),
    Federation(data="digits", model="lenet-baffle", lr=0.1, options={"activation": "relu", "norm": "none"}),
    Federation(data="mnist", model="mlp", lr=0.1),
    Federation(data="mnist", model="cnn-mnist", lr=0.05),
    Federation(data="breast-cancer", model="mlp", lr=0.1),
    Federation(data="breast-cancer", model="mlp", lr=0.1, defense=CONSTANT, setting="r constant"),
    Federation(data="diabetes", model="mlp", lr=0.1, loss="regression"),
    Federation(data="diabetes", model="mlp", lr=0.1, loss="regression", defense=CONSTANT, setting="r constant"),
    Federation(
        data="bank-marketing",
        model="mlp",
        lr=0.001,
        options={"widths": "50,50", "bias": "false"},
        loss="regression",
        batch=512,
        optimizer="adam",
        defense=CONSTANT,
        setting="r constant",
    ),
)
BY_TITLE = {federation.title: federation for federation in FEDERATIONS}
MEASURED = (
    *("accuracy", "by labels", "by columns", "by broadcasts", "masked agrees", "projected agrees", "unmasked agrees"),
    *("update", "update as sent", "release", "release as sent"),
)
ROUNDS, LOOKS = 1000, (0, 100, 300, 997)
"""Rounds in all, and those that are looked at, with the one after each."""


def measure(federation: Federation, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """Train, and return one row for each of the rounds `LOOKS` that the training has."""
    problem = _problem(federation, machine, seed)
    defense = make_defense(parse_defense("pbpfl", federation.defense), problem.task)
    assert isinstance(defense, PBPFL)
    before = NEAREST if federation.optimizer == "adam" else 0
    watch = {s for t in LOOKS for s in range(max(0, t - before), t + 2)}
    run = rounds.run(defense, problem, Rng(seed).child("federation"), watch, lambda share: progress(share, "training"))
    by_round = {r.index: r for r in run.rounds}
    rows = []
    for t in (t for t in LOOKS if t + 1 in by_round):
        row: Row = {"federation": federation.title, "round": t}
        near = [by_round[s] for s in range(max(0, t - before), t + 2)]
        rows.append(row | _look(defense, problem, near))
    return rows


def _problem(federation: Federation, machine: Machine, seed: int) -> Problem:
    spec = ProblemSpec(
        dataset=federation.data,
        model=federation.model,
        partition="iid",
        clients=2,
        model_options=registry.find("model", federation.model).parse(federation.options),
        schedule=Schedule(
            rounds=ROUNDS,
            batch_size=federation.batch,
            lr=federation.lr,
            loss=federation.loss,
            server_optimizer=federation.optimizer,
        ),
    )
    return build(spec, seed, machine.data_dir, machine.device)


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


TABLE = Table(setting=SETTING, pieces=tuple(BY_TITLE), rows=measured_by_name(BY_TITLE, measure), measured=MEASURED)
