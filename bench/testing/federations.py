"""Small federations on digits, on which laws try methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from fedarena.contracts.aggregator import Aggregator, Wrapper
from fedarena.contracts.defense import Defense
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView, Samples
from fedarena.core import registry
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, scale
from fedarena.core.threat import Knowledge
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import rounds
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import MODEL, ProblemSpec
from fedarena.problem.task import Auxiliary, Task
from fedarena.testing.law import LawBroken, Method, once

CORRUPTED = 4
"""Of twenty clients."""


def spec_of(
    clients: int, corrupted: int = 0, model: str = "mlp", model_options: dict[str, str] | None = None, **schedule: Any
) -> ProblemSpec:
    """Digits, shared out at random."""
    options = registry.find("model", model).parse(model_options or {})
    return ProblemSpec(
        "digits",
        model=model,
        partition="iid",
        clients=clients,
        model_options=options,
        schedule=Schedule(**schedule),
        corrupted=corrupted,
    )


# -- defenses ---------------------------------------------------------------------------------------


def problem_for(method: Method, clients: int = 3, **schedule: Any) -> Problem:
    """Some clients with one sample each a round, and the model and the loss that the defense's card asks for."""
    usual = dict(method.card.usual)
    spec = spec_of(
        clients,
        model=usual.get("model", "lenet-dlg"),
        model_options=_of_model(usual) if "model" in usual else {},
        **{"rounds": 6, "loss": usual.get("loss", "cross-entropy"), **schedule},
    )
    return build(spec, 0, auxiliary=method.target.holds(method.options))


def defense_of(method: Method, task: Task) -> Defense:
    """The protocol."""
    made: Defense = method.target(method.options, task)
    return made


def _of_model(usual: Mapping[str, str]) -> dict[str, str]:
    """The options of the model that a usual problem names."""
    return {name.removeprefix(MODEL): value for name, value in usual.items() if name.startswith(MODEL)}


def twenty(
    corrupted: int = 0, wide: bool = False, loss: str = "cross-entropy", model: Mapping[str, str] | None = None
) -> ProblemSpec:
    """Twenty clients on a small dense network, or on a wide one with shorter and more steps.

    Args:
        model: further options of the network.
    """
    steps = {"rounds": 300, "lr": 0.2} if wide else {"rounds": 60, "lr": 0.4}
    widths = {"widths": "200" if wide else "32"}
    return spec_of(20, corrupted, "mlp", {**(model or {}), **widths}, batch_size=16, eval_every=15, loss=loss, **steps)


@once
def trained(method: Method, wide: bool = False) -> rounds.Run:
    """The defense's run with twenty honest clients, whose first round is written down."""
    usual = dict(method.card.usual)
    model = _of_model(usual) if usual.get("model") == "mlp" else None
    spec = twenty(wide=wide, loss=usual.get("loss", "cross-entropy"), model=model)
    problem = build(spec, 0, auxiliary=method.target.holds(method.options))
    return finished(rounds.run(defense_of(method, problem.task), problem, Rng(0).child("federation"), watch=(0,)))


@cache
def plainly_trained(loss: str = "cross-entropy") -> rounds.Run:
    """The same without a defense."""
    problem = build(twenty(loss=loss), 0)
    plain = FedAvg(NoOptions(), problem.task)
    return finished(rounds.run(plain, problem, Rng(0).child("federation"), watch=(0,)))


def finished(run: rounds.Run) -> rounds.Run:
    """The run. Raises LawBroken where it diverged."""
    if run.diverged_at is not None:
        raise LawBroken(f"the training diverged in round {run.diverged_at}", "bound what is sent, or the step")
    return run


# -- rules ------------------------------------------------------------------------------------------


def rule_of(method: Method) -> Aggregator:
    """The rule; a wrapper wraps the median unless the method says what is inside."""
    made: Aggregator
    if issubclass(method.target, Wrapper):
        made = method.target(method.options, method.inside or Median(NoOptions()))
    else:
        made = method.target(method.options)
    return made


class Backwards(Poisoning):
    """Uploads with the sign flipped and ten times as long, which ruin a mean."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return scale(-10.0, view.own), memory


def share_left(rule: Aggregator | None) -> tuple[float, float]:
    """(accuracy without an attack, the share of it above chance that is left under `Backwards`) of a rule."""
    held = Auxiliary(rule.auxiliary, option=rule.auxiliary_option) if rule is not None and rule.auxiliary else None
    problem = build(twenty(CORRUPTED), 0, auxiliary=held)
    defense = FedAvg(NoOptions(), problem.task, rule)
    attack = Backwards(NoOptions(), knowledge_of(problem, defense, "own"))
    adversary = Adversary(attack, frozenset(problem.corrupted), Rng(1))
    stream, chance = Rng(0).child("federation"), problem.chance
    clean = rounds.run(defense, problem, stream).accuracy
    kept = rounds.run(defense, problem, stream, adversary=adversary).accuracy
    return clean, min(1.0, max(0.0, (kept - chance) / (clean - chance)))


plain_share_left = cache(lambda: share_left(None))
"""The same of the mean."""


# -- poisoning --------------------------------------------------------------------------------------


@cache
def poisoned_problem() -> Problem:
    """A dense network, ten clients of which three are corrupted."""
    return build(spec_of(10, 3, "mlp", {"widths": "8"}, rounds=20, batch_size=4, lr=0.2), 0)


def knowledge(
    knows: Knowledge = "own",
    clients: int = 10,
    corrupted: int = 3,
    std: float = 0.0,
    data: Samples | None = None,
    rule: Aggregator | None = None,
) -> AttackerKnowledge:
    """What the corrupted clients of FedAvg know, or of FedAvg with a rule, or of FedAvg whose uploads carry noise."""

    class Noisy(FedAvg):
        noise_std = std

    p = poisoned_problem()
    found = knowledge_of(p, Noisy(NoOptions(), p.task, rule), knows)
    task = replace(p.task, sizes=(100,) * clients, assumed_corrupted=corrupted)
    return replace(found, task=task, clients=clients, corrupted=corrupted, data=data or found.data)


def real_round(knows: Knowledge, t: int = 0, follows: bool = True) -> RoundView:
    """A round of that federation as corrupted clients see it, whose uploads are those of its initial parameters.

    Args:
        follows: whether they follow the protocol, and so have uploads of their own.
    """
    p, on = poisoned_problem(), knowledge(knows)
    batches = [p.batch(c, Rng(1).child(t, c)) for c in range(10)]
    ups, _ = on.defense.clients(p.init, batches, [{}] * 10, [{}] * 10)
    bad = list(p.corrupted)
    good = [c for c in range(10) if c not in bad]
    omniscient = knows == "omniscient"
    return RoundView(
        round=t,
        participants=10,
        size=3,
        down={name: x - 0.01 * t * (1 + x.abs()) for name, x in p.init.items()},
        own={name: x[bad] for name, x in ups.items()} if follows else {},
        honest={name: x[good] for name, x in ups.items()} if omniscient else {},
        honest_clients=tuple(good) if omniscient else (),
        clients=tuple(bad),
    )


def crowd(n: int, d: int = 30, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows around a common point as far away as the rows are from each other."""
    g = torch.Generator().manual_seed(n)
    return (torch.randn(n, d, generator=g) + torch.randn(d, generator=g)).to(dtype)
