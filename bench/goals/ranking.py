"""Goals whose answers are rankings: the attack scores candidates, of which some are members and the others are not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from fedarena.contracts.inference import Scores
from fedarena.goals.challenge import Challenge
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.goals.metrics.membership import RATES, false_positives
from fedarena.goals.metrics.roc import roc
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, auc, rate, span, values

if TYPE_CHECKING:
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record


class RankingText(GoalText):
    """The words of `Ranking`."""

    @property
    @abstractmethod
    def distinguishes(self) -> str:
        """What an attack distinguishes, such as 'who was in a batch'."""

    members: ClassVar[str] = ""
    """What half of the candidates are, such as 'members'; empty if there are no candidates."""

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not self.members or not (counts := values(records, "candidates")):
            return []
        asked = f"Candidates: {span(counts)} a cell and seed, half of them {self.members}."
        return [f"Without any attack: AUC {blind_auc(records)}. {asked}{outsiders(records)}"]

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            metric="auc",
            tie="auc",
            outcome=partial(auc, unclear=", not distinguishable from chance"),
            finds=f"tells {self.distinguishes} with {{outcome}}",
        )

    def lines(self, cell: Cell) -> list[str]:
        if "auc" not in cell.metrics:
            return []
        lines = [auc(cell), f"advantage {cell.metrics['advantage'].value:.2f}"]
        measured = [(name, fpr) for name, fpr in RATES.items() if name in cell.metrics]
        return lines + [f"finds {rate(cell.metrics, name)} at {100 * fpr:g} % FPR" for name, fpr in measured]


class Ranking(InferenceGoal):
    """Answers are judged by the area under the ROC curve."""

    text: ClassVar[RankingText]

    @abstractmethod
    def pooled(self, answer: Any, challenge: Challenge) -> tuple[Sequence[Scores], Sequence[Tensor]]:
        """All scores, and which of the candidates are members (bool), by observation. They are ranked together."""

    def series(self, answer: Any, challenge: Challenge) -> dict[str, list[list[float]]]:
        """`roc`: [false positive rate, true positive rate], see `fedarena.goals.metrics.roc`."""
        return {"roc": roc(*self.pooled(answer, challenge))}

    def leak(self, metrics: Mapping[str, float]) -> float:
        """The leak is (AUC − c)/(1 − c); c, the AUC without an upload, is .5 where the files of the data are alike."""
        chance = chance_of(metrics)
        return (metrics["auc"] - chance) / (1 - chance)

    def chance(self, metrics: Mapping[str, float]) -> tuple[str, float]:
        return "auc", chance_of(metrics)


def blind(problem: Problem) -> dict[str, float]:
    """What the data give away without an upload, as a metric; nothing where training and held-out data are alike."""
    return {"blind_auc": problem.blind_auc} if problem.blind_auc != 0.5 else {}


def chance_of(metrics: Mapping[str, float]) -> float:
    """c, the AUC without an upload."""
    return metrics.get("blind_auc", 0.5)


def blind_auc(records: Sequence[Record]) -> str:
    """The AUC that needs no upload."""
    told = sorted({chance_of(r["metrics"]) for r in records if "auc" in r["metrics"]} or {0.5})
    return " or ".join(f"{auc:g}" for auc in told)


def outsiders(records: Sequence[Record]) -> str:
    """A sentence that says how many outsiders each false positive rate allows, or why it cannot be measured.

    Half of the candidates are outsiders.
    """
    parts: list[str] = []
    missing: dict[str, list[str]] = {}
    for name, fpr in RATES.items():
        counts = [r["metrics"]["candidates"] / 2 for r in records if name in r["metrics"]]
        few = [r["metrics"]["candidates"] / 2 for r in records if "auc" in r["metrics"] and name not in r["metrics"]]
        if counts:
            allowed = span([false_positives(fpr, round(n)) for n in counts])
            parts.append(f"{100 * fpr:g} % FPR is {allowed} of {span(counts)} outsiders")
        if few:
            missing.setdefault(span(few), []).append(f"{100 * fpr:g} %")
    for outside, rates in missing.items():
        parts.append(f"{' and '.join(rates)} FPR cannot be measured on {outside} outsiders, of whom one is more")
    return f" {'; '.join(parts)}." if parts else ""
