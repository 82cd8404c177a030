"""Estimate: the gradient, or the update, itself (DBCL, Section 6.3 and Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, ClassVar

import torch

from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.contracts.estimand import GRADIENT
from fedarena.contracts.inference import GradientEstimate, Inference
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import weights
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.text.numbers import number, percent
from fedarena.core.threat import NotApplicable, Threat
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.estimate_figure import estimate_figure
from fedarena.goals.inference_goal import InferenceGoal, above
from fedarena.goals.metrics.reconstruction import estimate_metrics
from fedarena.goals.pairing_table import Cell
from fedarena.goals.text import GoalText, Wording, given_of_readings, span, values

if TYPE_CHECKING:
    from fedarena.contracts.defense import Defense
    from fedarena.contracts.observation import Observation
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.goals.pairing_table import Panels
    from fedarena.problem.problem import Problem
    from fedarena.records.results import GroupResult
    from fedarena.records.schema import Record

CONTROL = "control_"
NOTHING = {"cosine": 0.0, "relative_l2": 1.0}
"""The metrics of a guess of zero."""


@dataclass(frozen=True)
class Truths:
    """What estimates are compared with, by observation.

    Attributes:
        rounds: the rounds of the observations.
        values: the true gradients or updates, by the names of the estimates.
        controls: cosine and relative L2 error of a guess that uses nothing of the other clients; see `control`.
    """

    rounds: tuple[int, ...]
    values: tuple[Tensors, ...]
    controls: tuple[dict[str, float], ...]


class EstimatesText(GoalText):
    """The words of `Estimates`."""

    def wording(self, metrics: Sequence[str]) -> Wording:
        return Wording(
            metric="cosine",
            tie="cosine",
            outcome=lambda c: f"cosine {c.metrics['cosine'].value:.2f}",
            finds="estimates the gradient with {outcome}",
        )

    def lines(self, cell: Cell) -> list[str]:
        m = cell.metrics
        if "cosine" not in m:
            return []
        own = m["control_cosine"]
        lines = [f"cosine {number(m['cosine'])}", f"relative L2 {_short(m['relative_l2'].value)}"]
        lines += ["in canonical form"] if "canonical" in m else []
        lines += [f"own upload: cosine {number(own)}"] if own.value else []
        others = ((name, other.value("relative_l2")) for name, other in cell.beside)
        lines += [f"{name}: relative L2 {_short(value)}" for name, value in others if value is not None]
        return lines + ([f"over {percent(m['share'])} of the parameters"] if m["share"].value < 1 else [])

    def baseline(self, records: Sequence[Record]) -> list[str]:
        if not (rounds := values(records, "estimates")):
            return []
        sentences = [
            f"Medians over rounds: {span(rounds)} a cell and seed. A guess of zero has cosine 0 and relative L2 1; a "
            "client may take its own samples for the others', which its cells show as `own upload`."
        ]
        if values(records, "canonical"):
            sentences.append(
                "Estimates by parties that do not know the factors by which a protocol scales units are in canonical "
                "form (incoming weights of length 1 for every hidden unit): no function depends on these factors, and "
                "estimate and truth are compared without them."
            )
        if min(values(records, "share")) < 1:
            sentences.append(
                "Where a share of the parameters is named, the estimate is of those alone: the others cross the wire "
                "in clear, or are not estimated."
            )
        return sentences

    def given(
        self, problem: Problem, defense: Defense, transcript: PartyTranscript, attack: Inference
    ) -> str | NotApplicable:
        def estimated(readings: Sequence[Reading]) -> str:
            estimates = [(o.estimate, o.estimate_of.name) for r in readings for o in r.observations[:1]]
            sizes = [
                f"{sum(t.numel() for t in e.values()):,} numbers of the {of}" for e, of in estimates if e is not None
            ]
            return f"estimates: {', '.join(dict.fromkeys(sizes)) or 'none'}"

        return given_of_readings(defense, transcript, attack, estimated)


class Estimates(InferenceGoal):
    """Answers are a `fedarena.contracts.inference.GradientEstimate` per observation, compared with what it
    estimates."""

    text: ClassVar[GoalText] = EstimatesText()

    of_data: ClassVar[bool] = False

    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        readings = finished.readings(transcript.threat, transcript.seen, transcript.victims)
        if isinstance(readings, NotApplicable):
            return readings
        with_estimate = [r for r in readings if all(o.estimate is not None for o in r.observations)]
        if not with_estimate:
            return NotApplicable("what was seen is matched as it is: the gradient is not estimated from it")
        return [self._challenge(finished, transcript.threat, reading, attack) for reading in with_estimate]

    def _challenge(self, finished: FinishedRun, threat: Threat, reading: Reading, attack: Inference) -> Challenge:
        seen = reading.observations
        truths = tuple(finished.estimated(o) for o in seen)
        controls = tuple(control(finished, threat, o, truth) for o, truth in zip(seen, truths, strict=True))
        known = {CONTROL + name: median(c[name] for c in controls) for name in NOTHING}
        known |= {"estimates": float(len(seen)), "share": share(finished, truths[0])}
        if seen[0].estimate_of.canonical:
            known["canonical"] = 1.0
        answers = Truths(tuple(o.round for o in seen), truths, controls)
        return Challenge(reading.name, finished.view(threat, attack, reading), answers, known)

    def judge(self, answer: list[GradientEstimate], challenge: Challenge) -> dict[str, float]:
        """The medians over rounds."""
        errors = _each(answer, challenge.answers)
        return {name: median(one[name] for one in errors) for name in NOTHING}

    def series(self, answer: list[GradientEstimate], challenge: Challenge) -> dict[str, list[list[float]]]:
        truths: Truths = challenge.answers
        measured = {"": _each(answer, truths), CONTROL: truths.controls}
        return {
            prefix + name: [[t, one[name]] for t, one in zip(truths.rounds, errors, strict=True)]
            for prefix, errors in measured.items()
            for name in NOTHING
        }

    def leak(self, metrics: Mapping[str, float]) -> float:
        """(cosine − control)/(1 − control)."""
        return above(metrics["cosine"], metrics["control_cosine"])

    def figure(self, results: Sequence[GroupResult], defense: str, attack: str) -> Panels | None:
        records = [r for result in results for r in result.records]
        return estimate_figure(records, defense, attack, self.text)


def control(finished: FinishedRun, threat: Threat, observation: Observation, truth: Tensors) -> dict[str, float]:
    """How good a client's guess is if it takes its own samples for those of all clients.

    This control accompanies an estimate because any cosine is high where clients are alike.

    For a gradient, the guess is the plain gradient of the client's own samples. For an update, it is the step that the
    server would take if the client's upload were the only one. Server and eavesdropper have no samples of their own and
    guess zero.
    """
    r, client = finished.round(observation.round), threat.client
    if not threat.visibility.own or client not in r.participants:
        return NOTHING
    if observation.estimate_of == GRADIENT:
        return estimate_metrics(finished.estimated(replace(observation, clients=(client,))), truth)
    at, state = r.participants.index(client), State(r.params, round=r.index)
    up = {name: t[at : at + 1] for name, t in r.ups.items()}
    cohort = Cohort((client,), weights(finished.problem.task.sizes, (client,)).to(finished.problem.device))
    step = finished.defense.direction(
        state, Broadcast(r.down, r.secret), up, cohort, Rng(finished.spec.root).child("control")
    )
    alone = replace(r, after=finished.defense.in_round(r.index).step(state, step.step)[0])
    return estimate_metrics(finished.estimated(observation, alone), truth)


def share(finished: FinishedRun, truth: Tensors) -> float:
    """The share of the model's parameters that an estimate covers."""
    whole = sum(p.numel() for p in finished.problem.init.values())
    return sum(t.numel() for t in truth.values()) / whole


def _each(answer: Sequence[GradientEstimate], truths: Truths) -> list[dict[str, float]]:
    if len(answer) != len(truths.values):
        raise ValueError(f"{len(answer)} estimates for {len(truths.values)} observations")
    device = torch.device("cpu")
    pairs = zip(answer, truths.values, strict=True)
    return [estimate_metrics(_on(a.values, device), _on(truth, device)) for a, truth in pairs]


def _on(tensors: Tensors, device: torch.device) -> Tensors:
    return {name: t.to(device) for name, t in tensors.items()}


def _short(value: float) -> str:
    """A number in few characters: errors range over many decades."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


GOAL = Estimates()
