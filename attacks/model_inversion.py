"""Model inversion, MI-Face (Fredrikson, Jha & Ristenpart, CCS 2015, Section 5): what a class looks like to a model.

For every class k, descend the cost of an image that starts without any feature of anybody:

    c(x) = 1 − f_k(x), or −log f_k(x)          f_k: the model's confidence in class k
    x ← Process(clip(x − λ ∇c(x), 0, 1))       Process: nothing, or a share of a 3×3 smoothing

until α steps are taken, or c has not fallen for β steps, or f_k(x) ≥ γ; the image with the least cost is the answer.
All classes go side by side, and leave when they are done.

In clear, ∇c comes from the model. Of a model that only answers, it is measured along m random orthonormal directions u
drawn anew at every step, by central differences:

    ∇c(x) ≈ (D/m) Σ_u u·(c(x + h u) − c(x − h u))/(2h)         2m queries

exact to O(h²) where m reaches D, the number of pixels; below, unbiased, since a random m-dimensional subspace holds on
average the share m/D of any vector. Then the rest of each step is noise, and what the model does not see of it stays in
the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attack import GoalName, Inference, Portraits, Progress, Watch
from fedarena.attacks.cards.model_inversion import Options
from fedarena.errors import UserError
from fedarena.predictor import BlackBox, WhiteBox
from fedarena.rng import Rng
from fedarena.schedule import Schedule
from fedarena.threat import NotApplicable
from fedarena.view import View

Measure = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(images [n, *input_shape], their classes [n]) → confidences f_k(x) [n] and gradients −∇c(x), shaped as the images."""


class ModelInversion(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.cards.model_inversion.Options`."""

    options: Options
    goal: ClassVar[GoalName] = "inversion"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.knows_population = options.start == "mean"

    def watch(self, schedule: Schedule) -> Watch:
        """No round: the model in the end is all that it reads."""
        return Watch(0, -1, ())

    def run(self, view: View, rng: Rng, progress: Progress) -> Portraits | NotApplicable:
        assert view.model is not None, "the harness gives the model to an attack after inversion"
        if self.options.denoise and len(view.input_shape) != 3:
            raise UserError(
                f"attack model-inversion: option 'denoise' is {self.options.denoise}, allowed: 0 for inputs of shape "
                f"{view.input_shape}, which are no images"
            )
        model, start = view.model, self._start(view)
        log = self.options.cost == "log" and view.loss == "cross-entropy"
        measure = in_clear(model, log) if isinstance(model, WhiteBox) else self._asked(model, log, rng)
        images, steps = self._descend(measure, start, progress)
        return Portraits(images, steps, 0 if isinstance(model, WhiteBox) else model.queries)

    def _start(self, view: View) -> Tensor:
        """[classes, *input_shape]."""
        shape = view.input_shape
        if view.population is not None:
            one = view.population.x.mean(0)
        else:
            one = torch.full(shape, 0.0 if self.options.start == "zeros" else 0.5)
        assert view.model is not None
        device = next(view.model.task.model.parameters()).device
        return one.to(device).expand(view.n_classes, *shape).clone()

    def _descend(self, measure: Measure, x: Tensor, progress: Progress) -> tuple[Tensor, Tensor]:
        """The best image of each class, and how many steps were taken for it."""
        o = self.options
        best, reached = x.clone(), torch.full((len(x),), -torch.inf, dtype=torch.float64, device=x.device)
        steps, idle = (torch.zeros(len(x), dtype=torch.int64, device=x.device) for _ in range(2))
        active = torch.arange(len(x), device=x.device)
        for i in range(o.iterations + 1):  # the last round measures only
            confidence, gradient = measure(x[active], active)
            better = confidence > reached[active]  # false where it is not a number
            reached[active[better]], best[active[better]] = confidence[better], x[active[better]]
            idle[active] = torch.where(better, 0, idle[active] + 1)
            going = (reached[active] < o.confidence) & (idle[active] < o.patience)
            active, gradient = active[going], gradient[going]
            if not len(active) or i == o.iterations:
                break
            x[active] = self._process((x[active] + o.lr * gradient.nan_to_num()).clamp(0, 1))
            steps[active] += 1
            if i % 100 == 0:
                progress(i / o.iterations, f"step {i}, {len(active)} classes open")
        return best, steps

    def _process(self, x: Tensor) -> Tensor:
        share = self.options.denoise
        return x if share == 0 else (1 - share) * x + share * smooth(x)

    def _asked(self, model: BlackBox, log: bool, rng: Rng) -> Measure:
        o, generator = self.options, rng.child("directions").torch()

        def measure(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
            pixels = x[0].numel()
            count = min(o.directions, pixels)
            # Orthonormal rows; of fewer than all pixels a uniformly random subspace.
            u = torch.linalg.qr(torch.randn(pixels, count, generator=generator)).Q.T.to(x)
            confidence = model.confidences(x).gather(1, classes[:, None])[:, 0]
            gradients = []
            for image, k in zip(x, classes, strict=True):
                ends = torch.cat([image.flatten() + o.difference * u, image.flatten() - o.difference * u])
                found = model.confidences(ends.reshape(-1, *image.shape))[:, k]
                up, down = (found.log() if log else found).chunk(2)
                slopes = ((up - down) / (2 * o.difference)).to(x)
                gradients.append((slopes @ u * pixels / count).reshape(image.shape))
            return confidence, torch.stack(gradients)

        return measure


def in_clear(model: WhiteBox, log: bool) -> Measure:
    """Confidences and gradients of a model whose parameters are known."""

    def measure(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        leaf = x.detach().requires_grad_()
        confidence = model.confidences(leaf).gather(1, classes[:, None])[:, 0]
        # Rows do not mix, so the gradient of the sum holds every row's own.
        (gradient,) = torch.autograd.grad((confidence.log() if log else confidence).sum(), leaf)
        return confidence.detach(), gradient

    return measure


def smooth(x: Tensor) -> Tensor:
    """Images [n, channels, height, width] under the 3×3 binomial filter, (1 2 1)ᵀ(1 2 1)/16; edges repeat."""
    n, channels, height, width = x.shape
    line = x.new_tensor([0.25, 0.5, 0.25])
    wide = F.pad(x.reshape(n * channels, 1, height, width), (1, 1, 1, 1), mode="replicate")
    return F.conv2d(wide, torch.outer(line, line)[None, None]).reshape(x.shape)
