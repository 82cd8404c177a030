"""Plug-ins that look where they must not, that break, or that are copies of built-in methods."""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.contracts.secure_sum import Exchange, SecureSum
from fedarena.contracts.view import View
from fedarena.core import registry
from fedarena.core.card import Card, Kind
from fedarena.core.errors import UserError
from fedarena.core.options import option
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.goals.challenge import Challenge
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch

MODEL = registry.find("model", "mlp").parse({"widths": "8"})
READ = ProblemSpec(
    "digits", model="mlp", partition="iid", clients=2, model_options=MODEL, schedule=Schedule(rounds=4, lr=0.05)
)
"""The problem of the attacks that read."""
POISONED = replace(READ, clients=10, corrupted=2, schedule=Schedule(rounds=30, batch_size=8, lr=0.2))
"""The problem of the attacks that poison."""


def locals_of_callers(name: str) -> Iterator[Any]:
    """The variables of that name in all functions that are being called."""
    frame = sys._getframe(1)
    while frame is not None:
        if name in frame.f_locals:
            yield frame.f_locals[name]
        frame = frame.f_back  # type: ignore[assignment]


class Blind(Inference):
    """Guesses grey images of class 0."""

    def samples(self, view: View, rng: Rng) -> list[tuple[Tensor, Tensor]]:
        """The samples that it names, for each observation; [] if it found none."""
        return []

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        progress(0.5, "guessing")
        print("the attack prints")
        grey = torch.full(view.input_shape, 0.5)
        blind = [
            (grey.expand(o.images, *grey.shape), torch.zeros(o.images, dtype=torch.int64)) for o in view.observations
        ]
        return [Reconstruction(x, y, 0.0, 0) for x, y in self.samples(view, rng) or blind]


class Walker(Blind):
    """Looks for the truth in its callers and among all objects."""

    def samples(self, view: View, rng: Rng) -> list[tuple[Tensor, Tensor]]:
        found = [*locals_of_callers("challenge"), *(o for o in gc.get_objects() if isinstance(o, Challenge))]
        return list(found[0].answers.truths) if found else []


class Guesser(Blind):
    """Tries seeds until one gives its own, and builds the batches of that run from the public data."""

    def samples(self, view: View, rng: Rng) -> list[tuple[Tensor, Tensor]]:
        for seed in range(21):
            if Rng(seed).child("attack").integer() == rng.seed:
                problem, federation = build(READ, seed), Rng(seed).child("federation")
                draws = [(o.clients[0], o.round) for o in view.observations]
                return [problem.batches([(c, federation.child("batch", t, c))])[0].images() for c, t in draws]
        return []


class Patcher(Blind):
    """Makes the judge find every guess perfect."""

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        from fedarena.goals.metrics import reconstruction

        reconstruction.reconstruction_metrics = lambda *given: {"identified": 1.0, "identified_chance": 0.0}
        return super().run(view, rng, progress)


WAYS = ("raise", "exit", "kill", "close", "type", "garble", "time", "clock", "progress", "sleep")


@dataclass(frozen=True)
class Ways:
    """Options of `broken`."""

    way: str = option("raise", "how it breaks", choices=WAYS)
    note: str = option("", "a file for its process number")


class Broken(Blind):
    """Breaks in one of many ways."""

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess:
        way = self.options.way
        if self.options.note:
            Path(self.options.note).write_text(str(os.getpid()))
        if way == "raise":
            raise ArithmeticError("too hard")
        if way == "exit":
            os._exit(3)
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if way in ("time", "clock"):
            told = math.nan if way == "time" else 1e9
            time.process_time = lambda: told  # type: ignore[assignment]
            return super().run(view, rng, progress)
        if way == "progress":
            for share in (math.nan, -1.0, 7.0):
                progress(share, "no share of anything")
                time.sleep(0.1)
            return super().run(view, rng, progress)
        if way == "type":
            return ["an image"]  # type: ignore[list-item]
        if way == "garble":
            for fd in range(3, 20):
                with suppress(OSError):
                    os.write(fd, b'["answer", "\n')
        if way == "close":
            os.closerange(3, 100)
        time.sleep(100)
        return []


class Peeking(Aggregator):
    """The mean of the uploads of those that its callers know to be honest; without them, of all."""

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        used = torch.ones(len(x))
        for federation in locals_of_callers("federation"):
            if hasattr(federation, "adversary"):
                cohort = next(locals_of_callers("cohort"))
                used = torch.tensor([float(c not in federation.adversary.corrupted) for c in cohort.clients])
        return Aggregate(used @ x / used.sum(), used)


class Remembering(Aggregator):
    """The mean with the last round's mean, which it keeps where no contract knows of it."""

    last: Any = 0.0

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        mean, self.last = x.mean(0) + 0.1 * self.last, x.mean(0)
        return Aggregate(mean, None)


class Counting(FedAvg):
    """A server that steps less and less far, by a count that it keeps in the protocol itself."""

    counts: list[int] = []  # noqa: RUF012  (it is the fault that is looked for)

    def aggregate(self, state: Any, sent: Any, ups: Tensors, cohort: Any, rng: Rng) -> Any:
        self.counts.append(1)
        new = super().aggregate(state, sent, ups, cohort, rng)
        return replace(new, params={name: t / len(self.counts) for name, t in new.params.items()})


class Summing(SecureSum):
    """A sum that leaves out those whom its callers know to be corrupted."""

    def __call__(self, vectors: Tensor, rng: Rng) -> Exchange:
        bad = next(locals_of_callers("corrupted"), ())
        total = vectors.sum(0) if not bad else vectors[1:].sum(0)
        return Exchange(vectors, total, tuple(range(len(vectors))), 0.0, 0.0)


@dataclass(frozen=True)
class When:
    """Options of `fragile`."""

    when: str = option("make", "when it breaks", choices=("make", "craft", "trigger", "refuse", "late", "strength"))


class Fragile(Poisoning):
    """Breaks at a chosen time."""

    def __init__(self, options: Any, knowledge: AttackerKnowledge) -> None:
        super().__init__(options, knowledge)
        self.break_at("make")
        if options.when == "refuse":
            raise UserError("attack fragile refuses")

    def break_at(self, when: str) -> None:
        if self.options.when == when:
            os._exit(4)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        self.break_at("craft")
        if self.options.when == "late":
            raise UserError("option 'rounds' is wrong")
        return view.own, memory

    @property
    def strengths(self) -> dict[str, float]:
        return {"z": math.nan if self.options.when == "strength" else 1.0}

    def trigger(self, x: Tensor) -> tuple[Tensor, int] | None:
        self.break_at("trigger")
        return None


class Liar(Poisoning):
    """Follows the protocol, and shows images of the target as triggered ones once it has seen a round."""

    seen = False

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        self.seen = True
        return view.own, memory

    def trigger(self, x: Tensor) -> tuple[Tensor, int]:
        zero = self.knowledge.data.inputs((self.knowledge.data.y == 0).nonzero()[0])
        return (zero.expand_as(x) if self.seen else x), 0


class Honest(Poisoning):
    """Follows the protocol."""

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return batch


class Huge(Poisoning):
    """Sends what is finite in double precision and infinite in single."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return {name: torch.full_like(t, 1e300, dtype=torch.float64) for name, t in view.own.items()}, memory


class Undefined(Poisoning):
    """Trains on what is no number, and so sends it."""

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return Batch(torch.full_like(batch.x, math.nan), batch.y)


class Silent(Poisoning):
    """Sends zeros."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return {name: torch.zeros_like(t) for name, t in view.own.items()}, memory


class Reading(Poisoning):
    """Sends the opposite of what honest clients send, which its callers hold; else what the protocol wants."""

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        for computed in locals_of_callers("computed"):
            return {name: -20 * t.mean(0).expand_as(view.own[name]) for name, t in computed.items()}, memory
        return view.own, memory


def copied(kind: Kind, name: str) -> Card:
    """A built-in method under another name."""
    return replace(registry.find(kind, name), name=f"{name}-copy")


def card(name: str, kind: Kind, target: type, **more: Any) -> Card:
    return Card(name=name, kind=kind, title=str(target.__doc__).splitlines()[0], target=target, **more)


ATTACKS = {c.name: c for c in (card(cls.__name__.lower(), "attack", cls) for cls in (Blind, Walker, Guesser, Patcher))}
ATTACKS |= {
    c.name: c
    for c in (
        card("broken", "attack", Broken, options=Ways),
        card("honest", "attack", Honest),
        card("liar", "attack", Liar),
        card("reading", "attack", Reading),
        card("huge", "attack", Huge),
        card("undefined", "attack", Undefined),
        card("silent", "attack", Silent),
        card("fragile", "attack", Fragile, options=When),
        copied("attack", "dlg"),
    )
}
COPIES = ("ipm", "label-flip", "pixel-trigger", "min-max", "delayed", "poisoned-fl")
ATTACKS |= {c.name: c for c in (copied("attack", name) for name in COPIES)}
RULES = {c.name: c for c in (card("peeking", "aggregator", Peeking), card("remembering", "aggregator", Remembering))}
RULES |= {c.name: c for c in (copied("aggregator", "median"), copied("aggregator", "bucketing"))}
DEFENSES = {c.name: c for c in (card("counting", "defense", Counting), copied("defense", "dbcl"))}
SUMS = {c.name: c for c in (card("summing", "secure", Summing), copied("secure", "pairwise-masks"))}
GROUPS = {"attacks": ATTACKS, "aggregators": RULES, "defenses": DEFENSES, "secures": SUMS}
POINTS = {}
for _group, _cards in GROUPS.items():
    for _name, _card in _cards.items():
        globals()[_name.replace("-", "_").upper()] = _card
    POINTS[_group] = {_name: f"{__name__}:{_name.replace('-', '_').upper()}" for _name in _cards}
EARLY = {"early": "helpers.early_cheats:EARLY", "early-poison": "helpers.early_cheats:EARLY_POISON"}
"""Attacks of a module that only processes of their own may import."""
