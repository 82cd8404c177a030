"""What PBPFL's tables (Feng et al. 2020, Section 5) have in common: one federation trained in several ways.

As in the released code, every client gives one gradient a round (FedSGD), the server steps with Adam, and an epoch is
one pass of a client over its own shard: ⌈N/k/b⌉ rounds for k clients. The more clients, the fewer steps the server
takes. All methods of a piece see the same data, batches and initial parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import torch

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.defenses.pbpfl.protocol import LOST
from fedarena.federation import rounds as federation
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.federation.rounds import Point, Run
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, step
from fedarena.reproduce.table import Row

FEDAVG, MASKED, TRIVIAL = "fedavg", "pbpfl", "trivial"
"""The methods; `trivial` is the best constant prediction."""
LAST_BITS = "last bits"
"""The addition to a method's name if its initial parameters are those of `nudge`."""
DOUBLE = "double precision"
"""The addition to a federation's name if all of it runs in double precision (`in_double`)."""
PARTITIONS = {"whole": "iid", "disjoint": "iid", "copies": "copies"}
"""Name of the shards here → the partition that makes them. With one client there is one shard, the whole."""


def spec(data: str, model: str, options: Mapping[str, str], shards: str, k: int, schedule: Schedule) -> ProblemSpec:
    """A federation of `k` clients; `shards` is a key of `PARTITIONS`, `options` are the model's."""
    partition = PARTITIONS[shards]
    return ProblemSpec(
        dataset=data,
        model=model,
        partition=partition,
        clients=k,
        model_options=registry.find("model", model).parse(options),
        partition_options=registry.find("partition", partition).parse({}),
        schedule=schedule,
    )


def in_epochs(of: ProblemSpec, epochs: int, seed: int, machine: Machine) -> Problem:
    """The problem with as many rounds as `epochs` passes over a shard take, evaluated after each pass."""
    problem = build(of, seed, machine.data_dir, machine.device)
    steps = steps_of(len(problem.y), of.clients, of.schedule.batch_size)
    schedule = replace(of.schedule, rounds=epochs * steps, eval_every=steps)
    return replace(problem, task=replace(problem.task, schedule=schedule))


def steps_of(samples: int, k: int, batch: int) -> int:
    """The rounds of an epoch, ⌈⌊N/k⌋/b⌉: the batches into which a data loader splits one client's shard."""
    return math.ceil(samples // k / batch)


def train(method: str, problem: Problem, seed: int, report: Callable[[float], None]) -> Run:
    """A whole federation under `fedavg` or `pbpfl` with its usual options."""
    defense = make_defense(parse_defense(method), problem.task)
    return federation.run(defense, problem, Rng(seed).child("federation"), progress=report)


def train_each(starts: Mapping[str, tuple[str, Problem]], seed: int, progress: Progress) -> dict[str, Run]:
    """Name → run, for each protocol with its own problem."""
    runs: dict[str, Run] = {}
    for i, (name, (protocol, problem)) in enumerate(starts.items()):
        own = step(progress, i, len(starts))
        runs[name] = train(protocol, problem, seed, partial(_report, own, name))
    return runs


def _report(progress: Progress, name: str, share: float) -> None:
    progress(share, name)


def nudge(problem: Problem) -> Problem:
    """Every initial parameter enlarged by the factor 1 + 2ε, 2ε = 2⁻²² in single precision: by two to four units in the
    last place."""
    return replace(problem, init={name: p * (1 + 2 * torch.finfo(p.dtype).eps) for name, p in problem.init.items()})


def in_double(problem: Problem) -> Problem:
    """The same initial parameters in double precision: clients and server then train in it throughout."""
    return replace(problem, init={name: p.double() for name, p in problem.init.items()})


def apart(a: Run, b: Run, value: Callable[[Point], float]) -> float:
    """The largest |difference| of two curves over all evaluations."""
    return max(abs(value(p) - value(q)) for p, q in zip(a.curve, b.curve, strict=True))


def digits_lost(run: Run) -> float | None:
    """The most decimal digits that any recovered gradient lost to cancellation; None where nothing is recovered."""
    lost = [max(v.values[LOST]) for v in run.verdicts if LOST in v.values]
    return max(lost, default=None)


def precision_and_cost(run: Run | None, *, double: bool) -> Row:
    """The last columns of a row; without a run, the columns of a prediction that needs no training.

    Args:
        double: whether the run is in double precision. Its warnings, which count the digits of single precision, are
            then left out.
    """
    return {
        "apart": None,
        "digits_lost": digits_lost(run) if run else None,
        "cpu_seconds": run.seconds if run else None,
        "note": "; ".join(run.warnings) if run and not double else "",
    }
