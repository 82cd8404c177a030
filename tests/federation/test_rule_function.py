"""Aggregation rules as functions: the rule's own result, in the kind of what was given."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.plugin_files import forgotten

import fedarena as fa
from fedarena.contracts.aggregator import Aggregate, Aggregator, Call, Wrapper
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.federation import compose
from fedarena.federation.rule_function import aggregate

X = torch.randn(12, 6, generator=torch.Generator().manual_seed(0))
DRAWN = "bucketing+median"


def by_the_contract(name: str, x: torch.Tensor, f: int, seed: int = 0) -> torch.Tensor:
    rule = compose.make_rule(compose.parse_defense(name).rest)
    assert rule is not None
    return rule(x, Call(weights=torch.ones(len(x)), f=f, memory={}, rng=Rng(seed))).vector


@pytest.mark.parametrize("name", ["krum", "nnm+krum", "trimmed-mean", "geometric-median", DRAWN])
def test_it_is_what_the_rule_gives(name: str) -> None:
    assert torch.equal(aggregate(name, X, 2), by_the_contract(name, X, 2))


def test_arrays_lists_and_state_dicts_give_their_own_kind() -> None:
    wanted = by_the_contract("nnm+krum", X, 2)
    array = aggregate("nnm+krum", X.numpy(), 2)
    assert isinstance(array, np.ndarray)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, wanted.numpy())
    assert torch.equal(aggregate("nnm+krum", list(X), 2), wanted)
    layers = [{"w": row[:4].reshape(2, 2), "b": row[4:]} for row in X]
    made = aggregate("nnm+krum", layers, 2)
    assert torch.equal(made["w"], wanted[:4].reshape(2, 2))
    assert torch.equal(made["b"], wanted[4:])
    numbers = aggregate("nnm+krum", [{k: t.double().numpy() for k, t in one.items()} for one in layers], 2)
    assert numbers["w"].dtype == np.float64
    np.testing.assert_allclose(numbers["b"], wanted[4:].numpy(), rtol=1e-6)


@pytest.mark.parametrize("turned", [lambda x: x[::-1], lambda x: x.astype(">f8"), lambda x: x[:, ::-1]])
def test_arrays_of_any_layout_are_taken(turned: Any) -> None:
    odd = turned(X.numpy().astype(np.float64))
    plain = np.ascontiguousarray(odd).astype(np.float64)
    np.testing.assert_array_equal(aggregate("median", odd, 1), aggregate("median", plain, 1))
    np.testing.assert_array_equal(aggregate("median", list(odd), 1), aggregate("median", plain, 1))


@pytest.mark.parametrize("x", [X.double() * 1e200, X * 1e18])
def test_values_whose_squares_overflow_are_refused(x: torch.Tensor) -> None:
    with pytest.raises(UserError, match=r"uploads: values of .*, allowed: up to 1e\+\d+, whose squares"):
        aggregate("krum", x, 1)


class Own(Aggregator):
    returned: Any = None

    def __call__(self, x: torch.Tensor, call: Call) -> Aggregate:
        return type(self).returned(x)  # type: ignore[no-any-return]


RETURNED: dict[str, tuple[Any, str]] = {
    "nothing": (lambda x: None, "None"),
    "an-array": (lambda x: Aggregate(x.mean(0).numpy(), None), "a ndarray"),
    "a-tensor": (lambda x: x.mean(0), r"a tensor \[6\]"),
    "a-part": (lambda x: Aggregate(x.mean(0)[:2], None), r"a tensor \[2\]"),
    "a-row": (lambda x: Aggregate(x[:1], None), r"a tensor \[1, 6\]"),
    "complex": (lambda x: Aggregate(x.mean(0) * 1j, None), r"a complex tensor \[6\]"),
    "sparse": (lambda x: Aggregate(x.mean(0).to_sparse(), None), r"a sparse tensor \[6\]"),
}


@pytest.mark.parametrize("uploads", [X, X.numpy(), [{"w": x.view(2, 3)} for x in X]], ids=["tensor", "array", "dict"])
@pytest.mark.parametrize("kind", RETURNED)
def test_what_an_own_rule_returns_is_checked(kind: str, uploads: Any) -> None:
    returned, told = RETURNED[kind]
    said = (
        rf"^rule Own.__call__ \(test_rule_function.py:\d+\) returned {told}, allowed: an Aggregate with a vector \[6\]$"
    )
    with forgotten():
        rule = type("Own", (Own,), {"returned": staticmethod(returned)})
        with pytest.raises(UserError, match=said):
            fa.aggregate(rule, uploads, 2)
        with pytest.raises(UserError, match=said):
            fa.aggregate("nnm+own", uploads, 2)


@pytest.mark.parametrize("returned", [lambda x: x.mean(0).requires_grad_(), lambda x: torch.nn.Parameter(x.mean(0))])
def test_what_an_own_rule_returns_has_no_history(returned: Any) -> None:
    with forgotten():
        rule = type("Own", (Own,), {"returned": staticmethod(lambda x: Aggregate(returned(x), None))})
        made = fa.aggregate(rule, X, 2)
        assert (type(made), made.requires_grad) == (torch.Tensor, False)
        np.testing.assert_array_equal(fa.aggregate(rule, X.numpy(), 2), X.mean(0))


@pytest.mark.parametrize("name", registry.registries()["aggregator"].names())
def test_half_precision_comes_back_as_it_came(name: str) -> None:
    """numpy, which sorts for some rules, has no bfloat16."""
    rule = registry.find("aggregator", name).load()
    whole = f"{name}+mean" if issubclass(rule, Wrapper) else name
    given = X.bfloat16()
    made = aggregate(whole, given, 1, reference=given[0])
    assert made.dtype == torch.bfloat16
    assert torch.equal(made, aggregate(whole, given.float(), 1, reference=given[0].float()).bfloat16())


def test_negated_tensors_tables_and_rules_that_work_in_place_are_taken() -> None:
    negated = torch._neg_view(X)
    assert torch.equal(aggregate("median", negated, 2), aggregate("median", -X, 2))
    table = aggregate("median", pd.DataFrame(X.numpy()), 2)
    assert np.array_equal(table, aggregate("median", X.numpy(), 2))
    uploads = X.clone()
    fa.aggregate(Doubling, uploads, 2)
    assert torch.equal(uploads, X)


class Doubling(Aggregator):
    """It doubles its uploads in place."""

    def __call__(self, x: torch.Tensor, call: Call) -> Aggregate:
        return Aggregate(x.mul_(2).mean(0), used=None)


def test_an_unknown_option_is_told_of_the_rule_alone() -> None:
    with pytest.raises(UserError, match=r"no part of nnm\+krum has an option 'foo'"):
        aggregate("nnm+krum", X, 1, foo=3)


@pytest.mark.filterwarnings("error")
def test_read_only_arrays_and_tensors_with_a_history_are_taken_quietly() -> None:
    fixed = X.numpy().copy()
    fixed.setflags(write=False)
    wanted = aggregate("median", X, 1)
    np.testing.assert_array_equal(aggregate("median", fixed, 1), wanted.numpy())
    assert torch.equal(aggregate("median", [row.clone().requires_grad_() for row in X], 1), wanted)


def test_integers_are_averaged_and_come_back_as_integers() -> None:
    made = aggregate("mean", [{"steps": torch.tensor(3)}, {"steps": torch.tensor(5)}], 0)
    assert made == {"steps": torch.tensor(4)}


def test_arrays_of_integers_are_computed_as_floats() -> None:
    whole = np.array([[1, 0], [2, 5]])
    np.testing.assert_array_equal(aggregate("mean", whole, 0), [1.5, 2.5])
    np.testing.assert_array_equal(aggregate("mean", whole.tolist(), 0), [1.5, 2.5])
    assert aggregate("mean", [{"steps": np.array([3])}, {"steps": np.array([6])}], 0)["steps"].dtype == np.int64


def test_a_class_is_a_rule_and_other_objects_are_refused() -> None:
    class Middle(Aggregator):
        def __call__(self, x: torch.Tensor, call: Call) -> Aggregate:
            return Aggregate(x.median(0).values, None)

    assert torch.equal(fa.aggregate(Middle, X, 2), X.median(0).values)
    for other in (3, None, Middle(None), lambda x: x):
        with pytest.raises(UserError, match=r"option 'rule' is .*, allowed: a name, or a subclass of Aggregator"):
            fa.aggregate(other, X, 2)  # type: ignore[arg-type]


def test_the_help_shows_arguments_defaults_and_an_example() -> None:
    for function, words in ((fa.aggregate, "reference seed"), (fa.invert, "images labels samples lr seed")):
        assert {*words.split()} <= {*inspect.signature(function).parameters}
        assert f"fa.{function.__name__}(" in str(function.__doc__)


def test_options_and_seed_act() -> None:
    assert not torch.equal(aggregate("multi-krum", X, 2, m=3), aggregate("multi-krum", X, 2, m=5))
    named = aggregate("nnm+multi-krum", X, 2, **{"multi-krum.m": 3})
    assert not torch.equal(named, aggregate("nnm+multi-krum", X, 2, **{"multi-krum.m": 5}))
    seeds = [aggregate(DRAWN, X, 2, seed=s) for s in range(4)]
    assert any(not torch.equal(seeds[0], other) for other in seeds[1:])


def test_a_reference_is_what_the_server_s_data_give() -> None:
    along, against = X.mean(0), -X.mean(0)
    assert not torch.equal(aggregate("fltrust", X, 2, reference=along), aggregate("fltrust", X, 2, reference=against))
    with pytest.raises(UserError, match="give reference"):
        aggregate("fltrust", X, 2)


@pytest.mark.parametrize(
    ("rule", "uploads", "f", "said"),
    [
        ("dp-sgd", X, 2, "allowed: an aggregation rule"),
        ("dp-sgd+krum", X, 2, "allowed: an aggregation rule"),
        ("nnm", X, 2, "wraps a rule"),
        ("crum", X, 2, "unknown aggregator 'crum'; did you mean krum"),
        ("nnm+crum", X, 2, "unknown aggregator 'crum'"),
        ("krum", X, 12, "f is 12, allowed: an integer from 0 to 11"),
        ("krum", X, 5, "allowed: 2f \\+ 3 uploads or more$"),
        ("mean", np.ma.masked_greater(X.numpy(), 0.5), 2, "values that are masked"),
        ("krum", X[0], 0, r"shape \[6\], allowed: \[n, d\]"),
        ("krum", [], 0, "uploads are empty"),
        ("krum", torch.full((5, 2), float("nan")), 1, "not finite"),
        ("median", X + 1j, 2, "complex numbers, allowed: real ones"),
        ("median", X > 0, 2, "truth values, allowed: numbers"),
        ("median", X.to_sparse(), 2, r"a sparse tensor \[12, 6\], allowed: a dense tensor of numbers"),
        ("median", torch.empty(3, 2, device="meta"), 0, r"a meta tensor \[3, 2\], allowed: a dense tensor"),
        ("median", X.to(torch.float8_e5m2), 2, "uploads: float8_e5m2 values, allowed: floats of 16 bits or more"),
        ("median", pd.DataFrame([["a", "b"], ["c", "d"]]), 0, "uploads: no numbers of one shape"),
        ("median", pd.DataFrame([[1.0, None], [2.0, 3.0]]).convert_dtypes(), 0, "uploads: values that are not finite"),
        ("median", "abc", 0, "uploads are a str"),
        ("median", None, 0, "uploads are None"),
        ("median", ["a", "b"], 0, r"uploads\[0\]: no numbers"),
        ("median", [[1.0, 2.0], [3.0]], 0, r"uploads\[1\] has other names or shapes"),
        ("median", [{}, {}], 0, "has no numbers"),
        ("median", [[np.ones((2, 2)), np.ones(2)], [np.ones((2, 2))]], 0, r"uploads\[1\] has other names or shapes"),
        *(("median", X, f, f"f is {f!r}, allowed: an integer from 0 to 11") for f in ("2", None, 1.5, True)),
        ("mean", [{"a": X[0]}, {"b": X[1]}], 0, r"uploads\[1\] has other names or shapes"),
    ],
)
def test_bad_input_is_told_in_one_line(rule: str, uploads: Any, f: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        aggregate(rule, uploads, f)


@pytest.mark.parametrize("name", registry.registries()["aggregator"].names())
def test_every_rule_can_be_called(name: str) -> None:
    wraps = issubclass(registry.find("aggregator", name).load(), Wrapper)
    made = aggregate(f"{name}+median" if wraps else name, X, 2, reference=X.mean(0))
    assert made.shape == (6,)
