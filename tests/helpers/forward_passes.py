"""Small federations, and loss differences one by one: what the tests of the forward forms are held to."""

from itertools import islice

import torch
from torch import nn

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.defenses.baffle.forward_passes import Differencing, differences
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

DTYPES = {torch.float64: 1e-9, torch.float32: 2e-2}
"""Number format → relative error of a difference allowed at σ = 1e-3: rounding of the losses is 1/σ times as large."""


def draws(n, seed=3):
    g = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randn(n, generator=g)


def federation(model, shape, sizes, classes=4, dtype=torch.float64, seed=0):
    """A task, parameters, and one batch of each size."""
    g = Rng(seed).torch()
    params = {n: 0.3 * torch.randn(p.shape, generator=g, dtype=torch.float64) for n, p in model.named_parameters()}
    batches = [
        Batch(
            torch.rand(1, b, *shape, generator=g, dtype=torch.float64).to(dtype),
            torch.randint(0, classes, (1, b), generator=g),
        )
        for b in sizes
    ]
    task = Task(model, input_shape=shape, n_classes=classes, sizes=tuple(sizes), schedule=Schedule(batch_size=1))
    return task, {n: p.to(dtype) for n, p in params.items()}, batches


def one_by_one(task, params, batches, directions, k, sigma, scheme, dtype):
    """Eq. 1 and 2 as they stand."""
    z = list(islice(directions, k))
    w = {name: p.to(dtype) for name, p in params.items()}

    def moved(direction, sign):
        parts = direction.split([p.numel() for p in w.values()])
        return {
            name: p + sign * (sigma * part).to(dtype).view(p.shape)
            for (name, p), part in zip(w.items(), parts, strict=True)
        }

    found = []
    for batch in batches:
        x, y = batch.x[0].to(dtype), batch.y[0]
        y = y.to(dtype) if y.is_floating_point() else y
        there = [task.loss(moved(d, 1), x, y) for d in z]
        other = [task.loss(moved(d, -1) if scheme == "central" else w, x, y) for d in z]
        found.append(torch.stack(there) - torch.stack(other))
    return torch.stack(found)


def assert_differences_agree(task, params, batches, scheme, dtype, k=3, rows=None, sigma=1e-3):
    n = sum(p.numel() for p in params.values())
    got = differences(task, params, batches, draws(n), k, Differencing(sigma, scheme, dtype), rows)
    with torch.no_grad():
        expected = one_by_one(task, params, batches, draws(n), k, sigma, scheme, dtype)
    assert got.shape == (len(batches), k)
    assert got.dtype == dtype
    scale = expected.abs().max()
    rounding = 8 * torch.finfo(dtype).eps  # of losses near 1, where a difference all but vanishes
    assert (got - expected).abs().max() <= DTYPES[dtype] * scale + rounding, (got, expected)
    return got


def convolutional(channels, width, activation, kernel, padding, pools, side, classes=4):
    """Convolution, activation, pooling, convolution, activation, pooling, dense."""
    layers = [nn.Conv2d(channels, width, kernel, padding=padding), activation()]
    layers += [nn.MaxPool2d(2)] if pools else []
    layers += [nn.Conv2d(width, 2 * width, 3, padding=1), activation(), nn.MaxPool2d(2)]
    body = nn.Sequential(*layers, nn.Flatten())
    features = body(torch.zeros(1, channels, side, side)).shape[1]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, classes))


def shipped(name, shape, **options):
    card = find("model", name)
    return card.load()(card.parse(options)).module(shape, 4)
