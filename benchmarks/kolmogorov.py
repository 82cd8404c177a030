"""The first stage of two-stage: Kolmogorov-Smirnov statistics of 50 uploads of 25,450 values, and their verdicts.

Against scipy.stats.kstest row by row, with its default and with its asymptotic p.
"""

from __future__ import annotations

import torch
from scipy import stats
from side_by_side import Row, alternate, faster, main

from fedarena.core.rng import Rng
from fedarena.defenses.two_stage.first_stage import FirstStage, statistic

ROWS, COORDINATES, SIGMA = 50, 25_450, 0.79


def measure(repetitions: int) -> list[Row]:
    """One row a way to call scipy."""
    x = torch.randn(ROWS, COORDINATES, generator=Rng(0).torch()) * SIGMA
    z, stage = x / SIGMA, FirstStage(norm_sds=1e12)

    def theirs(method: str) -> list[bool]:
        return [bool(stats.kstest(row.numpy(), "norm", args=(0, SIGMA), method=method).pvalue < 0.05) for row in x]

    assert stage.rejects(x, SIGMA).tolist() == theirs("exact"), "the verdicts differ"
    known = [stats.kstest(row.double().numpy(), "norm").statistic for row in z]
    assert max(abs(a - b) for a, b in zip(statistic(z).tolist(), known, strict=True)) < 1e-6, "the statistics differ"
    spent = alternate(
        {
            "first stage": lambda: stage.rejects(x, SIGMA),
            "scipy": lambda: theirs("auto"),
            "scipy, asymptotic": lambda: theirs("asymp"),
        },
        repetitions,
    )
    what = f"KS test of {ROWS} x {COORDINATES:,}"
    return [faster(what, "first stage", peer, spent, at_least=5.0) for peer in ("scipy", "scipy, asymptotic")]


if __name__ == "__main__":
    main(__doc__, measure)
