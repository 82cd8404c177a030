"""Same value: every number of every corrupted upload is c."""

from dataclasses import dataclass

import torch

from fedarena.contracts.poisoning import Poisoning
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the same-value attack."""

    value: float = option(1.0, "c, sent in every coordinate")


class SameValue(Poisoning):
    """`view.own` holds what the protocol would have sent: here only its names and shapes are used."""

    def craft(self, view, memory, rng):
        """All corrupted uploads of a round, stacked, and what the attack wants to remember."""
        return {name: torch.full_like(t, self.options.value) for name, t in view.own.items()}, memory


CARD = Card(
    name="same-value",
    kind="attack",
    form="paper",
    title="One value in every coordinate (a toy)",
    target=SameValue,
    options=Options,
    usual=(("clients", "10"), ("corrupted", "2"), ("model", "mlp"), ("batch_size", "8"), ("lr", "0.2")),
    paper="RSA: Byzantine-Robust Stochastic Aggregation Methods for Distributed Learning from Heterogeneous Datasets "
    "(AAAI)",
    authors="Li, Xu, Chen, Giannakis, Ling",
    year=2019,
    url="https://arxiv.org/abs/1811.03761",
    equations="Section 5, same-value attack",
    departures=("RSA's messages are models; here it is the upload, whatever the protocol uploads.",),
    facts=(("knows", "own: nothing is used but shapes"), ("sends", "c in every coordinate")),
)
