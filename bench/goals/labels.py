"""Labels: the classes behind an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from fedarena.contracts.inference import Inference, Labels
from fedarena.core.threat import NotApplicable
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal, above
from fedarena.goals.metrics.labels import label_metrics, prior_label_metrics
from fedarena.goals.metrics.reconstruction import median_estimate_metrics
from fedarena.goals.own_samples import classes_of_others
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, average, percent_of, rate, span, values

if TYPE_CHECKING:
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.records.schema import Record


class BatchLabelsText(GoalText):
    """The words of `BatchLabels`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            metric="label_accuracy",
            tie="label_accuracy",
            outcome=percent_of("label_accuracy"),
            finds="reads {outcome} of the labels",
        )

    def lines(self, cell: Cell) -> list[str]:
        return [] if "label_accuracy" not in cell.metrics else [f"labels {rate(cell.metrics, 'label_accuracy')}"]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not (counts := values(records, "labels")):
            return []
        prior = 100 * average(records, "prior_label_accuracy")
        return [
            f"Without any attack: guessing by the classes' frequencies names {prior:.0f} % of the labels. "
            f"Labels: {span(counts)} a cell and seed."
        ]


class BatchLabels(InferenceGoal):
    """Answers are a `fedarena.contracts.inference.Labels` per observation, compared with the classes behind it."""

    text: ClassVar[GoalText] = BatchLabelsText()
    reads_uploads = True
    finds_other_rounds = True
    what_leaks = "labels"

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        readings = finished.readings(transcript.threat, transcript.seen, transcript.victims)
        if isinstance(readings, NotApplicable):
            return readings
        if not finished.problem.task.n_classes:
            return NotApplicable("the labels are numbers: there are no classes to be named")
        challenges = []
        for reading in readings:
            truths = [finished.truth(o) for o in reading.observations]
            classes, sizes = [y for _, y in truths], [o.images for o in reading.observations]
            known = median_estimate_metrics(finished, reading.observations)
            known |= prior_label_metrics(classes, sizes, classes_of_others(finished.problem, transcript.threat))
            view = finished.view(transcript.threat, attack, reading, truths)
            challenges.append(Challenge(reading.name, view, (classes, sizes), known))
        return challenges

    def judge(self, answer: list[Labels], challenge: Challenge) -> dict[str, float]:
        classes, sizes = challenge.answers
        return label_metrics(answer, classes, sizes, challenge.readings)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(accuracy − prior)/(1 − prior), where the prior is that of a guess that knows only the classes'
        frequencies."""
        return above(metrics["label_accuracy"], metrics["prior_label_accuracy"])

    def chance(self, metrics: Mapping[str, float]) -> tuple[str, float]:
        return "label_accuracy", metrics["prior_label_accuracy"]


GOAL = BatchLabels()
