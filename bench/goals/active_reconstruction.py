"""Reconstruction by a malicious server, which shapes the rounds that it attacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from fedarena.contracts.active_inference import ActiveInference
from fedarena.contracts.inference import Inference
from fedarena.core.text.numbers import percent
from fedarena.core.threat import NotApplicable, Party
from fedarena.federation.tampered_run import tampered_run
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.metrics.client_checks import CHECKS, checked_rounds
from fedarena.goals.reconstruction import Reconstructions, ReconstructionsText
from fedarena.goals.text import GoalText, average, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.goals.pairing_table import Cell
    from fedarena.problem.problem import Problem
    from fedarena.records.schema import Record


def as_server(transcript: PartyTranscript) -> PartyTranscript:
    """The same for an honest server: what comes back is read as any server reads it."""
    return replace(transcript, threat=replace(transcript.threat, party="server"))


class ActiveReconstructionsText(ReconstructionsText):
    """The words of `ActiveReconstructions`."""

    def lines(self, cell: Cell) -> list[str]:
        by_victims, by_others = _fired(cell, ""), _fired(cell, "_others")
        told = [f"noticed by {by_victims}"] * bool(by_victims) + [f"by other clients: {by_others}"] * bool(by_others)
        return [*super().lines(cell), *told]

    def baseline(self, records: Sequence[Record]) -> list[str]:
        sentences = super().baseline(records)
        if told := [name for name in CHECKS if values(records, f"check_{name}_honest")]:
            honest = ", ".join(f"{name} {100 * average(records, f'check_{name}_honest'):.0f} %" for name in told)
            sentences.append(
                "Clients follow the protocol. Noticed by is the share of attacked rounds in which a check of the "
                f"broadcast by the victims would have fired; of honest rounds it fires in: {honest}."
            )
        if any(values(records, f"check_{name}_others") for name in CHECKS):
            sentences.append("Other clients are those to which the server sends another model than to the victims.")
        return sentences

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        given = super().given(problem, defense, as_server(transcript), attack)
        return given if isinstance(given, NotApplicable) else f"{given}\nof messages that it chooses itself"


def _fired(cell: Cell, whose: str) -> str:
    """'loss 0 %, norm 100 %': how often checks fire; empty if they cannot be made."""
    metrics = {name: cell.metrics.get(f"check_{name}{whose}") for name in CHECKS}
    return ", ".join(f"{name} {percent(m)}" for name, m in metrics.items() if m is not None)


class ActiveReconstructions(Reconstructions):
    """Answers are `fedarena.contracts.inference.Guess`, as of `fedarena.goals.reconstruction`."""

    text: ClassVar[GoalText] = ActiveReconstructionsText()
    parties: ClassVar[tuple[Party, ...]] = ("malicious-server",)
    reads_uploads = False  # no reading of honest rounds can be held against these
    finds_other_rounds = False
    of_data = False

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        if not isinstance(attack, ActiveInference):
            raise TypeError(f"attack {type(attack).__name__} has the goal of attacks that shape rounds, but no `craft`")
        run = tampered_run(finished, attack, transcript.victims)
        if isinstance(run, NotApplicable):
            return run
        challenges = super().challenges(run, as_server(transcript), attack)
        if isinstance(challenges, NotApplicable):
            return challenges
        checks = checked_rounds(run)
        return [replace(c, metrics={**c.metrics, **checks}) if isinstance(c, Challenge) else c for c in challenges]


GOAL = ActiveReconstructions()
