"""The hardened two-stage server: what its further tests see and cost, and attacks that the plain one falls to."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from helpers.dbcl import mlp, parameters
from torch import Tensor
from torch.func import grad

from fedarena.attacks.poisoning.helpers.gaussianize import gaussianize
from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, shaped
from fedarena.defenses.two_stage.hardened import TwoStageHardened
from fedarena.defenses.two_stage.hardened_card import Options
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch, Task

N = 6


def make(**options: Any) -> TwoStageHardened:
    task = Task(
        mlp((12, 400, 3)),
        input_shape=(12,),
        n_classes=3,
        sizes=(40,) * N,
        schedule=Schedule(rounds=20, batch_size=16, lr=0.1),
        assumed_corrupted=2,
    )
    return TwoStageHardened(Options(**{"noise": 1.0, "epsilon": None, "base_epsilon": None, **options}), task)


def server(defense: TwoStageHardened) -> State:
    g = Rng(0).torch()
    own = Batch(torch.rand(1, 6, 12, generator=g), torch.arange(6)[None] % 3)
    return defense.init(parameters(defense.task.model, 0), Rng(0), own)


def reference(defense: TwoStageHardened, state: State) -> Tensor:
    assert state.auxiliary is not None
    g = flatten(grad(defense.task.loss)(state.params, *state.auxiliary.images()))
    return g / g.norm()


def noise(defense: TwoStageHardened, n: int, seed: int) -> Tensor:
    d = sum(p.numel() for p in defense.task.model.parameters())
    return defense.noise_std * torch.randn(n, d, generator=Rng(seed).torch())


def aggregate(defense: TwoStageHardened, state: State, x: Tensor, clients: tuple[int, ...] = tuple(range(N))) -> State:
    cohort = Cohort(clients, torch.ones(len(clients)))
    return defense.aggregate(state, Broadcast({}), shaped(x, state.params), cohort, Rng(1))


@pytest.mark.parametrize(("z", "rejected"), [(-5.0, True), (-2.0, False), (0.0, False), (5.0, False)])
def test_scores_further_down_than_noise_explains_are_rejected(z: float, rejected: bool) -> None:
    """One upload with score z·σ_u‖g_s‖ exactly, at three standard deviations."""
    defense = make()
    state = server(defense)
    g, x = reference(defense, state), noise(defense, N, 0)
    x[0] += (z * defense.noise_std - x[0] @ g) * g
    after = aggregate(defense, state, x)
    assert bool(after.verdict["implausible"][0]) == rejected
    assert bool(after.verdict["used"][0]) <= (not rejected)
    raw = grad(defense.task.loss)(state.params, *state.auxiliary.images())  # type: ignore[union-attr]
    torch.testing.assert_close(
        after.verdict["score"][0], z * defense.noise_std * flatten(raw).norm(), atol=1e-5, rtol=1e-3
    )


def test_trust_earned_before_does_not_help() -> None:
    defense = make()
    state = server(defense)
    g, x = reference(defense, state), noise(defense, N, 0)
    extra = {**state.extra, "scores": torch.tensor([1e9] + [0.0] * (N - 1))}
    trusted = State(state.params, round=0, extra=extra, auxiliary=state.auxiliary)
    assert aggregate(defense, trusted, x).verdict["used"][0] == 1
    x[0] -= 10 * defense.noise_std * g
    assert aggregate(defense, trusted, x).verdict["used"][0] == 0


def test_trust_is_forgotten() -> None:
    """A client's sum of scores over rounds of its own: S ← ρ S + s, s what counts of its score in the round."""
    defense, plain = make(score_decay=0.5), make(score_decay=1.0)
    everybody, some = tuple(range(N)), (1, 3, 5)
    x = noise(defense, N, 0)
    state, other = aggregate(defense, server(defense), x), aggregate(plain, server(plain), x)
    before = state.extra["scores"]
    torch.testing.assert_close(before, other.extra["scores"])  # there was nothing to forget
    x = noise(defense, len(some), 1)
    state, other = aggregate(defense, state, x, some), aggregate(plain, other, x, some)
    left = torch.tensor([0.5 if c in some else 0.0 for c in everybody])
    torch.testing.assert_close(other.extra["scores"] - state.extra["scores"], left * before)
    assert bool(before[list(some)].any())


def test_averages_of_uploads_are_kept_per_client_over_its_own_rounds() -> None:
    """Against e = Σ (1 − λ)λ^j g, by a loop, with clients that sit rounds out."""
    defense = make(decay=0.7, slow_decay=0.9)
    state, cohorts = server(defense), [(0, 1, 2, 3, 4, 5), (1, 3, 5), (0, 1, 4)]
    seen: list[list[Tensor]] = [[] for _ in range(N)]
    for t, clients in enumerate(cohorts):
        x = noise(defense, len(clients), t)
        for c, upload in zip(clients, x, strict=True):
            seen[c].append(upload)
        state = aggregate(defense, state, x, clients)
    for c in range(N):
        for i, keep in enumerate((0.7, 0.9)):
            weights = [(1 - keep) * keep**j for j in range(len(seen[c]))]
            e = sum(w * g for w, g in zip(weights, reversed(seen[c]), strict=True))
            torch.testing.assert_close(state.extra[f"trace.{c}"][i], e)
            assert float(state.extra[f"reach.{c}"][i]) == pytest.approx(sum(weights))
            assert float(state.extra[f"spread.{c}"][i]) == pytest.approx(sum(w * w for w in weights))


def test_the_server_remembers_those_that_took_part_alone() -> None:
    defense = make()
    state = aggregate(defense, server(defense), noise(defense, 2, 0), (1, 4))
    assert {name for name in state.extra if name.startswith("trace.")} == {"trace.1", "trace.4"}


def test_the_slow_average_leaves_as_much_noise_as_an_honest_signal_is_long() -> None:
    """κ σ_u² d = C² in the long run; where the noise is shorter than that anyway, the slow one is the quick one."""
    for sigma, clip in ((1.0, 1.0), (3.0, 1.0), (1.0, 0.5)):
        defense = make(noise=sigma, clip=clip)
        x = noise(defense, 1, 0)[0]
        quick, slow = defense._decays(x).tolist()
        assert quick == pytest.approx(0.9)
        assert (1 - slow) / (1 + slow) * defense.noise_std**2 * len(x) == pytest.approx(clip**2, rel=1e-3)
    assert make(noise=0.01)._decays(x).tolist() == pytest.approx([0.9, 0.9])
    assert make(slow_decay=0.99)._decays(x).tolist() == pytest.approx([0.9, 0.99])


def test_only_the_slow_average_sees_a_direction_behind_cancelled_noise() -> None:
    """Ninety rounds of 2.2 C in one direction with noise +z and −z in turn, together no longer than honest noise."""
    seen = []
    for slow in (0.9, None):
        defense = make(noise=2.0, slow_decay=slow)
        state, extra = server(defense), server(defense).extra
        x = noise(defense, N, 99)
        side = x[0] - (x[0] @ reference(defense, state)) * reference(defense, state)
        worn, rejected = side / side.norm() * defense.noise_std * len(side) ** 0.5, 0.0
        share = 2.2 * defense.options.clip / worn.norm()
        for t in range(90):
            x = noise(defense, N, t)
            fresh = noise(defense, 1, 1000 + t // 2)[0] * (-1) ** t
            x[0] = gaussianize(
                share * worn + (1 - share**2) ** 0.5 * fresh, defense.noise_std, "quantiles", Rng(t).torch()
            )
            after = aggregate(defense, State(state.params, round=t, extra=extra, auxiliary=state.auxiliary), x)
            extra = after.extra
            rejected += float(after.verdict["implausible"][0]) if t >= 60 else 0.0
        seen.append(rejected)
    assert seen[0] <= 3
    assert seen[1] >= 27


def test_noise_passes_and_a_direction_that_is_kept_up_does_not() -> None:
    """Forty rounds of noise, of noise with an honest signal of the largest size, and of rank maps of one direction."""
    defense = make()
    state, x = server(defense), noise(defense, N, 99)
    side = x[0] - (x[0] @ reference(defense, state)) * reference(defense, state)  # no score to speak of
    unit, worn = side / side.norm(), gaussianize(side, defense.noise_std, "quantiles", Rng(0).torch())
    rejected = torch.zeros(N)
    for t in range(40):
        x = noise(defense, N, t)
        x[2:4] += unit
        x[4] = worn
        x[5] = gaussianize(0.6 * worn + 0.8 * x[5], defense.noise_std, "quantiles", Rng(t).torch())
        # The model stands still: what is tested is the server's view of the senders.
        state = State(state.params, round=t, extra=aggregate(defense, state, x).extra, auxiliary=state.auxiliary)
        rejected += aggregate(defense, state, x).verdict["implausible"] if t >= 20 else 0
    assert rejected[:4].sum() <= 2
    assert rejected[4:].tolist() == [20, 20]


def test_room_covers_noise_with_the_largest_honest_signal_and_momentum() -> None:
    """Signals of length C that repeat the noise of the round before; σ as at ε = 1/8, where that matters most."""
    for sigma in (1.0, 5.0):
        defense = make(noise=sigma)
        before, d = torch.zeros(0), 0
        keep = defense._decays(noise(defense, 1, 0)[0])
        e, reach, spread = torch.zeros(2, 1), torch.zeros(2), torch.zeros(2)
        for t in range(200):
            n = noise(defense, 1, t)[0]
            d = len(n)
            signal = before / before.norm() if t else torch.zeros_like(n)
            before = n + signal
            e = keep[:, None] * e + (1 - keep[:, None]) * before
            reach, spread = keep * reach + 1 - keep, keep**2 * spread + (1 - keep) ** 2
            assert bool((e.square().sum(1) <= defense._room(keep, reach, spread, d)).all())
    args = torch.tensor([0.9, 0.9]), torch.tensor([1.0, 1.0]), torch.tensor([0.05, 0.05]), d
    assert bool((make(momentum=0.0)._room(*args) < make()._room(*args)).all())


def test_rejections_are_told_apart() -> None:
    defense = make()
    state, x = server(defense), noise(defense, N, 0)
    x[0] -= 10 * defense.noise_std * reference(defense, state)
    x[1] *= 1.08  # ‖x‖² 17 % too large: stage one allows 5 %
    verdict = aggregate(defense, state, x).verdict
    assert verdict["implausible"].tolist() == [1, 0, 0, 0, 0, 0]
    assert verdict["first_stage"][:2].tolist() == [0, 1]
    assert verdict["used"][:2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "value"), [("score_sds", 1.0), ("decay", 0.5), ("slow_decay", 0.99), ("score_decay", 0.5)]
)
def test_options_act(name: str, value: float) -> None:
    defense, other = make(), make(**{name: value})
    states = [server(defense), server(other)]
    for t in range(3):
        x = noise(defense, N, t)
        x[0] -= 2 * defense.noise_std * reference(defense, states[0])
        states = [aggregate(d, s, x) for d, s in zip((defense, other), states, strict=True)]
    a, b = states
    seen = (
        (a.verdict["implausible"], b.verdict["implausible"]),
        *((a.extra[k], b.extra[k]) for k in ("trace.0", "scores")),
    )
    assert not all(torch.equal(*pair) for pair in seen)


@pytest.mark.parametrize("options", [{"variant": "code"}, {"first_stage": False}, {"second_stage": False}])
def test_both_stages_are_needed(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="second_stage"):
        make(**options)
    assert make(variant="code", first_stage=True).code


# -- whole federations -----------------------------------------------------------------------------


@cache
def final(defense: str, attack: str = "", **options: str) -> float:
    """Final accuracy on digits, ten clients of which two are corrupted."""
    model = find("model", "mlp").parse({"widths": "32"})
    spec = compose.parse_defense(defense, {"epsilon": "8"})
    schedule = Schedule(rounds=120, batch_size=16, lr=0.5)
    wanted = compose.auxiliary(spec)
    p = build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=10, model_options=model, schedule=schedule, corrupted=2
        ),
        0,
        auxiliary=wanted,
    )
    made, adversary = compose.make_defense(spec, p.task), None
    if attack:
        method = compose.make_poisoning(compose.parse_attack(attack, options), knowledge_of(p, made, "own"))
        adversary = Adversary(method, frozenset(p.corrupted), Rng(5))
    return federation.run(made, p, Rng(0).child("federation"), adversary=adversary).accuracy


def test_it_costs_no_accuracy_without_an_attack() -> None:
    assert final("two-stage-hardened") > final("two-stage") - 0.05


def test_it_withstands_banked_reputation_that_breaks_the_plain_protocol() -> None:
    assert final("two-stage", "bank") < final("two-stage") / 2
    assert final("two-stage-hardened", "bank") > final("two-stage-hardened") - 0.1
