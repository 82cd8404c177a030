"""Card and options of `steer`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of steering."""

    target: str = option(
        "flip",
        "g*: flip, the gradient on mirrored labels; reverse, the opposite of the gradient on the true ones",
        choices=("flip", "reverse"),
    )
    strength: float = option(4.0, "λ, length of g* in gradients of the own data", above=0)
    samples: int = option(256, "own samples that g* is computed from in each round", low=1)


USUAL = (
    ("clients", "20"),
    ("corrupted", "4"),
    ("model", "mlp-two-stage"),
    ("rounds", "300"),
    ("batch_size", "16"),
    ("lr", "0.1"),
    ("eval_every", "10"),
)
"""The usual problem of poisoning attacks, but with a network that K = 100 directions can train."""


CARD = Card(
    name="steer",
    version=2,
    kind="attack",
    goal="poisoning",
    form="adaptive",
    usual=USUAL,
    title="Steering: the loss differences of a gradient of one's choice",
    target="fedarena.attacks.poisoning.steer:Steer",
    options=Options,
    equations="u_k = λ σ z_kᵀ g*, for the gradient g* that the server is to use",
    departures=("Not from a paper: it follows from the seed being known to every client.",),
    check="no number of a paper; tests/attacks/poisoning/test_steer.py",
    facts=(
        ("knows", "own: its own samples, W, the seed and so every direction z_k"),
        ("sends", "the differences that an honest client would measure if its gradient were λ g*, free of rounding"),
        ("controls", "the whole projection of g* on the K directions; the server steps nowhere else"),
        ("against a secure sum", "unchanged: the server sees no single upload that it could reject"),
    ),
)
