"""Model inversion, MI-Face (Fredrikson, Jha & Ristenpart, CCS 2015, Section 5): what a class looks like to a model.

For every class k the attack descends a cost of an image that starts without any person's features:

    c(x) = 1 − f_k(x)              cost=confidence; f: the model's answer to x, with cross-entropy softmax
         = −log f_k(x)             cost=loss, where the model is trained for cross-entropy
         = ½ ‖f(x) − e_k‖²         cost=loss, where it is trained for squared errors to one-hot labels e_k

    x ← Process(clip(x − λ ∇c(x), 0, 1))        Process: nothing, or a share of a 3×3 smoothing

until α steps are taken, or c has not fallen for β steps, or c is as low as for f_k = γ and all else 0. The answer is
the image with the least cost. All classes are descended together, and each leaves when it is done.

Of a white-box model ∇c is calculated. Of a black-box model it is measured along m random orthonormal directions u,
drawn again at every step, by central differences:

    ∇c(x) ≈ (D/m) Σ_u u·(c(x + h u) − c(x − h u))/(2h)         2m queries

With m = D, the number of pixels, this is exact to O(h²). With fewer directions it is unbiased, since a random
m-dimensional subspace holds on average the share m/D of any vector, and the rest of each step is noise. That noise
stays in the answer as far as the model does not react to it. If square blocks of pixels are moved together, D is
smaller and the picture coarser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.inversion.cards.model_inversion import Options
from fedarena.contracts.final_model import BlackBox, WhiteBox
from fedarena.contracts.inference import GoalName, Inference, Portraits, Progress, Watch
from fedarena.contracts.view import View
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

Measure = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(images [n, *input_shape], their classes [n]) → costs [n] and their gradients, shaped as the images."""

QUERIES_AT_ONCE = 2000
"""The number of queries in one batch, at least those of one class."""


class ModelInversion(Inference):
    """The attack; see the module's docstring and `fedarena.attacks.inversion.cards.model_inversion.Options`."""

    options: Options
    goal: ClassVar[GoalName] = "inversion"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = options.start == "mean"

    def watch(self, schedule: Schedule) -> Watch:
        """No round: the attack reads only the final model."""
        return Watch(0, -1, ())

    def fit(self, task: Task) -> None:
        _, height, width = task.input_shape
        if self.options.block > max(height, width):
            raise UserError(
                f"attack model-inversion: option 'block' is {self.options.block}, allowed for images of "
                f"{height} x {width}: 1 to {max(height, width)}"
            )

    def run(self, view: View, rng: Rng, progress: Progress) -> Portraits:
        assert view.model is not None, "the harness gives the model to an attack after inversion"
        model, cost = view.model, InversionCost(self.options.cost, view.loss)
        measure = in_clear(model, cost) if isinstance(model, WhiteBox) else self._from_queries(model, cost, rng)
        device = next(model.task.model.parameters()).device
        images, steps = self.descend(measure, self._start(view).to(device), cost.of(self.options.confidence), progress)
        return Portraits(images, steps, 0 if isinstance(model, WhiteBox) else model.queries)

    def _start(self, view: View) -> Tensor:
        """[classes, *input_shape]."""
        if view.population is not None:
            one = view.population.x.mean(0)
        else:
            one = torch.full(view.input_shape, 0.0 if self.options.start == "zeros" else 0.5)
        return one.expand(view.n_classes, *view.input_shape).clone()

    def descend(self, measure: Measure, x: Tensor, low: float, progress: Progress) -> tuple[Tensor, Tensor]:
        """The best image of each class, and how many steps were taken for it.

        Args:
            x: the starting images [classes, *input_shape].
            low: the cost at which the search for a class stops.
        """
        o = self.options
        best, reached = x.clone(), torch.full((len(x),), torch.inf, dtype=torch.float64, device=x.device)
        steps, idle = (torch.zeros(len(x), dtype=torch.int64, device=x.device) for _ in range(2))
        x, active = x.clone(), torch.arange(len(x), device=x.device)
        for i in range(o.iterations + 1):  # the last pass only measures
            cost, gradient = measure(x[active], active)
            better = cost < reached[active]  # false where it is not a number
            reached[active[better]], best[active[better]] = cost[better], x[active[better]]
            idle[active] = torch.where(better, 0, idle[active] + 1)
            going = (reached[active] > low) & (idle[active] < o.patience)
            active, gradient = active[going], gradient[going]
            if not len(active) or i == o.iterations:
                break
            x[active] = self._process((x[active] - o.lr * gradient.nan_to_num()).clamp(0, 1))
            steps[active] += 1
            if i % 100 == 0:
                progress(i / o.iterations, f"step {i}, {len(active)} classes open")
        return best, steps

    def _process(self, x: Tensor) -> Tensor:
        share = self.options.denoise
        return x if share == 0 else (1 - share) * x + share * smooth(x)

    def _from_queries(self, model: BlackBox, cost: InversionCost, rng: Rng) -> Measure:
        o, generator = self.options, rng.child("directions").torch()

        def measure(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
            u, share = directions(tuple(x.shape[1:]), o.directions, o.block, generator)
            u, gradients = u.to(x), []
            together = max(1, QUERIES_AT_ONCE // (2 * len(u)))
            for images, wanted in zip(x.split(together), classes.split(together), strict=True):
                centres = images.flatten(1)[:, None]
                ends = torch.cat([centres + o.difference * u, centres - o.difference * u], 1)  # [n, 2m, pixels]
                said = model.confidences(ends.reshape(-1, *x.shape[1:]))
                up, down = cost(said, wanted.repeat_interleave(2 * len(u))).reshape(len(images), -1).chunk(2, 1)
                slopes = ((up - down) / (2 * o.difference)).to(x)
                gradients.append((slopes @ u / share).reshape(images.shape))
            return cost(model.confidences(x), classes), torch.cat(gradients)

        return measure


@dataclass(frozen=True)
class InversionCost:
    """c, as a function of the model's answers.

    Attributes:
        kind: the option `cost`. loss: what the model is trained for.
    """

    kind: str
    loss: str

    def __call__(self, said: Tensor, classes: Tensor) -> Tensor:
        """The model's answers [n, classes] and the target classes [n] → [n]."""
        own = said.gather(1, classes[:, None])[:, 0]
        if self.kind == "confidence":
            return 1 - own
        if self.loss == "cross-entropy":
            return -own.log()
        return 0.5 * (said - F.one_hot(classes, said.shape[1])).square().sum(1)

    def of(self, confidence: float) -> float:
        """The cost where the class has this confidence and all others 0."""
        said = torch.tensor([[confidence, 0.0]], dtype=torch.float64)
        return float(self(said, torch.zeros(1, dtype=torch.int64)))


def in_clear(model: WhiteBox, cost: InversionCost) -> Measure:
    """Costs and gradients of a model whose parameters are known."""

    def measure(x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        leaf = x.detach().requires_grad_()
        costs = cost(model.confidences(leaf), classes)
        # Rows do not mix, so the gradient of the sum holds every row's own.
        (gradient,) = torch.autograd.grad(costs.sum(), leaf)
        return costs.detach(), gradient

    return measure


def directions(shape: tuple[int, ...], count: int, block: int, generator: torch.Generator) -> tuple[Tensor, float]:
    """At most `count` random orthonormal directions [m, pixels], each constant on blocks, and m's share of all blocks.

    Args:
        shape: the shape of an image [channels, height, width]. A block has one channel; blocks at the border may be
            smaller.
    """
    channels, height, width = shape
    grid = (channels, -(-height // block), -(-width // block))
    blocks = math.prod(grid)
    m = min(count, blocks)
    coarse = torch.linalg.qr(torch.randn(blocks, m, generator=generator)).Q.T.reshape(m, *grid)
    fine = coarse.repeat_interleave(block, 2).repeat_interleave(block, 3)[..., :height, :width] / block
    return fine.reshape(m, -1), m / blocks


def smooth(x: Tensor) -> Tensor:
    """Images [n, channels, height, width] under the 3×3 binomial filter, (1 2 1)ᵀ(1 2 1)/16; edges repeat."""
    n, channels, height, width = x.shape
    line = x.new_tensor([0.25, 0.5, 0.25])
    wide = F.pad(x.reshape(n * channels, 1, height, width), (1, 1, 1, 1), mode="replicate")
    return F.conv2d(wide, torch.outer(line, line)[None, None]).reshape(x.shape)
