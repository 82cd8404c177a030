"""What a party reaches alone: repeatable, better than guessing, and better with more samples."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.problem.alone import lessons
from fedarena.problem.alone.lessons import Lesson, Samples
from fedarena.problem.alone.parties import _Alone, _splits, local_only, server_only
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import usual_problem
from fedarena.problem.task import Auxiliary


def digits(auxiliary: int = 0, **changes: str) -> Problem:
    named = {"dataset": "digits", "model": "mlp", "clients": "6", "partition": "few", **changes}
    samples = named.pop("samples", "24")
    options = {"model": {"widths": "16"}, "training": {"batch_size": "1"}}
    if named["partition"] == "few":
        options["partition"] = {"samples": samples}
    spec = usual_problem(named, options)
    return build(spec, 0, auxiliary=Auxiliary(auxiliary) if auxiliary else None)


def test_clients_alone_beat_chance_and_do_better_with_more_samples() -> None:
    few, many = (local_only(digits(samples=n), Rng(0)) for n in ("12", "100"))
    assert 0.2 < few < many - 0.1
    assert many > 0.75


def test_clients_that_hold_one_class_reach_little_alone() -> None:
    assert local_only(digits(partition="sorted", clients="10"), Rng(0)) < 0.3


def test_a_server_alone_is_as_good_as_its_samples() -> None:
    assert server_only(digits(), Rng(0)) is None
    one, four = (server_only(digits(auxiliary=n, samples="8"), Rng(0)) for n in (1, 4))
    assert one is not None
    assert four is not None
    # One sample a class leaves none to judge by, and is trained on all the same.
    assert 0.3 < one < four - 0.1


def test_the_same_seed_gives_the_same_result() -> None:
    problem = digits()
    assert local_only(problem, Rng(3)) == local_only(problem, Rng(3))
    assert local_only(problem, Rng(3)) != local_only(problem, Rng(4))


def test_clients_that_are_corrupted_do_not_count() -> None:
    """All but one are corrupted: only the honest client's samples matter."""
    problem = digits(corrupted="5")
    (honest,) = set(range(6)) - set(problem.corrupted)
    shuffled = torch.randint(10, problem.y.shape, generator=torch.Generator().manual_seed(0))
    shuffled[problem.shards[honest]] = problem.y[problem.shards[honest]]
    assert local_only(replace(problem, y=shuffled), Rng(0)) == local_only(problem, Rng(0))


def test_models_one_after_the_other_train_as_models_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form for other models than chains, on a chain."""
    problem = digits(samples="12")
    together = local_only(problem, Rng(0))
    monkeypatch.setattr(lessons, "chain_of", lambda model, dims: None)
    assert local_only(problem, Rng(0)) == pytest.approx(together, abs=0.02)


def test_a_model_trains_as_with_adam_of_pytorch() -> None:
    """Two models with batches and rates of their own, together and one after the other."""
    problem = digits(samples="12")
    samples = Samples(problem.inputs(torch.arange(100)), problem.y[:100])
    both = [Lesson(rate, torch.randint(100, (12, 8), generator=Rng(i).torch())) for i, rate in enumerate((0.001, 0.01))]
    shown = train_copied(problem, samples, both)
    assert [(k, step) for k, step, _ in shown] == [(0, 5), (0, 12), (1, 5), (1, 12)]
    for k, step, params in shown:
        wanted = {name: p.clone().requires_grad_() for name, p in problem.init.items()}
        adam = torch.optim.Adam(wanted.values(), lr=both[k].rate)
        for batch in both[k].batches[:step]:
            adam.zero_grad()
            problem.task.loss(wanted, samples.x[batch], samples.y[batch]).backward()
            adam.step()
        for name, p in wanted.items():
            assert torch.allclose(params[name], p, atol=1e-6), (k, step, name)


def train_copied(problem: Problem, samples: Samples, both: list[Lesson]) -> list[tuple[int, int, Tensors]]:
    """What training shows, in the order of lessons."""
    found = lessons.train(problem.task, problem.init, samples, both, (5, 12))
    copied = [(k, step, {name: t.clone() for name, t in params.items()}) for k, step, params in found]
    return sorted(copied, key=lambda shown: shown[:2])


def test_each_part_that_is_kept_back_shares_no_sample_with_the_rest() -> None:
    problem = digits(samples="20")
    index = problem.shards[0]
    alone = _Alone(problem, Samples(problem.inputs(index), problem.y[index]), (torch.arange(len(index)),))
    splits = _splits(alone, 0, Rng(0))
    assert sorted(torch.cat([s.kept_back for s in splits]).tolist()) == list(range(20))
    for split in splits:
        assert sorted([*split.train.tolist(), *split.kept_back.tolist()]) == list(range(20))
