"""`fa.invert` beside breaching's attacks on gradients that plain PyTorch computed: what comes back, and in what time.

Two models at their initial parameters, with images of CIFAR-10 and a batch of one and of four:

    CNN           five convolutions with batch norm in evaluation mode, as in torchvision's networks; its running
                  statistics are those of a thousand images
    transformer   patches of 4×4 pixels, one encoder layer of torch.nn, a linear output

The gradient is that of the mean cross-entropy. Attacks of the same family stand beside each other, with like budgets:

    the paper's       signed Adam on the cosine distance, as many steps, labels given; breaching's with our weight of
                      the total variation, and with its own, 0.2
    later options     breaching's `modern`; ours are its weight, its decay and its total variation of colours for the
                      CNN, and L-BFGS from a dark start, which needs a smooth network, for the transformer
    DLG               L-BFGS on the squared distance, with labels that are searched for; one start, as many evaluations

Pixels are in [0, 1] and the seed is 0 for all. `identified` is the share of images to which their guess is nearer than
to 99 others.

    OMP_NUM_THREADS=1 python invert_beside_breaching.py

Needs CIFAR-10 (FEDARENA_DATA) and breaching: pip install "fedarena[breaching]"
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from side_by_side import machine
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import fedarena as fa
from fedarena.contracts.inference import Reconstruction
from fedarena.core.registry import find
from fedarena.interop import breaching

CNN, TRANSFORMER = "CNN", "transformer"
SHAPE, CLASSES, OTHERS, WARM = (3, 32, 32), 10, 99, 1000
TV, MORE = 1e-3, 0.1
"""Weights of the total variation: ours by default, and that of breaching's `modern`."""
EVALUATIONS = 20
"""Most evaluations in a step of torch's L-BFGS."""


class Transformer(nn.Module):
    """A small vision transformer."""

    def __init__(self, width: int = 64, patch: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        words = (32 // patch) ** 2
        self.place = nn.Parameter(torch.randn(words, width) / 8)
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.out = nn.Linear(width * words, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.layer(self.patches(x).flatten(2).transpose(1, 2) + self.place).flatten(1))
        return out


def convolutional() -> nn.Module:
    layers: list[nn.Module] = []
    for before, after, stride in ((3, 32, 1), (32, 32, 2), (32, 64, 1), (64, 64, 2), (64, 64, 1)):
        layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after, momentum=None), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, CLASSES))


@dataclass(frozen=True)
class Attacker:
    """An attack of either library.

    Attributes:
        name: what the table calls it.
        guess: (model, gradient, …) → the guess.
        options: of the attack.
        labelled: whether it is given the labels.
    """

    name: str
    guess: Callable[..., Reconstruction]
    options: dict[str, Any]
    labelled: bool = True


def attackers(model: str, steps: int) -> list[Attacker]:
    """Pairs of attacks with like budgets."""
    given, iterations = {"inverting-gradients.labels": "given"}, "optim.max_iterations"
    plain = {"attack": "inverting-gradients", "iterations": steps, "tv": TV, **given}
    theirs = {iterations: steps, "regularization.total_variation.scale": TV}
    few = max(1, 5 * steps // 8)  # steps of L-BFGS, which cost half as much again
    later: dict[str, Any] = {"attack": "inverting-gradients", "iterations": 1, "tv": 0.0, "polish": few, "init": "dark"}
    if model == CNN:
        later = {**plain, "tv": MORE, "decay": "cosine", "colours": True}
    joint = {"attack": "deepleakage", iterations: max(1, steps // EVALUATIONS)}
    return [
        Attacker("`fa.invert`, inverting-gradients", fa.invert, plain),
        Attacker("breaching, invertinggradients with that weight", breaching.invert, theirs),
        Attacker("breaching, invertinggradients", breaching.invert, {iterations: steps}),
        Attacker("`fa.invert`, inverting-gradients with later options", fa.invert, later | given),
        Attacker("breaching, modern", breaching.invert, {"attack": "modern", iterations: steps}),
        Attacker("`fa.invert`, dlg", fa.invert, {"attack": "dlg", "iterations": steps, "restarts": 1}, labelled=False),
        Attacker("breaching, deepleakage", breaching.invert, joint, labelled=False),
    ]


def samples() -> tuple[Tensor, Tensor]:
    """The held-out images of CIFAR-10 in [0, 1], in a random order, and their classes."""
    data = find("dataset", "cifar10").load()(None)
    order = torch.randperm(len(data.y_test), generator=torch.Generator().manual_seed(1))[: WARM + OTHERS]
    return torch.as_tensor(data.x_test)[order].float() / data.scale, torch.as_tensor(data.y_test)[order].long()


def made(name: str, x: Tensor) -> nn.Module:
    """A model at its initial parameters."""
    torch.manual_seed(0)
    model = convolutional() if name == CNN else Transformer()
    with torch.no_grad():
        model(x)  # the running statistics of batch norm
    return model.eval()


def rows(name: str, batch: int, batches: int, steps: int) -> Iterator[list[str]]:
    """A row for each attacker: means over images, and CPU seconds for a batch."""
    x, y = samples()
    model, others = made(name, x[:WARM]), x[WARM:]
    for attacker in attackers(name, steps):
        found, began = [], time.process_time()
        for i in range(batches):
            own, labels = x[i * batch : (i + 1) * batch], y[i * batch : (i + 1) * batch]
            gradient = torch.autograd.grad(cross_entropy(model(own), labels), list(model.parameters()))
            fits = {"input_shape": SHAPE, "n_classes": CLASSES, "images": batch}
            told = {"labels": labels} if attacker.labelled else {}
            guess = attacker.guess(model, gradient, **fits, **told, **attacker.options)
            found.append((guess, own))
        seconds = (time.process_time() - began) / batches
        metrics = [fa.metrics.reconstruction(guess.images, own, others) for guess, own in found]
        means = {key: fmean(one[key] for one in metrics) for key in ("psnr", "ssim", "identified")}
        yield [
            f"{name}, batch {batch}",
            attacker.name,
            f"{means['psnr']:.1f}",
            f"{means['ssim']:.2f}",
            f"{means['identified']:.0%} of {batch * batches}",
            f"{fmean(guess.evaluations for guess, _ in found):,.0f}",
            f"{seconds:.1f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="of each attack, for each batch")
    parser.add_argument("--images", type=int, default=4, help="attacked alone, and as one batch")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + f"; {given.steps} steps\n")
    print("| gradient of | attack | PSNR, dB | SSIM | identified | evaluations | CPU s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in (CNN, TRANSFORMER):
        for batch, batches in ((1, given.images), (given.images, 1)):
            for row in rows(name, batch, batches, given.steps):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
