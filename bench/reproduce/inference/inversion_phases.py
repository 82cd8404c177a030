"""A phase diagram of gradient inversion: where images come back without a defense, and where they do not.

Papers disagree on whether gradient inversion is practical, and they measure it under different conditions. Here one
attack, `inverting-gradients` in the adaptive form, meets all combinations of five conditions on digits with the small
CNN: the stage of the training, the batch, the local steps, batch normalisation, and how many clients are summed before
the server sees anything. `gain` is what the attack identifies above the mean training image, which needs no upload.

Batch normalisation takes the statistics of the batch at hand. The attacker does not know them, and simulates them from
its candidates.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedarena.core.text.figures import Map, maps, save_png
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.reproduce.inference.common import IDENTIFIED, Settings, most_identified, pairing
from fedarena.reproduce.inference.inversion_defenses import ROUNDS, STAGES
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table, measured_by_name

NORMS = ("none", "batch")
BATCHES = (1, 4, 16)
STEPS = (1, 4)
"""Local steps on a batch each. One step is the gradient itself."""
SUMMED = (1, 4)
"""Clients whose mean the server sees."""
VICTIMS: Mapping[int, int] = {1: 4, 4: 2}
"""Images behind an upload → uploads attacked; of more images one."""
ATTACK = {"window": "12", "iterations": "400", "restarts": "2", "max_batch": "256"}

Conditions = tuple[str, str, int, int, int]
"""Norm, stage, batch, local steps, clients summed."""
PIECES: Mapping[str, Conditions] = {
    f"norm {norm}, {stage}, batch {batch}, steps {steps}, clients {summed}": (norm, stage, batch, steps, summed)
    for norm, stage, batch, steps, summed in itertools.product(NORMS, STAGES, BATCHES, STEPS, SUMMED)
}
MEASURED = (*IDENTIFIED, "gain", "cpu_seconds")


def settings(conditions: Conditions) -> Settings:
    """The options of the problem and of the attack, as text."""
    norm, stage, batch, steps, summed = conditions
    images = batch * steps * summed
    local = {"local_epochs": "1", "local_samples": str(batch * steps)} if steps > 1 else {}
    return {
        "problem": {"model": "cnn", "clients": "4"},
        "model": {"norm": norm},
        "training": {"rounds": str(ROUNDS), "batch_size": str(batch), "lr": "0.1", **local},
        "attack": {**ATTACK, "start": str(STAGES[stage]), "victims": str(VICTIMS.get(images, 1))},
    }


def measure(
    conditions: Conditions, machine: Machine, seed: int, progress: Progress, given: Settings | None = None
) -> list[Row]:
    """One row. `given` replaces `settings`."""
    began = time.process_time()
    norm, stage, batch, steps, summed = conditions
    defense = compose.parse_defense("fedavg" if summed == 1 else "zero-sum")
    threat = Threat("server", "adaptive")
    chosen = given or settings(conditions)
    records = pairing("inverting-gradients", defense, [threat], chosen, machine, seed, progress)
    row = most_identified(records)
    unseen = [r["metrics"]["prior_mean_identified"] for r in records if r["status"] == "ok"]
    gain = None if row["identified"] is None else row["identified"] - max(unseen)
    named = {"norm": norm, "stage": stage, "batch": batch, "steps": steps, "clients": summed}
    return [{**named, **row, "gain": gain, "cpu_seconds": time.process_time() - began}]


def draw(rows: Sequence[Row], path: Path) -> None:
    """A map for each norm and number of clients: stages by batch and steps, the darker the more is gained."""
    shares: dict[Conditions, list[float]] = {}
    for row in rows:
        if row["gain"] is not None:
            key = row["norm"], row["stage"], row["batch"], row["steps"], row["clients"]
            shares.setdefault(key, []).append(row["gain"])
    columns = list(itertools.product(BATCHES, STEPS))

    def shown(norm: str, summed: int) -> Map:
        who = "one client" if summed == 1 else f"the sum of {summed} clients"
        return Map(
            title=f"{'without a norm' if norm == 'none' else 'batch normalisation'}, {who}",
            shares=[[_mean(shares.get((norm, stage, b, s, summed), [])) for b, s in columns] for stage in STAGES],
            rows=tuple(STAGES),
            columns=[f"{b} × {s}" for b, s in columns],
            x="batch × local steps",
        )

    grid = [[shown(norm, summed) for summed in SUMMED] for norm in NORMS]
    save_png(maps(grid, "Per cent of the images identified, above the mean training image"), path)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


TABLE = Table(
    setting=f"digits, cnn, 4 clients, {ROUNDS} rounds at rate 0.1, no defense; inverting-gradients as the server",
    pieces=tuple(PIECES),
    rows=measured_by_name(PIECES, measure),
    measured=MEASURED,
    draw=draw,
)
