"""Soteria: what is pruned against loops over units and samples, and what each form matches."""

from __future__ import annotations

import pytest
import torch
from helpers.baffle import one_round
from helpers.changed_uploads import make, read, sent_and_plain
from helpers.dbcl import cnn, mlp, parameters
from torch import nn

from fedarena.contracts.defense import State
from fedarena.core.errors import UserError
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.defenses.soteria.card import Options
from fedarena.defenses.soteria.protocol import Soteria
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task


def by_loops(model, x):
    """Σ_j ‖∂r_i/∂x_j‖/|r_i(x_j)|, one unit and one sample at a time."""
    body = model[:-1]
    width = model[-1].in_features
    ratios = torch.zeros(width)
    for sample in x:
        for i in range(width):
            given = sample[None].clone().requires_grad_()
            r = body(given)[0, i]
            (gradient,) = torch.autograd.grad(r, given)
            ratios[i] += torch.inf if float(r.detach()) == 0 else gradient.norm() / r.abs()
    return ratios.detach()


RELU = nn.Sequential(nn.Flatten(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 3))


@pytest.mark.parametrize(("model", "shape"), [(mlp(), (12,)), (cnn(), (1, 8, 8)), (RELU, (12,))])
@pytest.mark.parametrize("share", [0.35, 0.8])
def test_the_columns_with_the_smallest_ratios_are_pruned(model, shape, share):
    defense = make("soteria", model, shape, share=share)
    state = State(parameters(model, 0))
    _, batches, ups, _, _ = one_round(defense, state)
    model.load_state_dict(state.params)
    plain = FedAvg(None, defense.task)
    for c, batch in enumerate(batches):
        ratios = by_loops(model, batch.x[0])
        last = ratios.sort().values[round(share * len(ratios)) - 1]
        for name, g in plain.client(state.params, batch, {}, {})[0].items():
            wanted = g * (ratios > last) if name == defense.defended else g
            assert torch.allclose(ups[name][c], wanted, atol=1e-6)


def test_a_unit_that_is_0_for_a_sample_is_pruned_last():
    defense = make("soteria", RELU, (12,), share=0.5)
    x = torch.rand(4, 12)
    params = parameters(RELU, 0)
    dead = (defense.representation(params, x) == 0).any(0)
    assert dead.any()
    assert torch.equal(defense.ratios(params, x).isinf(), dead)


def test_the_adaptive_form_leaves_the_pruned_columns_out():
    defense = make("soteria", share=0.5)
    _, _, plain = sent_and_plain(defense)
    (observed,) = read(defense, "server", "adaptive")[0].observations
    kept = observed.simulate.kept
    for name, t in plain.items():
        if name == defense.defended:
            assert 0 < kept[name].mean() < 1
            assert torch.equal(kept[name], kept[name][:1].expand_as(kept[name]))
        else:
            assert kept[name].all()
        assert torch.allclose(t[1] * kept[name], observed.target[name], atol=1e-6)


@pytest.mark.parametrize(
    ("model", "schedule", "message"),
    [
        (mlp(), {"local_epochs": 2}, "option 'local-epochs' is 2, allowed with soteria: 0"),
        (nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), {}, "has no representation before a dense output layer"),
    ],
)
def test_what_it_cannot_defend_is_refused(model, schedule, message):
    task = Task(model, input_shape=(12,), n_classes=3, sizes=(20, 20), schedule=Schedule(rounds=2, lr=0.1, **schedule))
    with pytest.raises(UserError, match=message):
        Soteria(Options(), task)
