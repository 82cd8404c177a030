"""What forward passes take of memory: little, stated exactly, and as little as asked for."""

import pytest
import torch
from helpers.forward_passes import assert_differences_agree, convolutional, draws, federation, shipped
from torch import nn

from fedarena.core.errors import UserError
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.forward_passes import Differencing, client_bytes, client_rows, differences
from fedarena.problem.client_steps import overwriting


@pytest.fixture
def small():
    return federation(convolutional(1, 4, nn.ReLU, 3, 1, True, 16), (1, 16, 16), [16], dtype=torch.float32)


@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_memory_does_not_grow_with_k(small, scheme):
    task, params, batches = small
    n = sum(p.numel() for p in params.values())

    def peak(k):
        work = lambda: differences(task, params, batches, draws(n), k, Differencing(1e-3, scheme, torch.float32))  # noqa: E731
        found, bytes_ = forwards.peak_bytes(work)
        return bytes_ - found.numel() * found.element_size()

    assert peak(20) == peak(200)
    before = sum(t.numel() * t.element_size() for t in (*params.values(), batches[0].x, batches[0].y))
    assert client_bytes(task, params, batches[0], scheme, torch.float32) == before + peak(20)


def test_fewer_samples_at_a_time_take_less_memory(small):
    task, params, batches = small
    taken = [client_bytes(task, params, batches[0], "forward", torch.float32, rows) for rows in (1, 2, 4, 8, 16)]
    assert taken == sorted(set(taken))
    assert taken[-1] == client_bytes(task, params, batches[0], "forward", torch.float32)
    assert client_bytes(task, params, batches[0], "central", torch.float32) > taken[-1]  # holds z besides
    assert client_bytes(task, params, batches[0], "forward", torch.float64) > taken[-1]


@pytest.mark.parametrize("rows", [1, 5, 15, 16])
def test_the_most_samples_within_a_budget(small, rows):
    task, params, batches = small
    arguments = (task, params, batches[0], "forward", torch.float32)
    budget = client_bytes(*arguments, rows)
    assert client_rows(*arguments, budget) == rows
    if rows > 1:
        assert client_rows(*arguments, budget - 1) == rows - 1
    assert client_rows(*arguments, 10**12) == 16


def test_a_budget_below_one_sample_is_refused_with_the_least_possible(small):
    task, params, batches = small
    arguments = (task, params, batches[0], "forward", torch.float32)
    least = client_bytes(*arguments, 1)
    with pytest.raises(UserError, match=rf"option 'client-memory' is \S+ MB, .*: {least / 1e6:.6f} or more"):
        client_rows(*arguments, least - 1)


def test_a_batch_that_cannot_be_cut_needs_room_for_all_of_it():
    model = shipped("lenet-baffle", (1, 8, 8), norm="batch")
    task, params, batches = federation(model, (1, 8, 8), [4], dtype=torch.float32)
    arguments = (task, params, batches[0], "forward", torch.float32)
    whole = client_bytes(*arguments, None)
    assert client_rows(*arguments, whole) == 4
    with pytest.raises(UserError, match=f"one pass of 4 of its 4 samples .* take up to {whole / 1e6:.6f} MB"):
        client_rows(*arguments, whole - 1)


def test_activations_overwrite_what_nobody_else_holds():
    first, second, third, twice = nn.ReLU(), nn.SELU(), nn.Hardswish(), nn.ReLU()
    chain = nn.Sequential(nn.Linear(3, 3), first, second, nn.Linear(3, 3), twice, nn.Linear(3, 3), twice)

    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.act = nn.Linear(3, 3), third

        def forward(self, x):
            h = self.layer(x)
            return h + self.act(h)

    model = nn.Sequential(nn.ReLU(), chain, Branch())
    found = overwriting.replacements(model)
    assert set(found) == {id(first)}
    assert found[id(first)].inplace
    assert not first.inplace
    assert_differences_agree(*federation(nn.Sequential(model, nn.Linear(3, 4)), (3,), [3]), "central", torch.float64)


def test_overwriting_takes_less_memory(small, monkeypatch):
    task, params, batches = small
    less = client_bytes(task, params, batches[0], "forward", torch.float32)
    monkeypatch.setattr(overwriting, "replacements", lambda model: {})
    largest = 16 * 4 * 16 * 16 * 4  # the first convolution's output
    assert client_bytes(task, params, batches[0], "forward", torch.float32) - less >= largest // 4
