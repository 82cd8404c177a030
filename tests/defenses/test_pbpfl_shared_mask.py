"""One mask for three uploads of PBPFL, and what it leaves in clear."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pbpfl_play import make, mean_gradient, mlp, one_hot, play, relative, views

from fedarena.defense import Cohort
from fedarena.rng import Rng
from fedarena.summation import sum_up
from fedarena.transcript import weights


def masked_round(defense, spread):
    """A round whose uploads were summed: what the federation writes down."""
    assert defense.secure is not None
    (r,), _ = play(defense, 1)
    cohort = Cohort(r.participants, weights(defense.task.sizes, r.participants).double())
    summed = sum_up(defense.secure, r.ups, cohort, Rng(3))
    assert float((summed.wire - summed.wire.mean(0)).abs().mean()) > spread / 4
    return replace(r, wire=summed.wire, mean=summed.mean, averaged=summed.clients)


def secured(gamma="uniform", repeat=3, model=None, **options):
    name = "pbpfl+zero-sum"
    return make(model or mlp(), sizes=(8, 12, 20), name=name, gamma=gamma, repeat=repeat, spread=10.0, **options)


def test_a_shared_mask_that_gamma_cancels_hides_nothing_from_the_server():
    defense = secured("cancelling")
    r = masked_round(defense, 10.0)
    readings = {reading.name: reading for reading in views(defense, [r], "server")}
    assert list(readings) == ["upload", "shared mask", "cancelled"]
    (o,) = readings["cancelled"].observations
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    assert o.clients == (1,)
    assert relative(o.estimate, plain) <= 1e-6
    (whole,) = readings["upload"].observations
    assert whole.clients == (0, 1, 2)
    assert relative(whole.estimate, mean_gradient(defense, r.params, r.batches)) <= 1e-6


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_a_shared_mask_leaves_differences_in_clear(party):
    defense = secured()
    r = masked_round(defense, 10.0)
    readings = {reading.name: reading for reading in views(defense, [r], party)}
    assert list(readings) == ["upload", "shared mask"]
    (o,) = readings["shared mask"].observations
    assert o.clients == (1,)
    assert relative(o.simulate(*one_hot(r.batches[1])), o.target) <= 1e-6
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    error = relative({"4.bias": o.output_gradient["4.bias"]}, {"4.bias": plain["4.bias"]})
    assert error <= (1e-6 if party == "server" else 0.5)  # an eavesdropper has but one broadcast here
    assert relative(o.simulate(*one_hot(r.batches[0])), o.target) > 0.01


@pytest.mark.parametrize("gamma", ["uniform", "cancelling"])
def test_independent_masks_leave_the_sum_only(gamma):
    defense = secured(gamma, repeat=1)
    r = masked_round(defense, 10.0)
    (reading,) = views(defense, [r], "server")
    (o,) = reading.observations
    assert (reading.name, o.clients) == ("upload", (0, 1, 2))
    assert relative(o.estimate, mean_gradient(defense, r.params, r.batches)) <= 1e-6
    batches = [one_hot(b) for b in r.batches]
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    assert relative(o.simulate(x, y), o.target) <= 1e-6
