"""Positive scalings of hidden units: the function stays, and there is one canonical form."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers.scaling import (
    MEAN,
    TOLERANCE,
    apart,
    assert_masks_keep_outputs,
    drawn,
    net,
    networks,
    outputs,
    parameters,
    randomised,
    rows,
    times,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedarena.models.scaling.positive_scaling import canonical, plan, scales


@settings(max_examples=150, deadline=None)
@given(network=networks(), seed=st.integers(0, 1000))
def test_any_network_keeps_its_function_and_its_canonical_form(network, seed):
    model, shape = network
    assert_masks_keep_outputs(model, shape, seed)


@settings(max_examples=50, deadline=None)
@given(network=networks(), seed=st.integers(0, 1000))
def test_every_factor_acts(network, seed):
    """Doubling the factor of one channel halves or doubles some entries of R and leaves the others."""
    found = plan(*network)
    r = drawn(found.sizes, seed)
    before = found.factors(r)
    for group, size in enumerate(found.sizes):
        for channel in range(size):
            changed = [t.clone() for t in r]
            changed[group][channel] *= 2
            ratios = {q for n, R in found.factors(changed).items() for q in (R / before[n]).flatten().tolist()}
            assert 2 in ratios
            assert ratios <= {0.5, 1, 2}


def test_hidden_activations_carry_the_factors():
    """Eq. 10: ŷ^(l) = r^(l) ∘ y^(l)."""
    model = randomised(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), seed=1)
    found, params = plan(model, (5,)), parameters(model)
    r = drawn(found.sizes)
    masked = times(found.factors(r), params)
    for depth, factor in ((2, r[0]), (4, r[1])):
        part = model[:depth]
        names = [name for name, _ in part.named_parameters()]
        plain, hat = (outputs(part, {n: p[n] for n in names}, (5,), n=99) for p in (params, masked))
        assert int((plain > 0).any(0).sum()) >= 2
        torch.testing.assert_close(hat, factor * plain, rtol=TOLERANCE, atol=0)


def test_feature_maps_carry_the_factors():
    """Eq. 16: the factor of a channel at all of its pixels."""
    model = randomised(
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3, 2), nn.Flatten(), nn.Linear(4, 2))
    )
    found, params = plan(model, (2, 5, 5)), parameters(model)
    r = drawn(found.sizes)
    masked = times(found.factors(r), params)
    names = [name for name, _ in model[:3].named_parameters()]
    plain, hat = (outputs(model[:3], {n: p[n] for n in names}, (2, 5, 5)) for p in (params, masked))
    torch.testing.assert_close(hat, r[1].reshape(4, 1, 1) * plain, rtol=TOLERANCE, atol=0)


def test_canonical_rows_have_length_one():
    model = net(lambda m, x: m.out(F.relu(m.fc((F.relu(m.a(x)) + m.b(x)).mean(MEAN)))))
    found, params = plan(model, (2, 4, 4)), parameters(model)
    form = canonical(found, params)
    torch.testing.assert_close(rows(form, "a"), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rows(form, "fc"), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(form["b.bias"], params["b.bias"] / rows(params, "a"))  # tied to `a`, which counts
    torch.testing.assert_close(scales(found, params)[0], rows(params, "a"))


def test_a_dead_unit_keeps_its_factor():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    found = plan(randomised(model), (3,))
    params = parameters(model)
    params["0.weight"][1], params["0.bias"][1] = 0, 0
    params["2.weight"][2], params["2.bias"][2] = torch.tensor([0.0, 5.0, 0.0, 0.0]), 0  # reads nothing but a dead unit
    found_scales = scales(found, params)
    assert found_scales[0][1] == 1
    assert found_scales[1][2] == 1
    masked = times(found.factors(drawn(found.sizes)), params)
    forms = [canonical(found, p) for p in (params, masked)]
    plain = outputs(model, params, (3,))
    for form in forms:
        assert apart({"out": outputs(model, form, (3,))}, {"out": plain}) < TOLERANCE
        form["2.weight"][:, 1], form["4.weight"][:, 2] = 0, 0  # from dead units
    assert apart(*forms) < TOLERANCE


def test_a_channel_dead_in_one_layer_takes_its_length_from_the_next():
    found_model = net(lambda m, x: m.out(F.relu(m.fc((F.relu(m.a(x)) + m.b(x)).mean(MEAN)))))
    found, params = plan(found_model, (2, 4, 4)), parameters(found_model)
    params["a.weight"][1], params["a.bias"][1] = 0, 0
    assert scales(found, params)[0][1] == pytest.approx(float(rows(params, "b")[1]))
    masked = times(found.factors(drawn(found.sizes)), params)
    assert apart(canonical(found, masked), canonical(found, params)) < TOLERANCE


def test_single_precision():
    model = net(lambda m, x: m.out(F.relu(m.fc(F.relu(m.a(x)).mean(MEAN)))), "b").float()
    found, params = plan(model, (2, 4, 4)), parameters(model)
    masked = times(found.factors([0.1 + t.clamp(max=10).float() for t in drawn(found.sizes)]), params)
    form = canonical(found, masked)
    assert {p.dtype for p in form.values()} == {torch.float32}
    assert apart(form, canonical(found, params)) < 1e-5


def test_a_model_without_hidden_units_is_its_own_canonical_form():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).double()
    found, params = plan(model, (2, 2)), parameters(model)
    assert found.factors([])["1.weight"].tolist() == torch.ones(2, 4).tolist()
    assert apart(canonical(found, params), params) == 0
