"""Mean accuracies over three seeds, for tables that look for the best of several settings.

The paper's curves are means of three seeds, and the best setting is that of the means: the best of single runs follows
their noise. A part with seed s therefore trains with the seeds 3s, 3s + 1 and 3s + 2."""

from __future__ import annotations

from collections.abc import Mapping

from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, step
from fedarena.reproduce.two_stage.common import Experiment, group
from fedarena.runs.trial import prepare

SEEDS = 3
"""The number of seeds of a mean, as in the paper."""


def mean_accuracies(
    experiments: Mapping[str, Experiment], machine: Machine, seed: int, progress: Progress
) -> dict[str, float | None]:
    """Column → the mean final accuracy of its experiment; None if one of its runs has no result."""
    count = len(experiments) * SEEDS
    found: dict[str, float | None] = {}
    for i, (column, experiment) in enumerate(experiments.items()):
        accuracies = [
            _accuracy(experiment, machine, SEEDS * seed + j, step(progress, SEEDS * i + j, count)) for j in range(SEEDS)
        ]
        known = [accuracy for accuracy in accuracies if accuracy is not None]
        found[column] = sum(known) / SEEDS if len(known) == SEEDS else None
    return found


def _accuracy(experiment: Experiment, machine: Machine, seed: int, progress: Progress) -> float | None:
    record = prepare(group(experiment, machine, seed), progress)[0].record
    if record["status"] != "ok":
        return None
    curve = record["attacked"].get("curve") or record["utility"]["clean_curve"]
    return float(curve[-1][1])
