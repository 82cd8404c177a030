"""What attacks by gradient matching share: candidates, their distance from what was seen, and the search.

For each observation, find the batch that would have given the same observation:

    min over x' [n, *shape], ℓ [n, classes]   distance(simulate(x', softmax ℓ), target)
                                              + tv·(mean|x'_{i+1,j} − x'_{i,j}| + mean|x'_{i,j+1} − x'_{i,j}|)

from several random starts, of which the best is returned. The attacker sees the distance, never the truth. If labels
are fixed, given or inferred, they are one-hot and only the images are searched for. If labels are numbers, ℓ is [n, 1]
and the candidate's numbers are sigmoid ℓ. A model with one output for classes shows only the expected grade
(`fedarena.problem.loss`); the guessed class is the nearest to it.

An attack adds the distance, the method of the search, and the source of its labels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages
from fedarena.attacks.reconstruction.helpers.lbfgs import Evaluate, Minima
from fedarena.contracts.inference import Guess, Inference, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

DARK = 0.1
"""Range of dark starts. Parts of an image that the observation hardly shows stay as they started, so that a dark start
ends with less noise than a bright one, and far sooner."""

Distance = Callable[[Tensors], Tensor]
"""The simulated observation of a candidate → its distance from what was seen, a number; differentiable."""


class Parametrised(Protocol):
    """Coordinates of samples, in which a search moves."""

    def images(self, z: Tensor) -> Tensor:
        """[n, *shape] → [n, *shape]."""


class Options(Protocol):
    """The options that every such attack has."""

    @property
    def victims(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def restarts(self) -> int: ...
    @property
    def tv(self) -> float: ...
    @property
    def init(self) -> str: ...
    @property
    def max_batch(self) -> int: ...


def relative_squares(target: Tensors) -> Distance:
    """Σ_l ‖a_l − target_l‖² / Σ_l ‖target_l‖²; absolute where the target is 0."""
    size = sum(float(t.square().sum()) for t in target.values()) or 1.0
    return lambda a: squared_distance(a, target) / size


@dataclass(frozen=True)
class Coordinates:
    """x = μ + C^½ z, in which samples with mean μ [d] and covariance C have z with mean 0 and covariance I [d, d]."""

    mean: Tensor
    root: Tensor

    @classmethod
    def of(cls, x: Tensor) -> Coordinates:
        """The coordinates that belong to samples [m, *shape]."""
        images = GaussianImages.of(x.flatten(1))
        return cls(images.mean.to(x), images.root().to(x))

    def images(self, z: Tensor) -> Tensor:
        """[n, *shape] → [n, *shape]."""
        return (self.mean + z.flatten(1) @ self.root).reshape(z.shape)


@dataclass(frozen=True)
class MatchingObjective:
    """The distance of a candidate's simulated observation from what was observed.

    A candidate is one vector: the images [n, *shape], or their `coordinates`, then the label logits [n, classes] unless
    the labels are fixed.

    Attributes:
        seen: the observation. shape: that of the batch. classes: number of classes; 0: labels are numbers.
        labels: fixed labels [n], or None. tv: weight of the total variation.
        measure: target → distance from it.
        colours: whether the total variation includes that of differences between the three channels.
        corner: c of the total variation. outside: weight of the squared distance from [0, 1].
        coordinates: coordinates of images; None: their pixels. unlikely: weight of ‖z‖²/d of these coordinates z.
        at_once: the number of candidates that are evaluated as one batch (one needs no `vmap`); None: all.
        further: a further cost of the images; None: none.
        told: called at every evaluation.
    """

    seen: Observation
    shape: tuple[int, ...]
    classes: int
    labels: Tensor | None
    tv: float
    measure: Callable[[Tensors], Distance] = relative_squares
    at_once: int | None = None
    coordinates: Parametrised | None = None
    corner: float = 0.0
    outside: float = 0.0
    unlikely: float = 0.0
    colours: bool = False
    further: Callable[[Tensor], Tensor] | None = None
    told: Callable[[], None] = lambda: None

    @property
    def pixels(self) -> int:
        """How many entries of a candidate are pixels; they come first."""
        return torch.Size(self.shape).numel()

    def split(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """One vector → images, label probabilities or numbers."""
        x = point[: self.pixels].reshape(self.shape)
        if self.coordinates is not None:
            x = self.coordinates.images(x)
        if self.labels is not None:
            return x, (F.one_hot(self.labels, self.classes) if self.classes else self.labels).to(x)
        return x, soft_labels(point[self.pixels :].reshape(-1, self.classes or 1), self.classes)

    @property
    def evaluate(self) -> Evaluate:
        """Values and gradients of many candidates at once."""
        distance = self.measure(self.seen.target)

        def value(point: Tensor) -> Tensor:
            x, y = self.split(point)
            cost = distance(self.seen.simulate(x, y))
            if self.unlikely > 0:
                cost = cost + self.unlikely * point[: self.pixels].square().mean()
            if self.tv > 0:
                cost = cost + self.tv * total_variation(x, self.corner)
                if self.colours:
                    cost = cost + self.tv * total_variation(opponents(x), self.corner)
            if self.further is not None:
                cost = cost + self.further(x)
            return cost + self.outside * (x - x.clamp(0, 1)).square().mean() if self.outside > 0 else cost

        many: Callable[[Tensor], Tensor] = vmap(value, randomness="same")

        def together(points: Tensor) -> tuple[Tensor, Tensor]:
            leaf = points.detach().requires_grad_()
            values = value(leaf[0])[None] if self.at_once and len(leaf) == 1 else many(leaf)
            # Rows do not mix, so the gradient of the sum holds every row's own; a fifth cheaper than grad under vmap.
            (gradients,) = torch.autograd.grad(values.sum(), leaf)
            return values.detach(), gradients

        def evaluate(points: Tensor) -> tuple[Tensor, Tensor]:
            self.told()
            if self.at_once is None or len(points) <= self.at_once:
                return together(points)
            values, gradients = zip(*(together(part) for part in points.split(self.at_once)), strict=True)
            return torch.cat(values), torch.cat(gradients)

        return evaluate


class Matching(Inference):
    """The frame; subclasses write `labels`, `search` and, where it is not the squared distance, `measure`."""

    options: Options
    name: ClassVar[str]
    """The attack's own, for messages and streams of random numbers."""

    def watch(self, schedule: Schedule) -> Watch:
        """See `Watch.spread`."""
        o = self.options
        return Watch.spread(self.name, o.victims, o.start, o.window, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        for seen in view.observations:
            if reason := self.unreadable(seen) or self.reason(view, seen):
                return NotApplicable(reason)
        guess: Guess = []
        coordinates = self.coordinates(view)
        n = len(view.observations)
        for i, seen in enumerate(view.observations):

            def told(share: float, text: str, i: int = i) -> None:
                progress((i + share) / n, text)

            guess.append(self.reconstruct(view, seen, coordinates, rng.child(self.name, i), told))
            progress((i + 1) / n, f"round {seen.round}: match {guess[-1].match:.1e}")
        return guess

    def coordinates(self, view: View) -> Parametrised | None:
        """The coordinates in which samples are searched for; None: their pixels. The papers' attacks have no prior."""
        if view.population is None or view.threat.form != "adaptive":
            return None
        return Coordinates.of(view.population.x)

    def unreadable(self, seen: Observation) -> str:
        if seen.images > self.options.max_batch:
            return (
                f"{seen.images} samples hide behind what was seen of a round, more than max_batch="
                f"{self.options.max_batch}"
            )
        return ""

    def reason(self, view: View, seen: Observation) -> str:
        """Why an observation cannot be attacked, by its numbers or by the model; empty if it can."""
        return ""

    def fit(self, task: Task) -> None:
        if self.options.tv > 0 and len(task.input_shape) != 3:
            raise UserError(
                f"attack {self.name}: option 'tv' is {self.options.tv}, allowed: 0 for inputs of shape "
                f"{task.input_shape}, which are no images"
            )

    def weight_of_variation(self, view: View) -> float:
        """The option `tv`."""
        return self.options.tv

    @abstractmethod
    def labels(self, view: View, seen: Observation, images: Tensor) -> Tensor | None:
        """Fixed labels [n]; None: they are searched for with the images.

        Args:
            images: the starts [restarts, n, *shape].
        """

    def measure(self, target: Tensors) -> Distance:
        """The distance from a target."""
        return relative_squares(target)

    def further(self, seen: Observation, shape: tuple[int, ...], rng: Rng) -> Callable[[Tensor], Tensor] | None:
        """A further cost of the images [n, *shape]; None: none."""
        return None

    def at_once(self, seen: Observation) -> int | None:
        """Starts that are evaluated as one batch; None: all."""
        return None

    @abstractmethod
    def search(self, objectives: Sequence[MatchingObjective], start: Tensor) -> Minima:
        """Descend from every row of `start`, and return the lowest, one row.

        Args:
            objectives: the objective to be minimised, last; before it a rougher form that is easier to minimise, if the
                observation has one.
        """

    @abstractmethod
    def longest(self, stages: int) -> int:
        """How many evaluations a search with so many objectives makes at most."""

    def reconstruct(
        self, view: View, seen: Observation, coordinates: Parametrised | None, rng: Rng, progress: Progress
    ) -> Reconstruction:
        """The samples behind one observation."""
        o, n = self.options, seen.images
        device = next(iter(seen.target.values())).device
        shape, classes = (n, *view.input_shape), view.n_classes
        draw = torch.randn if o.init == "normal" else torch.rand
        images = draw((o.restarts, *shape), generator=rng.child("images").torch()).to(device)
        if o.init == "dark":
            images *= DARK
        points = images.flatten(1)
        if coordinates is not None:
            images = torch.stack([coordinates.images(z) for z in images])
        logits = torch.randn((o.restarts, n, classes or 1), generator=rng.child("labels").torch()).to(device)
        # One plain call first: a simulator may fill caches, and tensors made under vmap must not get into them.
        seen.simulate(images[0], soft_labels(logits[0], classes))
        fixed, tv, at_once = self.labels(view, seen, images), self.weight_of_variation(view), self.at_once(seen)
        if fixed is None:
            points = torch.cat([points, logits.flatten(1)], 1)
        stages = [seen] if seen.rough is None else [replace(seen, simulate=seen.rough), seen]
        told = _counting(progress, self.longest(len(stages)), f"round {seen.round}")
        objectives = [
            MatchingObjective(
                seen=stage,
                shape=shape,
                classes=classes,
                labels=fixed,
                tv=tv,
                measure=self.measure,
                at_once=at_once,
                coordinates=coordinates,
                further=self.further(seen, view.input_shape, rng),
                told=told,
            )
            for stage in stages
        ]
        best = self.search(objectives, points)
        x, y = objectives[-1].split(best.points[0])
        labels = view.criterion.classes(view.criterion.target(y, y)) if classes else y
        return Reconstruction(x, labels, float(best.values[0]), best.evaluations)


def _counting(progress: Progress, most: int, name: str) -> Callable[[], None]:
    """A function that reports, as the share of the most calls, how often it was called before."""
    counter = count()

    def told() -> None:
        done = next(counter)
        progress(min(done / most, 1.0), f"{name}: {done} of at most {most} evaluations")

    return told


def lowest(minima: Minima) -> Minima:
    """The row with the smallest value; rows that are not finite come last."""
    values = minima.values.nan_to_num(torch.inf, torch.inf, torch.inf)
    best = int(values.argmin())
    return Minima(minima.points[best : best + 1], values[best : best + 1], minima.evaluations)


def soft_labels(logits: Tensor, classes: int) -> Tensor:
    """Probabilities [n, classes] from logits [n, classes]; numbers [n] in [0, 1] from [n, 1] where classes are 0."""
    return logits.softmax(-1) if classes else logits.sigmoid().squeeze(-1)


def squared_distance(a: Tensors, b: Tensors) -> Tensor:
    """Σ_l ‖a_l − b_l‖² over the names in `b`."""
    return (flatten({name: a[name] for name in b}) - flatten(b)).square().sum()


def total_variation(x: Tensor, corner: float = 0.0) -> Tensor:
    """Anisotropic: mean|dx| + mean|dy| of images [n, channels, height, width].

    With a corner c > 0, √(d² + c²) − c for each |d|: it has a derivative at 0, which methods with a memory of
    derivatives need, since most neighbours in an image are alike.
    """

    def size(d: Tensor) -> Tensor:
        return (d.square() + corner**2).sqrt() - corner if corner else d.abs()

    return size(x.diff(dim=-1)).mean() + size(x.diff(dim=-2)).mean()


def opponents(x: Tensor) -> Tensor:
    """Differences of the three channels, [n, 3, height, width] → the same: red − green, green − blue, blue − red.

    Edges of photographs are mostly edges of light and shade, which all channels share.
    """
    return x - x.roll(-1, 1)
