"""Membership in a client's data set: which of the candidates the client holds, by its uploads of the whole training.

Every upload of a client is a statement about its samples, and what one of them hides another may tell. So an attack
gets all uploads of the rounds that it reads, of every client. A protocol that is private with ε over the whole training
bounds such an attack, too. One that protects most of its rounds does not.

Candidates are asked about a client each. Half of them are samples that it holds, the other half are held out
(`fedarena.goals.candidates`). `fedarena.goals.asked_clients` says how many clients and samples are asked about at most.

A protocol may protect most clients and give one away. So the client that is told best is judged beside all of them. For
each fifth of the candidates it is chosen on the other fifths, so that luck does not choose it. Where its interval lies
above that of all candidates together, its AUC counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference, Scores
from fedarena.contracts.observation import Candidates, Reading
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import number
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation.population import halves
from fedarena.goals.asked_clients import asked_about, readings_of, some_of
from fedarena.goals.candidates import draw_questions
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.metrics.auc_interval import share_below
from fedarena.goals.metrics.membership import membership_metrics, ranked
from fedarena.goals.own_samples import of_others, why_all_own
from fedarena.goals.pairing_table import Cell
from fedarena.goals.ranking import Ranking, RankingText, blind, chance_of
from fedarena.goals.text import given_of_readings, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record

FOLDS = 5


class ClientMembershipText(RankingText):
    """The words of `ClientMembership`."""

    distinguishes = "who is in a client's data set"
    members = "held by the client that is asked about"

    def lines(self, cell: Cell) -> list[str]:
        lines = super().lines(cell)
        if lines and "auc_all_clients" in cell.metrics:
            lines.append(f"AUC over all clients {number(cell.metrics['auc_all_clients'])}")
        return lines

    def baseline(self, records: Sequence[Record]) -> list[str]:
        sentences = super().baseline(records)
        if values(records, "auc_all_clients"):
            sentences.append(
                "Where a cell has an AUC over all clients, one client is told better, and the first is its."
            )
        return sentences

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        def candidates(readings: Sequence[Reading]) -> str:
            return "the same of every client and of other rounds, with candidates: half a client's, half held out"

        return given_of_readings(defense, transcript, attack, candidates)


@dataclass(frozen=True)
class Answers:
    """What scores are compared with.

    Attributes:
        members: which candidates the client holds that they are asked about, [m] (bool).
        clients: that client, [m] (int64).
        folds: which fifth of the candidates each is in, [m] (int64), with as many members of each client in all, or one
            less.
    """

    members: Tensor
    clients: Tensor
    folds: Tensor


class ClientMembership(Ranking):
    """The answer is one `fedarena.contracts.inference.Scores` for all candidates."""

    text: ClassVar[RankingText] = ClientMembershipText()
    reads_uploads = True
    what_leaks = "who is in a client's data set"

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        clients = asked_about(finished, transcript)
        readings = readings_of(finished, transcript, clients, attack)
        if isinstance(readings, NotApplicable):
            return readings
        if (own := why_all_own(finished.problem, transcript.threat)) is not None:
            return own
        return [self._challenge(finished, transcript.threat, clients, reading, attack) for reading in readings]

    def _challenge(
        self, finished: FinishedRun, threat: Threat, clients: Sequence[int], reading: Reading, attack: Inference
    ) -> Challenge | NoChallenge:
        shown = {*chain(*(o.clients for o in reading.observations))} & {*clients}
        if not shown:
            return NoChallenge(reading.name, "none of the clients that are asked about was seen")
        candidates, answers = _draw_question(finished, threat, sorted(shown), attack)
        if not len(answers.members):
            return NoChallenge(reading.name, "no held-out sample has a class of a client that was seen")
        view = replace(finished.view(threat, attack, reading), candidates=candidates)
        return Challenge(reading.name, view, answers, blind(finished.problem))

    def judge(self, answer: list[Scores], challenge: Challenge) -> dict[str, float]:
        scores, members = self.pooled(answer, challenge)
        more: dict[str, Any] = {"readings": challenge.readings, "chance": chance_of(challenge.metrics)}
        together = membership_metrics(scores, members, **more)
        told_best = _told_best(answer[0].values.double().cpu(), challenge.answers)
        if told_best is None:
            return together
        one = membership_metrics(*told_best, grouped=False, **more)
        if one["auc_low"] <= membership_metrics(scores, members, grouped=False, **more)["auc_high"]:
            return together
        counted = {name: value for name, value in one.items() if name.startswith(("auc", "advantage"))}
        return together | counted | {"auc_all_clients": together["auc"]}

    def pooled(self, answer: list[Scores], challenge: Challenge) -> tuple[Sequence[Scores], Sequence[Tensor]]:
        truth: Answers = challenge.answers
        if len(answer) != 1 or answer[0].values.shape != truth.members.shape:
            raise ValueError(f"{len(answer)} lists of scores for one list of {len(truth.members)} candidates")
        of_clients = [truth.clients == client for client in truth.clients.unique()]
        return [Scores(answer[0].values.cpu()[which]) for which in of_clients], [truth.members[w] for w in of_clients]


def _draw_question(
    finished: FinishedRun, threat: Threat, clients: Sequence[int], attack: Inference
) -> tuple[Candidates, Answers]:
    """Candidates of every client, and what is true of them."""
    problem, rng = finished.problem, Rng(finished.spec.root).child("candidates")
    everyone = torch.arange(len(problem.y_test))
    strangers = halves(problem, finished.spec.root)[1] if attack.needs_population else everyone
    held = {}
    for client in clients:
        shard = of_others(problem, threat, client)
        some = some_of(shard, client, rng)
        held[client] = problem.inputs(some), problem.y[some]
    questions = draw_questions(problem, held, strangers, [((c,), held[c]) for c in clients], rng)
    x, y = (torch.cat([getattr(q.candidates, part) for q in questions]) for part in ("x", "y"))
    truths = [q.members.cpu() for q in questions]
    members, folds = torch.cat(truths), torch.cat([_folds(one) for one in truths])
    asked = torch.tensor([*clients]).repeat_interleave(torch.tensor([len(one) for one in truths]))
    return Candidates(x, y, asked.to(problem.device)), Answers(members, asked, folds)


def _folds(members: Tensor) -> Tensor:
    """Shares members and outsiders out in turn, [m] (int64)."""
    return torch.where(members, members.cumsum(0), (~members).cumsum(0)) % FOLDS


def _told_best(values: Tensor, truth: Answers) -> tuple[list[Scores], list[Tensor]] | None:
    """The scores of the client that is told best, and which candidates are members; None where there is no choice.

    In each fifth of the candidates it is the client that is told best in the others.
    """
    clients = truth.clients.unique().tolist()
    if len(clients) < 2:
        return None
    chosen = torch.zeros_like(truth.members)
    for fold in range(FOLDS):
        here = truth.folds == fold
        aucs = {client: _auc(values, truth, (truth.clients == client) & ~here) for client in clients}
        chosen |= here & (truth.clients == max(clients, key=lambda client: aucs[client]))
    if chosen.sum() == truth.members[chosen].sum() or not truth.members[chosen].any():
        return None
    return [Scores(values[chosen])], [truth.members[chosen]]


def _auc(values: Tensor, truth: Answers, which: Tensor) -> float:
    """The AUC of some of the candidates; 0 where they are all alike."""
    inside, outside = ranked(values[which & truth.members]), ranked(values[which & ~truth.members])
    return float(share_below(inside, outside).mean()) if len(inside) and len(outside) else 0.0


GOAL = ClientMembership()
