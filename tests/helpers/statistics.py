"""Runs whose clients send the statistics of batch normalisation."""

from __future__ import annotations

from typing import Any

from fedarena.core.rng import Rng
from fedarena.federation import compose, rounds
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec
from fedarena.problem.problem import build
from fedarena.testing.federations import spec_of

SMALL = {"norm": "batch"}
ROUNDS = 6


def normalised(
    defense: str = "fedavg", model: str = "cnn", options: dict[str, str] | None = None, **schedule: Any
) -> FinishedRun:
    """Six rounds of three clients on digits, all written down, with two convolutions that normalise by the batch."""
    training = {"rounds": ROUNDS, "batch_size": 3, "lr": 0.1, "batch_statistics": True, **schedule}
    problem = spec_of(3, model=model, model_options=SMALL if options is None else options, **training)
    spec = GroupSpec(problem, defense=compose.parse_defense(defense), attack=None, threats=(), seed=0)
    built = build(problem, 0)
    protocol = compose.make_defense(spec.defense, built.task)
    run = rounds.run(protocol, built, Rng(0).child("federation"), watch=range(ROUNDS))
    return FinishedRun(spec, built, protocol, run)
