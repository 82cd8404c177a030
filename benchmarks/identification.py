"""What identifies a victim among other real samples: guesses without an upload do not, faint noise does not hide it.

    FEDARENA_DATA=… python benchmarks/identification.py                       # the image data sets that are present
    FEDARENA_DATA=… python benchmarks/identification.py digits usps           # some of them

For each data set 4,000 training samples, or all, are victims, each among 99 others of its class. The guesses are: the
mean training sample, the mean of the victim's class, a held-out sample of any class, the training sample nearest to the
victim (which takes the victim itself to find), and the victim under Gaussian noise of 30 dB. The mean of the class is
that of its other samples. `calibrated` is the share of nearest samples, and of noisy victims, that count as recovered;
beside it stands the share that SSIM 0.9 would count.
Exits with 1 where a guess without an upload identifies more than chance explains, or noise hides more than 1 %.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
from scipy.stats import binomtest
from torch import Tensor

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.goals.metrics import image_similarity as images
from fedarena.goals.metrics.calibration import recovered_threshold
from fedarena.goals.metrics.identification import Owned, draw_decoys, identified
from fedarena.goals.metrics.real_samples import nearest_others
from fedarena.goals.metrics.reconstruction import mean_image
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import usual_problem

VICTIMS = 4000
AT_ONCE = 500
"""Victims that are held in memory together, each with its decoys."""
NOISE = 10 ** (-30 / 20)
"""The standard deviation of noise of 30 dB."""
BLIND = ("mean", "class mean", "held out")
"""Guesses that need neither an upload nor the victim."""
ALL = (
    *("digits", "mnist", "fashion-mnist", "kmnist", "usps", "cifar10", "cifar100"),
    *("olivetti", "ham10000", "lfw", "utkface", "digit-domains"),
)
FORMER = 0.9
ONE_IN = 1000
"""How rarely chance alone may explain a share, for a data set to fail."""


def measure(problem: Problem) -> tuple[float, dict[str, float], dict[str, float]]:
    """Chance; the shares that guesses identify; the threshold, and what counts as recovered by it and by the former."""
    order = torch.randperm(len(problem.x), generator=Rng(5).torch())[:VICTIMS]
    threshold = recovered_threshold(problem)
    parts = [_measured(problem, some, i, threshold) for i, some in enumerate(order.split(AT_ONCE))]
    chances = {chance for chance, _, _ in parts}
    assert len(chances) == 1, chances
    identify, pass_by = (
        {k: float(torch.cat([part[place][k].double() for part in parts]).mean()) for k in parts[0][place]}
        for place in (1, 2)
    )
    return chances.pop(), identify, {"threshold": threshold, **pass_by}


def _measured(
    problem: Problem, victims: Tensor, part: int, threshold: float
) -> tuple[float, dict[str, Tensor], dict[str, Tensor]]:
    """Of some victims: chance, whom each guess identifies, and who counts as recovered."""
    x, y = problem.x[victims].float() / problem.scale, problem.y[victims]
    none = torch.empty(0, dtype=torch.int64)
    truths = [(x[i : i + 1], y[i : i + 1]) for i in range(len(x))]
    decoys = draw_decoys(truths, problem, Owned(none, none), Rng(1).child(part))
    nearest, _ = nearest_others(x, problem)
    noisy = x + NOISE * torch.randn(x.shape, generator=Rng(7).child(part).torch())
    guesses = {
        "mean": mean_image(problem).expand_as(x),
        "class mean": _means_of_others(problem, x, y),
        "held out": problem.x_test[_any(len(problem.x_test), len(x), part)].double() / problem.scale,
        "nearest": nearest,
        "30 dB": noisy,
    }
    likeness = {"nearest": images.ssim(nearest.double(), x), "30 dB": images.ssim(images.valid(noisy), x)}
    passed: dict[str, Tensor] = {}
    for name, ssim in likeness.items():
        passed |= {f"{name}, calibrated": ssim > threshold, f"{name}, SSIM ≥ {FORMER}": ssim >= FORMER}
    return decoys.chance, {name: identified(guess, x, decoys) for name, guess in guesses.items()}, passed


def _means_of_others(problem: Problem, x: Tensor, y: Tensor) -> Tensor:
    """For each victim the mean of the other training samples of its class."""
    classes = range(problem.task.n_classes)
    totals = torch.stack([problem.x[problem.y == c].double().sum(0) / problem.scale for c in classes])
    others = problem.y.bincount(minlength=len(totals))[y].double() - 1
    return (totals[y] - x.double()) / others.reshape(-1, *[1] * (x.dim() - 1))


def _any(total: int, n: int, part: int) -> Tensor:
    return torch.randint(total, (n,), generator=Rng(6).child(part).torch())


def faults(chance: float, shares: dict[str, float], victims: int) -> list[str]:
    """What is not as it must be."""
    wrong = [
        f"{name} identifies {100 * shares[name]:.1f} %"
        for name in BLIND
        if binomtest(round(shares[name] * victims), victims, chance, "greater").pvalue < 1 / ONE_IN
    ]
    return wrong + ([f"noise hides {100 - 100 * shares['30 dB']:.1f} %"] if shares["30 dB"] < 0.99 else [])


def main(names: Sequence[str]) -> int:
    """Print a row for each data set."""
    failed = False
    for name in names or ALL:
        try:
            problem = build(usual_problem({"dataset": name, "model": "mlp", "clients": "2"}, {}), 0)
        except UserError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        chance, shares, passed = measure(problem)
        print(
            f"{name:14s} chance {100 * chance:.1f} %  " + "  ".join(f"{k} {100 * v:5.1f} %" for k, v in shares.items())
        )
        print(f"{'':14s} " + "  ".join(f"{k} {v:.3f}" for k, v in passed.items()), flush=True)
        for fault in faults(chance, shares, min(VICTIMS, len(problem.x))):
            failed = True
            print(f"{name}: {fault}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
