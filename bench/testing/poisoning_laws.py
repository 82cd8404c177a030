"""Laws of poisoning attacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts.poisoning import Around, AttackerKnowledge, Poisoning, RoundView
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, rows
from fedarena.core.threat import KNOWLEDGE, Knowledge
from fedarena.defenses.aggregators.krum import Krum
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import rounds
from fedarena.federation.adversary import Adversary, crafted, knowledge_of, why_not
from fedarena.problem.task import Batch
from fedarena.testing.federations import knowledge, poisoned_problem, real_round
from fedarena.testing.law import LawBroken, LawIdle, Method, law, require
from fedarena.testing.same import copied, same

ROUNDS = 23
"""Beyond the schedule's twenty, and past what attacks wait for by default."""

Inside = Callable[[AttackerKnowledge], Poisoning]
"""Makes the attack that a wrapper wraps."""


class NextLabel(Poisoning):
    """What a wrapper wraps unless it is told otherwise: samples with the next class's label, and uploads backwards."""

    def batch(self, batch: Batch, round: int, client: int, rng: Rng) -> Batch:
        return dataclasses.replace(batch, y=(batch.y + 1) % self.knowledge.task.n_classes)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        return {name: -t for name, t in view.own.items()}, memory

    def trigger(self, x: Tensor) -> tuple[Tensor, int]:
        return torch.cat([x[..., :-1], torch.ones_like(x[..., -1:])], -1), 0


def poisons(method: Method) -> bool:
    """Whether an attack poisons."""
    return method.is_a(Poisoning)


poisoning_law = law("attack", concerns=poisons)


def made_on(method: Method, on: AttackerKnowledge) -> Poisoning:
    """The attack; a wrapper wraps `Method.inside`, or `NextLabel`."""
    inside: Inside = method.inside or (lambda known: NextLabel(NoOptions(), known))
    more = (inside(on),) if issubclass(method.target, Around) else ()
    attack: Poisoning = method.target(method.options, on, *more)
    return attack


def built(method: Method, knows: Knowledge) -> Poisoning:
    """The attack in a small federation under Krum."""
    return made_on(method, knowledge(knows, rule=Krum(NoOptions())))


def levels(method: Method) -> list[Knowledge]:
    """The knowledge levels with which it can start in that federation. Raises LawIdle where there are none."""
    reasons = {knows: built(method, knows).applies() for knows in method.target.knowledge_levels}
    found = [knows for knows, reason in reasons.items() if reason is None]
    if not found:
        told = "; ".join(dict.fromkeys(reason.reason for reason in reasons.values() if reason is not None))
        raise LawIdle(f"in the federation that it is tried in it cannot start: {told}")
    return found


def sent_by(attack: Poisoning, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
    """What it sends, and its memory. Raises UnusableAnswer for what is no upload of this federation."""
    return crafted(attack, view, memory, rng, {name: [view.size, *t.shape] for name, t in view.down.items()})


@poisoning_law
def uploads_fit(method: Method) -> None:
    """Uploads are finite and shaped like uploads, and nothing that the attack is given changes in place."""
    for knows in levels(method):
        attack = built(method, knows)
        view = real_round(knows, follows=attack.follows)
        before, memory = copied((view.down, view.own, view.honest)), dict[str, Tensor]()
        for t in range(ROUNDS):
            kept = copied(memory)
            sent, after = sent_by(attack, dataclasses.replace(view, round=t), memory, Rng(0).child(t))
            require(same(memory, kept), f"in round {t} the memory changed in place", "return a new one")
            memory = after
            lost = sum(int((~x.isfinite()).sum()) for x in sent.values())
            require(lost == 0, f"in round {t} {lost} numbers are not finite", "guard divisions")
        stayed = same((view.down, view.own, view.honest), before)
        require(stayed, "the broadcast or uploads that it was given changed in place", "work on copies")


@poisoning_law
def batches_stay(method: Method) -> None:
    """A batch that the attack is given does not change in place."""
    attack, batch = built(method, levels(method)[0]), poisoned_problem().batch(0, Rng(0))
    before = batch.x.clone(), batch.y.clone()
    attack.poisoned(batch, 10, 0, Rng(0))
    changed = int((batch.x != before[0]).sum() + (batch.y != before[1]).sum())
    require(changed == 0, f"{changed} numbers of the batch changed", "return a new batch")


@poisoning_law
def rng_decides(method: Method) -> None:
    """The random stream that it is given determines all that it does."""
    for knows in levels(method):
        found = []
        for _ in range(2):
            attack = built(method, knows)
            view = real_round(knows, follows=attack.follows)
            poisoned = attack.poisoned(poisoned_problem().batch(0, Rng(0)), 10, 0, Rng(3))
            found.append((sent_by(attack, view, {}, Rng(3)), poisoned.x, poisoned.y))
        require(same(*found), "the same stream gives other samples or uploads", "draw from the given rng alone")


@poisoning_law
def one_colluder_works(method: Method) -> None:
    """A colluder alone in its round sends one finite upload, with honest clients in it or without."""
    for knows in levels(method):
        view = real_round(knows, follows=built(method, knows).follows)
        own = {name: x[:1] for name, x in view.own.items()}
        nobody = {name: x[:0] for name, x in view.honest.items()}
        for honest, who in ((view.honest, view.honest_clients), (nobody, ())):
            few = dataclasses.replace(
                view,
                size=1,
                own=own,
                clients=view.clients[:1],
                honest=honest,
                honest_clients=who,
                participants=1 + len(who),
                round=19,
            )
            sent, _ = sent_by(built(method, knows), few, {}, Rng(0))
            fits = all(bool(x.isfinite().all()) for x in sent.values())
            figure = f"alone with {len(who)} honest clients it sends no single finite upload"
            require(fits, figure, "read view.size and view.participants, whose numbers vary by round")


@poisoning_law
def knowledge_suffices(method: Method) -> None:
    """It plays a run of 23 rounds on no more than each of its knowledge levels gives."""
    known: tuple[Knowledge, ...] = method.target.knowledge_levels
    allowed = bool(known) and {*known} <= {*KNOWLEDGE}
    require(allowed, f"its knowledge levels are {known}", f"name some of {', '.join(KNOWLEDGE)}")
    idle, played = "", 0
    for knows in known:
        whole = poisoned_problem()
        longer = dataclasses.replace(whole.task.schedule, rounds=ROUNDS)
        problem = dataclasses.replace(whole, task=dataclasses.replace(whole.task, schedule=longer))
        defense = FedAvg(NoOptions(), problem.task)
        attack = made_on(method, knowledge_of(problem, defense, knows))
        if (reason := why_not(attack, tuned=True)) is not None:
            idle = reason.reason
            continue
        rounds.run(defense, problem, Rng(0), adversary=Adversary(attack, frozenset(problem.corrupted), Rng(1)))
        played += 1
    if not played:
        raise LawIdle(f"on FedAvg it cannot start: {idle}")


@poisoning_law
def trigger_fits(method: Method) -> None:
    """A backdoor's trigger keeps the shape of inputs, their range from 0 to 1, and the inputs themselves."""
    if method.target.trigger is Poisoning.trigger:
        raise LawIdle("it has no trigger")
    attack, x = built(method, levels(method)[0]), poisoned_problem().batch(0, Rng(0)).images()[0]
    before = x.clone()
    shown = attack.trigger(x)
    if shown is None:
        raise LawIdle("with these options it has no trigger")
    require(torch.equal(x, before), "the inputs changed in place", "return new ones")
    require(shown[0].shape == x.shape, f"inputs {list(x.shape)} become {list(shown[0].shape)}", "keep the shape")
    low, high = float(shown[0].min()), float(shown[0].max())
    require(low >= 0 and high <= 1, f"inputs become {low:.3g} to {high:.3g}", "clip them to 0 to 1")


@poisoning_law
def poisoning_acts(method: Method) -> None:
    """Within 23 rounds the attack changes a sample or an upload."""
    knows: Knowledge = "omniscient" if "omniscient" in levels(method) else levels(method)[0]
    attack = built(method, knows)
    for given, done in _deeds(attack, knows, ROUNDS):
        if given is None or not same(given, done):
            return
    raise LawBroken(f"in {ROUNDS} rounds it changed nothing", "let `batch` or `craft` do something")


def deeds(attack: Poisoning, knows: Knowledge, count: int) -> list[Any]:
    """All that an attack makes of samples and uploads in the first rounds."""
    return [done for _, done in _deeds(attack, knows, count)]


def _deeds(attack: Poisoning, knows: Knowledge, count: int) -> Iterator[tuple[Any, Any]]:
    """(what the protocol would have, what the attack makes of it), each of batches and uploads; None: no upload."""
    memory: Tensors = {}
    for t in range(count):
        batch = poisoned_problem().batch(0, Rng(5).child(t))
        poisoned = attack.poisoned(batch, t, 0, Rng(0).child(t))
        yield (batch.x, batch.y), (poisoned.x, poisoned.y)
        view = real_round(knows, t, follows=attack.follows)
        sent, memory = sent_by(attack, view, memory, Rng(0).child(t))
        yield (rows(view.own) if view.own else None), rows(sent)
