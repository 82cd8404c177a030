"""Source: which client holds a sample that is known to be trained on (Hu et al. 2021).

The candidates are samples of the clients that were seen one by one, as many of each client, in random order. So naming
any one client is right for one in so many. No candidate is held by two of them. Classes may tell more than that, where
clients hold different ones. What the best guess by classes alone reaches stands beside the accuracy. It counts as a
leak, since nobody but the clients knows their classes.

A sum of several clients' uploads belongs to none of them alone. So behind a secure sum there is nothing to be named,
and a client that sees the mean of the others can name nobody. `fedarena.goals.asked_clients` says how many clients and
samples are asked about at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference, Sources
from fedarena.contracts.observation import Candidates, Reading
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable, Threat
from fedarena.goals.asked_clients import MOST_SAMPLES, asked_about, readings_of, some_of
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal, above
from fedarena.goals.metrics.source import prior_source_metrics, source_metrics
from fedarena.goals.own_samples import of_others, why_all_own
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, average, given_of_readings, percent_of, rate, span, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record

TOGETHER = "what was seen is of several clients together, or of one alone: there is none to be told from others"


class SourceText(GoalText):
    """The words of `Source`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            metric="source_accuracy",
            tie="source_accuracy",
            outcome=percent_of("source_accuracy"),
            finds="names the client that holds a sample for {outcome} of them",
        )

    def lines(self, cell: Cell) -> list[str]:
        if "source_accuracy" not in cell.metrics:
            return []
        prior = cell.metrics["prior_source_accuracy"].value
        return [f"names {rate(cell.metrics, 'source_accuracy')}", f"any client's name: {100 * prior:.0f} %"]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not (counts := values(records, "samples")):
            return []
        prior, by_class = (100 * average(records, f"{kind}_source_accuracy") for kind in ("prior", "class"))
        clients = span([1 / share for share in values(records, "prior_source_accuracy")])
        return [
            f"Without any attack: naming any of {clients} clients is right for {prior:.0f} % of the samples, and "
            f"naming the one with the largest share of the sample's class for {by_class:.0f} %. Samples: "
            f"{span(counts)} a cell and seed, as many of each client."
        ]

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        def more(readings: Sequence[Reading]) -> str:
            return "the same of every client and of other rounds, with samples of all of them, shuffled"

        return given_of_readings(defense, transcript, attack, more)


class Source(InferenceGoal):
    """The answer is a `fedarena.contracts.inference.Sources`, compared with the clients that hold the candidates."""

    text: ClassVar[GoalText] = SourceText()
    reads_uploads = True
    what_leaks = "which client holds a sample"

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        asked = asked_about(finished, transcript)
        readings = readings_of(finished, transcript, asked, attack)
        if isinstance(readings, NotApplicable):
            return readings
        if (own := why_all_own(finished.problem, transcript.threat)) is not None:
            return own
        made = [self._challenge(finished, transcript.threat, asked, reading, attack) for reading in readings]
        reasons = [one.reason for one in made if isinstance(one, NoChallenge)]
        return made if len(reasons) < len(made) else NotApplicable("; ".join(dict.fromkeys(reasons)))

    def _challenge(
        self, finished: FinishedRun, threat: Threat, asked: Sequence[int], reading: Reading, attack: Inference
    ) -> Challenge | NoChallenge:
        alone = tuple(o for o in reading.observations if len(o.clients) == 1 and o.clients[0] in asked)
        clients, problem = sorted({o.clients[0] for o in alone}), finished.problem
        if len(clients) < 2:
            return NoChallenge(reading.name, TOGETHER)
        held = _held_by_one(problem, threat, clients)
        most = min(MOST_SAMPLES, *map(len, held.values()))
        if not most:
            return NoChallenge(reading.name, "a client that was seen holds no sample that is its alone")
        candidates, holders = _draw(problem, held, most, Rng(finished.spec.root).child("candidates"))
        view = replace(finished.view(threat, attack, replace(reading, observations=alone)), candidates=candidates)
        classes = candidates.y if problem.task.n_classes else None
        known = prior_source_metrics(holders, classes, {c: problem.y[problem.shards[c]] for c in clients})
        return Challenge(reading.name, view, holders, known)

    def judge(self, answer: Sources, challenge: Challenge) -> dict[str, float]:
        return source_metrics(answer.values, challenge.answers, challenge.readings)

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(accuracy − 1/clients)/(1 − 1/clients)."""
        return above(metrics["source_accuracy"], metrics["prior_source_accuracy"])

    def chance(self, metrics: Mapping[str, float]) -> tuple[str, float]:
        return "source_accuracy", metrics["prior_source_accuracy"]


def _held_by_one(problem: Problem, threat: Threat, clients: Sequence[int]) -> dict[int, Tensor]:
    """Client → indices of the samples that it holds alone, and that the attacker does not hold."""
    counts = torch.bincount(torch.cat([problem.shards[c].unique() for c in range(len(problem.shards))]))
    held = {c: of_others(problem, threat, c).unique() for c in clients}
    return {c: some[counts[some] == 1] for c, some in held.items()}


def _draw(problem: Problem, held: Mapping[int, Tensor], most: int, rng: Rng) -> tuple[Candidates, Tensor]:
    """As many samples of each client, shuffled, and who holds each, [m] (int64)."""
    some = torch.cat([some_of(samples, client, rng, most) for client, samples in held.items()])
    holders = torch.tensor([*held]).repeat_interleave(most)
    order = torch.randperm(len(some), generator=rng.child("order").torch())
    some = some[order.to(some.device)]
    return Candidates(problem.inputs(some), problem.y[some]), holders[order]


GOAL = Source()
