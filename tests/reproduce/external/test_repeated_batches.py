"""Batches and masks that repeat as in a released code."""

from __future__ import annotations

import torch

from fedarena.core.rng import Rng
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.external.repeated_batches import RepeatedBatches


def test_a_sample_always_meets_the_same_units() -> None:
    given = {"dataset": "digits", "model": "cnn-bucketing", "clients": "4"}
    problem = build(usual_problem(given, {"training": {"batch_size": "4"}}), 0, None, "cpu")
    orders = [shard[:12] for shard in problem.shards]
    repeated = RepeatedBatches.of(problem, orders, Rng(0))
    rounds = [repeated(t, client=1) for t in range(4)]
    seen = torch.cat([batch.x[0] for batch in rounds[:3]])
    assert torch.equal(seen, problem.inputs(orders[1]))
    assert torch.equal(rounds[3].x, rounds[0].x)
    assert torch.equal(rounds[3].y, rounds[0].y)
    other = repeated(2, client=3)
    assert not torch.equal(other.x, rounds[2].x)
    assert rounds[0].masks
    assert all(batch.masks is rounds[0].masks for batch in (*rounds, other))
