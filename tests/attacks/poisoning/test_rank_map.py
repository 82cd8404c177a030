"""The rank map: exact order, exact values, and what a server's tests of noise make of it."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view, sent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from fedarena.attacks.poisoning.helpers.gaussianize import gaussianize
from fedarena.attacks.poisoning.rank_map import RankMap
from fedarena.contracts.poisoning import RoundView
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.core.threat import Knowledge
from fedarena.federation import compose

D, STD = 25_450, 0.05
"""Parameters of the two-stage paper's Fashion-MNIST network; noise on a coordinate at ε = 2."""


def generator(seed: int = 0) -> torch.Generator:
    return Rng(seed).torch()


def wrapped(name: str = "ipm", knows: Knowledge = "own", std: float = STD, form: str = "quantiles") -> RankMap:
    on = knowledge(knows, std=std)
    card = registry.find("attack", "rank-map")
    made: RankMap = card.load()(card.options(form=form), on, make(name, on))
    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60), st.sampled_from(["quantiles", "sample"]))
def test_the_order_is_that_of_the_direction(values: list[float], form: str) -> None:
    v = torch.tensor([values])
    g = gaussianize(v, 2.0, form, generator())
    pairs = sorted(zip(v[0].tolist(), g[0].tolist(), strict=True))
    for (a, low), (b, high) in pairwise(pairs):
        assert a == b or low <= high


def test_the_values_are_the_quantiles_of_the_normal_law() -> None:
    v = torch.tensor([[30.0, -1.0, 7.0, 7.5]], dtype=torch.float64)
    expected = [3 * stats.norm.ppf((r - 0.5) / 4) for r in (4, 1, 2, 3)]
    torch.testing.assert_close(gaussianize(v, 3.0, "quantiles", generator()), torch.tensor([expected]).double())


def test_no_order_of_the_same_values_agrees_more() -> None:
    """The rearrangement inequality, by trying all 720."""
    v = torch.randn(1, 6, generator=generator(1))
    g = gaussianize(v, 1.0, "quantiles", generator())
    best = max(float(g[0][list(order)] @ v[0]) for order in permutations(range(6)))
    assert float(g[0] @ v[0]) == pytest.approx(best, rel=1e-6)


def test_ties_are_broken_at_random() -> None:
    """The first of two equal values is the larger one about half of the time, rows share one draw."""
    v = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    first = 0
    for seed in range(400):
        g = gaussianize(v, 1.0, "quantiles", generator(seed))
        assert torch.equal(g[0], g[1])
        first += bool(g[0, 0] > g[0, 1])
    assert stats.binomtest(first, 400).pvalue > 1e-3


@pytest.mark.parametrize("law", ["normal", "laplace", "student"])
def test_norm_and_distance_are_those_of_perfect_noise(law: str) -> None:
    draws = {"normal": stats.norm, "laplace": stats.laplace, "student": stats.t(2)}[law]
    v = torch.from_numpy(draws.rvs(size=(1, D), random_state=0))
    g = gaussianize(v, STD, "quantiles", generator())[0]
    assert float(g.square().sum()) == pytest.approx(STD**2 * D, rel=1e-3)
    found = stats.kstest(g.double().numpy() / STD, "norm")
    assert found.statistic == pytest.approx(1 / (2 * D), rel=1e-3)
    assert found.pvalue > 0.999999


@pytest.mark.parametrize("law", [stats.norm, stats.uniform(-1, 2), stats.laplace, stats.t(5)])
def test_the_cosine_with_the_direction_is_the_integral_over_its_quantiles(law: Any) -> None:
    """∫ Φ⁻¹(u) F⁻¹(u) du/σ_v: 1 for a normal direction, √(3/π) = 0.977 for a uniform one, less for heavy tails."""
    expected = quad(lambda u: stats.norm.ppf(u) * law.ppf(u), 1e-9, 1 - 1e-9, limit=200)[0] / law.std()
    assert 0.9 < expected < 1.0001
    v = torch.from_numpy(law.rvs(size=(1, D), random_state=1))
    g = gaussianize(v, STD, "quantiles", generator())
    assert float(torch.cosine_similarity(g, v)) == pytest.approx(expected, abs=0.02)


def test_a_sample_is_noise_that_differs_from_row_to_row() -> None:
    v = torch.randn(200, 2000, generator=generator(2))
    g = gaussianize(v, STD, "sample", generator(3))
    assert len({float(row.square().sum()) for row in g}) == 200
    rejected = sum(stats.kstest(row.double().numpy() / STD, "norm").pvalue < 0.05 for row in g)
    assert stats.binomtest(rejected, 200, 0.05).pvalue > 1e-3
    assert float(torch.cosine_similarity(g, v).min()) > 0.99


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-10, 10))
def test_only_the_order_of_the_direction_counts(scale: float, shift: float) -> None:
    v = torch.randn(1, 50, generator=generator(4), dtype=torch.float64)
    a, b = (gaussianize(x, 1.0, "quantiles", generator()) for x in (v, scale * v + shift))
    assert torch.equal(a, b)


def test_it_rearranges_what_the_attack_inside_sends() -> None:
    own = [[1.0, -2.0, 0.5, 4.0, 3.0, -1.0, 9.0, 8.0], [1.0, -2.0, 0.5, 4.0, 3.0, -1.0, 9.0, 8.0]]
    inner, outer = sent(make("ipm", knowledge("own")), round_view(own)), sent(wrapped(), round_view(own))
    assert torch.equal(inner.argsort(dim=1), outer.argsort(dim=1))
    torch.testing.assert_close(
        outer.sort(dim=1).values[0].double(), STD * torch.special.ndtri((torch.arange(8) + 0.5).double() / 8)
    )


def test_it_knows_what_the_attack_inside_is_given() -> None:
    """IPM sends the opposite of the mean of its own uploads, or of the honest ones if it sees them."""
    rising, other = [float(i) for i in range(8)], [3.0, 0.0, 1.0, 7.0, 6.0, 2.0, 4.0, 5.0]
    seen = round_view([other] * 2, [rising] * 3)
    blind = sent(wrapped(knows="own"), round_view([other] * 2))
    assert sent(wrapped(knows="omniscient"), seen)[0].argsort().tolist() == list(range(7, -1, -1))
    assert blind[0].argsort().tolist() == torch.tensor(other).argsort(descending=True).tolist()


def test_it_can_be_run_with_the_knowledge_of_the_attack_inside() -> None:
    assert compose.knowledge_levels(compose.parse_attack("rank-map+sign-flip")) == ("own",)
    assert compose.knowledge_levels(compose.parse_attack("rank-map+ipm")) == ("own", "omniscient")


def test_it_starts_only_where_noise_is_added_and_the_attack_inside_starts() -> None:
    assert wrapped().applies() is None
    reason = wrapped(std=0.0).applies()
    assert reason is not None
    assert "adds no noise" in reason.reason
    assert wrapped("optimized", "omniscient").applies() is None  # M = 3 > √7
    few = knowledge("omniscient", 20, 2, STD)
    card = registry.find("attack", "rank-map")
    assert card.load()(card.options(), few, make("optimized", few)).applies() is not None


def test_form_acts_and_the_rng_determines_everything() -> None:
    own = torch.randn(2, 8, generator=generator(5)).tolist()
    a, b, c = (sent(wrapped(form=form), round_view(own)) for form in ("quantiles", "sample", "sample"))
    assert not torch.equal(a, b)
    assert torch.equal(b, c)
    assert not torch.equal(b, sent(wrapped(form="sample"), round_view(own), seed=1))


def test_memory_of_the_attack_inside_is_kept() -> None:
    on = knowledge("omniscient", std=STD)
    card = registry.find("attack", "rank-map")
    outer, inner = card.load()(card.options(), on, make("mimic", on)), make("mimic", on)
    s: RoundView = round_view([[1.0] * 8] * 2, torch.randn(3, 8, generator=generator(6)).tolist())
    (_, kept), (_, plain) = outer.craft(s, {}, Rng(0)), inner.craft(s, {}, Rng(0).child("inner"))
    assert kept.keys() == plain.keys()
    assert kept
    assert all(torch.equal(kept[name], plain[name]) for name in kept)


def test_what_is_given_is_left_as_it_was() -> None:
    s = round_view(torch.randn(2, 8, generator=generator(7)).tolist())
    before = rows(s.own).clone()
    wrapped("sign-flip").craft(s, {}, Rng(0))
    assert torch.equal(rows(s.own), before)
