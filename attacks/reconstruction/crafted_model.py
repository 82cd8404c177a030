"""What attacks share that craft a model's first dense layers and read samples off what clients answer (`analytic`)."""

from __future__ import annotations

from abc import abstractmethod

from fedarena.attacks.reconstruction.analytic import Analytic
from fedarena.attacks.reconstruction.cards.analytic import CraftedModelOptions
from fedarena.attacks.reconstruction.helpers.first_layers import dense_start
from fedarena.contracts.active_inference import ActiveInference, Bait, Message, Opportunity
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable


class CraftedModel(ActiveInference, Analytic):
    """An attack that writes `crafted`. All clients get the model that it returns."""

    ordered = 16  # of a sum of many clients it would take most of the time

    def __init__(self, options: CraftedModelOptions) -> None:
        super().__init__(options)
        self.needs_population = True  # for thresholds

    def craft(self, opportunity: Opportunity, rng: Rng) -> Bait | NotApplicable:
        message = self.message(opportunity, rng)
        return message if isinstance(message, NotApplicable) else Bait.for_all(message, opportunity)

    def message(self, opportunity: Opportunity, rng: Rng) -> Message | NotApplicable:
        """A broadcast of the crafted model."""
        names = dense_start(opportunity.protocol.task)
        if isinstance(names, NotApplicable):
            return names
        params = self.crafted(opportunity, *names, rng)
        return opportunity.message(params, rng.child("broadcast"))

    @abstractmethod
    def crafted(self, opportunity: Opportunity, first: str, second: str, rng: Rng) -> Tensors:
        """The model's parameters, from the names of its first two layers."""
