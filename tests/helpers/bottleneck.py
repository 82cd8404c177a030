"""A small dense network with a variational bottleneck, and its loss by hand."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedarena.core import registry
from fedarena.core.tensors import Tensors

K, BETA = 5, 0.01
LN2 = 0.6931471805599453


def net(bottleneck: int = K, classes: int = 3, activation: str = "sigmoid") -> nn.Module:
    """12 inputs, one hidden layer of 7."""
    card = registry.find("model", "mlp")
    given = {"widths": "7", "activation": activation}
    more = {"bottleneck": str(bottleneck), "beta": str(BETA)} if bottleneck else {}
    made: nn.Module = card.load()(card.parse({**given, **more})).module((12,), classes)
    return made


def by_hand(params: Tensors, x: Tensor, noise: Tensor | float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(logits, code, μ, σ) of the network."""
    h = (x.flatten(1) @ params["fc1.weight"].T + params["fc1.bias"]).sigmoid()
    statistics = h @ params["encoder.weight"].T + params["encoder.bias"]
    mean, std = statistics[:, :K], (1 + statistics[:, K:].exp()).log()
    code = mean + std * noise
    out = code @ params["decoder.weight"].T + params["decoder.bias"]
    return out @ params["out.weight"].T + params["out.bias"], code, mean, std


def loss_by_hand(params: Tensors, x: Tensor, y: Tensor, noise: Tensor | float) -> Tensor:
    """Cross-entropy and β times PyTorch's own divergence, in bits."""
    logits, _, mean, std = by_hand(params, x, noise)
    normal = torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(std))
    divergence = torch.distributions.kl_divergence(torch.distributions.Normal(mean, std), normal)
    return F.cross_entropy(logits, y) + BETA * divergence.sum(1).mean() / LN2
