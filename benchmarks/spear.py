"""How often does SPEAR read a whole batch off a gradient exactly?

    python benchmarks/spear.py                                      # digits, one hidden layer of 64 and of 200 units
    python benchmarks/spear.py --batches 100 --sizes 2,4,8
    python benchmarks/spear.py --trained 300                        # after so many steps of training

Gradients of the mean loss are computed by plain PyTorch. A batch is read exactly if each of its samples comes back with
60 dB or more. Beside it stand the share of single samples that come back, the share that `analytic` reads from the same
gradients, and CPU seconds for a batch. It counts, and has no bar.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import torch
from tabulate import tabulate
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import fedarena as fa
from fedarena.core.binomial import binomial_interval
from fedarena.datasets.digits import load

EXACT = 60.0
"""PSNR from which a sample counts as read, in dB."""
SHAPE, CLASSES = (1, 8, 8), 10


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def digits() -> tuple[Tensor, Tensor]:
    """Training images in [0, 1] and their classes."""
    data = load(None)
    return torch.as_tensor(data.x_train).float().reshape(-1, *SHAPE) / data.scale, torch.as_tensor(data.y_train).long()


def trained(width: int, steps: int) -> nn.Module:
    """A network with one hidden layer, after so many steps on random batches of 32."""
    torch.manual_seed(0)
    x, y = digits()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        some = torch.randint(len(x), (32,))
        optimizer.zero_grad()
        cross_entropy(model(x[some]), y[some]).backward()
        optimizer.step()
    return model


def read(guess: Tensor, truth: Tensor) -> Tensor:
    """Which samples [n] came back."""
    errors = (truth.flatten(1)[:, None] - guess.flatten(1).clamp(0, 1)[None]).square().mean(2).min(1).values
    return -10 * errors.clamp_min(1e-30).log10() >= EXACT


def row(model: nn.Module, width: int, size: int, batches: int, draws: int) -> list[str]:
    """What comes back of so many batches of one size."""
    x, y = digits()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))
    whole, ours, theirs, spent = 0, 0, 0, 0.0
    for i in range(batches):
        some = order[torch.arange(i * size, (i + 1) * size) % len(x)]
        gradient = torch.autograd.grad(cross_entropy(model(x[some]), y[some]), list(model.parameters()))
        began = time.process_time()
        given = {"input_shape": SHAPE, "n_classes": CLASSES, "images": size, "seed": i}
        by_spear = read(fa.invert(model, gradient, attack="spear", **given, draws=draws).images, x[some])
        spent += time.process_time() - began
        whole += bool(by_spear.all())
        ours += int(by_spear.sum())
        theirs += int(read(fa.invert(model, gradient, attack="analytic", **given).images, x[some]).sum())
    low, high = binomial_interval(whole, batches)
    shares = [f"{100 * count / (batches * size):.0f} %" for count in (ours, theirs)]
    exact = f"{whole} of {batches} ({100 * low:.0f} to {100 * high:.0f} %)"
    return [str(width), str(size), exact, *shares, f"{spent / batches:.2f}"]


def rows(args: argparse.Namespace) -> Iterator[list[str]]:
    for width in args.widths:
        model = trained(width, args.trained)
        for size in args.sizes:
            yield row(model, width, size, args.batches, args.draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=numbers, default=[64, 200], help="units of the hidden layer")
    parser.add_argument("--sizes", type=numbers, default=[2, 4, 8, 16], help="samples of a batch")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--draws", type=int, default=200_000)
    parser.add_argument("--trained", type=int, default=0, help="steps of training before")
    args = parser.parse_args()
    torch.set_num_threads(1)
    head = ["units", "batch", "read exactly", "samples", "samples by `analytic`", "CPU s a batch"]
    print(tabulate(list(rows(args)), head, "pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
