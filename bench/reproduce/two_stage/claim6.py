"""Two-stage, Claim 6: one learning rate serves every ε, if it is scaled by Eq. 4, η = η_b·σ_b/σ.

The paper varies the base rate η_b at ε = 2 over seven values (Figure 3 on MNIST, in plots without numbers on the other
data sets), with 60 % label flippers: the optimal point is the same, 0.2 on MNIST, at every ε, and "a similar phenomenon
can also be observed on the other three datasets". All of its other tables take 0.2 on every data set.

A row has the mean accuracy of three seeds at each rate. `best_rate` is the rate of the largest mean (the lowest of
several equal ones). `lost_at_0.2` is that mean less the mean at 0.2: two rates that chance alone tells apart lose next
to nothing. `one rate, not scaled` is the control: it takes the same η at every ε, without Eq. 4."""

from __future__ import annotations

import time
from dataclasses import dataclass

from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name
from fedarena.reproduce.two_stage.authors_logs import RATE, experiments, shares
from fedarena.reproduce.two_stage.claim_runs import mean_accuracies
from fedarena.reproduce.two_stage.common import REFERENCE, Experiment

SETTING = (
    "test accuracy by the base learning rate at ε = 2, means of three seeds; best_rate: the rate of the largest mean; "
    "lost_at_0.2: the largest mean less that at 0.2"
)
RATES = (0.02, 0.04, 0.08, 0.2, 0.4, 0.8, 1.0)
EPSILONS = (2.0, 1.0, 0.5, 0.25, 0.125)
COLUMNS = tuple(f"{rate:g}" for rate in RATES)
ROUNDING = 1e-9
"""What a mean of equal rates may be off in floating point."""
BEST, LOST = "best_rate", "lost_at_0.2"
MEASURED = (*COLUMNS, BEST, LOST, "cpu_seconds")

FLIPPED, ALONE, UNSCALED = "60 % label flip", "DP alone", "60 % label flip, one rate, not scaled"


@dataclass(frozen=True)
class Sweep:
    """All rates at one ε.

    Attributes:
        data: the data set. epsilon: ε.
        workers: who takes part, and whether the rate is scaled: FLIPPED, ALONE or UNSCALED.
    """

    data: str
    epsilon: float
    workers: str

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.data}, {self.workers}, ε = {self.epsilon:g}"

    def at(self, rate: float) -> Experiment:
        """The federation with this base rate."""
        if self.workers == ALONE:
            name, options = REFERENCE
            return Experiment(
                data=self.data,
                title=self.workers,
                paper=None,
                epsilon=self.epsilon,
                defense=name,
                settings=tuple(options.items()),
                lr=rate,
            )
        return Experiment(
            data=self.data,
            title=self.workers,
            paper=None,
            byzantine=0.6,
            epsilon=self.epsilon,
            attack="label-flip",
            settings=(("base_epsilon", "none"),) if self.workers == UNSCALED else (),
            lr=rate,
        )


SWEEPS = [
    *(Sweep("usps", epsilon, FLIPPED) for epsilon in EPSILONS),
    *(Sweep("usps", epsilon, ALONE) for epsilon in EPSILONS),
    # At ε = 2 nothing is scaled.
    *(Sweep("usps", epsilon, UNSCALED) for epsilon in EPSILONS if epsilon != 2),
    *(Sweep("fashion-mnist", epsilon, workers) for workers in (FLIPPED, ALONE) for epsilon in EPSILONS),
]


def measure(sweep: Sweep, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of one ε."""
    began = time.process_time()
    found = mean_accuracies(
        {column: sweep.at(rate) for column, rate in zip(COLUMNS, RATES, strict=True)}, machine, seed, progress
    )
    heading: Row = {"data": sweep.data, "workers": sweep.workers, "ε": sweep.epsilon}
    return [heading | found | judged(found) | {"cpu_seconds": time.process_time() - began}]


def judged(accuracies: dict[str, float | None]) -> Row:
    """The best rate and what 0.2 loses against it; None unless every rate has an accuracy."""
    known = {column: accuracy for column, accuracy in accuracies.items() if accuracy is not None}
    if len(known) < len(COLUMNS):
        return {BEST: None, LOST: None}
    best = max(known, key=lambda column: known[column])
    return {BEST: float(best), LOST: known[best] - known[f"{RATE:g}"]}


def published(sweep: Sweep) -> tuple[Published, ...]:
    """What the claim says of one ε. The control is not in the paper, nor are rates for DP alone."""
    if sweep.workers != FLIPPED:
        return ()
    return (
        Published(
            piece=sweep.name,
            paper="0.2 at every ε",
            column=BEST,
            share=False,
            better="",
            within=(RATE - ROUNDING, RATE + ROUNDING),
            remark="the best of seven means of three seeds",
        ),
        Published(
            piece=sweep.name, paper=0.0, column=LOST, better="lower", derived="the optimal point is the same, 0.2"
        ),
    )


def logged() -> dict[float, dict[float, float]]:
    """ε → rate → the mean accuracy on MNIST in the authors' logs, for which `two-stage/logs-rates` has our runs."""
    at_02 = {epsilon: shares()["label flip", 0.6, "mnist", epsilon].accuracy for epsilon in EPSILONS}
    others = [one for one in experiments("rates") if one.data == "mnist"]
    return {
        epsilon: {RATE: at_02[epsilon]}
        | {one.lr: one.paper for one in others if one.epsilon == epsilon and one.paper is not None}
        for epsilon in EPSILONS
    }


def _note() -> str:
    best = {epsilon: max(by_rate, key=lambda rate: by_rate[rate]) for epsilon, by_rate in logged().items()}
    words = ", ".join(f"{rate:g} at ε = {epsilon:g}" for epsilon, rate in best.items())
    return f"The best rates in the authors' logs (MNIST, 60 % label flippers, means of 3 seeds): {words}."


BY_NAME = {sweep.name: sweep for sweep in SWEEPS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(one for sweep in SWEEPS for one in published(sweep)),
    notes=(_note(),),
)
