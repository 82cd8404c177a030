"""The process of another package's attacks: what it is asked, and how it answers.

A request is the name of one of `QUESTIONS` and what it is about. The answer is plain tensors, numbers and texts. What
runs here has nothing of the federation but what the contract gives (`fedarena.federation.foreign_attack`).
"""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

import torch

from fedarena.contracts.active_inference import ActiveInference, Opportunity
from fedarena.contracts.curious_poisoning import CuriousPoisoning, Turn
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Observation
from fedarena.contracts.poisoning import Around, AttackerKnowledge, Poisoning
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.request_loop import Say
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.federation import compose
from fedarena.federation.spec import MethodSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

TOLD = ("strengths", "untuned", "chooses_when", "ends", "sends", "follows", "place")
"""What is told of a poisoning attack as soon as it is made."""
NEEDS = ("needs_labels", "needs_population", "needs_models")
"""What an inference attack may need beside its view."""
CLASS_OF = {
    "inference": ("goal",),
    "poisoning": ("knowledge_levels", "tunes", "tunes_begin", "only_length", "follows"),
    "wrapper": ("knowledge_levels", "tunes", "tunes_begin", "only_length", "follows", "keeps_length"),
}
"""Kind of attack → what is told of its class."""


def describe_class(name: str) -> tuple[str, dict[str, Any]]:
    """The kind of an attack, and the attributes of its class."""
    method = registry.find("attack", name).load()
    kind = "inference" if issubclass(method, Inference) else "wrapper" if issubclass(method, Around) else "poisoning"
    about = {one: getattr(method, one) for one in CLASS_OF[kind]}
    if kind != "inference":
        about["has_trigger"] = method.trigger is not Poisoning.trigger
    return kind, about


def needs(attack: MethodSpec) -> dict[str, bool]:
    """What an inference attack needs beside its view."""
    made = compose.make_inference(attack)
    return {name: bool(getattr(made, name)) for name in NEEDS}


def watch(attack: MethodSpec, schedule: Schedule) -> dict[str, Any]:
    """The fields of `Inference.watch`."""
    wanted = compose.make_inference(attack).watched(schedule)
    return asdict(wanted)


def fit(attack: MethodSpec, task: Task) -> None:
    """`Inference.fit`."""
    compose.make_inference(attack).fit(task)


def unreadable(attack: MethodSpec, seen: Observation) -> str:
    """`Inference.unreadable`."""
    return compose.make_inference(attack).unreadable(seen)


def bait(attack: MethodSpec, opportunity: Opportunity, rng: Rng) -> Any:
    """`ActiveInference.bait`: the messages, which of them each client gets, targets, spoiled; or why there is none."""
    made = compose.make_inference(attack)
    if not isinstance(made, ActiveInference):
        raise UserError(f"attack {attack.name} shapes rounds, but is no ActiveInference")
    crafted = made.bait(opportunity, rng)
    if isinstance(crafted, NotApplicable):
        return crafted.reason
    place = {id(message): i for i, message in enumerate(crafted.different)}
    which = {client: place[id(message)] for client, message in crafted.messages.items()}
    sent = [(dict(m.params), dict(m.down), dict(m.secret)) for m in crafted.different]
    return sent, which, list(crafted.targets), list(crafted.spoiled)


def knows(attack: MethodSpec) -> str:
    """`CuriousPoisoning.knows`."""
    return str(_poisons(attack).knows)


def poison(attack: MethodSpec, turn: Turn, rng: Rng) -> Any:
    """`CuriousPoisoning.poison`: what the corrupted clients send; or why the attack cannot start."""
    sent = _poisons(attack).poison(turn, rng)
    return sent.reason if isinstance(sent, NotApplicable) else sent


def _poisons(attack: MethodSpec) -> CuriousPoisoning:
    made = compose.make_inference(attack)
    if not isinstance(made, CuriousPoisoning):
        raise UserError(f"attack {attack.name} poisons rounds, but is no CuriousPoisoning")
    return made


_made: list[Poisoning] = []
"""The poisoning attack of this process."""


def make(attack: MethodSpec, knowledge: AttackerKnowledge) -> dict[str, Any]:
    """Make a poisoning attack, and tell the values of `TOLD`."""
    _made[:] = [compose.make_poisoning(attack, knowledge)]
    told = {name: getattr(_made[0], name) for name in TOLD}
    return told | {"untuned": list(told["untuned"]), "strengths": dict(told["strengths"])}


def call(method: str, *given: Any) -> Any:
    """A method of the attack, in plain values."""
    answer = getattr(_made[0], method)(*given)
    if isinstance(answer, Batch):
        return answer.x, answer.y
    return answer.reason if isinstance(answer, NotApplicable) else answer


QUESTIONS = {
    question.__name__: question
    for question in (describe_class, needs, watch, fit, unreadable, bait, knows, poison, make, call)
}


def work(request: Any, say: Say) -> bytes:
    """The answer to a request; or the message of a UserError, which is one of the user's."""
    question, *given = request
    try:
        content = ("answer", QUESTIONS[question](*given))
    except UserError as error:
        content = ("refusal", str(error))
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()
