"""Aggregation rules, 50 uploads of 25,000 numbers: FedArena against ByzFL, byzpy, Flower and numpy, on the same array.

Before anything is timed, every candidate must return what ours returns. Two peers sum n − f − 1 neighbours in Krum
where the paper says n − f − 2: they are given f + 1, which is the same rule. byzpy's median is the lower one of the
two middle values for even n: it is timed, and held to that. ByzFL's CAF takes one power iteration from a random
start in place of an eigenvector: it is timed, and held to nothing. What stands before a rule stands before the mean.
Geometric medians run twenty iterations each, from where each library starts. Peers that are not installed are named
and left out; the bar is held against the fastest that ran.

Rows without a bar: one np.sort of the whole array, at this width and at a power of two, and Krum on uploads far from 0.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from side_by_side import Row, alternate, faster, main, note

from fedarena.contracts.aggregator import Call, Wrapper
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.torchvision_import import declare_operators

N, D, F = 50, 25_000, 10
BARS = {"median": 4.0, "trimmed-mean": 2.5, "geometric-median": 3.0, "krum": 1.1, "bulyan": None}
BARS |= {"clipping": 1.0, "arc": 1.0, "caf": 1.0, "foolsgold": None, "rlr": None, "foundationfl": None}
ITERATIONS = 20
OURS = "fedarena"

Candidate = Callable[[], Any]


def ours(name: str, x: torch.Tensor) -> Candidate:
    """The rule as a protocol calls it."""
    card = registry.find("aggregator", name)
    options = card.options(iterations=ITERATIONS) if name == "geometric-median" else card.options()
    inner = (registry.find("aggregator", "mean").load()(None),) if issubclass(card.load(), Wrapper) else ()
    rule = card.load()(options, *inner)
    rule.check(N, F)
    call = Call(weights=torch.ones(N), f=F, memory={}, rng=Rng(0))
    return lambda: rule(x, call).vector


def byzfl(x: torch.Tensor) -> Iterator[tuple[str, Candidate]]:
    """ByzFL on a tensor."""
    declare_operators()
    import byzfl as library

    made = {
        "median": library.Median(),
        "trimmed-mean": library.TrMean(F),
        "geometric-median": library.GeometricMedian(nu=1e-6, T=ITERATIONS),
        "krum": library.Krum(F + 1),
        "caf": library.CAF(F),
    }
    for name, rule in made.items():
        yield name, partial(rule, x)
    mean = library.Average()
    for name, before in {"clipping": library.Clipping(2.0), "arc": library.ARC(F)}.items():
        yield name, lambda before=before: mean(before(x.clone()))  # it writes into what it is given


def byzpy(x: torch.Tensor) -> Iterator[tuple[str, Candidate]]:
    """byzpy on the list of tensors that it takes."""
    from byzpy.aggregators.coordinate_wise.median import CoordinateWiseMedian
    from byzpy.aggregators.coordinate_wise.trimmed_mean import CoordinateWiseTrimmedMean
    from byzpy.aggregators.geometric_wise.geometric_median import GeometricMedian
    from byzpy.aggregators.geometric_wise.krum import Krum

    made = {
        "median": CoordinateWiseMedian(),
        "trimmed-mean": CoordinateWiseTrimmedMean(f=F),
        "geometric-median": GeometricMedian(tol=1e-12, max_iter=ITERATIONS),
        "krum": Krum(f=F + 1),
    }
    for name, rule in made.items():
        yield name, partial(rule.aggregate, list(x))


def flower(x: torch.Tensor) -> Iterator[tuple[str, Candidate]]:
    """The functions behind Flower's strategies, on the pairs (list of arrays, number of samples) that they take."""
    from flwr.server.strategy import aggregate as library

    def results() -> list[tuple[list[Any], int]]:
        return [([row], 1) for row in x.numpy()]

    yield "krum", lambda: library.aggregate_krum(results(), F, to_keep=0)[0]
    yield "bulyan", lambda: library.aggregate_bulyan(results(), F, library.aggregate_krum, to_keep=0)[0]


def plain_numpy(x: torch.Tensor) -> Iterator[tuple[str, Candidate]]:
    """What one would write in numpy."""
    a = x.numpy()

    def trimmed() -> Any:
        return np.partition(a, (F, N - F - 1), axis=0)[F : N - F].mean(axis=0)

    def distances() -> Any:
        found = np.zeros((N, N))
        for i in range(N):
            for j in range(i):
                found[i, j] = found[j, i] = np.linalg.norm(a[i] - a[j]) ** 2
        return found

    def best(squared: Any) -> int:
        return int(np.sort(squared, axis=1)[:, 1 : max(len(squared) - F - 2, 1) + 1].sum(axis=1).argmin())

    def bulyan() -> Any:
        squared, left, chosen = distances(), list(range(N)), []
        for _ in range(N - 2 * F):
            chosen.append(left.pop(best(squared[np.ix_(left, left)])))
        b = a[chosen]
        order = np.abs(b - np.median(b, axis=0)).argsort(axis=0)[: N - 4 * F]
        return np.take_along_axis(b, order, axis=0).mean(axis=0)

    def alike() -> Any:
        units = a / np.linalg.norm(a, axis=1, keepdims=True)
        cosines = units @ units.T - np.eye(N)
        most = cosines.max(axis=1)
        for i in range(N):
            for j in range(N):
                if most[i] < most[j]:
                    cosines[i, j] *= most[i] / most[j]
        alpha = np.clip(1 - cosines.max(axis=1), 0, 1)
        alpha = alpha / alpha.max()
        with np.errstate(divide="ignore"):
            alpha = np.clip(np.log(alpha / (1 - alpha)) + 0.5, 0, 1).astype(a.dtype)
        return alpha @ a / alpha.sum()

    def flipped() -> Any:
        mean = a.mean(axis=0)
        return np.where(np.abs(np.sign(a).sum(axis=0)) >= 0.4 * N, mean, -mean)

    def with_copies() -> Any:
        high, low = a.max(axis=0), a.min(axis=0)
        scores = [min(np.linalg.norm(row - high), np.linalg.norm(row - low)) for row in a]
        return np.concatenate([a, np.repeat(a[[np.argmax(scores)]], N // 2, axis=0)]).mean(axis=0)

    yield "foolsgold", alike
    yield "rlr", flipped
    yield "foundationfl", with_copies
    yield "median", lambda: np.median(a, axis=0)
    yield "trimmed-mean", trimmed
    yield "krum", lambda: a[best(distances())]
    yield "bulyan", bulyan


PEERS = {"byzfl": byzfl, "byzpy": byzpy, "flwr": flower, "numpy": plain_numpy}


def measure(repetitions: int) -> list[Row]:
    """One row a rule and peer, one for the fastest peer with the bar, and the cases in which ours does worst."""
    x = uploads(D)
    rows = []
    for name, bar in BARS.items():
        found = rivals(name, x)
        spent = timed(name, x, found, repetitions)
        rows += [faster(name, OURS, label, spent) for label in found]
        fastest = min(found, key=lambda label: sorted(spent[label])[repetitions // 2])
        rows.append(faster(f"{name}, fastest peer", OURS, fastest, spent, at_least=bar))
    for d in (D, 32_768):
        for name in ("median", "trimmed-mean"):
            one_line = {"one np.sort": partial(sort_all, name, uploads(d).numpy())}
            rows.append(
                faster(f"{name}, {d:,} numbers", OURS, *one_line, timed(name, uploads(d), one_line, repetitions))
            )
    far = x + 15 * torch.randn(D, generator=Rng(1).torch())  # the distances take a second product
    found = rivals("krum", far)
    spent = timed("krum", far, found, repetitions)
    return rows + [faster("krum, uploads 15 times farther from 0 than apart", OURS, label, spent) for label in found]


def uploads(d: int) -> torch.Tensor:
    """[N, d], of which F are off by half a standard deviation."""
    x = torch.randn(N, d, generator=Rng(0).torch())
    x[:F] += 0.5
    return x


def rivals(name: str, x: torch.Tensor) -> dict[str, Candidate]:
    """The peers that have the rule and are installed."""
    found = {}
    for peer, candidates in PEERS.items():
        try:
            label = f"{peer} {importlib.metadata.version(peer)}"
        except importlib.metadata.PackageNotFoundError:
            note(f"{peer}: not installed, left out")
            continue
        for rule, run in candidates(x):
            if rule == name:
                found[label] = run
    return found


def sort_all(name: str, a: Any) -> Any:
    """Both coordinate rules from one np.sort of the whole array: fast while no two rows compete for cache lines."""
    ascending = np.sort(a, axis=0)
    return (
        ascending[F : N - F].mean(axis=0) if name == "trimmed-mean" else ascending[N // 2 - 1 : N // 2 + 1].mean(axis=0)
    )


def timed(name: str, x: torch.Tensor, others: dict[str, Candidate], repetitions: int) -> dict[str, list[float]]:
    """CPU seconds of ours and the others, once they agree."""
    mine = ours(name, x)
    for label, run in others.items():
        agree(name, label, mine(), run(), x)
    return alternate({OURS: mine, **others}, repetitions)


def agree(name: str, label: str, mine: torch.Tensor, theirs: Any, x: torch.Tensor) -> None:
    """Refuse to time what does not compute the same."""
    if (name, label.split()[0]) == ("caf", "byzfl"):
        return
    expected = x.median(dim=0).values if (name, label.split()[0]) == ("median", "byzpy") else mine
    # Geometric medians start at different points and are compared before they have converged to the last digit.
    tolerance = 1e-3 if name == "geometric-median" else 1e-5
    torch.testing.assert_close(torch.as_tensor(theirs), expected, rtol=tolerance, atol=tolerance)


if __name__ == "__main__":
    main(__doc__, measure)
