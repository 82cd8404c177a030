"""Two-stage, Claim 1: normalising every sample's gradient against clipping it, at one budget.

The paper gives "a thought experiment": where every gradient is longer than C, clipping to C at rate η is normalising at
rate η·C, "clipping with C = 2, η = 0.1 is the same as normalizing with η = 0.2". Normalising is better because it needs
no C. Here both train with the same σ. Clipping takes each threshold twice: at the rate 0.2/C, which the thought
experiment makes equal to normalising at 0.2, and at 0.2 itself. Rates are those at ε = 2, and Eq. 4 scales both.
Momentum (0.1) breaks the equality a little: it adds a share of the last upload, whose length grows with C.

All accuracies are means of three seeds. `gain_of_clipping` is the best of all clipped runs less the normalised one: the
claim is that the search over C gains nothing, and held means at most 0.02. `smallest_C_apart` is the difference at the
smallest C, where the thought experiment says 0. `C_matters` is the best less the worst of the clipped runs at rate 0.2:
what somebody may lose who does not tune C."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table, measured_by_name
from fedarena.reproduce.two_stage.claim_runs import mean_accuracies
from fedarena.reproduce.two_stage.common import REFERENCE, Experiment

SETTING = (
    "test accuracy at one σ, means of three seeds; normalise at rate 0.2; clipping to C at rate 0.2/C and at 0.2; "
    "gain_of_clipping: the best clipped less the normalised; smallest_C_apart: C=0.1 at 0.2/C less the normalised; "
    "C_matters: the best less the worst C at rate 0.2"
)
RATE = 0.2
THRESHOLDS = (0.1, 0.5, 1.0, 2.0, 5.0)
NORMALISE = "normalise"
SCALED = {f"C={c:g}, 0.2/C": c for c in THRESHOLDS}
"""Column → C, at the rate that the thought experiment makes equal to 0.2."""
FIXED = {f"C={c:g}, 0.2": c for c in THRESHOLDS}
"""Column → C, at 0.2."""
ONE = "C=1, 0.2"
"""The column that is the same run as the one at 0.2/C."""
GAIN, SMALLEST, MATTERS = "gain_of_clipping", "smallest_C_apart", "C_matters"
MEASURED = (NORMALISE, *SCALED, *FIXED, GAIN, SMALLEST, MATTERS, "cpu_seconds")

ALONE, ATTACKED = "DP alone", "60 % label flip"
TOLERANCE = 0.02
"""What an accuracy of this page may differ by."""


@dataclass(frozen=True)
class Comparison:
    """Both bounds at one ε.

    Attributes:
        data: the data set. epsilon: ε.
        workers: ALONE, or ATTACKED under the two-stage protocol.
    """

    data: str
    epsilon: float
    workers: str

    @property
    def name(self) -> str:
        """The name by which `--only` selects it."""
        return f"{self.data}, {self.workers}, ε = {self.epsilon:g}"

    @property
    def normalised(self) -> Experiment:
        """The paper's form."""
        name, options = REFERENCE
        bare = Experiment(data=self.data, title=self.workers, paper=None, epsilon=self.epsilon, lr=RATE)
        if self.workers == ALONE:
            return replace(bare, defense=name, settings=tuple(options.items()))
        return replace(bare, byzantine=0.6, attack="label-flip")

    def clipped(self, threshold: float, rate: float) -> Experiment:
        """The same with clipping."""
        plain = self.normalised
        kept = tuple(option for option in plain.settings if option[0] != "bound")
        return replace(plain, settings=(*kept, ("bound", "clip"), ("clip", f"{threshold:g}")), lr=rate)

    @property
    def experiments(self) -> dict[str, Experiment]:
        """Column → the run."""
        scaled = {column: self.clipped(c, RATE / c) for column, c in SCALED.items()}
        fixed = {column: self.clipped(c, RATE) for column, c in FIXED.items() if column != ONE}
        return {NORMALISE: self.normalised, **scaled, **fixed}


COMPARISONS = [
    Comparison(data, epsilon, workers)
    for data in ("usps", "fashion-mnist")
    for workers in (ALONE, ATTACKED)
    for epsilon in (2.0, 1.0, 0.5, 0.25, 0.125)
]


def measure(comparison: Comparison, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """The row of one ε."""
    began = time.process_time()
    found = mean_accuracies(comparison.experiments, machine, seed, progress)
    found[ONE] = found["C=1, 0.2/C"]
    heading: Row = {"data": comparison.data, "workers": comparison.workers, "ε": comparison.epsilon}
    accuracies = {column: found[column] for column in (NORMALISE, *SCALED, *FIXED)}
    return [heading | accuracies | judged(accuracies) | {"cpu_seconds": time.process_time() - began}]


def judged(accuracies: dict[str, float | None]) -> Row:
    """The three differences; None unless every run has an accuracy."""
    known = {column: accuracy for column, accuracy in accuracies.items() if accuracy is not None}
    if len(known) < len(accuracies):
        return dict.fromkeys((GAIN, SMALLEST, MATTERS))
    fixed = [known[column] for column in FIXED]
    smallest = next(iter(SCALED))
    return {
        GAIN: max(known[column] for column in (*SCALED, *FIXED)) - known[NORMALISE],
        SMALLEST: known[smallest] - known[NORMALISE],
        MATTERS: max(fixed) - min(fixed),
    }


def published(comparison: Comparison) -> tuple[Published, ...]:
    """What the claim says of one ε."""
    return (
        Published(
            piece=comparison.name,
            paper="normalising is better",
            column=GAIN,
            better="",
            within=(-1.0, TOLERANCE),
            remark="held: no C and rate of the grid is more than 0.02 above",
        ),
        Published(
            piece=comparison.name,
            paper=0.0,
            column=SMALLEST,
            better="",
            derived="clipping is normalising where all gradients are longer than C",
        ),
    )


BY_NAME = {comparison.name: comparison for comparison in COMPARISONS}
TABLE = Table(
    setting=SETTING,
    pieces=tuple(BY_NAME),
    rows=measured_by_name(BY_NAME, measure),
    measured=MEASURED,
    published=tuple(one for comparison in COMPARISONS for one in published(comparison)),
)
