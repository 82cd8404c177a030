"""Membership in the training set: which of the candidates a released model was trained on.

Members are samples of the clients other than the curious one; they do not depend on the attacker. Strangers are
held-out samples of the half that no attacker owns (`fedarena.federation.population`). Every class has as many strangers
as members, so that the class reveals nothing. Where labels are numbers, the samples are taken together. A member is a
sample of a participant's data set: chance decides whether a batch of FedSGD ever held it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference, Scores
from fedarena.contracts.observation import Candidates, Reading
from fedarena.contracts.view import Population
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import number
from fedarena.core.threat import EVERYONE, Form, NotApplicable, Party, Threat
from fedarena.federation.population import halves
from fedarena.goals.candidates import Question
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.goals.pairing_table import Cell
from fedarena.goals.ranking import Ranking, RankingText, blind, chance_of
from fedarena.goals.released_model import model_in_words, model_of

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.problem.problem import Problem

MOST = 5000
"""The largest number of members among the candidates; there are as many strangers."""


class TrainingMembershipText(RankingText):
    """The words of `TrainingMembership`."""

    distinguishes = "who was in the training set"
    members = "trained on"

    def lines(self, cell: Cell) -> list[str]:
        lines = super().lines(cell)
        if lines and "member_accuracy" in cell.metrics:
            inside, outside = (number(cell.metrics[name]) for name in ("member_accuracy", "stranger_accuracy"))
            lines.append(f"the model itself: {inside} on members, {outside} on strangers")
        return lines

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        threat = transcript.threat
        what = model_in_words(defense, threat)
        if isinstance(what, NotApplicable):
            return what
        members = trained_on(problem, threat)
        candidates = draw_question(problem, members, halves(problem, 0)[1], Rng(0)).members
        lines = [what, f"{len(candidates)} candidates: half of them samples of other clients, half held out, shuffled"]
        if attack.needs_population:
            lines.append(f"{len(halves(problem, 0)[0]):,} held-out samples of its own, none a candidate")
            lines += [f"and its shard, {len(problem.shards[threat.client]):,} samples"] if threat.visibility.own else []
        lines.append("shadows are trained " + ("plainly" if threat.form == "paper" else "through the protocol"))
        return "\n".join(lines)


class TrainingMembership(Ranking):
    """The answer is one `fedarena.contracts.inference.Scores`, compared with which candidates are members."""

    text: ClassVar[RankingText] = TrainingMembershipText()

    parties: ClassVar[tuple[Party, ...]] = EVERYONE
    undefended_form: ClassVar[Form] = "paper"

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        held, problem, seed = model_of(finished, transcript.threat), finished.problem, finished.spec.root
        if isinstance(held, NotApplicable):
            return held
        members = trained_on(problem, transcript.threat)
        if not len(members):
            return NotApplicable("no sample that was trained on is unknown to the curious client")
        question = draw_question(problem, members, halves(problem, seed)[1], Rng(seed).child("candidates"))
        if not len(question.members):
            return NotApplicable("no held-out sample has a class of a member")
        view = finished.view(transcript.threat, attack, Reading(held.reading, ()))
        view = replace(
            view,
            model=held.model,
            candidates=question.candidates,
            protocol=finished.defense,
            initial=registry.find("model", finished.spec.problem.model)
            .load()(finished.spec.problem.model_options)
            .init,
            population=None if view.population is None else _with_own(view.population, problem, transcript.threat),
        )
        known = _fit(problem, held.params, question) | blind(problem)
        return [Challenge(held.reading, view, question.members, known)]

    def judge(self, answer: list[Scores], challenge: Challenge) -> dict[str, float]:
        return membership_metrics(*self.pooled(answer, challenge), grouped=False, chance=chance_of(challenge.metrics))

    def pooled(self, answer: list[Scores], challenge: Challenge) -> tuple[Sequence[Scores], Sequence[Tensor]]:
        return answer, [challenge.answers]


def trained_on(problem: Problem, threat: Threat) -> Tensor:
    """Indices of the training samples that other clients hold and client `threat.client` does not, ascending.

    If there are none, a party without data of its own gets all samples.
    """
    own = problem.shards[threat.client]
    others = torch.cat([own[:0], *(s for c, s in enumerate(problem.shards) if c != threat.client)]).unique()
    unknown = others[~torch.isin(others, own)]
    return unknown if len(unknown) or threat.visibility.own else own.sort().values


def draw_question(problem: Problem, members: Tensor, strangers: Tensor, rng: Rng) -> Question:
    """Draw as many members as strangers of each class, shuffled, at most `MOST` of either in all.

    Args:
        members: indices of training samples. strangers: indices of held-out samples.
    """
    generator, device = rng.torch(), problem.device
    labels = problem.y[members], problem.y_test[strangers]
    if not problem.task.n_classes:  # one class for all
        labels = torch.zeros_like(members), torch.zeros_like(strangers)
    counts = torch.minimum(*(y.bincount(minlength=max(1, problem.task.n_classes)) for y in labels))
    share = min(1.0, MOST / max(1, int(counts.sum())))
    chosen: tuple[list[Tensor], list[Tensor]] = ([], [])
    for k, count in enumerate(counts.tolist()):
        for into, pool, y in zip(chosen, (members, strangers), labels, strict=True):
            of_class = pool[y == k]
            order = torch.randperm(len(of_class), generator=generator)[: int(share * count)]
            into.append(of_class[order.to(device)])
    inside, outside = (torch.cat(parts) for parts in chosen)
    order = torch.randperm(2 * len(inside), generator=generator)
    x = torch.cat([problem.inputs(inside), problem.x_test[outside].float() / problem.scale])
    y = torch.cat([problem.y[inside], problem.y_test[outside]])
    return Question(Candidates(x[order.to(device)], y[order.to(device)]), order < len(inside))


def _with_own(collected: Population, problem: Problem, threat: Threat) -> Population:
    """The samples that an attacker holds: those that it collected, and a client's own shard."""
    data = problem.data_of(threat) if threat.visibility.own else None
    if data is None:
        return collected
    x, y = data.images()
    return Population(torch.cat([collected.x, x]), torch.cat([collected.y, y]))


def _fit(problem: Problem, params: Mapping[str, Tensor], question: Question) -> dict[str, float]:
    """How well the model predicts members and strangers. A model that overfits predicts members better."""
    task, (x, y), inside = (
        problem.task,
        (question.candidates.x, question.candidates.y),
        question.members.to(problem.device),
    )
    out = task.predictions(params, x, 1.0)
    return {
        name: task.criterion.quality(out[which], y[which])
        for name, which in (("member_accuracy", inside), ("stranger_accuracy", ~inside))
    }


GOAL = TrainingMembership()
