"""PBPFL: how many digits the masks cost, what is said of it, and clients in double precision."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from helpers.pbpfl import MODELS, SIZES, drawn, make, mean_gradient, play, relative, start

from fedarena.contracts.defense import Broadcast, Cohort
from fedarena.contracts.transcript import weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.pbpfl.wire import R_A, UPLOADS
from fedarena.federation.secure_aggregation import sum_up


def test_lost_digits_are_counted_and_said():
    def lost(**options):
        defense = make(**options)
        (r,), after = play(defense, 1, dtype=torch.float32)
        exact = mean_gradient(
            defense, {n: p.double() for n, p in r.params.items()}, [type(b)(b.x.double(), b.y) for b in r.batches]
        )
        moved = {n: (r.params[n].double() - after.params[n].double()) / 0.1 for n in exact}
        return defense, after.verdict, relative(moved, exact)

    calm, few, _ = lost()
    wild, many, error = lost(gamma_scale=1e5)
    assert float(many["digits lost"].max()) > float(few["digits lost"].max()) + 3
    assert calm.warnings([few]) == ()
    (said,) = wild.warnings([few, many])
    assert "more than 5 in 1 of 2 rounds (first: 1)" in said
    assert error > 0.01  # and rightly so: nothing much is left of a float32's 7.2 digits
    assert make(digits=6.0).warnings([{**few, "digits lost": torch.tensor([5.9])}]) == ()
    with pytest.raises(UserError, match=r"option 'digits' is 6\.9, allowed: number in "):  # of what may be noise alone
        make(digits=6.9)
    assert calm.warnings([{**few, "digits lost": torch.tensor([math.nan])}])


@pytest.mark.parametrize(
    ("name", "options"),
    [("zero-sum", {"spread": 1e5}), ("pairwise-masks", {"bits": 32, "bound": 1e7})],
)
def test_what_a_secure_sum_rounds_away_is_said(name, options):
    """The predicted error, 2^-24 · 10^lost, is that of the recovered mean, within a factor of 10."""
    defense = make(name=f"pbpfl+{name}", sizes=(8, 12, 20), **options)
    state, cohort = start(defense, dtype=torch.float32), Cohort((0, 1, 2), weights((8, 12, 20), (0, 1, 2)))
    sent = defense.broadcast(state, Rng(0))
    batches = [drawn(defense, c, torch.float32) for c in range(3)]
    ups, _ = defense.clients(sent.down, batches, [{}] * 3, [{}] * 3)
    received, together = sum_up(defense.secure, ups, cohort, Rng(1)).received()
    after = defense.aggregate(state, sent, received, together, Rng(2))
    doubles = {n: p.double() for n, p in state.params.items()}
    exact = mean_gradient(defense, doubles, [type(b)(b.x.double(), b.y) for b in batches])
    moved = {n: (state.params[n].double() - after.params[n].double()) / 0.1 for n in exact}
    worst = max(relative({n: moved[n]}, {n: exact[n]}) for n in exact)
    predicted = 2.0**-24 * 10 ** float(after.verdict["digits lost"].max())
    assert worst > 0.01
    assert predicted / 10 < worst < 10 * predicted
    assert defense.warnings([after.verdict])


@pytest.mark.parametrize(
    ("name", "options", "at_most"),
    [
        ("zero-sum", {}, 1e-7),
        ("zero-sum", {"spread": 1e12}, None),
        ("pairwise-masks", {"bound": 1e3}, 1e-7),
        ("pairwise-masks", {"bits": 32, "bound": 1e7}, None),
    ],
)
def test_a_secure_sum_of_doubles_is_one_of_doubles(name, options, at_most):
    """Where clients calculate in double precision; what the sum rounds away is foreseen within a factor of 10."""
    defense = make(name=f"pbpfl+{name}", sizes=(8, 12, 20), precision="float64", **options)
    state, cohort = start(defense, dtype=torch.float32), Cohort((0, 1, 2), weights((8, 12, 20), (0, 1, 2)))
    sent = defense.broadcast(state, Rng(0))
    batches = [drawn(defense, c, torch.float32) for c in range(3)]
    ups, _ = defense.clients(sent.down, batches, [{}] * 3, [{}] * 3)
    received, _ = sum_up(defense.secure, ups, cohort, Rng(1)).received()
    assert {t.dtype for t in received.values()} == {torch.float64}
    rounding = defense.secure.rounding(3, torch.float64)
    found, lost = defense.wire.recover(sent, received, rounding)
    doubles = {n: p.double() for n, p in state.params.items()}
    exact = mean_gradient(defense, doubles, [type(b)(b.x.double(), b.y) for b in batches])
    worst = max(relative({n: found[n][0]}, {n: exact[n]}) for n in exact)
    predicted = 2.0**-24 * 10 ** float(lost.max())
    if at_most is not None:
        assert worst < at_most
    else:
        assert worst > 1e-5
        assert predicted / 10 < worst < 10 * predicted


def test_nothing_left_is_all_lost():
    defense = make()
    sent = defense.broadcast(start(defense), Rng(0))
    ups = {k + n: torch.full((1, *sent.down[n].shape), math.inf) for k in UPLOADS for n in sent.down if n != R_A}
    _, lost = defense.wire.recover(sent, ups)
    assert lost.tolist() == [math.inf]
    assert "lost all of their decimal digits" in defense.warnings([{"digits lost": lost}])[0]
    none = {name: torch.zeros_like(t) for name, t in ups.items()}
    for name in (name for name in ups if name.startswith(UPLOADS[0])):  # one infinite layer is no smaller loss
        assert defense.wire.recover(sent, {**none, name: ups[name]})[1].tolist() == [math.inf], name
    assert defense.wire.recover(sent, none)[1].tolist() == [0.0]


@pytest.mark.parametrize(("model", "shape"), MODELS)
def test_clients_in_double_precision_train_as_fedavg_does(model, shape):
    """In single precision the additive mask costs digits, in double it costs none."""
    errors, sizes = {}, (8, 12)
    plain_rounds, plain = play(make(model(), shape, sizes, name="fedavg"), 12, dtype=torch.float32)
    for precision in ("float32", "float64"):
        defense = make(model(), shape, sizes, precision=precision, gamma_scale=30)
        rounds, after = play(defense, 12, dtype=torch.float32)
        assert all(p.dtype == torch.float32 for p in after.params.values())
        assert {t.dtype for t in rounds[0].ups.values()} == {getattr(torch, precision)}
        for r, p in zip(rounds, plain_rounds, strict=True):
            assert all(torch.equal(a.x, b.x) for a, b in zip(r.batches, p.batches, strict=True))
        errors[precision] = relative(after.params, plain.params)
    assert errors["float64"] <= 1e-6
    assert errors["float32"] > 30 * errors["float64"]


def test_digits_lost_in_double_precision_count_from_those_of_single():
    """They predict the error, 2^-24 · 10^lost, also where clients have 29 bits more."""

    def lost_and_error(scale):
        defense = make(precision="float64", gamma_scale=scale)
        (r,), after = play(defense, 1, dtype=torch.float32)
        doubles = {n: p.double() for n, p in r.params.items()}
        exact = mean_gradient(defense, doubles, [replace(b, x=b.x.double()) for b in r.batches])
        recovered = defense.wire.recover(Broadcast(r.down, r.secret), r.ups)[0]
        sums = {n: sum(s * g for s, g in zip(SIZES, recovered[n], strict=True)) for n in exact}
        errors = [relative({n: sums[n] / sum(SIZES)}, {n: exact[n]}) for n in exact]
        return float(after.verdict["digits lost"].max()), max(errors)

    lost, error = lost_and_error(1.0)
    assert lost == 0.0
    assert error <= 1e-6
    lost, error = lost_and_error(1e6)
    assert error > 1e-5
    assert 2.0**-24 * 10**lost / 30 < error < 2.0**-24 * 10**lost * 3
