"""An affine model: a server switches a client's nonlinearity off, and what comes back is an affine map of its sample.

The first layer gets weights 0 and biases 1. No unit then depends on the sample x, and neither do the outputs. Only the
first layer's gradient does, and it is linear in x, since the layer's inputs are multiplied with a known vector:

    what a client sends of a sample with label y  =  A_y x + c_y

This holds whatever a client makes of its gradient, as long as it is linear: sketches, masked parameters, differences of
losses along directions that the server has drawn. The output layer's biases make all classes equally likely, so that
every label leaves a gradient. A_y and c_y are found by playing the protocol on single pixels. What A_y leaves open is
filled in by the distribution of the attacker's own samples, or by the least norm. Where the protocol is not quite
linear, such as by a normalisation, A_y is taken at the last guess, and the step is repeated (Gauss–Newton). The label
is the one that explains most.

This attack is our own. Single samples behind an upload are read; those of a batch mix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import vmap

from fedarena.attacks.reconstruction.cards.affine_model import Options
from fedarena.attacks.reconstruction.helpers.first_layer import PLAYS, Affine
from fedarena.attacks.reconstruction.helpers.image_distribution import GaussianImages, ImageDistribution, LeastNorm
from fedarena.attacks.reconstruction.helpers.matching import relative_squares
from fedarena.contracts.active_inference import ActiveInference, Bait, Opportunity
from fedarena.contracts.inference import Guess, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

STEP = 0.25
"""By how much a pixel is moved to find A."""
EXACT = 1e-8
"""Variance around the affine map, as a share of what was seen, up to which a sample is determined."""
ENTRIES = 10**8
"""Entries of A, at most. Where A has more, numbers that were seen are added up in groups, with random signs."""


class AffineModel(ActiveInference):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.affine_model.Options`."""

    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_population = options.prior == "population"

    def watch(self, schedule: Schedule) -> Watch:
        o = self.options
        return Watch.spread("affine-model", o.victims, o.start, o.window, schedule)

    def unreadable(self, seen: Observation) -> str:
        if seen.images == 1:
            return ""
        return f"{seen.images} samples are behind what was seen, and an affine map of them shows their sums alone"

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        task, params = opportunity.protocol.task, dict(opportunity.state.params)
        (first, layer), *others = task.layers
        if layer.bias is None or not others or task.output_bias is None:
            return NotApplicable("the model's first or output layer has no bias, which this attack sets")
        params[f"{first}.weight"] = torch.zeros_like(params[f"{first}.weight"])
        params[f"{first}.bias"] = torch.ones_like(params[f"{first}.bias"])
        for i, (name, _) in enumerate(others):  # fresh, so that what was trained hides no part of a sample
            like = params[f"{name}.weight"]
            drawn = torch.randn(like.shape, generator=rng.child("layer", i).torch()).to(like)
            params[f"{name}.weight"] = self.options.gain * drawn / like[0].numel() ** 0.5
        with torch.no_grad():
            any_sample = torch.zeros(1, *task.input_shape).to(params[task.output_bias])
            params[task.output_bias] = params[task.output_bias] - task.outputs(params, any_sample)[0]
        return Bait.for_all(opportunity.message(params, rng.child("broadcast")), opportunity)

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        prior: ImageDistribution = LeastNorm()
        start = torch.full((torch.Size(view.input_shape).numel(),), 0.5, dtype=torch.float64)
        if view.population is not None:
            prior = GaussianImages.of(view.population.x.flatten(1))
            start = prior.mean
        if why := {self.unreadable(seen) for seen in view.observations} - {""}:
            return NotApplicable("; ".join(sorted(why)))
        guesses: Guess = []
        for i, seen in enumerate(view.observations):
            of_label = [(self.step(play, prior, start), play) for play in plays_of(view, seen, rng.child("groups", i))]
            guess, play = min(of_label, key=lambda pair: pair[0].match)
            guesses.append(self.refined(play, prior, guess))
            progress((i + 1) / len(view.observations), f"round {seen.round}: match {guesses[-1].match:.1e}")
        return guesses

    def step(self, play: Play, prior: ImageDistribution, x: Tensor) -> Reconstruction:
        """The sample that explains what was seen best, by the map near a sample [d]."""
        shown, near, variance = play.affine(x.to(play.group.device))
        if not bool(near.a.any()):  # type: ignore[union-attr]  # a label that leaves no trace of a sample
            return play.reconstruction(x)
        guesses = [play.reconstruction(prior(shown, near, variance).clamp(0, 1))]
        if len(shown) == len(x) and variance < EXACT * float(shown.square().mean()):
            # A distribution would only blur what is determined.
            guesses.append(play.reconstruction(LeastNorm()(shown, near, variance).clamp(0, 1)))
        return min(guesses, key=lambda guess: guess.match)

    def refined(self, play: Play, prior: ImageDistribution, guess: Reconstruction) -> Reconstruction:
        """The guess after further steps, as long as they explain more."""
        for _ in range(self.options.steps - 1):
            following = self.step(play, prior, guess.images.flatten().double())
            if following.match >= guess.match:
                break
            guess = following
        return guess


@dataclass(frozen=True)
class Play:
    """Plays the protocol on samples of one label.

    Attributes:
        label: as simulators take it, [1, n_classes], or numbers [1].
        group, sign: of each number that was seen, [k'].
        numbers: how many groups there are, k.
    """

    view: View
    seen: Observation
    label: Tensor
    group: Tensor
    sign: Tensor
    numbers: int

    def sums(self, tensors: Tensors) -> Tensor:
        """What was seen, or would have been [k]; signed sums where it is too much."""
        values = flatten(tensors)
        if self.numbers == len(self.group):
            return values
        return values.new_zeros(self.numbers).index_add(0, self.group, self.sign * values)

    def __call__(self, x: Tensor) -> Tensor:
        """A sample [d] → what would have been seen of it [k]."""
        return self.sums(self.seen.simulate(x.reshape(1, *self.view.input_shape), self.label))

    @torch.no_grad()
    def affine(self, x: Tensor) -> tuple[Tensor, Affine, float]:
        """What was seen, what is seen of samples near x [d], and the variance of what is seen around that.

        All are in coordinates of the span of A, of which there are at most d. White noise stays white in them. The
        variance is that of the protocol's noise, and how far another sample is from its affine image: by rounding, such
        as that of a difference of two losses, or since the protocol is not affine.
        """
        at, other = x.to(self.label), torch.linspace(1, 0, len(x)).to(self.label)
        there = self(at).double()
        # The method has a name: of an object PyTorch would print every tensor instead.
        moved = vmap(self.__call__, chunk_size=PLAYS)(at + STEP * torch.eye(len(at)).to(at)).double()
        span, a = torch.linalg.qr((moved - there).T / STEP)
        near = Affine(a, span.T @ there - a @ at.double())
        off = span.T @ self(other).double() - near(other.double())
        shown = span.T @ self.sums(self.seen.target).double()
        return shown, near, self.seen.noise_std**2 + float(off.square().mean())

    def reconstruction(self, x: Tensor) -> Reconstruction:
        """The sample as an answer, with its distance from what was seen."""
        image = x.to(self.label).reshape(1, *self.view.input_shape)
        match = float(relative_squares(self.seen.target)(self.seen.simulate(image, self.label)))
        labels = self.label.argmax(1) if self.view.n_classes else self.label
        return Reconstruction(image, labels, match, len(x) + 2)


def plays_of(view: View, seen: Observation, rng: Rng) -> list[Play]:
    """One for each class. Where labels are numbers there is one, for ½."""
    like = next(t for t in seen.target.values() if t.is_floating_point())
    numbers = sum(t.numel() for t in seen.target.values())
    k = min(numbers, ENTRIES // torch.Size(view.input_shape).numel())
    group = torch.randint(k, (numbers,), generator=rng.child("group").torch()).to(like.device)
    sign = torch.randint(2, (numbers,), generator=rng.child("sign").torch()).to(like) * 2 - 1
    labels = torch.eye(view.n_classes) if view.n_classes else torch.tensor([[0.5]])
    shape = (1, view.n_classes) if view.n_classes else (1,)
    return [Play(view, seen=seen, label=y.to(like).reshape(shape), group=group, sign=sign, numbers=k) for y in labels]
