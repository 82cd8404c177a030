"""Property inference (Melis, Song, De Cristofaro & Shmatikov, IEEE S&P 2019, Algorithm 3), through any protocol.

In each attacked round the attacker lets the client function run on batches of its own. In some batches all samples have
the property, in the others all lack it. From the uploads a classifier learns to distinguish the two kinds. It then
classifies what the victim sent, or the attacker's estimate of it:

    forest         a random forest on the updates of all rounds; this is the paper's attack, and all of its paper form
    round-forest   a random forest in each round, on more batches
    ridge          a linear classifier in each round (`helpers/round_ridge.py`)

The score of a round's classifier is divided by the standard deviation of its scores for own batches in that round.

In the adaptive form the attacker chooses between classifiers, and between features of an update
(`helpers/update_features.py`), by trying them on batches of samples that it held back. In the paper form that would
show nothing: its own updates never went through the protocol, and any features separate those.

Where the mean of several clients is seen, one of them, drawn for each batch, is taken to have the property and the
others to lack it: "the property of one participant" of Section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from fedarena.attacks.property.cards.property_inference import Options
from fedarena.attacks.property.helpers.forest import forest_scores
from fedarena.attacks.property.helpers.own_batches import Lesson, OwnBatches
from fedarena.attacks.property.helpers.round_ridge import STRENGTHS, ridge_scores
from fedarena.attacks.property.helpers.update_features import reader
from fedarena.contracts.inference import GoalName, Inference, Progress, PropertyScores, Scores, Watch
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.problem.schedule import Schedule

FEWEST = 3
"""The fewest rounds of a schedule: two are attacked, and one follows them."""

CHECKS = 4
"""Own batches of either kind on which classifiers are tried, in each round."""

FOREST, ROUND_FOREST, RIDGE = "forest", "round-forest", "ridge"
BEST = "best"
SLOPES = "slopes"
TRIED = ("margins", SLOPES)
"""Features from which features=best chooses; the paper form takes the first."""


class Classifier(NamedTuple):
    """A classifier of batches.

    Attributes:
        kind: a forest, a forest in each round, or a ridge. detail: the features it gets, or the ridge's strength.
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class RoundScores:
    """Scores of one round.

    Attributes:
        seen: the score of the victim's update. checks: the scores of held-back own batches [2·CHECKS]; none in the
            paper form.
    """

    seen: float
    checks: Tensor

    @classmethod
    def of(cls, scores: Tensor) -> RoundScores:
        """Split scores: first those of held-back batches, last that of the victim."""
        return cls(float(scores[-1]), scores[:-1])

    def standardised(self) -> RoundScores:
        """The scores in standard deviations from the mean of the held-back batches' scores."""
        mean, deviation = float(self.checks.mean()), float(self.checks.std()) or 1.0
        return RoundScores((self.seen - mean) / deviation, (self.checks - mean) / deviation)


class PropertyInference(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.property.cards.property_inference.Options`."""

    goal: ClassVar[GoalName] = "property"
    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = True

    def watch(self, schedule: Schedule) -> Watch:
        """Attack every `stride`-th round from `start`. All rounds between are written down, and one after the last.

        From the broadcast of that one a client learns the last update.
        """
        o = self.options
        if schedule.rounds < FEWEST:
            raise UserError(
                f"attack property-inference: option 'rounds' is {schedule.rounds}, allowed: {FEWEST} or more: two are "
                "attacked, and one follows them"
            )
        last = min(o.start + o.stride * (o.rounds - 1) + 1, schedule.rounds - 1)
        victims = tuple(range(o.start, last, o.stride))
        if len(victims) < 2:
            raise UserError(
                f"attack property-inference: option 'start' is {o.start} and option 'stride' is {o.stride}, allowed "
                f"with {schedule.rounds} rounds: so that 2 rounds can be attacked and one is left after them"
            )
        return Watch(o.start, last, victims)

    def run(self, view: View, rng: Rng, progress: Progress) -> PropertyScores | NotApplicable:
        o, adaptive = self.options, view.threat.form == "adaptive"
        own = OwnBatches.of(view, o.match_classes, adaptive, rng.child("own"))
        wanted, kinds = self._classifiers(adaptive), self._kinds(adaptive)
        scores: dict[Classifier, list[RoundScores]] = defaultdict(list)
        features: dict[str, list[RoundFeatures]] = defaultdict(list)
        for i, seen in enumerate(view.observations):
            stream = rng.child("round", i)
            noise = seen.noise_std if adaptive else 0.0
            count = CHECKS if adaptive else 0
            checks = own.lesson(seen, "check", count, count, stream)
            queries = [*noisy(checks.updates, noise, stream.child("noise", "check")), seen.target]
            if FOREST in wanted:
                few = own.lesson(seen, "train", o.with_batches, o.without_batches, stream.child("few"))
                of_round = self._features(kinds, few, queries, noise, stream.child("noise", "few"))
                for kind, part in of_round.items():
                    features[kind].append(part)
            if ROUND_FOREST in wanted or RIDGE in wanted:
                many = own.lesson(seen, "train", o.round_batches, o.round_batches, stream.child("many"))
                for name, values in self._in_round(wanted, kinds, many, queries, noise, stream).items():
                    scores[name].append(RoundScores.of(values).standardised())
            progress((i + 1) / (len(view.observations) + 1), f"round {seen.round}")
        over_rounds = {kind: over_all(parts, rng.child("forest")) for kind, parts in features.items()}
        return answer(scores, over_rounds, adaptive)

    def _classifiers(self, adaptive: bool) -> tuple[str, ...]:
        """The classifiers that are tried; the paper form has the forest alone."""
        if not adaptive:
            return (FOREST,)
        return (FOREST, ROUND_FOREST, RIDGE) if self.options.classifier == BEST else (self.options.classifier,)

    def _kinds(self, adaptive: bool) -> tuple[str, ...]:
        """The kinds of features that are tried."""
        if self.options.features != BEST:
            return (self.options.features,)
        return TRIED if adaptive else TRIED[:1]

    def _features(
        self, kinds: Sequence[str], lesson: Lesson, queries: Sequence[Tensors], noise: float, rng: Rng
    ) -> dict[str, RoundFeatures]:
        """The features of a round's updates, by kind."""
        updates, features = noisy(lesson.updates, noise, rng), {}
        for kind in kinds:
            read = reader(kind, lesson.updates)
            x = torch.stack([read(update) for update in updates])
            features[kind] = RoundFeatures(x, lesson.has, torch.stack([read(update).float() for update in queries]))
        return features

    def _in_round(
        self,
        wanted: Sequence[str],
        kinds: Sequence[str],
        lesson: Lesson,
        queries: Sequence[Tensors],
        noise: float,
        rng: Rng,
    ) -> dict[Classifier, Tensor]:
        """Scores of `queries` by classifiers of this round."""
        scores_of: dict[Classifier, Tensor] = {}
        if RIDGE in wanted:
            x, victims = (torch.stack([flatten(u).float() for u in some]) for some in (lesson.updates, queries))
            scores = ridge_scores(x, lesson.has.to(x.device), victims, noise)
            scores_of |= {Classifier(RIDGE, f"{w:g}"): some.cpu() for w, some in zip(STRENGTHS, scores, strict=True)}
        if ROUND_FOREST in wanted:
            for kind, shown in self._features(kinds, lesson, queries, noise, rng.child("noise", "many")).items():
                if shown.x.shape[1]:
                    seen = forest_scores(shown.x, shown.has, shown.queries, rng.child("forest"))
                    scores_of[Classifier(ROUND_FOREST, kind)] = seen
        return scores_of


@dataclass(frozen=True)
class RoundFeatures:
    """Features of one round's updates.

    Attributes:
        x: features of own batches [n, f]. has: which of them have the property. queries: those to be scored [m, f].
    """

    x: Tensor
    has: Tensor
    queries: Tensor


NO_WEIGHTS = NotApplicable("what was seen has no weights, and features=code shows nothing else")


def over_all(shown: Sequence[RoundFeatures], rng: Rng) -> list[RoundScores] | NotApplicable:
    """The scores of one forest for all rounds."""
    widths = {s.x.shape[1] for s in shown}
    if widths == {0}:
        return NO_WEIGHTS
    if len(widths) > 1:
        return NotApplicable("what was seen has another size in each round, and one forest for all cannot be trained")
    x, has = torch.cat([s.x for s in shown]), torch.cat([s.has for s in shown])
    scores = forest_scores(x, has, torch.cat([s.queries for s in shown]), rng)
    return [RoundScores.of(part) for part in scores.split([len(s.queries) for s in shown])]


def answer(
    scores: Mapping[Classifier, Sequence[RoundScores]],
    over_rounds: Mapping[str, Sequence[RoundScores] | NotApplicable],
    adaptive: bool,
) -> PropertyScores | NotApplicable:
    """The scores of the best classifier, or why there is none.

    Args:
        scores: scores of classifiers that were trained within rounds.
        over_rounds: scores of one forest for all rounds, by the kind of features.
        adaptive: whether classifiers were tried on held-back batches; else there is only one.
    """
    forests = {Classifier(FOREST, kind): of for kind, of in over_rounds.items() if not isinstance(of, NotApplicable)}
    every = {**scores, **forests}
    if not every:
        return next((why for why in over_rounds.values() if isinstance(why, NotApplicable)), NO_WEIGHTS)
    if adaptive:
        return choose(every)
    ((name, of_forest),) = every.items()
    return PropertyScores(values=seen_scores(of_forest), own_auc=None, by_round=False, by_slopes=name.detail == SLOPES)


def choose(scores: Mapping[Classifier, Sequence[RoundScores]]) -> PropertyScores:
    """The scores of the classifier that does best on held-back batches."""
    has = torch.arange(2 * CHECKS) < CHECKS
    auc = {
        c: membership_metrics([Scores(torch.cat([r.checks for r in rounds]))], [has.repeat(len(rounds))])["auc"]
        for c, rounds in scores.items()
    }
    best = max(auc, key=lambda c: auc[c])
    return PropertyScores(
        values=seen_scores(scores[best]),
        own_auc=auc[best],
        by_round=best.kind != FOREST,
        by_slopes=best.detail == SLOPES,
    )


def seen_scores(rounds: Sequence[RoundScores]) -> Tensor:
    """The scores of the victims' updates [observations]."""
    return torch.tensor([r.seen for r in rounds], dtype=torch.float64)


def noisy(updates: Sequence[Tensors], std: float, rng: Rng) -> list[Tensors]:
    """The updates with noise like the protocol's."""
    if not std:
        return list(updates)
    generator = rng.torch()
    return [{n: t + std * torch.randn(t.shape, generator=generator).to(t) for n, t in u.items()} for u in updates]
