"""BAFFLE, guideline 4 (Section 4.1.4): GroupNorm in place of BatchNorm, since small data sets spoil batch statistics.

The paper prints no number for it. Here ten clients hold 320 images of MNIST each and train in the released code's form
for 20 local epochs, with batches of 4 and of 32, by loss differences and by backpropagation. Both norms have no
parameters, and BatchNorm takes the statistics of the batch at hand, in evaluation too: there are no running ones.
`batch` is its accuracy on test images that come in batches of 1,000, and `batch_as_trained` in batches of the clients'
size, which is all that a device has. `group_ahead` is GroupNorm's accuracy less `batch_as_trained`; the claim holds
where it is above 0. The estimates are drawn from their exact distribution."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import Problem, build
from fedarena.reproduce.baffle.common import FORM, Experiment, group
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, step
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name

CLIENTS, SAMPLES, ROUNDS = 10, 320, 20
SETTING = (
    f"test accuracy, MNIST, {CLIENTS} clients of {SAMPLES} images, {ROUNDS} rounds of one local epoch; {FORM}; "
    "group_ahead: GroupNorm less BatchNorm on test batches of the clients' size"
)
GROUP, BATCH, AS_TRAINED, NONE = "group", "batch", "batch_as_trained", "none"
AHEAD, AHEAD_LARGE = "group_ahead", "group_ahead_1000"
MEASURED = (NONE, GROUP, BATCH, AS_TRAINED, AHEAD, AHEAD_LARGE, "cpu_seconds")
SMALL_TEST = 1000
"""Test images on which `batch_as_trained` is measured, of which each batch is computed by itself."""


@dataclass(frozen=True)
class Norms:
    """One network, batch size and gradient, with every norm.

    Attributes:
        k: K; None: backpropagation.
        norms: the norms that the network can have.
        data: the data set.
    """

    model: str
    batch: int
    k: int | None
    norms: tuple[str, ...] = (NONE, GROUP, BATCH)
    data: str = "mnist"

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        how = "backpropagation" if self.k is None else f"K = {self.k}"
        return f"{self.data}, {self.model}, batch {self.batch}, {how}"

    def group(self, norm: str, machine: Machine, seed: int) -> GroupSpec:
        """The training run with a norm."""
        experiment = Experiment(
            data=self.data,
            model=self.model,
            title=norm,
            paper=None,
            k=self.k,
            options=(("norm", norm),),
            clients=CLIENTS,
            rounds=ROUNDS,
        )
        spec = group(experiment, machine, seed, CLIENTS * SAMPLES)
        few = registry.find("partition", "few").parse({"samples": str(SAMPLES)})
        schedule = replace(spec.problem.schedule, batch_size=self.batch, eval_every=0)
        return replace(spec, problem=replace(spec.problem, partition="few", partition_options=few, schedule=schedule))


CASES = [
    *(Norms("lenet-baffle", batch, k) for batch in (4, 32) for k in (100, None)),
    *(Norms("wrn-10-2", batch, k, (GROUP, BATCH)) for batch in (32, 4) for k in (100, None)),
]


def measure(case: Norms, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of a case for one seed."""
    began = time.process_time()
    row: Row = {"model": case.model, "batch_size": case.batch, "K": case.k, NONE: None}
    for i, norm in enumerate(case.norms):
        row |= _trained(case, norm, machine, seed, step(progress, i, len(case.norms)))
    row |= {AHEAD: row[GROUP] - row[AS_TRAINED], AHEAD_LARGE: row[GROUP] - row[BATCH]}
    return [row | {"cpu_seconds": time.process_time() - began}]


def _trained(case: Norms, norm: str, machine: Machine, seed: int, progress: Progress) -> dict[str, float]:
    """Column → the accuracy with a norm, of which BatchNorm has two."""
    spec = case.group(norm, machine, seed)
    problem = build(spec.problem, seed, machine.data_dir, machine.device)
    run = federation.run(
        compose.make_defense(spec.defense, problem.task),
        problem,
        Rng(seed).child("federation"),
        progress=lambda share: progress(share, f"training, norm {norm}"),
    )
    found = {norm: run.accuracy}
    return found | {AS_TRAINED: accuracy_in_batches(problem, run.params, case.batch)} if norm == BATCH else found


def accuracy_in_batches(problem: Problem, params: Tensors, size: int) -> float:
    """The accuracy on the first test images, `size` of them at a time, each batch by itself."""
    count = min(SMALL_TEST, len(problem.y_test)) // size * size
    x, y = problem.x_test[:count].split(size), problem.y_test[:count]
    with torch.no_grad():
        out = torch.cat([problem.task.predictions(params, part, problem.scale) for part in x])
    return problem.task.criterion.quality(out, y)


BY_NAME = {case.name: case for case in CASES}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(
        Published(
            piece=case.name,
            paper="BatchNorm degrades performance",
            column=AHEAD,
            better="",
            within=(0.0, 1.0),
            remark="held: GroupNorm is ahead",
        )
        for case in CASES
    ),
)
