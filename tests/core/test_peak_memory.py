"""Peak memory: answers known in advance."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.func import grad, vmap

from fedarena.core.peak_memory import peak_bytes

MB = 1 << 20


def block(megabytes=1):
    return torch.zeros(megabytes * MB // 4)


def test_result_comes_back_and_one_tensor_weighs_its_bytes():
    result, peak = peak_bytes(lambda: block(3))
    assert result.numel() == 3 * MB // 4
    assert peak == 3 * MB


def test_what_dies_is_taken_off():
    def one_after_the_other():
        for _ in range(10):
            a = block(2)
            del a

    def side_by_side():
        kept = [block(2) for _ in range(10)]
        return len(kept)

    assert peak_bytes(one_after_the_other)[1] == 2 * MB
    assert peak_bytes(side_by_side) == (10, 20 * MB)


def test_the_peak_is_not_the_end():
    def f():
        a, b = block(4), block(4)
        c = a + b
        del a, b
        return c + 1

    assert peak_bytes(f)[1] == 12 * MB


def test_views_and_in_place_operations_weigh_nothing():
    def f():
        a = block(2)
        views = [a.view(2, -1), a[10:], a.reshape(4, -1).T, a.detach()]
        a.add_(1).mul_(2)
        torch._foreach_add_([a], 1.0)
        return views

    assert peak_bytes(f)[1] == 2 * MB


def test_what_existed_before_weighs_nothing_even_through_its_views():
    before = block(5)
    assert peak_bytes(lambda: before[1:].view(-1))[1] == 0
    assert peak_bytes(lambda: before.add_(1))[1] == 0
    assert peak_bytes(lambda: before + 1)[1] == 5 * MB


def test_a_view_outlives_its_base():
    def f():
        view = block(2)[:1]
        other = block(1)
        return view, other

    assert peak_bytes(f)[1] == 3 * MB


def test_autograds_saved_tensors_are_counted():
    x = block(1).requires_grad_()

    def deep(n):
        def f():
            h = x
            for _ in range(n):
                h = h.exp()  # saves its output
            return torch.autograd.grad(h.sum(), x)[0]

        return f

    five, ten = peak_bytes(deep(5))[1], peak_bytes(deep(10))[1]
    assert ten - five == 5 * MB
    with torch.no_grad():

        def forward():
            h = x
            for _ in range(10):
                h = h.exp()
            return h

        assert peak_bytes(forward)[1] == 2 * MB  # the present h and the next one


def test_func_transforms_are_counted():
    x = torch.ones(8, MB // 4)
    (result, peak), again = (peak_bytes(lambda: vmap(grad(lambda r: r.exp().sum()))(x)) for _ in range(2))
    assert torch.allclose(result, x.exp())
    assert 8 * MB <= peak <= 33 * MB
    assert again[1] == peak


def test_same_answer_whatever_the_collector_does():
    def cycles():
        for _ in range(4):
            ring: list[object] = [block(1)]
            ring.append(ring)
        return

    gc.collect()
    assert [peak_bytes(cycles)[1] for _ in range(3)] == [4 * MB] * 3
    assert gc.isenabled()


def test_an_error_passes_through_and_leaves_nothing_behind():
    with pytest.raises(RuntimeError, match="size"):
        peak_bytes(lambda: block(1) + torch.zeros(3))
    assert gc.isenabled()
    assert peak_bytes(lambda: block(1))[1] == MB
