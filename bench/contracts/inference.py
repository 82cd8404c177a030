"""The contract of inference attacks: functions of a view that return a guess. They never judge themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, final

import torch
from torch import Tensor

from fedarena.contracts.answers import Contents, accepted, require_same_shapes
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.contracts.goal_names import GoalName as GoalName
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View, seal
from fedarena.core.errors import UserError, of_type, place_of
from fedarena.core.global_generators import generators_of
from fedarena.core.rng import Rng
from fedarena.core.short_repr import ShortRepr
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

Progress = Callable[[float, str], None]
"""Called with the share done in [0, 1] and a short text."""


LAST_ROUNDS, OTHER_ROUNDS = "last rounds", "other rounds"
"""The parts of a training that an attack may read beside the rounds that it chose (`Watch.elsewhere`)."""


@dataclass(frozen=True)
class Watch:
    """Which rounds an attack wants to be written down.

    Attributes:
        first: first round.
        last: last round, inclusive.
        victims: the rounds within them that it will attack. One that is named twice counts once.
        near: how many rounds before and after each victim are written down; None: all of them from first to last.
        drawn: how many of the victims are attacked, drawn by the harness: no protocol can then protect these alone.
            None: all of them.
    """

    first: int
    last: int
    victims: tuple[int, ...]
    near: tuple[int, int] | None = None
    drawn: int | None = None

    def __post_init__(self) -> None:
        # Otherwise an attack could choose how often a round is judged, and so what is likely to be true of it.
        object.__setattr__(self, "victims", tuple(dict.fromkeys(self.victims)))

    @property
    def written(self) -> Sequence[int]:
        """The rounds to be written down, ascending."""
        every = range(self.first, self.last + 1)
        if self.near is None:
            return every
        before, after = self.near
        close = {s for t in self.victims for s in range(t - before, t + after + 1)}
        return [t for t in every if t in close]

    @classmethod
    def opening(cls, rounds: int, schedule: Schedule) -> Watch:
        """Attack the first `rounds` rounds, or fewer in a shorter schedule, and write down one round more.

        From the broadcast of that round a client learns the update of the last attacked round.
        """
        last = min(rounds, schedule.rounds - 1)
        return cls(0, last, tuple(range(max(1, last))))

    @classmethod
    def throughout(cls, rounds: int, schedule: Schedule) -> Watch:
        """Attack `rounds` rounds that the harness draws from the whole training.

        The round before each is written down, too, for what it added to a momentum, and the round after it, whose
        broadcast shows a client the update.
        """
        last = schedule.rounds - 1
        return cls(0, last, tuple(range(max(1, last))), near=(1, 1), drawn=rounds)

    def draw(self, rng: Rng) -> Watch:
        """With as many victims as are to be drawn, each as likely as any other."""
        if self.drawn is None:
            return self
        order = torch.randperm(len(self.victims), generator=rng.torch())[: self.drawn]
        return replace(self, victims=tuple(self.victims[i] for i in sorted(order.tolist())), drawn=None)

    @classmethod
    def spread(cls, attack: str, victims: int, start: int, window: int, schedule: Schedule) -> Watch:
        """`victims` rounds spread evenly from `start` over the window. Its last round is never one of them, because a
        client learns an upload from the broadcast that follows it. If clients send momenta, the round before the first
        is written down as well: only with the upload before it does a party know what a round added to a momentum.

        Raises:
            UserError: `start` lies beyond the schedule.
        """
        if start >= schedule.rounds:
            raise UserError(
                f"attack {attack}: option 'start' is {start}, allowed: at most {schedule.rounds - 1} with "
                f"{schedule.rounds} rounds"
            )
        last = min(start + window, schedule.rounds) - 1
        usable = max(1, last - start)
        count = min(victims, usable)
        first = start - 1 if schedule.client_momentum and start else start
        return cls(first, last, tuple(start + i * usable // count for i in range(count)))

    def elsewhere(self, schedule: Schedule, rng: Rng) -> dict[str, Watch]:
        """The same window in other parts of the training, by the part's name.

        `LAST_ROUNDS` is the end of the training. `OTHER_ROUNDS` is at a place that is drawn, each being as likely as
        any other, and overlaps with none. Where a window has no room it is cut. A part of a single round is left out
        where the window is longer, because a client learns an upload from the broadcast after it.
        """
        size, end = self.last - self.first + 1, schedule.rounds
        late = self._within(range(max(self.last + 1, end - size), end))
        gaps = range(self.first), range(self.last + 1, late.first if late else end)
        places = [start for gap in gaps for start in range(gap.start, gap.stop - size + 1)]
        if places:
            start = places[int(torch.randint(len(places), (), generator=rng.torch()))]
            other = self._within(range(start, start + size))
        else:
            other = self._within(max(gaps, key=len))
        parts = {LAST_ROUNDS: late, OTHER_ROUNDS: other}
        return {name: watch for name, watch in parts.items() if watch is not None}

    def _within(self, rounds: range) -> Watch | None:
        """The window in these rounds, which are as many or fewer; None where they are too few."""
        if len(rounds) < min(2, self.last - self.first + 1):
            return None
        if len(rounds) == self.last - self.first + 1:
            victims = tuple(t - self.first + rounds.start for t in self.victims)
        else:
            count = min(len(self.victims), len(rounds) - 1)
            victims = tuple(rounds.start + i * (len(rounds) - 1) // count for i in range(count))
        return Watch(rounds.start, rounds.stop - 1, victims, self.near)


@dataclass(frozen=True, repr=False)
class Reconstruction(ShortRepr):
    """A guess at the samples behind one observation.

    Attributes:
        images: [n, *input_shape]; the harness clips them to the valid range before it scores.
        labels: [n] (int64); where the labels are numbers [n], in [0, 1].
        match: the attacker's own distance, by which it chose among restarts (not a score).
        evaluations: gradient evaluations spent.
        blind: how many of the images are mere guesses, because nothing could be read for them.
    """

    images: Tensor
    labels: Tensor
    match: float
    evaluations: int
    blind: int = 0


@dataclass(frozen=True)
class Scores:
    """For each candidate, how likely it is to be among the samples behind one observation.

    Attributes:
        values: [m], in the order of the candidates; higher: more likely. Only their order counts, within and across
            observations. NaN counts as the least likely.
    """

    values: Tensor


@dataclass(frozen=True)
class Labels:
    """A guess at the classes behind one observation.

    Attributes:
        values: [n] (int64), one a sample, in any order.
    """

    values: Tensor


@dataclass(frozen=True)
class Extraction:
    """A guess at the server's model in one round.

    Attributes:
        params: the plain model's parameters.
    """

    params: Tensors


@dataclass(frozen=True)
class GradientEstimate:
    """A guess at what an observation's `estimate` estimates (`fedarena.contracts.view.Observation`).

    Attributes:
        values: by the plain model's names, the ones that `estimate` has.
    """

    values: Tensors


@dataclass(frozen=True)
class Portraits:
    """A guess at what every class looks like to a model.

    Attributes:
        images: [classes, *input_shape], in the order of the classes; the harness clips them to the valid range.
        steps: how many steps were taken for each class, [classes] (int64).
        queries: the number of samples queried; 0: the model was in clear.
    """

    images: Tensor
    steps: Tensor
    queries: int


@dataclass(frozen=True)
class Sources:
    """A guess at which client holds each candidate.

    Attributes:
        values: [m] (int64), the number of a client, in the order of the candidates.
    """

    values: Tensor


@dataclass(frozen=True)
class PropertyScores:
    """How likely the samples behind each observation are to have the property.

    Attributes:
        values: [observations], in order; higher: more likely. Only their order counts.
        own_auc: the AUC that the attacker reaches on own batches on which its classifier was not trained; None: it did
            not try.
        by_round: whether there is a classifier for each round; else there is one for all rounds.
        by_slopes: whether the classifier sees only how large each layer's inputs were; else it sees more of an update.
    """

    values: Tensor
    own_auc: float | None
    by_round: bool
    by_slopes: bool = False


Guess = list[Reconstruction]
"""One entry per observation of the view, in order."""

Answer = (
    Guess
    | list[Scores]
    | list[Labels]
    | list[Extraction]
    | list[GradientEstimate]
    | Portraits
    | PropertyScores
    | Sources
)
"""What an attack returns; its goal decides which. `Reconstruction`, `Scores`, `Labels` or `GradientEstimate`: one per
observation, in order. `Extraction`: one per disclosure, in order. `Portraits`: one for the whole model.
`PropertyScores`, `Sources`: one for all observations together."""


class Inference(ABC):
    """An attack that reads a view and guesses something private.

    Subclasses write `run`, and `watch` if the first rounds are not what they want. A complete one:

        class MeanImage(Inference):
            def run(self, view, rng, progress):
                grey = torch.full(view.input_shape, 0.5)
                return [
                    Reconstruction(grey.expand(o.images, *grey.shape), torch.zeros(o.images, dtype=torch.long), 0.0, 0)
                    for o in view.observations
                ]
    """

    goal: ClassVar[GoalName] = "reconstruction"
    """The goal. It decides what the harness puts into the view and how it judges the answer."""

    needs_labels: bool = False
    """Whether the attack gets the victims' labels. This is shown beside its results."""

    needs_population: bool = False
    """Whether the attack gets samples of its own, `View.population`. This is shown beside its results."""

    needs_models: bool = False
    """Whether the attack gets the model that the clients behind each observation led to, `Observation.left`, where the
    party knows it. Goals about all uploads of a training, `client-membership` and `source`, give it."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @classmethod
    def fault(cls) -> str:
        """What is wrong with the class beside its methods' parameters, in messages; empty: nothing."""
        return "" if cls.goal in GOAL_NAMES else f"has the goal {cls.goal!r}, allowed: {', '.join(GOAL_NAMES)}"

    def watch(self, schedule: Schedule) -> Watch:
        """The rounds to be written down; by default the first one."""
        return Watch(0, 0, (0,))

    @final
    def watched(self, schedule: Schedule) -> Watch:
        """`watch`. Raises UserError, with its place, where it says no rounds."""
        return of_type(Watch, self.watch(schedule), "attack", type(self).watch)

    def fit(self, task: Task) -> None:  # noqa: B027  (most fit anything)
        """Refuse options that do not fit this model or its inputs, before anything is trained. Raises UserError."""

    def unreadable(self, seen: Observation) -> str:
        """Why an observation of this kind cannot be attacked, whatever its numbers are; empty if it can.

        `bench explain` calls this for the first round. `run` returns `NotApplicable` for the same reason.
        """
        return ""

    @final
    def __call__(self, view: View, rng: Rng, progress: Progress = lambda share, text: None) -> Answer | NotApplicable:
        """Run on a sealed copy of the view. Raises UnusableAnswer where the answer is none of the goal's."""
        with generators_of(rng):
            answer = self.run(seal(view), rng, progress)
        taken = self.taken(answer, view)
        if isinstance(taken, NotApplicable) or _wanted(self.goal, view)[0] is not Reconstruction:
            return taken
        return [_restored(one, o) for one, o in zip(cast("Guess", taken), view.observations, strict=True)]

    @final
    def taken(self, answer: Any, view: View) -> Answer | NotApplicable:
        """What `run` returned, in plain tensors. Raises UnusableAnswer where it is no answer of the goal's."""
        if isinstance(answer, NotApplicable):
            return answer
        taken: Answer = accepted(answer, *_wanted(self.goal, view), self.place)
        if self.goal == "estimate":
            for guess, seen in zip(cast("list[GradientEstimate]", taken), view.observations, strict=True):
                require_same_shapes(guess.values, seen.estimate or {}, self.place)
        if self.goal == "extraction":
            for model, shown in zip(cast("list[Extraction]", taken), view.disclosures, strict=True):
                require_same_shapes(model.params, shown.params, self.place)
        return taken

    @property
    def place(self) -> str:
        """Where `run` is written, in messages about what it returned."""
        return place_of(type(self).run)

    @abstractmethod
    def run(self, view: View, rng: Rng, progress: Progress) -> Answer | NotApplicable:
        """The attack itself."""


def _restored(guess: Reconstruction, seen: Observation) -> Reconstruction:
    """The guess with what the party makes of images that clients changed."""
    return guess if seen.restore is None else replace(guess, images=seen.restore(guess.images.detach().clamp(0, 1)))


def _wanted(goal: GoalName, view: View) -> tuple[type[Any], Contents | list[Contents]]:
    """The class of a goal's answers, and what their tensors are: of one answer, or of each in a list."""
    seen = view.observations
    if goal in ("reconstruction", "active-reconstruction", "curious-poisoning"):
        return Reconstruction, [{"images": (o.images, *view.input_shape), "labels": (o.images,)} for o in seen]
    if goal == "inversion":
        return Portraits, {"images": (None, *view.input_shape), "steps": (None,)}
    if goal == "property":
        return PropertyScores, {"values": (len(seen),)}
    if goal == "source":
        return Sources, {"values": (None if view.candidates is None else len(view.candidates.x),)}
    if goal == "labels":
        return Labels, [{"values": (o.images,)} for o in seen]
    if goal == "extraction":
        return Extraction, [{} for _ in view.disclosures]
    if goal == "estimate":
        return GradientEstimate, [{} for _ in seen]
    asked = [o.candidates for o in seen] if goal == "membership" else [view.candidates]
    return Scores, [{"values": (None if one is None else len(one.x),)} for one in asked]
