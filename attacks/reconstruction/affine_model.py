"""An affine model: a server switches a client's nonlinearity off, and what comes back is an affine map of its sample.

The first layer gets weights 0 and biases 1. No unit then depends on the sample x, and neither do the outputs. Only the
first layer's gradient does, and it is linear in x, since the layer's inputs are multiplied with a known vector:

    what a client sends of a sample with label y  =  A_y x + c_y

This holds whatever a client makes of its gradient, as long as it is linear: sketches, masked parameters, differences of
losses along directions that the server has drawn. The output layer's biases make all classes equally likely, so that
every label leaves a gradient. A_y and c_y are found by playing the protocol on single pixels. What A_y leaves open is
filled in by the distribution of the attacker's own samples, or by the least norm. Where the protocol is not quite
linear, such as by a normalisation, A_y is taken at the last guess, and the step is repeated (Gauss–Newton). The label
is the one that explains most. Fewer numbers than pixels are explained by any label. Then it is the one by which they
are likeliest, if samples are distributed as the attacker's own:

    −log p(r | y)  =  ½ (r − c_y − A_y μ)ᵀ M⁻¹ (r − c_y − A_y μ) + ½ log det M,   M = A_y C A_yᵀ + λI

Where a server draws numbers for a broadcast, such as seeds, it can draw several times, and send what serves it best
(`fedarena.attacks.reconstruction.helpers.best_draw`).

This attack is our own. Single samples behind an upload are read; those of a batch mix.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedarena.attacks.reconstruction.cards.affine_model import Options
from fedarena.attacks.reconstruction.helpers.affine_play import Play, plays_of
from fedarena.attacks.reconstruction.helpers.best_draw import best_message
from fedarena.attacks.reconstruction.helpers.first_layer import Affine
from fedarena.attacks.reconstruction.helpers.first_layers import undecided
from fedarena.attacks.reconstruction.helpers.image_distribution import ImageDistribution, LeastNorm, prior_of
from fedarena.contracts.active_inference import ActiveInference, Bait, Message, Opportunity
from fedarena.contracts.inference import Guess, Progress, Reconstruction, Watch
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import Population, View
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

EXACT = 1e-8
"""Variance around the affine map, as a share of what was seen, up to which a sample is determined."""


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
        params = self.crafted(opportunity, rng)
        if isinstance(params, NotApplicable):
            return params
        message = self.message(opportunity, params, rng)
        return message if isinstance(message, NotApplicable) else Bait.for_all(message, opportunity)

    def message(self, opportunity: Opportunity, params: Tensors, rng: Rng) -> Message | NotApplicable:
        """A broadcast of that model, or why none serves."""
        return best_message(opportunity, params, self.options.draws, self.samples(opportunity.population), rng)

    def samples(self, population: Population | None) -> Tensor | None:
        """The attacker's own samples [m, *input_shape] that make its prior, if it has one."""
        return population.x if population is not None and self.options.prior == "population" else None

    def crafted(self, opportunity: Opportunity, rng: Rng) -> Tensors | NotApplicable:
        """The model that is sent."""
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
        return undecided(task, params, task.output_bias)

    def run(self, view: View, rng: Rng, progress: Progress) -> Guess | NotApplicable:
        prior, start = prior_of(self.samples(view.population), torch.Size(view.input_shape).numel())
        if why := {self.unreadable(seen) for seen in view.observations} - {""}:
            return NotApplicable("; ".join(sorted(why)))
        guesses: Guess = []
        for i, seen in enumerate(view.observations):
            plays = plays_of(view, seen, self.probe(view), rng.child("groups", i))
            guess, play = self.of_likeliest_label(plays, prior, start)
            guesses.append(self.refined(play, prior, guess))
            progress((i + 1) / len(view.observations), f"round {seen.round}: match {guesses[-1].match:.1e}")
        return guesses

    def probe(self, view: View) -> Tensor:
        """A sample [d] far from the others, at which the map is checked."""
        return torch.linspace(1, 0, torch.Size(view.input_shape).numel())

    def of_likeliest_label(
        self, plays: Sequence[Play], prior: ImageDistribution, start: Tensor
    ) -> tuple[Reconstruction, Play]:
        """The first guess of the label that explains what was seen best."""
        maps = [play.affine(start.to(play.group.device)) for play in plays]
        guesses = [self.solved(play, prior, start, *near) for play, near in zip(plays, maps, strict=True)]
        if plays[0].numbers > len(start):
            best = min(range(len(plays)), key=lambda i: guesses[i].match)
        else:
            best = min(range(len(plays)), key=lambda i: prior.surprise(*maps[i]))
        return guesses[best], plays[best]

    def step(self, play: Play, prior: ImageDistribution, x: Tensor) -> Reconstruction:
        """The sample that explains what was seen best, by the map near a sample [d]."""
        return self.solved(play, prior, x, *play.affine(x.to(play.group.device)))

    def solved(
        self, play: Play, prior: ImageDistribution, x: Tensor, shown: Tensor, near: Affine, variance: float
    ) -> Reconstruction:
        """The same, from the map and what was seen."""
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
