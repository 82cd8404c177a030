"""What a malicious server reads of digits, and what is true of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.inference import Guess
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Form, NotApplicable, Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.goals.challenge import Challenge
from fedarena.goals.prepared import CompleteRecord, OpenRecord
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.trial import prepare


def spec(
    attack: str,
    defense: str = "fedavg",
    options: dict[str, str] | None = None,
    defense_options: dict[str, str] | None = None,
    form: Form = "adaptive",
    party: Party = "malicious-server",
    clients: int = 2,
    model: str = "mlp",
    model_options: dict[str, str] | None = None,
    **schedule: Any,
) -> GroupSpec:
    """Three attacked rounds of a short training."""
    training = Schedule(**{"rounds": 6, "batch_size": 4, "lr": 0.05, **schedule})
    problem = ProblemSpec(
        "digits",
        model=model,
        partition="iid",
        clients=clients,
        schedule=training,
        model_options=registry.find("model", model).parse(model_options or {}),
    )
    return GroupSpec(
        problem,
        defense=compose.parse_defense(defense, defense_options),
        attack=compose.parse_attack(attack, {"victims": "3", **(options or {})}),
        threats=(Threat(party, form),),
        seed=0,
    )


def challenge(attack: str, *args: Any, **kwargs: Any) -> Challenge:
    """The challenge of the reading that the defense declares; that of the server's step comes after it."""
    one, *_ = prepare(spec(attack, *args, **kwargs))
    assert isinstance(one, OpenRecord), one.record["reason"]
    return one.challenge


def reason(attack: str, *args: Any, **kwargs: Any) -> str:
    """Why it does not apply."""
    (one,) = prepare(spec(attack, *args, **kwargs))
    if isinstance(one, CompleteRecord):
        assert one.record["status"] == "n/a"
        return str(one.record["reason"])
    assert isinstance(one, OpenRecord)
    made = spec(attack, *args, **kwargs).attack
    assert made is not None
    answer = compose.make_inference(made)(one.challenge.view, Rng(0))
    assert isinstance(answer, NotApplicable)
    return answer.reason


def answer(attack: str, challenge: Challenge, options: dict[str, str] | None = None) -> Guess:
    """The attack's guess."""
    made = compose.make_inference(compose.parse_attack(attack, {"victims": "3", **(options or {})}))
    guess = made(challenge.view, Rng(0))
    assert not isinstance(guess, NotApplicable), guess.reason
    return guess  # type: ignore[return-value]


def truths(challenge: Challenge) -> list[Tensor]:
    """The samples behind each observation, [n, d]."""
    return [x.flatten(1) for x, _ in challenge.answers.truths]


def errors(guess: Guess, challenge: Challenge) -> list[Tensor]:
    """How far the nearest guess is from each sample, the largest pixel's error, [n] for each observation."""
    return [
        torch.cdist(x.double(), g.images.flatten(1).double(), p=float("inf")).min(1).values
        for g, x in zip(guess, truths(challenge), strict=True)
    ]
