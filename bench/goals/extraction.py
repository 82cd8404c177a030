"""Extraction: the server's model, from what is sent in training.

Agreement says little by itself: if the server's model is untrained or broken and names one class for all inputs, a
constant prediction agrees with it everywhere. The leak is therefore measured above the best constant prediction, whose
agreement is shown beside every other one. Where the best constant prediction agrees everywhere, nothing leaks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from fedarena.contracts.inference import Extraction, Inference
from fedarena.contracts.observation import Reading
from fedarena.core.text.numbers import number, percent
from fedarena.core.threat import NotApplicable
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal, above
from fedarena.goals.metrics.extraction import Exam, extraction_metrics, secret_metrics
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, percent_of, rate, span, target_of, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record

SECRET = "secret_error_"


class ModelExtractionText(GoalText):
    """The words of `ModelExtraction`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            metric="agreement",
            tie="final_agreement",
            outcome=lambda c: f"{percent_of('agreement')(c)}{_beside(c)}",
            finds="takes a model that agrees with the server's by {outcome}",
        )

    def lines(self, cell: Cell) -> list[str]:
        m = cell.metrics
        if "agreement" not in m:
            return []
        lines = [f"agreement {rate(m, 'agreement')}"]
        if "prior_agreement" in m:
            lines.append(f"a constant's {percent(m['prior_agreement'])}")
        lines.append(f"in the last round {rate(m, 'final_agreement')}")
        if "stolen_accuracy" in m:
            lines.append(f"by true labels {number(m['stolen_accuracy'])} of {number(m['server_accuracy'])}")
        for name, title in (("output_error", "outputs: error"), ("parameter_cosine", "parameters: cosine")):
            if name in m:
                lines.append(f"{title} {number(m[name])}")
        return lines + [f"secret {n.removeprefix(SECRET)}: error {m[n].value:.2g}" for n in m if n.startswith(SECRET)]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not (models := values(records, "models")):
            return []
        priors = values(records, "prior_agreement")
        sentences = [
            f"Without any attack: the best constant prediction agrees by {span([100 * p for p in priors])} % with the "
            "server's model; a model that the attacker trains on samples of its own would agree by more. Rounds looked "
            f"at: {span(models)} a cell and seed."
        ]
        if max(priors) == 1:
            sentences.append(
                "Where it agrees by all 100 %, the server's model says the same of every input: agreement says "
                "nothing there, and none of it counts as a leak."
            )
        return sentences

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        """What the attack is given of the last round played, which unlike the first may build on others."""
        disclosures = defense.disclosures(transcript.threat, transcript.seen, sorted(transcript.seen)[-1:])
        if isinstance(disclosures, NotApplicable):
            return disclosures
        last = disclosures[-1]
        secrets = f"\nestimates of the round's secrets: {', '.join(last.secrets)}" if last.secrets else ""
        return f"broadcast: a model of {target_of(last.params)}{secrets}"


class ModelExtraction(InferenceGoal):
    """Answers are a `fedarena.contracts.inference.Extraction` per disclosure, compared with the server's model of that
    round."""

    text: ClassVar[GoalText] = ModelExtractionText()

    of_data: ClassVar[bool] = False

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        disclosures = finished.defense.disclosures(
            transcript.threat, transcript.seen, last_seen(transcript.seen, transcript.victims)
        )
        if isinstance(disclosures, NotApplicable):
            return disclosures
        problem, reading = finished.problem, Reading("broadcast", ())
        rounds = [finished.round(d.round) for d in disclosures]
        view = replace(finished.view(transcript.threat, attack, reading), disclosures=tuple(disclosures))
        models = tuple(r.params for r in rounds)
        exam = Exam(problem.task, problem.x_test, problem.y_test, problem.scale, models)
        return [Challenge(reading.name, view, exam, secret_metrics(disclosures, [r.secret for r in rounds]))]

    def judge(self, answer: list[Extraction], challenge: Challenge) -> dict[str, float]:
        return extraction_metrics(answer, challenge.answers)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(agreement − prior)/(1 − prior), where the prior is the best constant prediction's; 0 where the prior is
        1."""
        return above(metrics["agreement"], metrics["prior_agreement"])


def last_seen(seen: Iterable[int], rounds: Iterable[int]) -> tuple[int, ...]:
    """For each of `rounds`, the last round up to it that the party saw: a client does not see rounds in which it is not
    sampled.

    Each round is given once. A round before the first one that the party saw gives none."""
    seen = sorted(seen)
    positions = (bisect_right(seen, t) for t in rounds)
    return tuple(dict.fromkeys(seen[i - 1] for i in positions if i))


def _beside(c: Cell) -> str:
    """The constant prediction's agreement. Each defense's server has its own model, and so its own prior."""
    prior = c.value("prior_agreement")
    if prior is None:
        return ""
    return f" (a constant: {'over 99 %' if 0.995 <= prior < 1 else percent_of('prior_agreement')(c)})"


GOAL = ModelExtraction()
