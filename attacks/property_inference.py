"""Property inference (Melis, Song, De Cristofaro & Shmatikov, IEEE S&P 2019, Algorithm 3), through any protocol.

In each round attacked the attacker lets the client function run on batches of its own, some of samples that all have
the property and some of samples that all lack it, and learns to tell what comes of them. Then it is shown what the
victim sent, or what it could make of it:

    forest   a random forest on the updates of all rounds; the paper's attack, and all that its paper form does
    ridge    a linear classifier in each round, on more batches (`fedarena.attacks.round_ridge`)

Which of the two is better it can tell beforehand: it knows what its own batches are.

Of several clients' mean one is taken to have the property, drawn for each batch, and the others to lack it: 'the
property of one participant' of Section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attack import GoalName, Inference, Progress, PropertyScores, Scores, Watch
from fedarena.attacks.cards.property_inference import Options
from fedarena.attacks.forest import forest, held_out_votes, votes
from fedarena.attacks.round_ridge import round_ridge
from fedarena.attacks.update_features import features
from fedarena.errors import UserError
from fedarena.membership import membership_metrics
from fedarena.population import drawn
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.tensors import Tensors, flatten, same_names
from fedarena.threat import NotApplicable
from fedarena.view import Observation, Population, View


@dataclass(frozen=True)
class Verdicts:
    """What one classifier says, and how well it does on the attacker's own batches.

    Attributes:
        values: [observations], of what was seen. own_auc: on batches that it was not trained on.
    """

    values: Tensor
    own_auc: float


@dataclass(frozen=True)
class Lesson:
    """What the attacker's own batches of one round gave.

    Attributes:
        updates: one for each batch. has: which of them have the property, [batches] (bool).
    """

    updates: list[Tensors]
    has: Tensor


class PropertyInference(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.cards.property_inference.Options`."""

    goal: ClassVar[GoalName] = "property"
    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.knows_population = True

    def watch(self, schedule: Schedule) -> Watch:
        """Every `stride`-th round from `start`; all between are written down, and one after the last, by whose
        broadcast a client learns the update."""
        o = self.options
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
        own = Own.of(view)
        wants_forest, wants_ridge = not adaptive or o.classifier != "ridge", adaptive and o.classifier != "forest"
        shown: list[Tensor] = []
        has: list[Tensor] = []
        ridges: list[Tensor] = []
        own_ridges: list[Tensor] = []
        kinds: list[Tensor] = []
        for i, seen in enumerate(view.observations):
            stream = rng.child("property", i)
            most = o.round_batches if wants_ridge else 0
            lesson = own.lesson(seen, max(o.with_batches, most), max(o.without_batches, most), stream)
            if wants_ridge:
                target, x = flatten(seen.target), torch.stack([flatten(u) for u in lesson.updates])
                told = round_ridge(x, lesson.has, target, seen.noise_std)
                ridges.append(torch.tensor(told.target, dtype=torch.float64))
                own_ridges.append(told.own)
                kinds.append(lesson.has)
            if wants_forest:
                few = self._few(lesson)
                noise = seen.noise_std if adaptive else 0.0
                rows = [features(u, o.features) for u in self._noisy(few.updates, noise, stream)]
                shown.append(torch.stack([*rows, features(seen.target, o.features)]))
                has.append(few.has)
            progress((i + 1) / (len(view.observations) + 1), f"round {seen.round}")
        found: dict[bool, Verdicts] = {}
        if wants_ridge:
            found[True] = Verdicts(torch.stack(ridges), auc(torch.cat(own_ridges), torch.cat(kinds)))
        if wants_forest:
            widths = {x.shape[1] for x in shown}
            if len(widths) == 1 and widths != {0}:
                found[False] = self._forest(shown, has, rng.child("forest"))
            elif not wants_ridge:
                return NotApplicable(
                    "what was seen has no weights for features=code"
                    if widths == {0}
                    else "what was seen has another size in each round, which no one forest can be trained on"
                )
        by_round = max(found, key=lambda k: found[k].own_auc)
        return PropertyScores(found[by_round].values, found[by_round].own_auc, by_round)

    def _few(self, lesson: Lesson) -> Lesson:
        """As many of either kind as the forest is given."""
        o, order = self.options, lesson.has.to(torch.int64)
        at = [*order.nonzero().flatten()[: o.with_batches], *(1 - order).nonzero().flatten()[: o.without_batches]]
        index = torch.stack(at)
        return Lesson([lesson.updates[int(k)] for k in index], lesson.has[index])

    def _noisy(self, updates: Sequence[Tensors], std: float, rng: Rng) -> list[Tensors]:
        """With noise as the protocol's."""
        if not std:
            return list(updates)
        generator = rng.child("noise").torch()
        return [
            {n: t + std * torch.randn(t.shape, generator=generator).to(t) for n, t in update.items()}
            for update in updates
        ]

    def _forest(self, shown: Sequence[Tensor], has: Sequence[Tensor], rng: Rng) -> Verdicts:
        """Trained on the attacker's own batches of all rounds.

        Args:
            shown: features [batches + 1, f] of each round, what was seen last.
        """
        x, y = torch.cat([rows[:-1] for rows in shown]), torch.cat(list(has))
        rounds = [i for i, kinds in enumerate(has) for _ in kinds]
        own = held_out_votes(x, y, rounds, rng.child("held-out"))
        made = forest(x, y, rng.child("all"))
        return Verdicts(votes(made, torch.stack([rows[-1] for rows in shown])), auc(own, y))


@dataclass(frozen=True)
class Own:
    """The attacker's own samples.

    Attributes:
        population: all of them. y: their labels, as a simulator takes them.
        having, lacking: indices of those with the property and without it.
    """

    population: Population
    y: Tensor
    having: Tensor
    lacking: Tensor

    @classmethod
    def of(cls, view: View) -> Own:
        """From a view, whose population knows the one attribute that is asked for."""
        held = view.population
        assert held is not None, "the harness gives a population to an attack that knows_population"
        (has,) = held.attributes.values()
        y = F.one_hot(held.y, view.n_classes).to(held.x) if view.n_classes else held.y
        return cls(held, y, has.eq(1).nonzero().flatten(), has.eq(0).nonzero().flatten())

    @torch.no_grad()
    def lesson(self, seen: Observation, having: int, lacking: int, rng: Rng) -> Lesson:
        """Simulated updates of so many batches with the property and without it."""
        kinds = torch.arange(having + lacking) < having
        updates = [self._simulated(seen, bool(kind), rng.child("batch", k)) for k, kind in enumerate(kinds)]
        return Lesson(updates, kinds)

    def _simulated(self, seen: Observation, having: bool, rng: Rng) -> Tensors:
        generator, names = rng.torch(), tuple(seen.target)
        index = drawn(self.lacking, seen.images, generator)
        if having:
            # Clients hold about equally many samples, which lie one client after the other.
            part = seen.images // len(seen.clients)
            first = part * (rng.child("whose").integer(16) % len(seen.clients))
            index[first : first + part] = drawn(self.having, part, generator)
        found = same_names(seen.simulate(self.population.x[index], self.y[index]), names)
        return {name: t.detach().float() for name, t in found.items()}


def auc(values: Tensor, has: Tensor) -> float:
    """How well values tell batches that have the property from the others."""
    return membership_metrics([Scores(values)], [has])["auc"]
