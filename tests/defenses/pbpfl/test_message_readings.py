"""What one masked message of PBPFL shows: β under noise, and with one mask for three uploads their differences."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.pbpfl import make, mean_gradient, mlp, one_hot, play, relative, views

from fedarena.contracts.defense import Cohort
from fedarena.contracts.transcript import weights
from fedarena.core.rng import Rng
from fedarena.federation.secure_aggregation import sum_up


def masked_round(defense, spread, dtype=torch.float64):
    """A round whose uploads were summed: what the federation writes down."""
    assert defense.secure is not None
    (r,), _ = play(defense, 1, dtype=dtype)
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
    assert list(readings) == ["upload", "under its mask", "shared mask", "cancelled"]
    (o,) = readings["cancelled"].observations
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    assert o.clients == (1,)
    assert relative(o.estimate, plain) <= 1e-6
    (whole,) = readings["upload"].observations
    assert whole.clients == (0, 1, 2)
    assert relative(whole.estimate, mean_gradient(defense, r.params, r.batches)) <= 1e-6


@pytest.mark.parametrize(("precision", "least", "most"), [("float64", 0, 1e-6), ("float32", 1e-6, 1e-2)])
def test_what_cancels_is_as_precise_as_the_messages(precision, least, most):
    """Of a model in single precision: γ rounded to it would leave some 1e-8 of a large mask."""
    defense = secured("cancelling", precision=precision)
    r = masked_round(defense, 10.0, torch.float32)
    (o,) = next(reading for reading in views(defense, [r], "server") if reading.name == "cancelled").observations
    params = {name: p.double() for name, p in r.params.items()}
    x, y = r.batches[1].images()
    plain = torch.func.grad(defense.task.loss)(params, x.double(), y)
    assert least <= relative({n: t.double() for n, t in o.estimate.items()}, plain) <= most


@pytest.mark.parametrize("repeat", [3, 537])  # 537: one mask for every single entry
@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_a_shared_mask_leaves_differences_in_clear(party, repeat):
    defense = secured(repeat=repeat)
    r = masked_round(defense, 10.0)
    readings = {reading.name: reading for reading in views(defense, [r], party)}
    assert list(readings) == ["upload", "under its mask", "shared mask"]
    (o,) = readings["shared mask"].observations
    assert o.clients == (1,)
    assert relative(o.simulate(*one_hot(r.batches[1])), o.target) <= 1e-6
    plain = torch.func.grad(defense.task.loss)(r.params, *r.batches[1].images())
    error = relative({"4.bias": o.output_gradient["4.bias"]}, {"4.bias": plain["4.bias"]})
    assert error <= (1e-6 if party == "server" else 0.5)  # an eavesdropper has but one broadcast here
    assert relative(o.simulate(*one_hot(r.batches[0])), o.target) > 0.01


@pytest.mark.parametrize("gamma", ["uniform", "cancelling"])
def test_independent_masks_leave_the_sum_and_messages_under_noise(gamma):
    defense = secured(gamma, repeat=1)
    r = masked_round(defense, 10.0)
    reading, message = views(defense, [r], "server")
    (o,) = reading.observations
    assert message.name == "under its mask"
    assert (reading.name, o.clients) == ("upload", (0, 1, 2))
    assert relative(o.estimate, mean_gradient(defense, r.params, r.batches)) <= 1e-6
    batches = [one_hot(b) for b in r.batches]
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    assert relative(o.simulate(x, y), o.target) <= 1e-6


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_a_message_is_beta_of_one_client_and_noise_of_the_told_size(party):
    defense = secured(repeat=1)
    r = masked_round(defense, 10.0)
    (o,) = next(reading for reading in views(defense, [r], party) if reading.name == "under its mask").observations
    assert o.clients == (1,)
    own = {n.removeprefix("beta."): t[1] for n, t in r.ups.items() if n.startswith("beta.")}
    assert not bool(own["4.weight"].any())  # the output layer shows the mask alone
    assert set(o.target) == set(own) - {"4.weight", "4.bias"}
    assert relative(o.simulate(*one_hot(r.batches[1])), {n: own[n] for n in o.target}) <= 1e-12
    noise = torch.cat([(t - own[n]).flatten() for n, t in o.target.items()])
    assert o.noise_std == pytest.approx(10.0 * 40 / 12)  # spread · N/N_c
    assert float(noise.std()) == pytest.approx(o.noise_std, rel=0.15)


def test_integers_modulo_a_power_of_two_show_nothing_of_a_message():
    defense = make(mlp(), sizes=(8, 12, 20), name="pbpfl+pairwise-masks", bits=64, bound=1e6)
    (r,), _ = play(defense, 1)
    cohort = Cohort(r.participants, weights(defense.task.sizes, r.participants).double())
    summed = sum_up(defense.secure, r.ups, cohort, Rng(3))
    (reading,) = views(defense, [replace(r, wire=summed.wire, mean=summed.mean, averaged=summed.clients)], "server")
    assert reading.name == "upload"
