"""Fishing for User Data: a server sets the output layer so that one sample of a batch stands out in the gradient.

`helpers/lone_sample.py` chooses the output layer, with rows w for one class t and 0 for all others (Wen et al. 2022,
Section 3). Below the output layer the gradient is then a multiple of that of a single sample, and so are the row of
class t and its bias:

    ∂L/∂W_l ∝ ±wᵀ ∂φ/∂W_l,   ∂L/∂w ∝ ±φ(x),   ∂L/∂b_t ∝ ±1,   with − for a sample of class t

The other rows mix all samples, and are left out. What is left is inverted as the gradient of one sample, by
`inverting-gradients`. Its simulator is given copies of a candidate with the target e_t − e_o, which is no probability.
The loss is linear in the target, so that the gradient is exactly −wᵀ ∂φ, wherever the softmax saturates.

The layers below are not touched, so that the model may begin with convolutions. The other rows show how many samples
of each class are behind what was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.attacks.reconstruction.cards.fishing import Options
from fedarena.attacks.reconstruction.cards.inverting_gradients import Options as Inversion
from fedarena.attacks.reconstruction.helpers.first_layers import inputs_of
from fedarena.attacks.reconstruction.helpers.lone_sample import Wire, best_cut
from fedarena.attacks.reconstruction.helpers.read_each import grey
from fedarena.attacks.reconstruction.inverting_gradients import InvertingGradients
from fedarena.contracts.active_inference import ActiveInference, Bait, Opportunity
from fedarena.contracts.inference import Guess, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation, Simulator
from fedarena.contracts.simulators import images_behind
from fedarena.contracts.view import View
from fedarena.core.gradients import grad
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

PROBES = 8
"""Samples on which the size of gradients is measured."""


class Fishing(ActiveInference):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.fishing.Options`."""

    options: Options
    name = "fishing"

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = True  # for the choice of the cut
        o = options
        self.inversion = InvertingGradients(
            Inversion(iterations=o.iterations, lr=o.lr, tv=o.tv, restarts=o.restarts, polish=o.polish, labels="given")
        )

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread(self.name, o.victims, o.start, o.window, schedule)

    def fit(self, task: Task) -> None:
        self.inversion.fit(task)

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        task = opportunity.protocol.task
        if why := why_not(task):
            return NotApplicable(why)
        own = opportunity.population
        assert own is not None, "declared by `needs_population`"
        params, output = opportunity.state.params, task.layers[-1][0]
        weight, bias = params[f"{output}.weight"], params[f"{output}.bias"]
        n = max(1, sum(images_behind(task, client) for client in opportunity.readable))
        features = inputs_of(task, params, output, own.x)
        draws, wire = rng.child("draws").torch(), wire_of(opportunity, own.x[:PROBES])
        cut = best_cut(features, own.y, weight, n, self.options.variant, draws, wire)
        if not cut.alone:
            return NotApplicable(
                "no gradient of a sample that stands alone fits between a sum's limit and its rounding"
            )
        rows, others = torch.zeros_like(weight), torch.zeros_like(bias)
        rows[cut.target], others[cut.target] = cut.row.to(weight), cut.bias
        crafted = {**params, f"{output}.weight": rows, f"{output}.bias": others}
        return Bait.for_all(opportunity.message(crafted, rng.child("broadcast")), opportunity)

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        lone = [one_sample(view, seen) for seen in view.observations]
        there = tuple(one for one in lone if isinstance(one, Observation))
        if not there:
            return NotApplicable("; ".join(dict.fromkeys(str(why) for why in lone)))
        found = self.inversion.run(replace(view, observations=there, population=None), rng, progress)
        if isinstance(found, NotApplicable):
            return found
        images = iter(found)
        pairs = zip(view.observations, lone, strict=True)
        return [grey(view, seen) if isinstance(one, str) else among(seen, one, next(images)) for seen, one in pairs]


def wire_of(opportunity: Opportunity, x: Tensor) -> Wire:
    """How large a gradient may be, with its size measured on some samples [m, *input_shape]."""
    task, params, secure = opportunity.protocol.task, opportunity.state.params, opportunity.protocol.secure
    weight, bias = (f"{task.layers[-1][0]}.{part}" for part in ("weight", "bias"))
    below = {name: p for name, p in params.items() if name not in (weight, bias)}

    def size(row: Tensor) -> float:
        layer = {weight: row.to(params[weight]).expand_as(params[weight]), bias: torch.zeros_like(params[bias])}

        def output(changed: Tensors, sample: Tensor) -> Tensor:
            return task.outputs({**changed, **layer}, sample[None])[0, 0]

        slopes = vmap(grad(output), in_dims=(None, 0), randomness="same")(below, x.to(params[weight]))
        return max(float(t.abs().max()) for t in slopes.values())

    if secure is None:
        return Wire()
    return Wire(size, secure.limit, secure.rounding(len(opportunity.participants), params[weight].dtype))


def why_not(task: Task) -> str:
    """Why a model or a training offers no sample that stands alone; empty if it does."""
    if task.criterion.loss != "cross-entropy" or task.n_classes < 2:
        return "the output layer is not of several classes with cross-entropy, whose gradient this attack shapes"
    if task.output_bias is None:
        return "the output layer has no bias, which this attack sets"
    if not task.schedule.fedsgd or task.schedule.client_momentum:
        return "clients do not send the gradient of one step, and the samples of several steps do not stand apart"
    return ""


@dataclass(frozen=True)
class OfOne:
    """Simulator: the direction of what one sample of class t would have given, without the other classes' rows.

    Attributes:
        whole: the observation's own simulator, of `images` samples, which are copies here.
        output: the output layer's name. target: t.
        toward: 1 for a sample of class t, −1 for another.
    """

    whole: Simulator
    images: int
    output: str
    target: int
    toward: float

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        """x: [1, *input_shape]; of y [1, n_classes] the shape alone is used."""
        other = int(self.target == 0)
        up = torch.zeros_like(y)
        up[:, self.target], up[:, other] = self.toward, -self.toward
        copies = x.expand(self.images, *x.shape[1:]), up.expand(self.images, up.shape[1])
        return one_row(self.whole(*copies), self.output, self.target)


def one_row(tensors: Tensors, output: str, target: int) -> Tensors:
    """All tensors, but of the output layer one class's row and bias."""
    of_output = {f"{output}.weight", f"{output}.bias"}
    return {name: t[target] if name in of_output else t for name, t in tensors.items()}


def one_sample(view: View, seen: Observation) -> Observation | str:
    """The observation as one of a single sample; or why there is none."""
    weight, bias = f"{view.output_layer}.weight", f"{view.output_layer}.bias"
    assert seen.sent is not None, "set for attacks that choose what is sent"
    if any(seen.target.get(name, torch.empty(0)).shape != seen.sent[name].shape for name in (weight, bias)):
        return "what was seen has no gradient of the output layer's rows, of which one is of a single sample"
    target = int(seen.sent[weight].square().sum(1).argmax())
    lone = one_row(seen.target, view.output_layer, target)
    below = [t for name, t in lone.items() if name not in (weight, bias)]
    if not any(bool(t.any()) for t in below):
        return "no sample of the class is behind what was seen"
    toward = 1.0 if float(lone[bias]) < 0 else -1.0
    size = max(float(t.abs().max()) for t in below)  # shares may be so small that their squares vanish
    lone = {name: t / size for name, t in lone.items()}
    of = OfOne(seen.simulate, seen.images, output=view.output_layer, target=target, toward=toward)
    labels = torch.tensor([target], device=lone[bias].device)
    return replace(seen, images=1, target=lone, simulate=of, labels=labels, rough=None, output_bias=None, estimate=None)


def among(seen: Observation, one: Observation, found: Reconstruction) -> Reconstruction:
    """The sample that was found as one of those behind the observation; the others are grey."""
    of = one.simulate
    assert isinstance(of, OfOne)
    n, bias = seen.images, seen.target[f"{of.output}.bias"]
    labels = class_counts(bias, of.target, n)
    others = [c for c in labels if c != of.target]
    first = of.target if of.toward > 0 or not others else max(others, key=others.count)
    if first in labels:
        labels.remove(first)
    rest = torch.full((n - 1, *found.images.shape[1:]), 0.5).to(found.images)
    return Reconstruction(
        torch.cat([found.images, rest]),
        torch.tensor([first, *labels][:n], device=bias.device),
        match=found.match,
        evaluations=found.evaluations,
        blind=n - 1,
    )


def class_counts(bias: Tensor, target: int, n: int) -> list[int]:
    """The classes of n samples, by how often each is there, from the gradient Σ_i (p_ic − [y_i = c])/n of biases.

    All classes c ≠ t have the same output, so that Σ_i p_ic = (n − m)/(C − 1), where m samples have p_t = 1 and the
    others 0. Class c is there (n − m)/(C − 1) − n·bias_c times, and m is the number at which these are integers; of
    several the one nearest to n/C.
    """
    others = [c for c in range(len(bias)) if c != target]
    seen = n * bias[others].double()

    def off(m: int) -> tuple[float, float]:
        counts = (n - m) / len(others) - seen
        return round(float((counts - counts.round().clamp_min(0)).square().sum()), 3), abs(m - n / len(bias))

    m = min(range(n + 1), key=off)
    counts = ((n - m) / len(others) - seen).round().clamp_min(0).long().tolist()
    labels = [c for c, count in zip(others, counts, strict=True) for _ in range(count)][:n]
    return labels + [target] * (n - len(labels))
