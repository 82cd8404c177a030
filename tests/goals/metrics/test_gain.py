"""Known answers and properties of what a model gains over not federating."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedarena.goals.metrics.gain import gain, gained, unfederated, worthwhile


def model(accuracy: float, reference: float, local: float | None = None, server: float | None = None) -> dict[str, Any]:
    alone = {name: v for name, v in (("local_only", local), ("server_only", server)) if v is not None}
    return {"chance": 0.0, "clean_accuracy": accuracy, "fedavg_accuracy": reference, "references": alone}


def test_what_can_be_had_without_a_federation_is_the_best_of_three() -> None:
    assert unfederated({"chance": 0.1, "references": {"local_only": 0.6}}) == 0.6
    assert unfederated({"chance": 0.1, "references": {"local_only": 0.6, "server_only": 0.7}}) == 0.7
    assert unfederated({"chance": 0.5, "references": {"local_only": 0.4, "server_only": 0.3}}) == 0.5
    assert unfederated({"chance": 0.5}) is None


@pytest.mark.parametrize(("accuracy", "expected"), [(0.9, 1.0), (0.7, 0.0), (0.75, 0.25), (0.1, 0.0), (0.95, 1.0)])
def test_utility_is_the_share_of_fedavgs_gain(accuracy: float, expected: float) -> None:
    assert gain(model(accuracy, 0.9, 0.7)) == pytest.approx(expected)


def test_where_fedavg_gains_nothing_there_is_no_utility() -> None:
    assert gain(model(0.9, 0.74, 0.7)) is None
    assert gain(model(0.9, 0.7, 0.7)) is None


def test_without_references_utility_is_what_old_boards_had() -> None:
    assert gain(model(0.45, 0.9)) == 0.5
    assert gain(model(0.45, 0.0)) == 0.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_whatever_is_no_better_than_not_federating_has_no_utility(a: float, reference: float, floor: float) -> None:
    kept = gain(model(a, reference, floor))
    if kept is None:
        assert not gained(reference, floor)
    else:
        assert 0 <= kept <= 1
        assert a > floor or kept == 0


def test_a_server_that_reaches_as_much_alone_leaves_no_utility() -> None:
    """The federation is of use, but not to this defense; that is no reason to have no score."""
    assert gain(model(0.9, 0.9, 0.6, server=0.88)) == 0.0
    assert worthwhile(model(0.9, 0.9, 0.6, server=0.88))
    assert not worthwhile(model(0.9, 0.9, 0.88))
