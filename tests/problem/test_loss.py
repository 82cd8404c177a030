"""The losses: known values, autograd, and how outputs are read."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from fedarena.core.errors import UserError
from fedarena.problem.loss import LOSSES, Criterion


def drawn(seed, n=7, classes=4, outputs=4):
    g = torch.Generator().manual_seed(seed)
    out = torch.randn(n, outputs, generator=g, dtype=torch.float64)
    return out, torch.randint(0, classes, (n,), generator=g), torch.rand(n, classes, generator=g, dtype=torch.float64)


def test_known_values():
    out, y = torch.tensor([[0.5, 0.0, -1.0]]), torch.tensor([2])
    assert Criterion("mse", 3).mean(out, y) == pytest.approx(0.5 * (0.25 + 0 + 4))
    assert Criterion("regression", 3).mean(torch.tensor([[0.25]]), torch.tensor([1])) == pytest.approx(0.5 * 0.0625)
    assert Criterion("regression", 0).mean(torch.tensor([[0.25]]), torch.tensor([0.75])) == pytest.approx(0.125)
    assert torch.equal(Criterion("mse", 3).target(y, out), torch.tensor([[0.0, 0.0, 1.0]]))
    assert torch.equal(
        Criterion("regression", 5).target(torch.tensor([0, 1, 4]), out), torch.tensor([[0], [0.25], [1]])
    )


@given(st.integers(0, 999))
def test_agrees_with_torch(seed):
    out, y, soft = drawn(seed)
    for labels in (y, soft):
        each = F.cross_entropy(out, labels, reduction="none")
        assert torch.allclose(Criterion("cross-entropy", 4).each(out, labels), each)
    onehot = F.one_hot(y, 4).double()
    assert torch.allclose(Criterion("mse", 4).mean(out, y), 2 * F.mse_loss(out, onehot))  # ½ of 4 outputs' mean


@given(st.integers(0, 999), st.sampled_from(LOSSES), st.booleans())
def test_the_residual_is_the_derivative(seed, loss, hard):
    criterion = Criterion(loss, 4)
    out, y, soft = drawn(seed, outputs=criterion.outputs)
    out.requires_grad_()
    labels = y if hard else soft
    (expected,) = torch.autograd.grad(criterion.each(out, labels).sum(), out)
    assert torch.allclose(criterion.residual(out, criterion.target(labels, out)), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_hard_labels_are_soft_ones(loss):
    criterion = Criterion(loss, 4)
    out, y, _ = drawn(1, outputs=criterion.outputs)
    assert torch.allclose(criterion.each(out, y), criterion.each(out, F.one_hot(y, 4).double()))


def test_classes_and_quality():
    out = torch.tensor([[0.1, 0.9], [0.8, 0.3], [0.2, 0.6]])
    assert Criterion("mse", 2).quality(out, torch.tensor([1, 0, 0])) == pytest.approx(2 / 3)
    grades = torch.tensor([[-3.0], [0.3], [0.4], [9.0]])
    assert Criterion("regression", 5).classes(grades).tolist() == [0, 1, 2, 4]
    assert Criterion("regression", 2).quality(grades, torch.tensor([0, 0, 1, 1])) == 0.75


def test_numbers_have_r2():
    criterion, y = Criterion("regression", 0), torch.tensor([0.0, 0.5, 1.0])
    assert (criterion.measure, criterion.outputs) == ("R2", 1)
    assert criterion.quality(y[:, None], y) == 1.0
    assert criterion.quality(torch.full((3, 1), 0.5), y) == 0.0
    assert criterion.quality(torch.full((3, 1), 1.0), y) == pytest.approx(-1.5)


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
def test_numbers_are_regressed(loss):
    with pytest.raises(UserError, match=f"option 'loss' is {loss}, .* numbers: allowed: regression"):
        Criterion(loss, 0)
