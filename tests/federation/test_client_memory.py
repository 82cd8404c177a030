"""A client's peak: all that it holds, in the thriftier of its two forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, nbytes, stack
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation.client_memory import client_peak
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch

MB = 250_000
"""Floats."""


class Waster(FedAvg):
    """A defense whose two forms take memory of a stated size."""

    plainly, fast = 0, 0

    def client(self, down: Tensors, batch: Any, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        torch.zeros(self.plainly * MB)
        return {n: t[0] for n, t in super().clients(down, [batch], [memory], [noise])[0].items()}, {}

    def clients(self, down: Tensors, batches: Any, memories: Any, noises: Any) -> tuple[Tensors, list[Tensors]]:
        torch.zeros(self.fast * MB)
        return stack([FedAvg.client(self, down, b, {}, {})[0] for b in batches]), [{} for _ in batches]


@pytest.fixture(scope="module")
def problem() -> Problem:
    model = registry.find("model", "mlp").parse({"widths": "8"})
    return build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=3,
            model_options=model,
            schedule=Schedule(rounds=1, batch_size=4),
        ),
        0,
    )


@pytest.fixture(scope="module")
def batch(problem: Problem) -> Batch:
    return problem.batch(0, Rng(0), False)


@pytest.mark.parametrize(("plainly", "fast"), [(3, 9), (9, 3)])
def test_the_thriftier_form_counts(problem: Problem, batch: Batch, plainly: int, fast: int) -> None:
    defense = Waster(None, problem.task)
    defense.plainly, defense.fast = plainly, fast
    assert 3e6 < client_peak(defense, problem.init, batch, {}, {}) < 3.2e6


def test_what_comes_down_what_is_kept_and_the_batch_are_in_it(problem: Problem, batch: Batch) -> None:
    defense, down = FedAvg(None, problem.task), problem.init
    without = client_peak(defense, down, batch, {}, {})
    assert without > nbytes(down) + batch.nbytes
    kept = {"kept": torch.zeros(10 * MB)}
    assert client_peak(defense, down, batch, kept, {}) == without + nbytes(kept)
