"""A server that chooses its masks makes a client loud or faint, and sends the same function."""

from __future__ import annotations

import pytest
import torch
from helpers.pbpfl import cnn, drawn, make, mlp, start

from fedarena.core.rng import Rng
from fedarena.defenses.pbpfl.wire import GRADIENT, R_A, UPLOADS


@pytest.mark.parametrize(("model", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))])
@pytest.mark.parametrize("loudness", [100.0, 0.01])
def test_only_the_first_layers_gradient_grows(model, shape, loudness):
    defense = make(model(), shape)
    state = start(defense)
    batch = drawn(defense, 0)
    sent = defense.scaled(state, loudness, Rng(0))
    up, _ = defense.client(sent.down, batch, {}, {})
    plain = torch.func.grad(defense.task.loss)(state.params, *batch.images())
    scaled = [n for n in plain if not {n, GRADIENT + n} & set(defense.unscaled)]
    assert {n.rpartition(".")[0] for n in scaled} == {defense.task.layers[0][0]}
    for name in scaled:
        assert torch.allclose(up[GRADIENT + name], loudness * plain[name], rtol=1e-9, atol=1e-12 * loudness)
    assert set(defense.unscaled) == {*plain, *(kind + n for kind in UPLOADS for n in plain)} - {
        *scaled,
        *(GRADIENT + n for n in scaled),
    }


def test_a_scaled_model_predicts_as_the_honest_one():
    defense = make(mlp(), (12,))
    state = start(defense)
    sent = defense.scaled(state, 1000.0, Rng(0)).down
    x = torch.rand(5, 12, dtype=torch.float64)
    received = {n: t for n, t in sent.items() if n != R_A}
    assert torch.allclose(defense.task.outputs(received, x), defense.task.outputs(state.params, x), rtol=1e-9)
