"""Labels: the classes behind an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fedarena.contracts.inference import Inference, Labels
from fedarena.contracts.readings import all_readings
from fedarena.core.text.numbers import percent
from fedarena.core.threat import NotApplicable
from fedarena.goals.goal import (
    Challenge,
    Goal,
    PartyTranscript,
    Wording,
    above,
    average,
    given_of_readings,
    percent_of,
    span,
    values,
)
from fedarena.goals.metrics.labels import label_metrics, prior_label_metrics

if TYPE_CHECKING:
    from fedarena.cli.output.pairing_table import Cell
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.record import Record


class BatchLabels(Goal):
    """Answers are a `fedarena.contracts.inference.Labels` per observation, held against the classes behind it."""

    def challenges(
        self, finished: FinishedRun, sights: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge] | NotApplicable:
        readings = all_readings(finished.defense, sights.threat, sights.seen, sights.victims)
        if isinstance(readings, NotApplicable):
            return readings
        if not finished.problem.task.n_classes:
            return NotApplicable("the labels are numbers: there are no classes to be named")
        made = []
        for reading in readings:
            truths = [finished.truth(o) for o in reading.observations]
            classes, sizes = [y for _, y in truths], [o.images for o in reading.observations]
            known = finished.estimate_metrics(reading.observations)
            known |= prior_label_metrics(classes, sizes, finished.problem.y)
            view = finished.view(sights.threat, attack, reading, truths)
            made.append(Challenge(reading.name, view, (classes, sizes), known))
        return made

    def judge(self, answer: list[Labels], challenge: Challenge) -> dict[str, float]:
        return label_metrics(answer, *challenge.answers)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(accuracy − prior)/(1 − prior), the prior being that of a guess which knows the classes' frequencies only."""
        return above(metrics["label_accuracy"], metrics["prior_label_accuracy"])

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            "label_accuracy",
            "label_accuracy",
            "Without a defense {attack} reads of the labels",
            "Of the labels, {attack} reads from {defense}",
            percent_of("label_accuracy"),
        )

    def lines(self, cell: Cell) -> list[str]:
        found = cell.metrics.get("label_accuracy")
        return [] if found is None else [f"labels {percent(found)}"]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not (asked := values(records, "labels")):
            return []
        prior = 100 * average(records, "prior_label_accuracy")
        return [
            f"Without any attack: guessing by the classes' frequencies names {prior:.0f} % of the labels. "
            f"Labels: {span(asked)} a cell and seed."
        ]

    def guessing(self, records: Sequence[Record]) -> str:
        if not values(records, "prior_label_accuracy"):
            return ""
        return f"; classes' frequencies alone give {100 * average(records, 'prior_label_accuracy'):.0f} %"

    def given(self, problem: Problem, defense: Defense, sights: PartyTranscript, attack: Inference) -> str:
        return given_of_readings(defense, sights, attack)
