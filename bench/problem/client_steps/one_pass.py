"""FedSGD of many clients in one pass: they share the parameters, so that their samples are one batch.

One pass forwards and one backwards give each layer's inputs and slopes for all samples
(`fedarena.problem.client_steps.layered`). Only the gradients by the parameters are formed for each client by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.grad import conv2d_weight

from fedarena.core.tensors import Tensors
from fedarena.problem.client_steps.layered import Layer, Weighted, passes
from fedarena.problem.task import Batch, Task

CHUNK = 80
"""Samples at a time: the activations of more do not fit into the cache. A client is not divided."""


def train(task: Task, layers: Sequence[Layer], start: Tensors, batches: Sequence[Batch]) -> Tensors:
    """The mean gradients of all clients' batches, stacked; `batches` are of one size."""
    ups = {name: p.new_empty(len(batches), *p.shape) for name, p in start.items()}
    size = batches[0].x.shape[1]
    some = max(1, CHUNK // size)
    for first in range(0, len(batches), some):
        group = batches[first : first + some]
        x, y = torch.cat([b.x[0] for b in group]), torch.cat([b.y[0] for b in group])
        for layer, h, q in passes(task.criterion, layers, start, x, y):
            inputs, slopes = h.unflatten(0, (len(group), size)), (q / size).unflatten(0, (len(group), size))
            ups[layer.weight][first : first + some] = _weights(layer, start[layer.weight], inputs, slopes)
            if layer.bias:
                ups[layer.bias][first : first + some] = slopes.transpose(1, 2).flatten(2).sum(2)
    return ups


def _weights(layer: Weighted, weight: Tensor, inputs: Tensor, slopes: Tensor) -> Tensor:
    """The gradients of all clients by a layer's weight, from inputs [clients, b, in, ...] and slopes [.., out, ...]."""
    if (c := layer.convolution) is None:
        return slopes.mT @ inputs
    each = zip(inputs, slopes, strict=True)
    return torch.stack([conv2d_weight(h, weight.shape, q, c["stride"], c["padding"], c["dilation"]) for h, q in each])
