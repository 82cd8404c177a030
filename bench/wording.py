"""What is said of an inference attack, after what it is after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedarena.records import Record
    from fedarena.summary import Cell


@dataclass(frozen=True)
class Wording:
    """One goal in words.

    Attributes:
        metric: what a cell is told by; a cell with more of it is worse for the defender.
        tie: decides between cells that have the same; by it the goal is known too.
        undefended, defended: how a sentence begins; {attack} and {defense} are filled in, and outcomes follow.
        outcome: a cell's in a few words.
        adaptive: what sets the adaptive form apart.
    """

    metric: str
    tie: str
    undefended: str
    defended: str
    outcome: Callable[[Cell], str]
    adaptive: str = "matched through the protocol"


def percent_of(name: str) -> Callable[[Cell], str]:
    """A share in whole percent."""
    return lambda c: f"{100 * c.metrics[name].value:.0f} %"


def auc(c: Cell) -> str:
    """AUC with its 95 % interval: over seeds where there are several, else over the observations of the one."""
    value, low, high = c.metrics["auc"], c.value("auc_low"), c.value("auc_high")
    if value.half is not None:
        low, high = max(0.0, value.value - value.half), min(1.0, value.value + value.half)
    return f"AUC {value.value:.2f}" + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")


WORDINGS = (
    Wording(
        "recovered",
        "ssim",
        "Without a defense {attack} recovers of the images",
        "Of the images, {attack} recovers from {defense}",
        percent_of("recovered"),
    ),
    Wording(
        "recovered",
        "psnr",
        "Without a defense {attack} recovers of the rows",
        "Of the rows, {attack} recovers from {defense}",
        percent_of("recovered"),
    ),
    Wording(
        "auc",
        "auc",
        "Without a defense {attack} tells who was in a batch with",
        "{attack} tells who was in a batch under {defense} with",
        auc,
    ),
    Wording(
        "label_accuracy",
        "label_accuracy",
        "Without a defense {attack} reads of the labels",
        "Of the labels, {attack} reads from {defense}",
        percent_of("label_accuracy"),
    ),
    Wording(
        "agreement",
        "final_agreement",
        "Without a defense the model that {attack} takes agrees with the server's by",
        "The model that {attack} takes from {defense} agrees with the server's by",
        percent_of("agreement"),
        "read with the protocol in mind",
    ),
)
"""Earlier ones first: a reconstruction is judged by its labels too, and images by what rows of a table are."""


def wording(names: Sequence[str]) -> Wording:
    """The wording for what was measured, by the metrics' names; reconstruction where nothing was."""
    return next((w for w in WORDINGS if w.tie in names), WORDINGS[0])


def guessing(records: Sequence[Record], mean: Callable[[str], float]) -> str:
    """A clause: how good a guess is that sees nothing; empty for reconstructions, whose priors stand in the table.

    Args:
        mean: a metric's mean over the records that have it.
    """
    having = {name for r in records for name in r["metrics"]}
    if "auc" in having:
        return "; chance is 0.5"
    if "prior_label_accuracy" in having and "recovered" not in having:
        return f"; classes' frequencies alone give {100 * mean('prior_label_accuracy'):.0f} %"
    if "prior_agreement" in having:
        return f"; the best constant prediction agrees by {100 * mean('prior_agreement'):.0f} %"
    return ""
