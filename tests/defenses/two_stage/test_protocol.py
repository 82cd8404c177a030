"""The two-stage server against Algorithm 3 written with loops, and its options."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.dbcl import mlp, parameters
from scipy import stats
from torch.func import grad

from fedarena.contracts.defense import Cohort
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.two_stage.card import Options
from fedarena.defenses.two_stage.protocol import TwoStage
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Auxiliary, Batch, Task

SIGMA = 2.0


def make(clients=6, assumed_corrupted=2, model=None, kind="two-stage", **options):
    schedule = Schedule(rounds=20, batch_size=4, lr=0.2)
    task = Task(
        model or mlp((12, 40, 3)),
        input_shape=(12,),
        n_classes=3,
        sizes=(40,) * clients,
        schedule=schedule,
        assumed_corrupted=assumed_corrupted,
    )
    card = find("defense", kind)
    made = card.options(**{"noise": SIGMA, "epsilon": None, "base_epsilon": None, **options})
    return card.load()(made, task)


def server(defense, seed=0):
    params = parameters(defense.task.model, seed, torch.float64)
    g = Rng(seed).torch()
    own = Batch(torch.rand(1, 6, 12, generator=g, dtype=torch.float64), torch.arange(6)[None] % 3)
    return defense.init(params, Rng(0), own)


def noisy(defense, state, n, seed, signal=0.0):
    """Uploads: noise of the right size, and for the first half a piece of the true gradient."""
    g = Rng(seed).torch()
    d = len(flatten(state.params))
    x = torch.randn(n, d, generator=g, dtype=torch.float64) * defense.noise_std
    truth = flatten(grad(defense.task.loss)(state.params, *state.auxiliary.images())) if signal else torch.zeros(d)
    x[: n // 2] += signal * truth
    return x


def loops(defense, state, x, clients, totals, smoothed, code):
    """One round of Algorithm 3 (or of the code), by loops; returns direction, who is used, S, the smoothed gradient."""
    n, d = x.shape
    x = [row.clone() for row in x]
    std, alive = defense.noise_std, [True] * n
    if not code:
        for i, row in enumerate(x):
            squares = float(row.square().sum())
            far = abs(squares - std**2 * d) > 3 * std**2 * math.sqrt(2 * d)
            if far or stats.kstest((row / std).numpy(), "norm", method="exact").pvalue < 0.05:
                x[i], alive[i] = torch.zeros(d, dtype=torch.float64), False
    g = flatten(grad(defense.task.loss)(state.params, *state.auxiliary.images()))
    if code:
        smoothed = 0.99 * smoothed + 0.01 * g
        g = smoothed / smoothed.norm()
    scores = [float(row @ g) / (float(row.norm()) if code else 1.0) for row in x]
    share = (1 - defense.task.assumed_corrupted / len(defense.task.sizes)) * n
    k = math.floor(share + 1e-9) if code else math.ceil(share - 1e-9)
    mean = sum(sorted(scores, reverse=True)[:k]) / k
    for c, s in zip(clients, scores, strict=True):
        totals[c] += s if s >= mean else 0.0
    ranked = sorted(range(n), key=lambda i: -totals[clients[i]])
    ties = len({totals[c] for c in clients}) < n
    direction = sum(x[i] for i in ranked[:k]) / (k if code else n)
    return direction, {i for i in ranked[:k] if alive[i]}, totals, smoothed, ties


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_rounds_are_algorithm_3(variant):
    defense = make(clients=8, assumed_corrupted=3, variant=variant)
    state = server(defense)
    totals = dict.fromkeys(range(8), 0.0)
    smoothed = torch.zeros(len(flatten(state.params)), dtype=torch.float64)
    sent, compared = defense.broadcast(state, Rng(0)), 0
    for t in range(12):
        clients = tuple(sorted(torch.randperm(8, generator=Rng(t).torch())[: 8 if t % 2 else 7].tolist()))
        x = noisy(defense, state, len(clients), t, signal=0.5 if t % 3 else 0.0)
        if t % 4 == 0:
            x[1] *= 3
        ups = shaped(x, state.params)
        after = defense.aggregate(state, sent, ups, Cohort(clients, torch.ones(len(clients))), Rng(t))
        direction, used, totals, smoothed, ties = loops(defense, state, x, clients, totals, smoothed, variant == "code")
        assert after.extra["scores"].tolist() == pytest.approx([totals[c] for c in range(8)], rel=1e-9, abs=1e-12)
        if not ties:
            compared += 1
            assert {i for i, u in enumerate(after.verdict["used"].tolist()) if u} == used
            moved = flatten(state.params) - flatten(after.params)
            assert torch.allclose(moved, 0.2 * direction, rtol=1e-6, atol=1e-9)
        state = after
    assert compared >= 4


def test_stage_one_zeroes_what_is_no_noise():
    defense = make(assumed_corrupted=0)
    state = server(defense)
    x = noisy(defense, state, 6, 5)
    assert not defense.first.rejects(x, defense.noise_std).any()
    x[2], x[4] = x[2] * 1.5, torch.where(torch.arange(x.shape[1]) % 2 == 0, 1.0, -1.0) * defense.noise_std
    cohort = Cohort(tuple(range(6)), torch.ones(6))
    after = defense.aggregate(state, defense.broadcast(state, Rng(0)), shaped(x, state.params), cohort, Rng(0))
    assert after.verdict["first_stage"].tolist() == [0, 0, 1, 0, 1, 0]
    assert after.verdict["used"].tolist() == [1, 1, 0, 1, 0, 1]
    assert after.verdict["score"][2] == after.verdict["score"][4] == 0
    kept = x[[0, 1, 3, 5]].sum(0) / 6
    assert torch.allclose(flatten(state.params) - flatten(after.params), 0.2 * kept, rtol=1e-6, atol=1e-9)


def test_each_stage_runs_alone():
    first = make(assumed_corrupted=0, second_stage=False, level=1e-4)
    assert TwoStage.holds(first.options) is None
    state = first.init(parameters(first.task.model, 0, torch.float64), Rng(0))
    x = torch.randn(6, len(flatten(state.params)), dtype=torch.float64, generator=Rng(2).torch()) * first.noise_std
    x[3] = 0
    cohort, sent = Cohort(tuple(range(6)), torch.ones(6)), first.broadcast(state, Rng(0))
    after = first.aggregate(state, sent, shaped(x, state.params), cohort, Rng(0))
    assert after.verdict["used"].tolist() == [1, 1, 1, 0, 1, 1]
    second = make(first_stage=False)
    assert second.first is None
    state = server(second)
    verdict = second.aggregate(state, sent, shaped(x, state.params), cohort, Rng(0)).verdict
    assert set(verdict) == {"used", "score"}
    assert verdict["used"].sum() == 4
    assert make(variant="code").first is None
    assert make(variant="code", first_stage=True).first is not None


@pytest.mark.parametrize("kind", ["two-stage", "two-stage-hardened"])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_divisor_alone_scales_the_step(kind, variant):
    """8 uploads, 5 selected: by all is 5/8 of the step by the selected, whomever stage one zeroed."""
    steps, used = {}, {}
    for divisor in ("rule", "all", "selected"):
        defense = make(8, 3, kind=kind, variant=variant, divisor=divisor, first_stage=True)
        state = server(defense)
        x = noisy(defense, state, 8, 0, signal=0.5)
        x[:2] *= 3  # stage one zeroes them; of the six others at most five are used
        cohort, sent = Cohort(tuple(range(8)), torch.ones(8)), defense.broadcast(state, Rng(0))
        after = defense.aggregate(state, sent, shaped(x, state.params), cohort, Rng(0))
        steps[divisor], used[divisor] = flatten(state.params) - flatten(after.params), after.verdict["used"].tolist()
    assert used["all"] == used["selected"] == used["rule"]
    assert 0 < sum(used["all"]) <= 5
    assert steps["all"].any()
    assert torch.allclose(steps["all"], steps["selected"] * 5 / 8, rtol=1e-6, atol=1e-12)
    assert torch.equal(steps["rule"], steps["all" if variant == "paper" else "selected"])


def test_what_the_server_must_hold():
    assert TwoStage.holds(Options()) == Auxiliary(2, "")
    assert TwoStage.holds(Options(aux_per_class=5, aux_dataset="fashion-mnist")) == Auxiliary(5, "fashion-mnist")


def test_options_of_the_tests_act():
    assert not make(norm_sds=1e9, level=1e-12).first.rejects(torch.zeros(1, 3) + 2.0, 1.0).any()
    assert make(level=0.999).first.rejects(torch.randn(20, 500, generator=Rng(0).torch()), 1.0).sum() > 15
    assert make(norm_sds=0.01).first.rejects(torch.randn(20, 500, generator=Rng(0).torch()), 1.0).sum() > 15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": None, "epsilon": None}, "option 'epsilon' is none"),
        ({"second_stage": False, "first_stage": False}, "option 'second_stage' is false"),
        ({"second_stage": False, "gamma": 0.5}, "option 'second_stage' is false"),
        ({"second_stage": False, "first_stage": True, "variant": "code"}, "option 'second_stage' is false"),
        ({"second_stage": False, "divisor": "selected"}, "option 'divisor' is selected, allowed: rule"),
        ({"second_stage": False, "divisor": "all"}, "option 'divisor' is all, allowed: rule"),
    ],
)
def test_options_that_cannot_be_are_one_line(options, message):
    with pytest.raises(UserError, match=message) as error:
        make(**options)
    assert "\n" not in str(error.value)


def test_no_rule_beside_its_own():
    task = Task(
        mlp(),
        input_shape=(12,),
        n_classes=3,
        sizes=(40,) * 6,
        schedule=Schedule(rounds=20, batch_size=4),
        assumed_corrupted=1,
    )
    rule = find("aggregator", "median")
    with pytest.raises(UserError, match=r"dp-sgd\+"):
        TwoStage(Options(noise=1.0, epsilon=None), task, rule.load()(rule.parse({})))
    assert (
        DPSGD(
            find("defense", "dp-sgd").parse({"noise": "1", "epsilon": "none"}), task, rule.load()(rule.parse({}))
        ).rule
        is not None
    )


def test_without_noise_the_second_stage_still_runs():
    defense = make(noise=None, epsilon=None, first_stage=False)
    assert defense.noise_std == 0
    assert defense.step_size == 0.2


def test_defaults_are_the_papers():
    o = find("defense", "two-stage").parse({})
    assert (o.bound, o.momentum, o.epsilon, o.base_epsilon, o.clip) == ("normalise", 0.1, 2.0, 2.0, 1.0)
    task = Task(
        mlp(), input_shape=(12,), n_classes=3, sizes=(3000,) * 20, schedule=Schedule(rounds=1500, batch_size=16, lr=0.2)
    )
    made = TwoStage(Options(epsilon=0.125), task)
    assert made.sigma == pytest.approx(4.68759, rel=0.06)
    assert made.step_size == pytest.approx(0.2 * 0.79203 / 4.68759, rel=0.06)


def test_a_client_does_not_know_the_selection_and_the_wire_shows_uploads():
    defense = make()
    state = server(defense)
    ups = shaped(noisy(defense, state, 6, 0), state.params)
    seen = {t: Seen(t, participants=tuple(range(6)), down=state.params, ups=ups, own_up=state.params) for t in (0, 1)}
    why = defense.readings(Threat("client", "adaptive"), seen, (0,))
    assert isinstance(why, NotApplicable)
    assert "selected" in why.reason
    for form in ("paper", "adaptive"):
        (reading,) = defense.readings(Threat("server", form), seen, (0,))
        assert torch.equal(flatten(reading.observations[0].target), flatten(row(ups, 1)))
