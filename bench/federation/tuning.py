"""An attacker that chooses its own strength on federations that it simulates from its own data.

The simulated server and its honest clients live on samples drawn from the corrupted clients' pool. Nothing of
the real run is used, so that an attacker with `own` knowledge can do all of this before the first round.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.rng import Rng
from fedarena.datasets.dataset import Provenance
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.spec import MethodSpec
from fedarena.federation.triggered_inputs import success_rate, triggered_inputs
from fedarena.problem.problem import Problem
from fedarena.problem.task import Batch

HELD_OUT = 0.2
"""Share of the pool on which simulated models are judged."""

Progress = Callable[[float], None]


def tune(
    method: MethodSpec, knowledge: AttackerKnowledge, rng: Rng, progress: Progress = lambda share: None
) -> tuple[MethodSpec, dict[str, Any]]:
    """Choose the strength that does most harm in simulation.

    The option `tune` of a part is the most simulated runs that it may spend, each of `tune_rounds` rounds. The attack
    is tuned before its wrappers, so that its strength is chosen before the time at which it is used. The first run
    takes the given options, which win ties. The others take candidates of `Poisoning.tunes`, spread evenly, both ends
    included. Harm is 1 − accuracy, for backdoors the success rate, on held-out samples of the pool (`harm`).

    Returns:
        The attack with its chosen strength, and a report: {} if nothing was tuned, else the names of the options, the
        values tried with their harm [[values, harm], …], and the values chosen.
    """
    parts = [method, *method.rest]
    grids = [part.tunes for part in compose.attack_classes(method)]
    tuned = [i for i in reversed(range(len(parts))) if getattr(parts[i].options, "tune", 0) and grids[i]]
    names = [name for i in tuned for name in grids[i]]
    tried: dict[tuple[int, tuple[float | None, ...]], float] = {}
    for step, i in enumerate(tuned):
        options, grid, given = parts[i].options, grids[i], _values(parts[i].options, grids[i])
        problem = simulated(knowledge, options.tune_rounds, rng.child("problem"))
        chosen = [given, *spread([c for c in itertools.product(*grid.values()) if c != given], options.tune - 1)]
        harms: list[float] = []
        for k, values in enumerate(chosen):
            one = _with(parts, i, replace(options, **dict(zip(grid, values, strict=True))))
            everything = tuple(value for j in tuned for value in _values([one, *one.rest][j].options, grids[j]))
            run = options.tune_rounds, everything  # an equal run of another part is not repeated
            if run not in tried:
                tried[run] = harm(one, knowledge, problem, rng.child("run"))
            harms.append(tried[run])
            progress((step + (k + 1) / len(chosen)) / len(tuned))
        best = chosen[harms.index(max(harms))]
        method = _with(parts, i, replace(options, **dict(zip(grid, best, strict=True))))
        parts = [method, *method.rest]
    if not tuned:
        return method, {}
    strengths = [value for i in tuned for value in _values(parts[i].options, grids[i])]
    return method, {"options": names, "tried": [[list(v), h] for (_, v), h in tried.items()], "chosen": strengths}


def spread(candidates: list[tuple[float, ...]], n: int) -> list[tuple[float, ...]]:
    """n of the candidates in order, both ends among them where n ≥ 2; all of them where there are no more."""
    if n >= len(candidates):
        return candidates
    if n < 2:
        return candidates[len(candidates) // 2 :][:n]
    return [candidates[round(k * (len(candidates) - 1) / (n - 1))] for k in range(n)]


def harm(method: MethodSpec, knowledge: AttackerKnowledge, problem: Problem, rng: Rng) -> float:
    """One simulated federation under attack: 1 − accuracy on the held-out samples, for backdoors the success rate.

    A backdoor counts by accuracy, too, if all held-out samples are of its target's class.
    """
    # A secure sum gives the same model by the same uploads; to simulate it would only take time.
    defense = knowledge.defense.secured(None)
    attack = compose.make_poisoning(method, knowledge_of(problem, defense, knowledge.knows))
    triggered = triggered_inputs(attack, problem)
    adversary = Adversary(attack, frozenset(problem.corrupted), rng.child("attack"), simulated=True)
    run = federation.run(defense, problem, rng.child("federation"), adversary=adversary)
    return success_rate(triggered, problem, run.in_use).get("attack_success_rate", 1.0 - run.accuracy)


def simulated(knowledge: AttackerKnowledge, rounds: int, rng: Rng) -> Problem:
    """A federation of the same size as the real one on the attacker's own samples.

    Clients draw as many samples as the real ones hold, with replacement. The schedule is the real one's, cut after
    `rounds` (0: not cut). The protocol still plans for the full schedule, so that its noise is the real one's. An
    attack that acts after a share of the schedule takes its share of the cut one.
    """
    task, data, generator = knowledge.task, knowledge.data, rng.torch()
    order = torch.randperm(len(data.y), generator=generator)
    out = max(1, round(HELD_OUT * len(order)))
    test, train = order[:out], order[out:]
    shards = tuple(train[torch.randint(len(train), (n,), generator=generator)] for n in task.sizes)
    corrupted = torch.randperm(knowledge.clients, generator=generator)[: knowledge.corrupted]
    holds = type(knowledge.defense).holds(knowledge.defense.options)
    rule = knowledge.defense.rule
    wanted = (holds.per_class if holds else rule.auxiliary if rule else 0) * task.n_classes
    auxiliary = None
    if wanted:
        index = train[torch.randint(len(train), (wanted,), generator=generator)]
        auxiliary = Batch(data.inputs(index)[None], data.y[index][None])
    schedule = replace(task.schedule, rounds=min(rounds, task.schedule.rounds) if rounds else task.schedule.rounds)
    return Problem(
        task=replace(task, schedule=replace(schedule, eval_every=0)),
        x=data.x,
        y=data.y,
        x_test=data.x[test],
        y_test=data.y[test],
        scale=data.scale,
        shards=shards,
        init=knowledge.init,
        provenance=Provenance("an attacker's own samples", None, None, False),
        device=data.x.device,
        corrupted=tuple(sorted(corrupted.tolist())),
        auxiliary=auxiliary,
    )


def _values(options: Any, names: Iterable[str]) -> tuple[float | None, ...]:
    return tuple(getattr(options, name) for name in names)


def _with(parts: list[MethodSpec], i: int, options: Any) -> MethodSpec:
    changed = [MethodSpec(p.name, options if k == i else p.options) for k, p in enumerate(parts)]
    return MethodSpec(changed[0].name, changed[0].options, tuple(changed[1:]))
