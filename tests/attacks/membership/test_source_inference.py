"""Source inference beside its formula, written down slowly, and what it names of real federations."""

from __future__ import annotations

from dataclasses import replace

import torch
from helpers.membership_views import digits, play
from torch import Tensor

from fedarena.attacks.membership.cards.source_inference import Options
from fedarena.attacks.membership.helpers.contributions import NO_MODEL
from fedarena.attacks.membership.source_inference import SourceInference
from fedarena.contracts.final_model import WhiteBox
from fedarena.contracts.inference import Sources
from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.view import View
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import combine, flatten
from fedarena.core.threat import NotApplicable

NAMES = (2, 5, 7)


def federation(rounds: int = 3) -> View:
    """A view of uploads of three clients, each of other samples at other weights, and twelve candidates."""
    made: list[Observation] = []
    for t in range(rounds):
        for i, who in enumerate(NAMES):
            view, _ = play(batch=3, rounds=1, seed=10 * t + i)
            (seen,) = view.observations
            assert isinstance(seen.simulate, PlainGradient)
            left = WhiteBox(seen.simulate.task, seen.simulate.params)
            made.append(replace(seen, round=t, clients=(who,), candidates=None, left=left))
    x, y = digits()
    return replace(view, observations=tuple(made), candidates=Candidates(x[:12], y[:12]))


def named(view: View, statistic: str = "loss") -> list[int]:
    answer = SourceInference(Options(statistic=statistic))(view, Rng(0))
    assert isinstance(answer, Sources)
    return [int(c) for c in answer.values]


def loss(seen: Observation, x: Tensor, y: Tensor) -> float:
    assert seen.left is not None
    return -float(seen.left.task.outputs(seen.left.params, x[None]).log_softmax(1)[0, y])


def test_it_names_the_client_of_the_least_mean_loss() -> None:
    view = federation()
    expected = []
    for x, y in zip(*(part[:12] for part in digits()), strict=True):
        means = {c: sum(loss(o, x, y) for o in view.observations if o.clients == (c,)) for c in NAMES}
        expected.append(min(means, key=lambda c: means[c]))
    assert named(view) == expected
    assert len(set(expected)) > 1


def test_it_names_the_client_whose_uploads_point_most_towards_the_sample() -> None:
    view = federation()
    expected = []
    for x, y in zip(*(part[:12] for part in digits()), strict=True):
        sums = dict.fromkeys(NAMES, 0.0)
        for o in view.observations:
            label = torch.nn.functional.one_hot(y, 10).float()
            a, v = flatten(o.simulate(x.expand(3, *x.shape), label.expand(3, 10))), flatten(o.target)
            sums[o.clients[0]] += float(a @ v / (a.norm() * v.norm()))
        expected.append(max(sums, key=lambda c: sums[c]))
    assert named(view, "cosine") == expected


def test_a_client_of_late_rounds_is_not_named_for_that() -> None:
    """In the last round, in which client 7 is not seen, two models are alike and fit every candidate."""
    view = federation(rounds=1)
    x, y = (part[:12] for part in digits())
    model = view.observations[0].left
    assert model is not None
    params = model.params
    for _ in range(200):
        params = combine(1.0, params, -0.5, gradient(model.task.loss, params, x, y))
    late = [replace(o, round=1, left=WhiteBox(model.task, params)) for o in view.observations[:2]]
    later = replace(view, observations=(*view.observations, *late))
    samples = list(zip(x, y, strict=True))
    total = {c: [sum(loss(o, *one) for o in later.observations if o.clients == (c,)) for one in samples] for c in NAMES}
    held_by_7 = [i for i, name in enumerate(named(view)) if name == 7]
    assert held_by_7
    assert all(total[7][i] > min(total[2][i], total[5][i]) / 2 for i in held_by_7), "the mean loss names another"
    assert all(named(later)[i] == 7 for i in held_by_7)


def test_without_models_only_the_cosine_is_applicable() -> None:
    view = federation()
    hidden = replace(view, observations=tuple(replace(o, left=None) for o in view.observations))
    assert SourceInference(Options())(hidden, Rng(0)) == NotApplicable(NO_MODEL)
    assert named(hidden, "cosine") == named(view, "cosine")
    assert SourceInference(Options()).needs_models
    assert not SourceInference(Options(statistic="cosine")).needs_models
