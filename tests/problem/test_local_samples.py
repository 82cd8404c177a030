"""The option `local_samples`: a client's local work takes that many samples of its shard."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedarena.contracts.defense import State
from fedarena.contracts.simulators import images_behind
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import row
from fedarena.federation import rounds as federation
from fedarena.federation.compose import make_defense, parse_defense
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch

LOCAL = Schedule(rounds=4, batch_size=2, local_epochs=3, local_samples=5, lr=0.05)


def problem(schedule: Schedule = LOCAL) -> Problem:
    model, iid = find("model", "mlp").parse({"widths": "16"}), find("partition", "iid").parse({})
    return build(
        ProblemSpec(
            "digits",
            model="mlp",
            partition="iid",
            clients=3,
            model_options=model,
            partition_options=iid,
            schedule=schedule,
        ),
        0,
    )


@pytest.mark.parametrize(
    ("local_samples", "batch_size", "taken"), [(None, 2, 478), (5, 2, 4), (1, 1, 1), (10_000, 2, 478), (6, 3, 6)]
)
def test_full_batches_of_no_more_than_that_many_are_taken(
    local_samples: int | None, batch_size: int, taken: int
) -> None:
    schedule = replace(LOCAL, local_samples=local_samples, batch_size=batch_size)
    assert schedule.taken(479) == taken
    assert schedule.steps(479) == 3 * taken // batch_size


def test_a_client_s_samples_change_with_the_round_and_not_the_epoch() -> None:
    p = problem()
    assert images_behind(p.task, 0) == 4
    first, second = (p.batch(0, Rng(0).child("batch", t)) for t in range(2))
    assert first.x.shape == (6, 2, 1, 8, 8)
    epochs = [sorted(tuple(x.flatten().tolist()) for x in part.flatten(0, 1)) for part in first.x.split(2)]
    assert epochs[0] == epochs[1] == epochs[2]
    assert len(set(epochs[0])) == 4
    assert not torch.equal(first.x, second.x)
    own = {tuple(x.flatten().tolist()) for x in p.inputs(p.shards[0])}
    assert set(epochs[0]) <= own


def test_one_sample_is_visited_once_an_epoch() -> None:
    batch = problem(replace(LOCAL, batch_size=1, local_samples=1, local_epochs=5)).batch(1, Rng(0))
    assert batch.x.shape == (5, 1, 1, 8, 8)
    assert all(torch.equal(x, batch.x[0]) for x in batch.x)


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        (replace(LOCAL, local_epochs=0), "with local-epochs 0"),
        (replace(LOCAL, local_samples=1), "at least batch-size, 2"),
    ],
)
def test_what_cannot_be_is_refused(schedule: Schedule, why: str) -> None:
    with pytest.raises(UserError, match="option 'local_samples'") as raised:
        problem(schedule)
    assert why in str(raised.value)


@pytest.mark.parametrize("name", ["fedavg", "dbcl"])
def test_faster_forms_agree_with_the_client(name: str) -> None:
    p = problem()
    defense = make_defense(parse_defense(name), p.task)
    down = defense.broadcast(State(p.init), Rng(0)).down
    batches = [p.batch(c, Rng(0).child(c)) for c in range(3)]
    together, _ = defense.clients(down, batches, [{}] * 3, [{}] * 3)
    for c, batch in enumerate(batches):
        alone, _ = defense.client(down, batch, {}, {})
        for key, t in row(together, c).items():
            assert torch.allclose(t, alone[key], rtol=1e-3, atol=1e-6)


def test_noiseless_is_the_client_s_work_on_given_samples() -> None:
    p = problem()
    defense = make_defense(parse_defense("fedavg"), p.task)
    x, y = p.inputs(p.shards[0][:4]), p.y[p.shards[0][:4]]
    batch = Batch(torch.cat([x.reshape(2, 2, 1, 8, 8)] * 3), torch.cat([y.reshape(2, 2)] * 3))
    expected, _ = defense.client(p.init, batch, {}, {})
    for name, t in defense.expected_upload(p.init, x, y).items():
        assert torch.allclose(t, expected[name], atol=1e-7)


def test_a_federation_runs_on_them_and_learns_otherwise_than_on_all() -> None:
    runs = [
        federation.run(make_defense(parse_defense("fedavg"), p.task), p, Rng(0), watch=(0,))
        for p in (problem(), problem(replace(LOCAL, local_samples=None)))
    ]
    assert runs[0].rounds[0].batches[0].x.shape[0] == 6
    assert runs[0].accuracy != runs[1].accuracy
