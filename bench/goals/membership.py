"""Membership in a batch: which of the candidates were behind an observation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference, Scores
from fedarena.contracts.observation import Reading
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation.population import halves
from fedarena.goals.candidates import Question, draw_questions
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.goals.metrics.reconstruction import median_estimate_metrics
from fedarena.goals.own_samples import of_others, why_all_own
from fedarena.goals.ranking import Ranking, RankingText, blind, chance_of
from fedarena.goals.text import given_of_readings

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.goals.metrics.identification import Truth
    from fedarena.problem.problem import Problem


class BatchMembershipText(RankingText):
    """The words of `BatchMembership`."""

    distinguishes = "who was in a batch"
    members = "members"

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        def candidates(readings: Sequence[Reading]) -> str:
            most = 2 * min(max(o.images for r in readings for o in r.observations), len(problem.y_test))
            return f"and {most} candidates an observation at most: half its samples, half held out, shuffled"

        return given_of_readings(defense, transcript, attack, candidates)


class BatchMembership(Ranking):
    """Answers are a `fedarena.contracts.inference.Scores` per observation, compared with which candidates were
    members."""

    text: ClassVar[RankingText] = BatchMembershipText()
    reads_uploads = True
    finds_other_rounds = True
    what_leaks = "who was in a batch"

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        if finished.problem.task.schedule.augment:
            return NotApplicable("clients change their images at random (training.augment), which gives members away")
        readings = finished.readings(transcript.threat, transcript.seen, transcript.victims)
        if isinstance(readings, NotApplicable):
            return readings
        if (own := why_all_own(finished.problem, transcript.threat)) is not None:
            return own
        challenges: list[Challenge | NoChallenge] = []
        for reading in readings:
            truths = [finished.truth(o) for o in reading.observations]
            questions = self._draw_questions(finished, transcript.threat, reading, truths, attack)
            if not any(len(q.members) for q in questions):
                why = "no batch attacked held a sample, or no held-out sample is of their classes"
                challenges.append(NoChallenge(reading.name, why))
                continue
            view = finished.view(transcript.threat, attack, reading, truths, [q.candidates for q in questions])
            known = median_estimate_metrics(finished, reading.observations) | blind(finished.problem)
            challenges.append(Challenge(reading.name, view, [q.members for q in questions], known))
        return challenges

    def _draw_questions(
        self,
        finished: FinishedRun,
        threat: Threat,
        reading: Reading,
        truths: Sequence[Truth],
        attack: Inference,
    ) -> list[Question]:
        """Draw candidates for every observation.

        They depend on the rounds attacked, their samples, whether half of the held-out data are the attacker's, and
        on the samples that a curious client holds itself.
        """
        problem, rng = finished.problem, Rng(finished.spec.root).child("candidates")
        everyone = torch.arange(len(problem.y_test))
        outsiders = halves(problem, finished.spec.root)[1] if attack.needs_population else everyone
        whose = [o.clients for o in reading.observations]
        shards = {c: of_others(problem, threat, c) for c in {*chain(*whose)}}
        held = {c: (problem.inputs(shard), problem.y[shard]) for c, shard in shards.items()}
        return draw_questions(problem, held, outsiders, list(zip(whose, truths, strict=True)), rng)

    def judge(self, answer: list[Scores], challenge: Challenge) -> dict[str, float]:
        return membership_metrics(
            *self.pooled(answer, challenge), readings=challenge.readings, chance=chance_of(challenge.metrics)
        )

    def pooled(self, answer: list[Scores], challenge: Challenge) -> tuple[Sequence[Scores], Sequence[Tensor]]:
        return answer, challenge.answers


GOAL = BatchMembership()
