"""CENSOR: right angles, the choice by the loss, what its released code does in their place, and what it tells."""

from __future__ import annotations

import pytest
import torch
from helpers.baffle import drawn
from helpers.changed_uploads import make, read, sent_and_plain
from helpers.dbcl import mlp, parameters

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import combine
from fedarena.defenses.censor.card import Options
from fedarena.defenses.censor.protocol import DIRECTIONS, Censor
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


def cosines(ups, plain):
    """Of each upload and its gradient, tensor by tensor."""
    return torch.stack(
        [torch.nn.functional.cosine_similarity(t.flatten(1), plain[name].flatten(1)) for name, t in ups.items()]
    )


def test_each_tensor_is_at_a_right_angle_and_has_the_gradient_s_length():
    _, ups, plain = sent_and_plain(make("censor"))
    assert cosines(ups, plain).abs().max() < 1e-5
    for name, t in ups.items():
        assert torch.allclose(t.flatten(1).norm(dim=1), plain[name].flatten(1).norm(dim=1), rtol=1e-4)


def by_loop(defense, params, batch, noise):
    """Trials one after another, as the released code has them."""
    plain = FedAvg(None, defense.task)
    g, x, y = plain.client(params, batch, {}, {})[0], *batch.images()
    found = []
    for direction in noise[DIRECTIONS]:
        trial, begin = {}, 0
        for name, t in g.items():
            r = direction[begin : begin + t.numel()]
            begin += t.numel()
            r = r / r.norm()
            flat, length = t.flatten(), t.norm()
            along = flat / length**2 if defense.options.variant == "paper" else flat / length
            v = r - (r @ flat) * along
            trial[name] = (length * v / v.norm()).reshape(t.shape)
        found.append((float(defense.task.loss(combine(1.0, params, -defense.options.step, trial), x, y)), trial))
    least, best = min(found, key=lambda pair: pair[0])
    if defense.options.variant == "code" and least >= float(defense.task.loss(params, x, y)):
        return g
    return best


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_trial_with_the_smallest_loss_is_sent(variant):
    defense = make("censor", variant=variant, step=0.5, trials=6)
    params = parameters(defense.task.model, 0)
    for seed in range(4):
        batch, noise = drawn(defense, seed), defense.draw(Rng(seed))
        sent, wanted = defense.client(params, batch, {}, noise)[0], by_loop(defense, params, batch, noise)
        assert all(torch.allclose(t, wanted[name], atol=1e-5) for name, t in sent.items())


def test_the_released_code_s_vectors_lean_on_long_gradients():
    """Beside a tensor whose gradient has the length 50, random directions of 9 entries lie nearly along it."""
    g, directions = 50 * torch.nn.functional.normalize(torch.arange(1.0, 10), dim=0), torch.randn(200, 9)
    for variant, lean in (("paper", 0.0), ("code", 1.0)):
        trials = make("censor", variant=variant).beside(g, directions)
        median = torch.nn.functional.cosine_similarity(trials, g[None]).abs().median()
        assert float(median) == pytest.approx(lean, abs=0.01)


def test_the_released_code_sends_the_gradient_where_no_trial_is_better():
    defense = make("censor", variant="code", step=1e3, trials=1)
    params = parameters(defense.task.model, 0)
    batches = [drawn(defense, seed) for seed in range(20)]
    plain = FedAvg(None, defense.task)
    same = 0
    for seed, batch in enumerate(batches):
        sent, g = defense.client(params, batch, {}, defense.draw(Rng(seed)))[0], plain.client(params, batch, {}, {})[0]
        same += all(torch.equal(t, g[name]) for name, t in sent.items())
    assert same > 10


def test_the_two_equations_of_a_tensor_hold_for_the_truth():
    defense = make("censor")
    (reading,) = read(defense, "server", "adaptive")
    (observed,) = reading.observations
    assert reading.name == "equations"
    batch = drawn(defense, 1)
    x, y = batch.images()
    true = observed.simulate(x, torch.eye(3)[y])
    other = observed.simulate(x.flip(1), torch.eye(3)[y])
    for name, t in observed.target.items():
        assert t.shape == (2,)
        assert torch.allclose(true[name], t, rtol=1e-4, atol=1e-6)
    assert any(not torch.allclose(other[name], t, rtol=1e-2) for name, t in observed.target.items())


def test_of_the_released_code_the_upload_is_read_as_well():
    names = [reading.name for reading in read(make("censor", variant="code"), "server", "adaptive")]
    assert names == ["upload", "equations"]


def test_local_epochs_are_refused():
    schedule = Schedule(rounds=2, lr=0.1, local_epochs=1)
    task = Task(mlp(), input_shape=(12,), n_classes=3, sizes=(20, 20), schedule=schedule)
    with pytest.raises(UserError, match="option 'local-epochs' is 1, allowed with censor: 0"):
        Censor(Options(), task)
