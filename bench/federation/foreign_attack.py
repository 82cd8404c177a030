"""Attacks of other packages, as the harness knows them: their code runs in processes of its own alone.

An attack that could import its code here could replace the judge's functions, and one that could call it here could
find the truth among its callers. So a class of this file stands for each such attack. What it is asked, it asks a fresh
process (`fedarena.federation.attack_process`), which has what the contract gives and no more.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from threading import Lock
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor

from fedarena.contracts.active_inference import ActiveInference, Bait, Message, Opportunity
from fedarena.contracts.curious_poisoning import CuriousPoisoning, Turn
from fedarena.contracts.inference import Answer, Inference, Progress, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.poisoning import Around, AttackerKnowledge, Poisoning, RoundView
from fedarena.contracts.view import View
from fedarena.core.errors import ToldByProcess, UserError, type_of
from fedarena.core.fresh_process import FreshProcess
from fedarena.core.method_caches import method_cache, on_change
from fedarena.core.process_template import module_path
from fedarena.core.registry import Entry, registries
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import KNOWLEDGE, Knowledge, NotApplicable
from fedarena.federation.spec import MethodSpec
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

MODULE = "fedarena.federation.attack_process"


class _Questions:
    """Asks a process of each package about its attacks, so that none answers for another's.

    These processes know no run, so what they keep tells nothing of one.
    """

    def __init__(self) -> None:
        self._processes: dict[str, FreshProcess] = {}
        self._lock = Lock()

    def __call__(self, attack: str, *request: Any) -> Any:
        """The answer. Raises UserError where the attack refuses, or breaks."""
        origin = registries()["attack"].entry(attack).origin
        with self._lock:
            process = self._processes.pop(origin, None)
            if process is None or process.path != module_path():
                process = FreshProcess(MODULE)
            try:
                answer = _ask(process, *request)
            except ToldByProcess as error:
                raise UserError(f"attack {attack} breaks: {error}") from None
            self._processes[origin] = process
        return answer

    def end(self) -> None:
        """End the processes, which have imported the attacks as they were."""
        with self._lock:
            self._processes.clear()


_about = _Questions()
on_change(_about.end)


def _ask(process: FreshProcess, *request: Any) -> Any:
    """The answer in plain values. Raises UserError where the attack refuses, and ToldByProcess where it breaks."""
    data = process.ask(request)
    try:
        kind, content = torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:
        raise ToldByProcess(f"the attack's answer is none: {' '.join(str(error).split())[:300]}") from None
    if kind == "refusal":
        raise UserError(str(content))
    return content


@method_cache
def class_of(attack: Entry) -> type[Any]:
    """A class that stands for the attack's. Raises UserError where the attack cannot be loaded."""
    name = attack.name
    kind, about = _about(name, "describe_class", name)
    if kind == "inference":
        return type(name, (STANDS.get(about["goal"], ForeignInference),), {**about, "name": name})
    if about.pop("has_trigger"):
        about["trigger"] = _elsewhere
    return type(name, (Around if kind == "wrapper" else Poisoning,), {**about, "__init__": _elsewhere})


def _elsewhere(*given: Any) -> NoReturn:
    raise RuntimeError("an attack of another package runs in a process of its own")


class ForeignInference(Inference):
    """Stands for an attack that reads a run. `fedarena.runs.sealed_attack` runs it."""

    name: ClassVar[str]
    """The attack's name."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        needs = _needs(MethodSpec(self.name, options).bare)
        self.needs_labels, self.needs_population = bool(needs["needs_labels"]), bool(needs["needs_population"])
        self.needs_models = bool(needs["needs_models"])

    def _ask(self, question: str, *about: Any) -> Any:
        return _about(self.name, question, MethodSpec(self.name, self.options).bare, *about)

    def watch(self, schedule: Schedule) -> Watch:
        told = self._ask("watch", schedule)
        near, drawn = told["near"], told["drawn"]
        return Watch(
            first=int(told["first"]),
            last=int(told["last"]),
            victims=tuple(int(t) for t in told["victims"]),
            near=None if near is None else (int(near[0]), int(near[1])),
            drawn=None if drawn is None else int(drawn),
        )

    def fit(self, task: Task) -> None:
        self._ask("fit", task)

    def unreadable(self, seen: Observation) -> str:
        return str(self._ask("unreadable", seen))

    def run(self, view: View, rng: Rng, progress: Progress) -> Answer | NotApplicable:
        _elsewhere()


class ForeignActiveInference(ForeignInference, ActiveInference):
    """Stands for an attack that also shapes rounds."""

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        told = self._ask("bait", opportunity, rng)
        if isinstance(told, str):
            return NotApplicable(told)
        sent, which, targets, spoiled = told
        messages = [Message(*map(_tensors, parts)) for parts in sent]
        return Bait(
            {int(client): messages[int(i)] for client, i in which.items()},
            tuple(int(client) for client in targets),
            tuple(str(name) for name in spoiled),
        )


class ForeignCuriousPoisoning(ForeignInference, CuriousPoisoning):
    """Stands for an attack that also poisons rounds."""

    @property
    def knows(self) -> Knowledge:
        told = self._ask("knows")
        return next(level for level in KNOWLEDGE if level == told)

    def craft(self, turn: Turn, rng: Rng) -> Tensors | NotApplicable:
        told = self._ask("poison", turn, rng)
        return NotApplicable(told) if isinstance(told, str) else _tensors(told)


STANDS: Mapping[str, type[ForeignInference]] = {
    ActiveInference.goal: ForeignActiveInference,
    CuriousPoisoning.goal: ForeignCuriousPoisoning,
}
"""Goal → what stands for attacks that do more than read."""


@method_cache
def _needs(attack: MethodSpec) -> dict[str, bool]:
    needs: dict[str, bool] = _about(attack.name, "needs", attack)
    return needs


class ForeignPoisoning(Poisoning):
    """Stands for a poisoning attack, all of whose parts run in a process of this attack alone.

    Raises:
        UserError: the attack refuses its options or the federation. ToldByProcess: it breaks, here and in all methods.
    """

    def __init__(self, attack: MethodSpec, knowledge: AttackerKnowledge) -> None:
        super().__init__(attack.options, knowledge)
        self._label = attack.label
        self._process = FreshProcess(MODULE, knowledge.data.x.device.type)
        told = _ask(self._process, "make", attack.bare, knowledge)
        self.follows = bool(told["follows"])  # type: ignore[misc]  # of a wrapper, it depends on the attack inside
        self._told = told
        if not all(math.isfinite(value) for value in self.strengths.values()):
            raise ToldByProcess(f"a strength of attack {attack.label} is not a finite number: {self.strengths}")

    def _call(self, method: str, *given: Any) -> Any:
        """Its answer. A refusal comes too late here: the attack breaks, and its trial alone fails."""
        try:
            return _ask(self._process, "call", method, *given)
        except UserError as error:
            raise ToldByProcess(f"attack {self._label} refuses while it runs: {error}") from None

    @property
    def strengths(self) -> dict[str, float]:
        return {str(name): float(value) for name, value in self._told["strengths"].items()}

    @property
    def untuned(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self._told["untuned"])

    @property
    def chooses_when(self) -> bool:
        return bool(self._told["chooses_when"])

    @property
    def sends(self) -> bool:
        return bool(self._told["sends"])

    @property
    def ends(self) -> int | None:
        last = self._told["ends"]
        return None if last is None else int(last)

    @property
    def place(self) -> str:
        return str(self._told["place"])

    def begins_after(self, first: int) -> int:
        return int(self._call("begins_after", first))

    def applies(self) -> NotApplicable | None:
        reason = self._call("applies")
        return None if reason is None else NotApplicable(str(reason))

    def culminates(self, round: int) -> bool:
        return bool(self._call("culminates", round))

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        x, y = self._call("poisoned", batch, round, client, rng)
        return Batch(_tensor(x), _tensor(y))

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        answer: tuple[Tensors, Tensors] = self._call("craft", view, memory, rng)
        return answer

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        answer = self._call("trigger", x)
        return None if answer is None else (_tensor(answer[0]), int(answer[1]))

    def meant_for(self, x: Tensor, y: Tensor) -> Tensor:
        return _tensor(self._call("meant_for", x, y))


def _tensor(value: Any) -> Tensor:
    """The value, if it is a plain tensor. Raises TypeError."""
    if type(value) is not Tensor:
        raise TypeError(f"the attack answered with {type_of(value)} in place of a tensor")
    return value


def _tensors(value: Any) -> Tensors:
    return {str(name): _tensor(one) for name, one in dict(value).items()}
