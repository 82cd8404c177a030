"""Gradients of digits that plain PyTorch computes, without anything of this package."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedarena.datasets.digits import load


def dense() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def digits(n: int) -> tuple[Tensor, Tensor]:
    data = load()
    return torch.as_tensor(data.x_train[:n]).float() / data.scale, torch.as_tensor(data.y_train[:n])


def gradient_of(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
