"""Goals of attacks that read a finished run: how such an attack is challenged, judged, scored and drawn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference, Watch
from fedarena.contracts.peers import Peers
from fedarena.contracts.transcript import cut
from fedarena.core.options import check_acting
from fedarena.core.text.figures import Strip
from fedarena.core.threat import FORMS, PARTIES, VISIBILITY, Form, NotApplicable, Party, Threat, Visibility
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec, Training, training_under
from fedarena.federation.spec import threats as every_threat
from fedarena.goals import inference_table
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.goal import Axis, Choices, Goal, PartyFacts, wanted_of
from fedarena.goals.inference_table import table
from fedarena.goals.pairing_table import Cell, Images
from fedarena.goals.text import GoalText
from fedarena.problem.task import Batch
from fedarena.records.results import Gallery, GroupResult

if TYPE_CHECKING:
    from fedarena.core.rng import Rng
    from fedarena.federation.finished_run import FinishedRun
    from fedarena.federation.rounds import Run
    from fedarena.goals.pairing_table import Figure, PairingTable
    from fedarena.problem.problem import Problem
    from fedarena.problem.spec import ProblemSpec
    from fedarena.records.results import GroupResult
    from fedarena.records.schema import Record


Draw = Callable[[int, int], Batch | None]
"""(round, client) → the batch that the client works on; None: the client draws as usual."""


class InferenceGoal(Goal):
    """What an attack that reads a finished run is after."""

    text: ClassVar[GoalText]
    """The words of the goal."""

    axis: ClassVar[Axis] = "privacy"
    idle_options: ClassVar[Mapping[str, str]] = {"knows": "reads and poisons nothing: leave it out"}

    parties: ClassVar[tuple[Party, ...]] = PARTIES
    """The parties that can have this goal."""

    undefended_form: ClassVar[Form] = "adaptive"
    """The form in which the run without a defense is attacked for comparison, if both forms are wanted."""

    forms_differ: ClassVar[bool] = False
    """Whether the forms of an attack differ even without a defense. Each form is then compared with itself."""

    reads_uploads: ClassVar[bool] = False
    """Whether its attacks read uploads, by way of `FinishedRun.readings`, and count in the score of privacy. Then what
    the defense says of its messages is held against the harness's own reading (`fedarena.goals.control`)."""

    what_leaks: ClassVar[str] = ""
    """What uploads leak if such an attack is better than a guess."""

    # -- what an attack with this goal has to do ------------------------------------------------------

    def refuse(self, problem: Problem, protocol: Defense, attack: Inference) -> None:
        """Refuse a problem that the attack cannot be run on at all, before anything is trained. Raises UserError."""

    def draws(self, problem: Problem, protocol: Defense, attack: Inference, watch: Watch, root: Rng) -> Draw | None:
        """What clients work on, where the experiment determines it; None: they draw as usual.

        Args:
            root: of the trial, whose child "federation" is the run's.
        """
        return None

    @abstractmethod
    def challenges(
        self, finished: FinishedRun, transcript: PartyTranscript, attack: Inference
    ) -> Sequence[Challenge | NoChallenge] | NotApplicable:
        """One challenge for each reading of what the party saw, or the reason why there is none."""

    @abstractmethod
    def judge(self, answer: Any, challenge: Challenge) -> dict[str, float]:
        """The metrics of an answer. Any exception makes the trial a failed one."""

    @abstractmethod
    def leak(self, metrics: Mapping[str, float]) -> float:
        """The advantage over guessing; values beyond [0, 1] are clipped."""

    def chance(self, metrics: Mapping[str, float]) -> tuple[str, float]:
        """The metric whose interval tells an answer from a guess, and what a guess reaches. Goals that read uploads
        have one."""
        raise NotImplementedError

    def pictures(self, answer: Any, challenge: Challenge) -> tuple[Tensor, Tensor] | None:
        """Originals and guesses [n, channels, height, width] to draw; None: there are none."""
        return None

    def series(self, answer: Any, challenge: Challenge) -> dict[str, list[list[float]]]:
        """Curves that the record keeps beside the metrics: points [x, y] by name.

        x is the round unless the name says otherwise.
        """
        return {}

    # -- what every goal says -------------------------------------------------------------------------

    def choices(self, attack: MethodSpec) -> Choices:
        return Choices(parties=self.parties, forms=FORMS)

    def threats(self, attack: MethodSpec, wanted: Choices) -> tuple[Threat, ...]:
        return every_threat(wanted_of(self.parties, wanted.parties), wanted_of(FORMS, wanted.forms))

    def undefended(self, threats: tuple[Threat, ...]) -> tuple[Threat, ...]:
        """The threats in each wanted form, or in `undefended_form` alone if the forms do not differ."""
        forms = tuple(dict.fromkeys(t.form for t in threats))
        if not self.forms_differ and len(forms) > 1:
            forms = (self.undefended_form,)
        return every_threat(tuple(dict.fromkeys(t.party for t in threats)), forms)

    def undefended_choices(self, wanted: Choices) -> Choices:
        return replace(wanted, forms=(self.undefended_form,))

    def check_options(self, attack: MethodSpec, owner: str, threats: Sequence[Threat]) -> None:
        parties, forms = dict.fromkeys(t.party for t in threats), dict.fromkeys(t.form for t in threats)
        check_acting(attack.options, owner, parties, forms)

    def require_runnable(self, spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
        method = compose.make_inference(attack)
        method.watched(spec.schedule)
        self.refuse(problem, protocol, method)
        method.fit(problem.task)

    def groups(self, spec: GroupSpec, threats: tuple[Threat, ...]) -> list[GroupSpec]:
        return [replace(spec, threats=threats)]

    def clean_runs(self, spec: GroupSpec) -> list[GroupSpec]:
        """There are none: the run that is read is clean itself."""
        return []

    def references_beside(self, spec: GroupSpec) -> list[GroupSpec]:
        """An experiment that determines what clients work on needs a FedAvg run of its own."""
        plain = MethodSpec(BASELINE)
        if not self._shapes_training() or spec.defense == plain:
            return []
        whom = tuple(replace(threat, form=self.undefended_form) for threat in spec.threats)
        return [replace(spec, defense=plain, threats=whom)]

    def training(self, spec: GroupSpec) -> Training:
        return training_under(spec, spec.attack if self._shapes_training() else None)

    def references(self, spec: GroupSpec) -> tuple[Training, Training]:
        run = self.training(spec)
        return run, replace(run, defense=MethodSpec(BASELINE))

    def _shapes_training(self) -> bool:
        """Whether the goal's experiment determines what clients work on."""
        return type(self).draws is not InferenceGoal.draws

    def scores(self, metrics: Mapping[str, float], utility: Mapping[str, Any]) -> dict[str, float]:
        return self.privacy(metrics)

    def privacy(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """The scores leak and privacy = 1 − leak; leak is the advantage over guessing."""
        leak = min(1.0, max(0.0, self.leak(metrics)))
        return {"leak": leak, "privacy": 1.0 - leak}

    def why_not(self, threat: Threat, attack: MethodSpec, problem: Problem, protocol: Defense, run: Run) -> str:
        if not run.rounds:  # too few clients were left in all of them
            return ""
        if threat.party == "client" and run.rounds[0].averaged == (threat.client,):  # a rule may select others later
            return ""
        given = self._given(threat, compose.make_inference(attack), problem, protocol, run)
        return given.reason if isinstance(given, NotApplicable) else ""

    def explain(self, problem: Problem, protocol: Defense, run: Run, attack: MethodSpec) -> list[PartyFacts]:
        rows, method = [], compose.make_inference(attack)
        for threat in every_threat(self.parties, FORMS):
            given = self._given(threat, method, problem, protocol, run)
            text = f"n/a: {given.reason}" if isinstance(given, NotApplicable) else given
            sees = visible_parts(VISIBILITY[threat.party], protocol)
            rows.append(PartyFacts(threat.party, threat.form, sees, text))
        return rows

    def _given(
        self, threat: Threat, attack: Inference, problem: Problem, protocol: Defense, run: Run
    ) -> str | NotApplicable:
        transcript = PartyTranscript(threat, cut(run.rounds, threat, problem.data_of(threat)), (0,))
        return self.text.given(problem, protocol, transcript, attack)

    def table(self, records: Sequence[Record], defense: str, attack: str) -> PairingTable:
        return inference_table.pairing_table(records, defense, attack, self.text, self.parties)

    def figure(self, results: Sequence[GroupResult], defense: str, attack: str) -> Figure | None:
        """The originals and guesses of `pictures`."""
        return guesses_figure(results, defense, attack, self.text)


def above(value: float, prior: float) -> float:
    """(value − prior)/(1 − prior): the share reached of what a guess leaves open; 0 where the prior is 1."""
    return (value - prior) / (1 - prior) if prior < 1 else 0.0


def visible_parts(visibility: Visibility, protocol: Defense) -> str:
    """What a party sees of the training, in words."""
    if isinstance(protocol, Peers):
        if visibility.state:
            return "nothing: there is no server"
        own = "all edges of its own and of those that collude with it; its own model and data"
        return own if visibility.own else "one edge, both ways" if visibility.ups else "nothing of the training"
    summed = protocol.secure is not None
    parts = {
        "the broadcast": visibility.down,
        "the mean of a round's uploads and every masked message" if summed else "every upload": visibility.ups,
        "W and the round's secrets": visibility.state,
        "its own data and upload, in the rounds it is sampled": visibility.own,
    }
    return "; ".join(name for name, seen in parts.items() if seen) or "nothing of the training"


def guesses_figure(results: Sequence[GroupResult], defense: str, attack: str, text: GoalText) -> Images | None:
    """Originals and reconstructions of the first seed, by party; None when nothing was reconstructed."""
    first = results[0].spec.seed
    records = [r for result in results for r in result.records if r["seed"] == first]
    pictures = {g.key: g for result in results for g in result.galleries}
    strips: list[Strip] = []
    for party, row in table(records, defense, text).items():
        cells = {name: c for name, c in row.items() if c is not None}
        strips += _strips(party, cells, pictures, gap=bool(strips))
    if not strips or strips[0].images is None or strips[0].images.dim() != 4:
        return None
    dataset = records[0]["problem"]["dataset"]
    return Images(f"{defense} against {attack} on {dataset}, seed {first}", strips)


def _strips(party: str, cells: Mapping[str, Cell], pictures: Mapping[str, Gallery], gap: bool) -> list[Strip]:
    """The originals of one party and a strip for each cell; empty where nothing was reconstructed.

    Of a secure sum the originals are all clients', and those of single uploads are others. So they are drawn again
    wherever they change.
    """
    shown = {name: pictures.get(c.keys[0]) for name, c in cells.items()}
    first = next((gallery.originals for gallery in shown.values() if gallery is not None), None)
    if first is None:
        return []
    strips, last = [Strip(f"{party}: originals", first, gap=gap)], first
    for name, gallery in shown.items():
        c, images = cells[name], None
        if gallery is not None:
            images = gallery.guesses
            if not torch.equal(gallery.originals, last):
                last = gallery.originals
                strips.append(Strip(f"{party}: originals", last, gap=True))
        strips.append(Strip("\n".join([name, *_shares(c)]), images, f"{c.status}: {c.reason}"))
    return strips


def _shares(cell: Cell) -> list[str]:
    """What stands beside a picture: the shares identified and recovered, over all seeds."""
    return [f"{name} {100 * v:.0f} %" for name in ("identified", "recovered") if (v := cell.value(name)) is not None]
