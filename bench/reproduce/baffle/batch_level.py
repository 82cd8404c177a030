"""BAFFLE at the batch level (Figures 2 and 3): every client uploads the K loss differences of one batch a round.

Ten clients, iid, batch 32, the server's Adam (β = 0.9, 0.99, rate 0.01) on the summed differences, directions shared,
deployed average with decay 0.995, warmed up as in the released code. An epoch is as many rounds as a client has
batches. Rounds are those of the paper's epochs or fewer. Estimates are drawn from their exact distribution
(`fedarena.defenses.baffle.stein_law`): with real forward passes K = 5,000 takes minutes a round."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec
from fedarena.reproduce.baffle.common import IMAGES, Experiment, group
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, step
from fedarena.reproduce.table import Row
from fedarena.runs.trial import prepare

CLIENTS, BATCH = 10, 32
SETTING = f"test accuracy, {CLIENTS} clients, iid, one batch of {BATCH} a round, Adam at the server; simulated in law"


@dataclass(frozen=True)
class Federation:
    """A data set, a network and epochs. An epoch is that of the paper's number of images, however many there are."""

    data: str
    model: str
    epochs: int

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self.epochs * (IMAGES[self.data] // CLIENTS // BATCH)

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.data}, {self.model}, {self.epochs} epochs"


def spec_of(federation: Federation, experiment: Experiment, machine: Machine, seed: int) -> GroupSpec:
    """The training run of an experiment, whose data and model are the federation's."""
    spec = group(replace(experiment, rounds=federation.rounds), machine, seed, IMAGES[federation.data])
    schedule = replace(
        spec.problem.schedule,
        batch_size=BATCH,
        local_epochs=0,
        client_optimizer="sgd",
        server_optimizer="adam",
        eval_every=0,
    )
    options = {"directions": str(experiment.k), "law": "true"} | dict(experiment.settings)
    defense = spec.defense if experiment.k is None else compose.parse_defense("baffle", options)
    return replace(spec, problem=replace(spec.problem, schedule=schedule), defense=defense)


def accuracies(
    federation: Federation, experiments: Mapping[str, Experiment], machine: Machine, seed: int, progress: Progress
) -> Row:
    """Column → the final accuracy of its experiment, None for a run without result; and the CPU seconds of all."""
    began = time.process_time()
    found: Row = {"data": federation.data, "model": federation.model, "rounds": federation.rounds}
    for i, (column, experiment) in enumerate(experiments.items()):
        spec = spec_of(federation, experiment, machine, seed)
        record = prepare(spec, step(progress, i, len(experiments)))[0].record
        found[column] = record["utility"]["clean_curve"][-1][1] if record["status"] == "ok" else None
    return found | {"cpu_seconds": time.process_time() - began}


def less(row: Row, column: str, other: str) -> float | None:
    """The difference of two columns; None if one of them has no result."""
    a, b = row[column], row[other]
    return None if a is None or b is None else float(a - b)
