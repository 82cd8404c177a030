"""How often the 95 % intervals that FedArena prints hold the truth, near 0 and 1 as well.

Scores, shares and boards are drawn at random from laws whose truth is known.

    python coverage.py              all tables, about two minutes
    python coverage.py --table auc  one of them: auc, missed, tpr, worst
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import stdtrit
from torch import Tensor

from fedarena.board.lowest_mean import lowest_mean_interval
from fedarena.contracts.inference import Scores
from fedarena.core.rng import Rng
from fedarena.goals.metrics.membership import membership_metrics

BAR = 0.93
"""The least coverage of intervals of AUCs and true positive rates, but for few large groups that differ much."""

BAR_WORST = 0.90
"""The least coverage of intervals of worst cases."""

AUCS = (0.5, 0.8, 0.95, 0.98, 0.99)
MISSED = (0.005, 0.02, 0.05, 0.1)
FOUND = (0.02, 0.1, 0.5, 0.9, 0.98)
RATE = "tpr_at_1_percent_fpr"
NORMAL = NormalDist()
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """Groups of members and as many outsiders, whose scores are normal.

    Attributes:
        groups: how many observations.
        half: how many members, and how many outsiders, an observation has.
        level: the spread of what all scores of an observation share; 0 for independent ones.
        grouped: whether the judge counts observations.
        bar: the least coverage.
    """

    groups: int
    half: int
    level: float = 0.0
    grouped: bool = True
    bar: float = BAR

    @property
    def name(self) -> str:
        """Such as "25 x (4 + 4), level 0.5"."""
        sizes = f"{self.half} + {self.half}"
        level = f", level {self.level:g}" if self.level else ""
        return f"{self.groups} x ({sizes}){level}" if self.grouped else sizes

    def draw(self, shift: float, rng: Rng) -> tuple[list[Scores], list[Tensor]]:
        """Scores by observation, of which those of members lie `shift` higher, and which are members."""
        generator = rng.torch()
        truth = torch.arange(2 * self.half) < self.half
        levels = self.level * torch.randn(self.groups, 1, generator=generator)
        values = torch.randn(self.groups, 2 * self.half, generator=generator) + levels + shift * truth
        return [Scores(v) for v in values], [truth] * self.groups

    def shift(self, auc: float) -> float:
        """How much higher members lie for this AUC between observations."""
        return math.sqrt(2 + 2 * self.level**2) * NORMAL.inv_cdf(auc)

    def truth(self, auc: float) -> float:
        """The AUC over all pairs, of which some are of the same observation."""
        if not self.grouped:
            return auc
        return auc + (NORMAL.cdf(self.shift(auc) / math.sqrt(2)) - auc) / self.groups


AUC_LAYOUTS = (
    Layout(1, 20, grouped=False),
    Layout(25, 1),
    Layout(1, 200, grouped=False),
    Layout(12, 1),
    Layout(25, 4, level=0.5),
    Layout(25, 4, level=1.0),
    Layout(10, 20, level=0.5),
    Layout(10, 20, level=1.0, bar=0.90),
)
TPR_LAYOUTS = (
    Layout(1, 100, grouped=False),
    Layout(1, 500, grouped=False),
    Layout(1, 2000, grouped=False),
    Layout(50, 10, level=0.5),
)


@dataclass(frozen=True)
class Row:
    """How often an interval held the truth.

    Attributes:
        table, case: what was drawn. truth: what the interval is to hold.
        interval: which interval; empty for the one that is printed.
        draws: how many. held: the share that held the truth. width: the mean width. none: the share without a width.
        bar: the least share that is allowed; 0 for intervals that are shown for comparison.
    """

    table: str
    case: str
    truth: float
    interval: str
    draws: int
    held: float
    width: float
    none: float
    bar: float


def row(table: str, case: str, truth: float, ends: Array, bar: float, interval: str = "") -> Row:
    """From the ends [draws, 2] of intervals."""
    low, high = ends.T
    held, width = (low <= truth + 1e-12) & (truth <= high + 1e-12), high - low
    return Row(
        table,
        case,
        truth,
        interval,
        len(ends),
        float(held.mean()),
        float(width.mean()),
        float((width <= 0).mean()),
        bar,
    )


def intervals(layout: Layout, shift: float, name: str, draws: int) -> Array:
    """The judge's intervals of a metric [draws, 2]."""
    ends = []
    for draw in range(draws):
        scores, members = layout.draw(shift, Rng(draw).child("coverage", layout.name))
        metrics = membership_metrics(scores, members, grouped=layout.grouped)
        ends.append((metrics[f"{name}_low"], metrics[f"{name}_high"]))
    return np.array(ends)


def auc_rows(draws: int) -> Iterator[Row]:
    """AUCs."""
    for layout in AUC_LAYOUTS:
        for auc in AUCS:
            yield row(
                "auc", layout.name, layout.truth(auc), intervals(layout, layout.shift(auc), "auc", draws), layout.bar
            )


def missed_rows(draws: int) -> Iterator[Row]:
    """AUCs of scores that are certain, but for a share of the members that lie below all outsiders."""
    for half in (20, 50, 200):
        for share in MISSED:
            ends = []
            for draw in range(draws):
                generator = Rng(draw).child("missed", half).torch()
                inside = torch.where(torch.rand(half, generator=generator) < share, -9.0, 9.0)
                scores = torch.cat([inside, torch.zeros(half)]) + torch.randn(2 * half, generator=generator)
                metrics = membership_metrics([Scores(scores)], [torch.arange(2 * half) < half], grouped=False)
                ends.append((metrics["auc_low"], metrics["auc_high"]))
            yield row("missed", f"{half} + {half}", 1 - share, np.array(ends), BAR)


def tpr_rows(draws: int) -> Iterator[Row]:
    """True positive rates at a false positive rate of 1 %."""
    for layout in TPR_LAYOUTS:
        for found in FOUND:
            shift = math.sqrt(1 + layout.level**2) * (NORMAL.inv_cdf(0.99) + NORMAL.inv_cdf(found))
            yield row("tpr", layout.name, found, intervals(layout, shift, RATE, draws), layout.bar)


# -- worst cases ----------------------------------------------------------------------------------------

Law = Callable[[np.random.Generator, int], tuple[Array, Array]]
"""(generator, cells) → means and spreads of the cells."""

LAWS: dict[str, Law] = {
    "equal means": lambda g, cells: (np.full(cells, 0.5), np.full(cells, 0.1)),
    "steps of .05": lambda g, cells: (0.3 + 0.05 * np.arange(cells), np.full(cells, 0.1)),
    "any means": lambda g, cells: (g.uniform(0.2, 0.9, cells), np.exp(g.normal(math.log(0.05), 0.7, cells))),
    "equal, any spread": lambda g, cells: (np.full(cells, 0.5), np.exp(g.normal(math.log(0.05), 1, cells))),
}


def worst_rows(draws: int) -> Iterator[Row]:
    """Lowest means of a board's cells, beside other intervals of them."""
    for seeds in (3, 5, 10):
        for name, law in LAWS.items():
            for cells in (2, 20, 100):
                g = Rng(0).child("worst", name, cells).numpy()
                means, spreads = law(g, cells)
                scores = means[:, None] + spreads[:, None] * g.normal(size=(draws, cells, seeds))
                case, truth = f"{seeds} seeds, {cells} cells, {name}", float(means.min())
                ours = np.array([lowest_mean_interval(one.tolist()) for one in scores])
                yield row("worst", case, truth, ours, BAR_WORST)
                for other, ends in rivals(scores, g).items():
                    yield row("worst", case, truth, ends, 0.0, other)


def rivals(scores: Array, g: np.random.Generator, resamples: int = 300) -> dict[str, Array]:
    """Other intervals of the lowest mean of scores [draws, cells, seeds].

    Returns:
        own: Student's of the cell that was chosen. percentile and basic: of a bootstrap over seeds of the whole
        minimum. widened: the basic one, wider by t/z·√(n/(n − 1)).
    """
    draws, _, n = scores.shape
    means, t = scores.mean(2), float(stdtrit(n - 1, 0.975))
    lowest, chosen = means.min(1), means.argmin(1)
    half = t * scores[np.arange(draws), chosen].std(1, ddof=1) / math.sqrt(n)
    weights = g.multinomial(n, np.full(n, 1 / n), resamples) / n
    low, high = np.quantile((scores @ weights.T).min(1), (0.025, 0.975), axis=1)
    wider = t / NORMAL.inv_cdf(0.975) * math.sqrt(n / (n - 1))
    ends = {
        "own": (lowest - half, lowest + half),
        "percentile": (low, high),
        "basic": (2 * lowest - high, 2 * lowest - low),
        "widened": (lowest - wider * (high - lowest), lowest + wider * (lowest - low)),
    }
    return {name: np.stack(pair, axis=1) for name, pair in ends.items()}


TABLES = {"auc": auc_rows, "missed": missed_rows, "tpr": tpr_rows, "worst": worst_rows}


def main() -> int:
    """Print one row an interval; 1 where one holds the truth too seldom or has no width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    for name in args.table:
        for r in TABLES[name](args.draws):
            rows.append(r)
            if not args.json:
                text = f"{r.table:5} {r.case:38} {r.interval:10} truth {r.truth:.3f}"
                print(f"{text}  holds it {r.held:6.1%}  width {r.width:.3f}  without {r.none:.1%}", flush=True)
    if args.json:
        print(json.dumps([asdict(r) for r in rows], indent=2))
    return int(any(r.bar and (r.held < r.bar or r.none > 0) for r in rows))


if __name__ == "__main__":
    sys.exit(main())
