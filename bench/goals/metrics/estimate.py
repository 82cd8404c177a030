"""How close a party's estimates of gradients or updates come to the truth."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedarena.contracts.observation import Observation
from fedarena.federation.finished_run import FinishedRun
from fedarena.goals.metrics.reconstruction import estimate_metrics


def median_estimate_metrics(finished: FinishedRun, observations: Sequence[Observation]) -> dict[str, float]:
    """Median over observations of cosine and relative L2 error of the party's estimate (DBCL, Section 6.3).

    It is empty where no observation has an estimate.
    """
    pairs = [estimate_metrics(o.estimate, finished.estimated(o)) for o in observations if o.estimate is not None]
    if not pairs:
        return {}
    return {name: float(torch.tensor([p[name] for p in pairs]).median()) for name in ("cosine", "relative_l2")}
