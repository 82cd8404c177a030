"""Who holds which data, and who is corrupted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Auxiliary

SPEC = ProblemSpec(
    "digits",
    model="mlp",
    partition="iid",
    clients=10,
    model_options=registry.find("model", "mlp").parse({}),
    schedule=Schedule(batch_size=4),
    corrupted=3,
)


def test_shards_are_disjoint_and_complete_whoever_is_corrupted() -> None:
    problem = build(SPEC, 0)
    assert len(problem.corrupted) == 3
    together = torch.cat(problem.shards).sort().values
    assert torch.equal(together, torch.arange(len(problem.y)))
    again = build(dataclasses.replace(SPEC, corrupted=0), 0)
    assert all(torch.equal(a, b) for a, b in zip(problem.shards, again.shards, strict=True))


def test_resampled_data_leave_the_honest_as_if_alone() -> None:
    alone = build(dataclasses.replace(SPEC, clients=7, corrupted=0), 0)
    problem = build(dataclasses.replace(SPEC, corrupted_data="resampled"), 0)
    honest = [s for c, s in enumerate(problem.shards) if c not in problem.corrupted]
    assert all(torch.equal(a, b) for a, b in zip(honest, alone.shards, strict=True))
    corrupted = [problem.shards[c] for c in problem.corrupted]
    assert all(len(s) in {len(h) for h in honest} for s in corrupted)
    assert not any(torch.equal(s.sort().values, h.sort().values) for s in corrupted for h in honest)


def test_more_corrupted_than_honest_get_different_shards() -> None:
    problem = build(dataclasses.replace(SPEC, clients=30, corrupted=25, corrupted_data="resampled"), 1)
    drawn = {tuple(problem.shards[c].sort().values.tolist()) for c in problem.corrupted}
    assert len(drawn) == 25


def test_a_client_s_number_does_not_tell_whether_it_is_corrupted() -> None:
    counts = np.zeros(10)
    for seed in range(200):
        counts[list(build(SPEC, seed).corrupted)] += 1
        if seed == 0:
            first = counts.copy()
    assert first.sum() == 3
    # 200 draws of 3 in 10: mean 60, s.d. 6.5; five s.d. on either side.
    assert counts.min() > 27
    assert counts.max() < 93


def held(problem: Problem) -> torch.Tensor:
    assert problem.auxiliary is not None
    return problem.auxiliary.images()[0]


def test_the_server_s_samples_are_nobody_else_s() -> None:
    without, problem = build(SPEC, 0), build(SPEC, 0, auxiliary=Auxiliary(per_class=2))
    assert problem.auxiliary is not None
    assert problem.auxiliary.y.flatten().bincount().tolist() == [2] * 10
    kept = torch.cat(problem.shards)
    gone = sorted(set(range(len(problem.y))) - set(kept.tolist()))
    assert len(gone) == 20
    rows = problem.inputs(torch.tensor(gone)).flatten(1)
    assert {tuple(r.tolist()) for r in rows} == {tuple(r.tolist()) for r in held(problem).flatten(1)}
    assert problem.task.sizes == tuple(map(len, problem.shards))
    for a, b in zip(problem.shards, without.shards, strict=True):
        assert a.tolist() == [i for i in b.tolist() if i not in gone]


def test_the_server_s_samples_may_come_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    digits = registry.find("dataset", "digits").load()(None)
    wide = dataclasses.replace(
        digits,
        name="wide",
        x_train=np.repeat(np.pad(digits.x_train, ((0, 0), (0, 0), (4, 4), (4, 4))), 3, axis=1),
        x_test=np.repeat(np.pad(digits.x_test, ((0, 0), (0, 0), (4, 4), (4, 4))), 3, axis=1),
    )
    real = registry.find

    class Wide:
        def load(self) -> object:
            return lambda folder: wide

    monkeypatch.setattr(registry, "find", lambda kind, name: Wide() if name == "wide" else real(kind, name))
    problem = build(SPEC, 0, auxiliary=Auxiliary(2, "wide"))
    assert held(problem).shape == (20, 1, 8, 8)
    assert len(torch.cat(problem.shards)) == len(problem.y)


def test_a_poisson_batch_takes_each_sample_with_the_same_probability() -> None:
    problem = build(SPEC, 0)
    n = problem.task.sizes[0]
    sizes = [problem.batch(0, Rng(5).child(t), poisson=True).x.shape[1] for t in range(2000)]
    mean, variance = np.mean(sizes), np.var(sizes)
    p = 4 / n
    assert abs(mean - 4) < 5 * np.sqrt(n * p * (1 - p) / 2000)
    assert abs(variance - n * p * (1 - p)) < 1.0
    assert min(sizes) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"corrupted": 10}, "option 'corrupted' is 10, allowed: 0 to 9"),
        ({"corrupted": -1}, "option 'corrupted' is -1"),
        ({"assumed_corrupted": 10}, "option 'assumed-corrupted' is 10, allowed: 0 to 9"),
        ({"corrupted_data": "x"}, "option 'corrupted-data' is 'x', allowed: shard, resampled"),
    ],
)
def test_impossible_numbers_are_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        dataclasses.replace(SPEC, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(("spec", "assumed"), [(SPEC, 3), (dataclasses.replace(SPEC, assumed_corrupted=1), 1)])
def test_the_server_assumes_the_number_given(spec: ProblemSpec, assumed: int) -> None:
    assert build(spec, 0).task.assumed_corrupted == assumed


def test_without_a_number_the_server_expects_a_fifth() -> None:
    task = build(dataclasses.replace(SPEC, corrupted=0), 0).task
    assert task.assumed_corrupted == 2
    half = dataclasses.replace(task, schedule=dataclasses.replace(task.schedule, participation=0.5))
    assert (half.participants, half.assumed_corrupted_per_round) == (5, 1)


@pytest.mark.parametrize(("data", "other"), [("breast-cancer", "pictures"), ("pictures", "breast-cancer")])
def test_a_foreign_table_is_no_picture(data, other, monkeypatch) -> None:
    from fedarena.datasets.dataset import Dataset, Provenance
    from fedarena.problem.data_split import hold

    table = registry.find("dataset", "breast-cancer").load()(None)
    x, y = np.zeros((20, 1, 8, 8), np.float32), np.arange(20) % 2
    pictures = Dataset(
        "pictures",
        x_train=x,
        y_train=y,
        x_test=x,
        y_test=y,
        scale=1.0,
        n_classes=2,
        provenance=Provenance("made up", None, None, False),
    )
    sets = {"breast-cancer": table, "pictures": pictures}

    class Card:
        def __init__(self, name):
            self.load = lambda: lambda folder: sets[name]

    monkeypatch.setattr(registry, "find", lambda kind, name: Card(name))
    with pytest.raises(UserError, match=f"option 'aux_dataset' is {other}, whose inputs have shape"):
        hold(sets[data], Auxiliary(2, other), Rng(0), None)


@pytest.mark.parametrize(
    ("option", "told"), [("root", "option 'root' is 500, samples"), ("", "the rule asks for 500, samples")]
)
def test_more_samples_than_there_are_of_a_class_are_refused(option, told):
    from fedarena.core import registry
    from fedarena.problem.data_split import hold

    with pytest.raises(UserError, match=f"^{told} of each class .* allowed with digits: 1 to [0-9]+"):
        hold(registry.find("dataset", "digits").load()(None), Auxiliary(500, option=option), Rng(0), None)
