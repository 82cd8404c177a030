"""Loss differences by forward passes (BAFFLE's client) against a plain loop over directions with `functional_call`.

`lenet-baffle`, one client, batch 64 with K = 40 and batch 512 with K = 10, must be 1.7 times as fast; σ = 1e-4. The
directions are drawn by both. Then the gradient estimate from K differences, drawing the directions anew in chunks,
against keeping them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import torch
from side_by_side import Row, alternate, faster, main
from torch import Tensor

from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, shaped
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.directions import directions, stein
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

SEED, SIGMA = 1, 1e-4
BAR = 1.7
CASES = (
    ("lenet-baffle", (1, 32, 32), 1, 64, 40, BAR),
    ("lenet-baffle", (1, 32, 32), 1, 512, 10, BAR),
    ("lenet-baffle", (1, 32, 32), 10, 32, 10, None),
    ("wrn-10-2", (3, 32, 32), 1, 32, 10, None),
    ("cnn-two-stage", (1, 28, 28), 1, 64, 20, None),
    ("mlp", (1, 28, 28), 10, 32, 20, None),
)
"""Model, shape of an image, clients, samples of each, K, bar."""


def plain(task: Task, params: Tensors, batches: Sequence[Batch], k: int) -> Callable[[], Tensor]:
    """As one would write it in PyTorch."""
    n = sum(p.numel() for p in params.values())

    def run() -> Tensor:
        found = []
        with torch.no_grad():
            here = [task.loss(params, *batch.images()) for batch in batches]
            for z in islice(directions(SEED, n), k):
                delta = shaped(SIGMA * z, params)
                moved = {name: p + delta[name] for name, p in params.items()}
                there = [task.loss(moved, *batch.images()) for batch in batches]
                found.append(torch.stack([a - b for a, b in zip(there, here, strict=True)]))
        return torch.stack(found, 1)

    return run


def ours(task: Task, params: Tensors, batches: Sequence[Batch], k: int) -> Callable[[], Tensor]:
    """The library's form."""
    how = forwards.Differencing(SIGMA, "forward", next(iter(params.values())).dtype)
    n = sum(p.numel() for p in params.values())
    return lambda: forwards.differences(task, params, batches, directions(SEED, n), k, how)


def work(model: str, shape: tuple[int, ...], clients: int, samples: int) -> tuple[Task, Tensors, list[Batch]]:
    """Random images at a model's initial parameters."""
    card, g = find("model", model), Rng(0).torch()
    architecture = card.load()(card.parse({}))
    module = architecture.module(shape, 10)
    params = architecture.init(module, g)
    task = Task(
        module, input_shape=shape, n_classes=10, sizes=(samples,) * clients, schedule=Schedule(batch_size=samples)
    )
    batches = [
        Batch(torch.rand(1, samples, *shape, generator=g), torch.randint(0, 10, (1, samples), generator=g))
        for _ in range(clients)
    ]
    return task, params, batches


def check(task: Task, params: Tensors, batches: Sequence[Batch]) -> None:
    """Both compute the same, in double precision. Raises AssertionError."""
    exact = {name: p.double() for name, p in params.items()}
    doubled = [Batch(b.x.double(), b.y) for b in batches]
    expected, got = (form(task, exact, doubled, 2)() for form in (plain, ours))
    assert (got - expected).norm() < 1e-7 * expected.norm(), "something else is computed"


def estimates(repetitions: int) -> list[Row]:
    """Σ_k z_k ΔL_k with the directions drawn anew, against one product with kept ones, and drawing alone."""
    n, rows = 26_730, []
    for k in (100, 500):
        differences = torch.randn(k, generator=Rng(0).torch()) * SIGMA
        kept = torch.stack(list(islice(directions(SEED, n), k)))

        def drawn(k: int = k) -> None:
            for z in islice(directions(SEED, n), k):
                del z

        candidates = {
            "drawn anew": lambda d=differences: stein(SEED, n, d, SIGMA),
            "kept": lambda d=differences, z=kept: z.T @ (d / (len(d) * SIGMA)),
            "drawing alone": drawn,
        }
        spent = alternate(candidates, repetitions)
        mb = kept.numel() * 4 / 1e6
        rows += [
            faster(f"estimate, n = {n:,}, K = {k}", "drawn anew", name, spent) for name in ("kept", "drawing alone")
        ]
        rows[-2] = rows[-2].__class__(**{**rows[-2].__dict__, "theirs": f"kept, {mb:.0f} MB"})
    return rows


def measure(repetitions: int) -> list[Row]:
    """Rows of each case."""
    rows = []
    for model, shape, clients, samples, k, bar in CASES:
        given = work(model, shape, clients, samples)
        check(*given)
        spent = alternate({"fedarena": ours(*given, k), "plain loop": plain(*given, k)}, repetitions)
        what = f"{model}, {clients} x {samples} samples, K = {k}"
        rows.append(faster(what, "fedarena", "plain loop", spent, at_least=bar))
    return rows + estimates(repetitions)


if __name__ == "__main__":
    main(__doc__, measure, repetitions=7)
