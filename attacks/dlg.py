"""DLG, Deep Leakage from Gradients (Zhu, Liu & Han, NeurIPS 2019, Algorithm 1), through any protocol.

For each observation, find the batch that would have been observed alike:

    min over x' [n, *shape], ℓ [n, classes]   Σ_l ‖simulate(x', softmax ℓ)_l − target_l‖² / Σ_l ‖target_l‖²
                                              + tv·(mean|x'_{i+1,j} − x'_{i,j}| + mean|x'_{i,j+1} − x'_{i,j}|)

from several random starts at once (`torch.func.vmap`), and keep the start that ends lowest. Where the observation has a
simulator that is easier to descend (`Observation.rough`), the starts descend that, and the lowest goes on with the
exact one. The attacker sees the distance, never the truth. With `labels=inferred` (iDLG, Zhao et al. 2020) or
`labels=given` the labels are fixed, one-hot, and only the images are optimised.

Where labels are numbers, ℓ is [n, 1] and the candidate's numbers are sigmoid ℓ. Of a model with one output for classes
the observation shows the expected grade alone (`fedarena.criterion`), and the class named is the nearest to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from fedarena.attack import Guess, Inference, Progress, Reconstruction, Watch
from fedarena.attacks.cards.dlg import Options
from fedarena.attacks.lbfgs import Evaluate, Minima, minimise
from fedarena.errors import UserError
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.tensors import Tensors, flatten
from fedarena.threat import NotApplicable
from fedarena.view import Observation, View

HISTORY = 100
"""Pairs that L-BFGS remembers per start."""

DARK = 0.1
"""Range of dark starts. What the observation hardly shows of an image stays as it started, so that a faint
start ends with less noise than a bright one, and far sooner."""

RACE = (100, 200, 400)
"""Iterations after which L-BFGS goes on with the better half of the starts."""


class DLG(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.cards.dlg.Options`."""

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.knows_labels = options.labels == "given"

    def watch(self, schedule: Schedule) -> Watch:
        """`victims` rounds spread evenly from `start` over the window; its last round is never one of them,
        because a client learns an upload from the broadcast that follows it."""
        o = self.options
        if o.start >= schedule.rounds:
            raise UserError(
                f"attack dlg: option 'start' is {o.start}, allowed: at most {schedule.rounds - 1} with "
                f"{schedule.rounds} rounds"
            )
        last = min(o.start + o.window, schedule.rounds) - 1
        usable = max(1, last - o.start)
        count = min(o.victims, usable)
        return Watch(o.start, last, tuple(o.start + i * usable // count for i in range(count)))

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        o = self.options
        if o.tv > 0 and len(view.input_shape) != 3:
            raise UserError(
                f"attack dlg: option 'tv' is {o.tv}, allowed: 0 for inputs of shape {view.input_shape}, "
                "which are no images"
            )
        for seen in view.observations:
            if seen.images > o.max_batch:
                return NotApplicable(
                    f"{seen.images} samples hide behind the upload of round {seen.round}, more than max_batch="
                    f"{o.max_batch}"
                )
            if o.labels == "inferred" and (seen.output_bias is None or seen.output_bias not in seen.target):
                return NotApplicable("labels=inferred needs the gradient of the output layer's bias")
            if o.labels == "inferred" and len(seen.target[str(seen.output_bias)]) != view.n_classes:
                return NotApplicable("labels=inferred compares outputs of classes, but this model has one output")
        guess: Guess = []
        for i, seen in enumerate(view.observations):
            guess.append(self._reconstruct(view, seen, rng.child("dlg", i)))
            progress((i + 1) / len(view.observations), f"round {seen.round}: match {guess[-1].match:.1e}")
        return guess

    def _reconstruct(self, view: View, seen: Observation, rng: Rng) -> Reconstruction:
        o, n = self.options, seen.images
        device = next(iter(seen.target.values())).device
        shape, classes = (n, *view.input_shape), view.n_classes
        draw = torch.randn if o.init == "normal" else torch.rand
        images = draw((o.restarts, *shape), generator=rng.child("images").torch()).to(device)
        if o.init == "dark":
            images *= DARK
        logits = torch.randn((o.restarts, n, classes or 1), generator=rng.child("labels").torch()).to(device)
        # One plain call first: a simulator may fill caches, and what is made under vmap must not get into them.
        seen.simulate(images[0], soft_labels(logits[0], classes))
        fixed: Tensor | None = None
        if o.labels != "optimized":
            fixed = seen.labels if o.labels == "given" else infer_labels(seen, images, classes, view.loss)
            assert fixed is not None, "the harness gives the labels to an attack that knows_labels"
        points = images.flatten(1) if fixed is not None else torch.cat([images.flatten(1), logits.flatten(1)], 1)
        search, spent = self._lbfgs if o.optimizer == "lbfgs" else self._adam, 0
        stages = [seen] if seen.rough is None else [replace(seen, simulate=seen.rough), seen]
        for stage in stages:
            objective = Objective(stage, shape, classes, fixed, o.tv)
            found = search(objective.evaluate, points)
            spent += found.evaluations
            matches = found.values.nan_to_num(torch.inf, torch.inf, torch.inf)  # never finite: they come last
            best = int(matches.argmin())
            points = found.points[best : best + 1]
        x, y = objective.split(points[0])
        labels = view.criterion.classes(view.criterion.target(y, y)) if classes else y
        return Reconstruction(x, labels, float(matches[best]), spent)

    def _lbfgs(self, evaluate: Evaluate, start: Tensor) -> Minima:
        o = self.options
        return minimise(evaluate, start, o.iterations, HISTORY, target=o.tolerance, race=RACE, patience=True)

    def _adam(self, evaluate: Evaluate, start: Tensor) -> Minima:
        o = self.options
        return adam(evaluate, start, o.iterations, o.lr, o.tolerance)


@dataclass(frozen=True)
class Objective:
    """The relative squared distance of what a candidate gives from what was observed.

    A candidate is one vector: the images [n, *shape], then the label logits [n, classes] unless the labels are fixed.

    Attributes:
        seen: the observation. shape: of the batch. classes: number of classes; 0: labels are numbers.
        labels: fixed labels [n], or None. tv: weight of the total variation.
    """

    seen: Observation
    shape: tuple[int, ...]
    classes: int
    labels: Tensor | None
    tv: float

    def split(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """One vector → images, label probabilities or numbers."""
        pixels = torch.Size(self.shape).numel()
        x = point[:pixels].reshape(self.shape)
        if self.labels is not None:
            return x, (F.one_hot(self.labels, self.classes) if self.classes else self.labels).to(x)
        return x, soft_labels(point[pixels:].reshape(-1, self.classes or 1), self.classes)

    @property
    def evaluate(self) -> Evaluate:
        """Values and gradients of many candidates at once."""
        target = self.seen.target
        size = sum(float(t.square().sum()) for t in target.values())
        if size == 0.0:
            size = 1.0  # nothing to be relative to: the distance is absolute

        def value(point: Tensor) -> Tensor:
            x, y = self.split(point)
            distance = squared_distance(self.seen.simulate(x, y), target) / size
            return distance + self.tv * total_variation(x) if self.tv > 0 else distance

        each: Callable[[Tensor], Tensor] = vmap(value)

        def evaluate(points: Tensor) -> tuple[Tensor, Tensor]:
            leaf = points.detach().requires_grad_()
            values = each(leaf)
            # Rows do not mix, so the gradient of the sum holds every row's own; a fifth cheaper than grad under vmap.
            (gradients,) = torch.autograd.grad(values.sum(), leaf)
            return values.detach(), gradients

        return evaluate


def soft_labels(logits: Tensor, classes: int) -> Tensor:
    """Probabilities [n, classes] from logits [n, classes]; numbers [n] in [0, 1] from [n, 1] where classes are 0."""
    return logits.softmax(-1) if classes else logits.sigmoid().squeeze(-1)


def squared_distance(a: Tensors, b: Tensors) -> Tensor:
    """Σ_l ‖a_l − b_l‖² over the names in `b`."""
    return (flatten({name: a[name] for name in b}) - flatten(b)).square().sum()


def total_variation(x: Tensor) -> Tensor:
    """Anisotropic: mean|dx| + mean|dy| of images [n, channels, height, width]."""
    return x.diff(dim=-1).abs().mean() + x.diff(dim=-2).abs().mean()


def infer_labels(seen: Observation, images: Tensor, classes: int, loss: str = "cross-entropy") -> Tensor:
    """Labels [n] from the output bias, whose gradient is the mean of softmax − label.

    Batch 1: the one class whose entry is negative, argmin_c (iDLG, Zhao et al. 2020). Larger batches: greedy
    counts. The random candidates `images` with uniform labels stand in for the unknown predictions, so that
    their output bias less the observed one is about u·(n_c/n − 1/classes), n_c being the count of class c;
    n times, the class with the largest remainder is named and its remainder lowered by u/n. The unit u is 1
    for gradients, and for updates what a candidate's own labels move its output bias by. So too for one sample of
    a squared error, whose outputs are no probabilities: other entries than the class's may be negative.
    """
    name = seen.output_bias
    assert name is not None
    n, observed = seen.images, seen.target[name]
    if n == 1 and loss == "cross-entropy":
        return observed.argmin().reshape(1)

    def bias(labels: Tensor) -> Tensor:
        y = labels.to(observed).expand(n, classes)
        return torch.stack([seen.simulate(x, y)[name] for x in images]).mean(0)

    first = F.one_hot(observed.new_zeros((), dtype=torch.int64), classes)
    uniform = torch.full_like(observed, 1 / classes)
    predicted = bias(uniform)
    unit = (predicted - bias(first))[0] * classes / (classes - 1)
    remainder, named = predicted - observed, []
    for _ in range(n):
        named.append(remainder.argmax())
        remainder = remainder - F.one_hot(named[-1], classes) * unit / n
    return torch.stack(named)


def adam(evaluate: Evaluate, start: Tensor, iterations: int, lr: float, target: float) -> Minima:
    """Adam (Kingma & Ba 2015) from every row of `start`, lr·0.1 after 3/8, 5/8 and 7/8 (Geiping et al. 2020).

    Rows that stop being finite are dropped; each row's best point is returned. Stops as soon as one row
    reaches `target`.
    """
    x, m, v = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    best, best_value = start.clone(), start.new_full((start.shape[0],), torch.inf)
    spent = 0
    for t in range(1, iterations + 1):
        value, gradient = evaluate(x)
        spent += x.shape[0]
        better = value < best_value  # false where not finite
        best[better], best_value[better] = x[better], value[better]
        if bool((best_value <= target).any()):
            break
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient.square()
        rate = lr * 0.1 ** sum(t > share * iterations for share in (3 / 8, 5 / 8, 7 / 8))
        x = x - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
    return Minima(best, best_value, spent)
