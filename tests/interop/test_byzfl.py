"""ByzFL's aggregators as rules: what ByzFL gives, in all places where a rule may stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.agreement import assert_train_alike, poisoned
from torch import Tensor

import fedarena as fa
from fedarena.cli import main
from fedarena.contracts.aggregator import Aggregator, Call
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import declare_operators
from fedarena.federation import compose
from fedarena.testing.pretended_cuda import pretend_cuda

declare_operators()
byzfl = pytest.importorskip("byzfl", reason="ByzFL is not installed")

X = torch.randn(12, 6, generator=torch.Generator().manual_seed(0))


def rule(name: str, **options: Any) -> Aggregator:
    made = compose.make_rule(compose.parse_defense(name, {k: str(v) for k, v in options.items()}).rest)
    assert made is not None
    return made


def call(f: int = 2, memory: Any = None, seed: int = 0) -> Call:
    return Call(weights=torch.ones(len(X)), f=f, memory=memory or {}, rng=Rng(seed))


@pytest.mark.parametrize(
    ("theirs", "f", "ours"),
    [
        ("byzfl:TrMean", 2, "trimmed-mean"),
        ("byzfl:Median", 2, "median"),
        ("byzfl:Krum", 3, "krum"),  # ByzFL counts n − f − 1 neighbours where the paper has n − f − 2
        ("nnm+byzfl:TrMean", 2, "nnm+trimmed-mean"),
        ("byzfl:NNM+krum", 2, "nnm+krum"),
        ("byzfl:ARC+byzfl:NNM+byzfl:Median", 2, "arc+nnm+median"),
    ],
)
def test_byzfl_s_rules_agree_with_ours(theirs: str, f: int, ours: str) -> None:
    np.testing.assert_allclose(fa.aggregate(theirs, X, f), fa.aggregate(ours, X, 2), atol=1e-6)


@pytest.mark.parametrize(("theirs", "f", "ours"), [("byzfl:TrMean", 2, "trimmed-mean"), ("byzfl:Krum", 3, "krum")])
def test_a_federation_trains_alike_with_either(theirs: str, f: int, ours: str) -> None:
    one, other = poisoned(theirs, assumed_corrupted=f), poisoned(ours)
    assert_train_alike(one, other)
    assert one["none"]["origins"] == {theirs: f"byzfl {installed()}"}
    weights = [of["sign-flip"]["metrics"].get("corrupted_weight") for of in (one, other)]
    assert weights == ([0, 0] if ours == "krum" else [None, None])


def installed() -> str:
    from importlib.metadata import version

    return version("byzfl")


def test_f_and_options_reach_byzfl() -> None:
    assert torch.equal(fa.aggregate("byzfl:TrMean", X, f=3), byzfl.TrMean(3)(X))
    wide = fa.aggregate("byzfl:Bucketing+byzfl:Median", X, f=2, seed=1, s=3)
    assert not torch.equal(wide, fa.aggregate("byzfl:Bucketing+byzfl:Median", X, f=2, seed=1, s=4))
    named = fa.aggregate("byzfl:Clipping+byzfl:CenteredClipping", X, 2, **{"byzfl:Clipping.c": 0.5})
    assert torch.equal(named, byzfl.CenteredClipping()(byzfl.Clipping(c=0.5)(X.clone())))


def test_uploads_are_not_changed() -> None:
    before = X.clone()
    fa.aggregate("byzfl:Clipping+byzfl:ARC+byzfl:Median", X, 2)
    assert torch.equal(before, X)


def test_draws_follow_the_seed_and_leave_the_global_generators_alone() -> None:
    before = torch.random.get_rng_state(), np.random.get_state()[1]  # type: ignore[index]
    results = [fa.aggregate("byzfl:Bucketing+byzfl:Krum", X, 2, seed=s, s=2) for s in (0, 0, 1, 2, 3)]
    assert torch.equal(results[0], results[1])
    assert any(not torch.equal(results[0], other) for other in results[2:])
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # type: ignore[index]


def test_a_rule_with_a_memory_gets_it_back() -> None:
    """Centered clipping begins a round at the result of the last one."""
    made, theirs = rule("byzfl:CenteredClipping", tau=0.5), byzfl.CenteredClipping(tau=0.5)
    first = made(X, call())
    assert torch.equal(first.vector, theirs(X))
    second = made(X, call(memory=first.memory))
    assert torch.equal(second.vector, theirs(X))
    assert not torch.equal(first.vector, second.vector)
    assert torch.equal(made(X, call()).vector, first.vector)


@pytest.mark.parametrize(
    ("name", "mean", "one"),
    [("byzfl:Krum", False, True), ("byzfl:Average", True, False), ("byzfl:TrMean", False, False)],
)
def test_it_knows_whether_a_rule_averages_or_picks(name: str, mean: bool, one: bool) -> None:
    made = rule(name)
    assert (made.averages(12, 2), made.picks(12, 2)) == (mean, one)
    used = made(X, call()).used
    assert (used is not None) == one
    if used is not None:
        assert torch.equal(used @ X, made(X, call()).vector)


@pytest.mark.parametrize("name", ["byzfl:Krum", "byzfl:NNM+byzfl:CenteredClipping", "byzfl:Bucketing+byzfl:SMEA"])
def test_a_result_stays_on_the_device(name: str) -> None:
    made = rule(name)
    with pretend_cuda():
        there = made(X.to("cuda"), replace(call(), weights=call().weights.to("cuda"))).vector
        assert there.device.type == "cuda"
        assert torch.equal(there.cpu(), made(X, call()).vector)


def test_every_aggregator_of_byzfl_is_a_rule() -> None:
    from byzfl.aggregators import aggregators, preaggregators

    def classes(module: Any) -> list[str]:
        return [name for name, c in vars(module).items() if isinstance(c, type) and c.__module__ == module.__name__]

    assert len(classes(aggregators)) > 10
    for name in classes(aggregators):
        assert_finite(fa.aggregate(f"byzfl:{name}", X, 2))
    for name in classes(preaggregators):
        assert_finite(fa.aggregate(f"byzfl:{name}+median", X, 2))


def assert_finite(vector: Tensor) -> None:
    assert vector.shape == (6,)
    assert torch.isfinite(vector).all()


@pytest.mark.parametrize(
    ("name", "f", "options", "said"),
    [
        ("byzfl:TrMeen", 2, {}, "has no aggregator 'TrMeen'; did you mean TrMean"),
        ("byzfl:TrMean", 6, {}, "aggregator byzfl:TrMean: 12 uploads a round of which 6 are assumed"),
        ("byzfl:NNM", 2, {}, "wraps a rule: add one"),
        ("byzfl:Krum+median", 2, {}, "takes nothing after it"),
        ("byzfl:NNM+foolsgold", 2, {}, "the rule inside remembers what each client sent"),
        ("byzfl:CenteredClipping", 2, {"L": -1}, "L must be a non-negative integer"),
        ("byzfl:CenteredClipping", 2, {"m": 1}, "no part of .* has an option 'm'; it knows: L, tau"),
        ("byzzfl:Krum", 2, {}, "unknown aggregator 'byzzfl:Krum'"),
    ],
)
def test_bad_input_is_told_in_one_line(name: str, f: int, options: dict[str, Any], said: str) -> None:
    with pytest.raises(fa.UserError, match=said) as caught:
        fa.aggregate(name, X, f, **options)
    assert "\n" not in str(caught.value)


def test_show_prints_a_rule_s_options_and_release(capsys: Any) -> None:
    assert main(["show", "byzfl:CenteredClipping"]) == 0
    shown = capsys.readouterr().out
    assert "byzfl:CenteredClipping.tau" in shown
    assert f"byzfl {installed()} (a plug-in)" in shown


def test_a_library_s_classes_are_of_one_kind() -> None:
    known = registry.registries()
    assert [kind for kind in known if "byzfl:Krum" in known[kind]] == ["aggregator"]
    assert [kind for kind in known if "nosuch:Krum" in known[kind]] == []


def test_a_suite_s_plan_depends_on_the_libraries_that_it_names() -> None:
    assert registry.releases_in('defenses = ["fedavg", "nnm+byzfl:TrMean"]') == [("byzfl", installed())]
    assert registry.releases_in('defenses = ["fedavg", "krum"]') == []


def test_names_of_libraries_are_in_no_list() -> None:
    assert not any(":" in name for known in registry.registries().values() for name in known.names())
