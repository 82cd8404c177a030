"""Inconsistent masks: a server scales one client's gradient up and the others' down, and reads it off their secure sum.

Some protocols hide the server's model behind factors r that no client may know (`fedarena.contracts.hidden_scale`).
Scaled ReLU units compute the same function, and gradients of the first layer are divided by r. With 1/r = F for the
victim and 1/r = 1/F for the others, the sum of clients with weights N_c is, for this layer,

    Σ_c N_c g_c/N = (N_v/N) F (g_v + F⁻² Σ_{c≠v} (N_c/N_v) g_c)

So the sum is the victim's gradient, up to F⁻² and the rounding of the sum. The model that clients run is the honest
one, and its loss as well. The victim's samples are read off the layer as by
`fedarena.attacks.reconstruction.analytic`.

This attack is our own.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from fedarena.attacks.reconstruction.analytic import Analytic
from fedarena.attacks.reconstruction.cards.inconsistent_masks import Options
from fedarena.attacks.reconstruction.helpers.image_distribution import ImageDistribution
from fedarena.attacks.reconstruction.helpers.matching import relative_squares
from fedarena.contracts.active_inference import ActiveInference, Bait, Message, Opportunity
from fedarena.contracts.hidden_scale import HiddenScale
from fedarena.contracts.inference import Reconstruction
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable


class InconsistentMasks(ActiveInference, Analytic):
    """The attack; see the module's docstring."""

    options: Options
    name = "inconsistent-masks"
    ordered = 16

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        protocol, state = opportunity.protocol, opportunity.state
        if not isinstance(protocol, HiddenScale):
            return NotApplicable("the protocol's server keeps no scale of the model from its clients")
        if not opportunity.summed:
            return NotApplicable("without a secure sum the server sees each upload, and need not single one out")
        messages = []
        for who, loudness in (("victim", self.options.loudness), ("others", 1 / self.options.loudness)):
            sent = protocol.scaled(state, loudness, rng.child(who))
            messages.append(Message(state.params, sent.down, sent.secret))
        lure, faint = messages
        return Bait(
            {c: lure if c == opportunity.victim else faint for c in opportunity.participants},
            targets=(opportunity.victim,),
            spoiled=protocol.unscaled,
        )

    def reconstruct(
        self, view: View, seen: Observation, distribution: ImageDistribution, rng: Rng
    ) -> Reconstruction | str:
        """As inherited. The output layer is not read, so the label of a single sample is the one that matches best."""
        guess = super().reconstruct(view, seen, distribution, rng)
        if isinstance(guess, str) or seen.images > 1 or not view.n_classes:
            return guess
        distance, labels = relative_squares(seen.target), torch.eye(view.n_classes).to(guess.images)
        match = [float(distance(seen.simulate(guess.images.clamp(0, 1), label[None]))) for label in labels]
        best = min(range(len(match)), key=match.__getitem__)
        return replace(guess, labels=torch.full_like(guess.labels, best), match=match[best])
