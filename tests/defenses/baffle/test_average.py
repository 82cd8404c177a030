"""BAFFLE: the average that is deployed, and the epoch level."""

from __future__ import annotations

import pytest
import torch
from helpers.baffle import cosine, drawn, make, one_round, start

from fedarena.core.rng import Rng
from fedarena.core.tensors import combine, flatten


def test_the_average_follows_its_decay():
    """W̄ ← d W̄ + (1 − d) W; with warm-up 2/11, 3/12, … as the released code's library has it."""
    for options, decays in (
        ({"ema_warmup": False, "ema": 0.9}, [0.9, 0.9, 0.9]),
        ({"ema": 0.2}, [2 / 11, 0.2, 0.2]),
        ({"ema": None}, [0.0, 0.0, 0.0]),
    ):
        defense = make(directions=4, **options)
        state = start(defense)
        average = state.params
        for t, d in enumerate(decays):
            state = one_round(defense, state, t)[-1]
            average = combine(d, average, 1 - d, state.params)
            got = flatten(defense.deployed(state))
            assert torch.allclose(got, flatten(average), atol=1e-7)


def test_the_average_by_steps():
    """As many averages as a client takes steps; 0.995 a step is 0.995⁵ over five of them."""
    defense = make(directions=3, ema_warmup=False, ema_per="step", sizes=(20, 20), schedule={"local_epochs": 1})
    state = start(defense)
    after = one_round(defense, state)[-1]
    expected = combine(0.995**5, state.params, 1 - 0.995**5, after.params)
    assert torch.allclose(flatten(defense.deployed(after)), flatten(expected), atol=1e-7)


def test_clip_shortens_to_the_largest_entry():
    free, cut_ = make(directions=4), make(directions=4, clip=0.01)
    a, b = (flatten(d.wire.estimate(5, torch.tensor([1e-4, -2e-4, 3e-4, 1e-5]))) for d in (free, cut_))
    assert float(b.abs().max()) == pytest.approx(0.01)
    assert cosine(a, b) == pytest.approx(1.0)
    assert torch.equal(flatten(make(directions=4, clip=1e3).wire.estimate(5, torch.ones(4) * 1e-4)),
                       flatten(free.wire.estimate(5, torch.ones(4) * 1e-4)))  # fmt: skip


def test_local_epochs_step_on_estimates():
    """Against the loop written out with torch's own Adam."""
    settings = {"local_epochs": 2, "client_optimizer": "adam", "adam_beta2": 0.99, "lr": 0.01}
    defense = make(directions=6, precision="float64", optimizer_state="kept", schedule=settings)
    sent = defense.broadcast(start(defense), Rng(0))
    w = {n: sent.down[n].clone() for n in defense.wire.like}
    leaves = {n: t.clone().requires_grad_() for n, t in w.items()}
    torchs = torch.optim.Adam(leaves.values(), lr=0.01, betas=(0.9, 0.99))
    memory = {}
    for t in range(2):
        batch = drawn(defense, t)
        up, memory = defense.client({**w, "seed": sent.down["seed"]}, batch, memory, {})
        for s in range(len(batch.x)):
            at = defense.wire.seed_of_step(int(sent.down["seed"]), s)
            now = {n: leaf.detach() for n, leaf in leaves.items()}
            g = defense.wire.estimate(
                at, defense.differences(now, batch.x[s], batch.y[s], at, defense.options.directions)
            )
            for n, leaf in leaves.items():
                leaf.grad = g[n].float()
            torchs.step()
        w = combine(1.0, w, -1.0, up)
        found, expected = flatten(w), torch.cat([leaf.detach().flatten() for leaf in leaves.values()])
        assert torch.allclose(found, expected, atol=2e-4)  # Adam doubles the noise of single precision at small entries
    assert int(memory["steps"]) == 2 * len(batch.x)
    fresh = make(directions=6, schedule=settings).client(sent.down, drawn(defense), {}, {})[1]
    assert fresh == {}
