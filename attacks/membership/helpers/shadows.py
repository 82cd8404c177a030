"""Shadow models: models that the attacker trains as the target was trained, on samples of its own.

Every shadow is a federation on freshly drawn samples (`fedarena.federation.tuning.simulated`). It has as many samples
as the clients hold, drawn with replacement from four fifths of the attacker's, and starts from initial parameters drawn
from the model's public distribution.

    plainly               one client holds all of them and trains without a defense, in batches as large as those of all
                          participants of a round together and for as many steps
    through the protocol  as many clients as there are, in the defense itself: its noise, its sketches, its rule
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.final_model import WhiteBox
from fedarena.contracts.poisoning import AttackerKnowledge, Samples
from fedarena.contracts.view import InitialDistribution, Population
from fedarena.core.rng import Rng
from fedarena.core.tensors import finite, to
from fedarena.federation import rounds as federation
from fedarena.federation.compose import make_defense
from fedarena.federation.spec import MethodSpec
from fedarena.federation.tuning import simulated
from fedarena.problem.problem import Problem


def shadows(
    protocol: Defense, distribution: InitialDistribution, own: Population, count: int, plain: bool, rng: Rng,
    progress: Callable[[float, str], None],
) -> Iterator[WhiteBox]:  # fmt: skip
    """Train shadow models one after another, and give those that end with finite parameters.

    Args:
        distribution: draws initial parameters.
        own: the samples that they are trained on.
        plain: trained plainly; else through the protocol.
    """
    task, data = protocol.task, Samples(own.x, own.y, 1.0)
    for i in range(count):
        progress(i / count, f"shadow {i + 1} of {count}")
        stream = rng.child("shadow", i)
        init = to(distribution(task.model, stream.child("init").torch()), own.x.device)
        knowledge = AttackerKnowledge(
            task=task,
            defense=protocol,
            clients=len(task.sizes),
            corrupted=0,
            data=data,
            knows="own",
            init=init,
        )
        problem, defense = simulated(knowledge, 0, stream.child("problem")), protocol
        if plain:
            problem = merged(problem)
            defense = make_defense(MethodSpec(BASELINE), problem.task)
        params = federation.run(defense, problem, stream.child("federation")).release
        if finite(params):
            yield WhiteBox(task, params)


def merged(problem: Problem) -> Problem:
    """The problem with all samples held by one client, which takes as many steps with batches of the same total."""
    task, schedule = problem.task, problem.task.schedule
    data = torch.cat(problem.shards)
    batch = min(len(data), schedule.batch_size * task.participants)
    local = (
        None
        if schedule.fedsgd
        else max(batch, sum(map(schedule.taken, task.sizes)) * task.participants // len(task.sizes))
    )
    one = replace(schedule, participation=1.0, batch_size=batch, local_samples=local)
    return replace(problem, shards=(data,), task=replace(task, sizes=(len(data),), schedule=one, assumed_corrupted=0))
