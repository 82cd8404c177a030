"""Reconstruction by corrupted clients, which poison the rounds that they attack and read the next broadcast.

Beside what they identify stands what the same attack identifies of the same victims in the same rounds, if they send
what the protocol has them send. The difference is what the poison gains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.curious_poisoning import CuriousPoisoning
from fedarena.contracts.inference import Guess, Inference
from fedarena.core.text.numbers import percent
from fedarena.core.threat import FORM_MEANING, NotApplicable, Party, Threat
from fedarena.federation.adversary import require_corrupted
from fedarena.federation.poisoned_rounds import poisoned_rounds, why_unreadable
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.metrics.reconstruction import Victims
from fedarena.goals.reconstruction import Reconstructions, ReconstructionsText
from fedarena.goals.text import GoalText, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.federation.spec import MethodSpec
    from fedarena.goals.pairing_table import Cell
    from fedarena.problem.problem import Problem
    from fedarena.problem.spec import ProblemSpec
    from fedarena.records.schema import Record

WITHOUT = "identified_without_poison"
"""The metric of the control."""


def as_client(threat: Threat, problem: Problem) -> Threat:
    """The same for the first corrupted client, if it were curious alone."""
    return replace(threat, party="client", client=problem.corrupted[0])


class CuriousPoisoningText(ReconstructionsText):
    """The words of `CuriousPoisonings`."""

    def lines(self, cell: Cell) -> list[str]:
        if WITHOUT not in cell.metrics:
            return super().lines(cell)
        return [*super().lines(cell), f"without poison {percent(cell.metrics[WITHOUT])}"]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        sentences = super().baseline(records)
        if not values(records, WITHOUT):
            return sentences
        return [
            *sentences,
            "Without poison is what the same attack identifies of the same victims if the corrupted clients send "
            "what the protocol has them send.",
        ]

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        if (why := why_unreadable(defense)) is not None:
            return why
        numbers = sum(p.numel() for p in defense.task.model.parameters())
        knows = attack.knows if isinstance(attack, CuriousPoisoning) else "own"
        others = "\nand every honest upload, before they send theirs" if knows == "omniscient" else ""
        return (
            f"difference: {numbers:,} numbers of two broadcasts\n({FORM_MEANING[transcript.threat.form]})\n"
            f"after a round in which {len(problem.corrupted)} corrupted clients send what they like{others}"
        )


class CuriousPoisonings(Reconstructions):
    """Answers are `fedarena.contracts.inference.Guess`, as of `fedarena.goals.reconstruction`."""

    text: ClassVar[GoalText] = CuriousPoisoningText()
    parties: ClassVar[tuple[Party, ...]] = ("corrupted-clients",)
    idle_options: ClassVar[Mapping[str, str]] = {"knows": "has an option of its own: attack.knows"}
    reads_uploads = False  # no reading of honest rounds can be held against these
    finds_other_rounds = False
    of_data = False

    def require_attackers(self, spec: ProblemSpec, attack: MethodSpec) -> None:
        require_corrupted(spec.corrupted, attack.label)

    def require_runnable(self, spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
        self.require_attackers(spec, attack)
        super().require_runnable(spec, problem, protocol, attack)

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        if not isinstance(attack, CuriousPoisoning):
            raise TypeError(f"attack {type(attack).__name__} has the goal of attacks that poison, but no `craft`")
        threat = as_client(transcript.threat, finished.problem)
        run = poisoned_rounds(finished, attack, threat, transcript.victims)
        if isinstance(run, NotApplicable):
            return run
        return super().challenges(run, replace(transcript, threat=threat), attack)

    def judge(self, answer: Guess, challenge: Challenge) -> dict[str, float]:
        half = len(answer) // 2
        metrics = super().judge(answer[:half], part(challenge, slice(0, half)))
        without = super().judge(answer[half:], part(challenge, slice(half, None)))
        return metrics | {WITHOUT: without["identified"]}

    def pictures(self, answer: Guess, challenge: Challenge) -> tuple[Tensor, Tensor] | None:
        half = len(answer) // 2
        return super().pictures(answer[:half], part(challenge, slice(0, half)))


def part(challenge: Challenge, which: slice) -> Challenge:
    """The challenge of some of its observations."""
    victims: Victims = challenge.answers
    sizes = [len(y) for _, y in victims.truths]
    chosen = torch.zeros(len(sizes), dtype=torch.bool)
    chosen[which] = True
    mask = chosen.repeat_interleave(torch.tensor(sizes))
    some = replace(victims, truths=victims.truths[which], decoys=victims.decoys.chosen(mask))
    view = replace(challenge.view, observations=challenge.view.observations[which])
    return replace(challenge, view=view, answers=some)


GOAL = CuriousPoisonings()
