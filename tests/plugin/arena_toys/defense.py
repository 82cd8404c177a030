"""Gaussian noise on every upload: up + sigma·z, z ~ N(0, I)."""

from dataclasses import dataclass

import torch

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.defenses.fedavg.protocol import FedAvg


@dataclass(frozen=True)
class Options:
    """Options of the noisy defense."""

    sigma: float = option(0.01, "standard deviation of the noise on every coordinate", low=0)


class Noisy(FedAvg):
    """FedAvg whose clients add noise before they send; broadcast, aggregation and readings are FedAvg's."""

    def draw(self, rng):
        """All of a client's randomness, drawn by the harness and handed to `client`."""
        generator = rng.torch()
        return {name: torch.randn(p.shape, generator=generator) for name, p in self.task.model.named_parameters()}

    def client(self, down, batch, memory, noise):
        """ONE client; pure. An adaptive attacker runs this too, but without the noise, which it does not know."""
        up, memory = super().client(down, batch, memory, {})
        return {name: t + self.options.sigma * noise[name] if noise else t for name, t in up.items()}, memory


CARD = Card(
    name="noisy",
    kind="defense",
    title="Gaussian noise on every upload (a toy)",
    target=Noisy,
    options=Options,
    paper="Deep Learning with Differential Privacy (CCS)",
    authors="Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang",
    year=2016,
    url="https://arxiv.org/abs/1607.00133",
    equations="Algorithm 1, the noise only",
    departures=("No clipping, so no (ε, δ) is claimed.",),
    facts=(("down", "W"), ("up", "gradient + noise"), ("server knows", "W, every noisy upload")),
)
