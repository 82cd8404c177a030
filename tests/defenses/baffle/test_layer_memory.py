"""Memory of a round: answers known in advance."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch import nn

from fedarena.core.rng import Rng
from fedarena.defenses.baffle import layer_memory
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task
from fedarena.reproduce.baffle import table4 as baffle_table4
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES

FLOAT = 4


def a_round(model, shape, b):
    g = Rng(0).torch()
    params = {n: torch.rand(p.shape, generator=g) for n, p in model.named_parameters()}
    batch = Batch(torch.rand(1, b, *shape, generator=g), torch.randint(0, 3, (1, b), generator=g))
    return Task(model, input_shape=shape, n_classes=3, sizes=(b,), schedule=Schedule(batch_size=b)), params, batch


def test_a_layer_holds_its_input_its_output_and_its_own_parameters():
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 3))
    found = layer_memory.layer_bytes(*a_round(model, (1, 8, 8), 4))
    x, h, logits = 4 * 64, 4 * 128, 4 * 3
    expected = {"0": x + h + 20, "1": 2 * h, "3": h + logits + 128 * 3 + 3}
    assert found == {name: FLOAT * n for name, n in expected.items()}


def test_layers_in_place_are_none_and_leave_the_next_input_as_it_is():
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(inplace=True), nn.Linear(7, 3))
    found = layer_memory.layer_bytes(*a_round(model, (5,), 2))
    assert list(found) == ["0", "2"]


def test_the_model_is_not_watched_afterwards():
    model = nn.Sequential(nn.Linear(5, 3))
    layer_memory.layer_bytes(*a_round(model, (5,), 2))
    assert not model[0]._forward_pre_hooks


def deep(layers, width=64):
    steps = [step for _ in range(layers) for step in (nn.Linear(width, width), nn.Tanh())]
    return layer_memory.measure(*a_round(nn.Sequential(*steps, nn.Linear(width, 3)), (width,), 1024))


def test_depth_costs_forward_passes_parameters_but_no_activations():
    four, eight = deep(4), deep(8)
    parameters, activation = FLOAT * (64 * 64 + 64), FLOAT * 1024 * 64
    assert eight.held - four.held == 4 * parameters
    assert eight.backprop - four.backprop >= 4 * (parameters + activation)
    assert eight.forwards - four.forwards == 2 * 4 * parameters  # W and W + σz
    assert (eight.smallest, eight.largest) == (four.smallest, four.largest)
    assert four.largest == 2 * activation + parameters
    assert four.held < four.forwards < four.backprop


@pytest.mark.parametrize("piece", baffle_table4.TABLE.pieces)
def test_table_4(piece):
    if piece == "MobileNet" and find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    (row,) = baffle_table4.rows(piece, Machine(), 0, lambda share, text: None)
    least, most = map(float, row["layers"].split("~"))
    assert 0 < least < most < row["forwards"] < row["backprop"]
    assert row["ratio_%"] == pytest.approx(100 * most / row["backprop"], rel=0.01)
    assert row["forwards_ratio_%"] == pytest.approx(100 * row["forwards"] / row["backprop"])
    assert (row["paper_backprop"], row["paper_ratio_%"]) == baffle_table4.PAPER[piece][::3]
    parameters = {"LeNet": 27_530, "WRN-10-2": 302_778, "MobileNet": 2_236_682}
    assert row["parameters"] == parameters[piece]


def test_the_table_can_be_reproduced():
    assert TABLES["baffle/table4"] == baffle_table4.__name__
