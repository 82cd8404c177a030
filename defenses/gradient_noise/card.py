"""Card and options of `gradient-noise`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of noise on gradients."""

    std: float = option(0.01, "standard deviation of the noise on each entry of an upload", above=0)
    law: str = option("gaussian", "the noise's distribution", choices=("gaussian", "laplacian"))


CARD = Card(
    name="gradient-noise",
    kind="defense",
    title="Noise of a chosen size on uploads, without a promise",
    target="fedarena.defenses.gradient_noise.protocol:GradientNoise",
    options=Options,
    paper="Deep Leakage from Gradients (NeurIPS)",
    authors="Zhu, Liu, Han",
    year=2019,
    url="https://arxiv.org/abs/1906.08935",
    equations="Section 5, noisy gradients",
    departures=("The option is the noise's standard deviation; the paper gives variances, 1e-4 to 1e-1.",),
    check="no number of a paper; moments of the noise: tests/defenses/gradient_noise",
    facts=(
        ("down", "W"),
        ("up", "∂L/∂W, or W − W_local, with noise on each entry"),
        ("promise", "none: gradients are not bounded, so that no noise makes them differentially private"),
        ("server knows", "W, every upload, the size of the noise"),
        (
            "malicious server chooses",
            "the model that each client gets, and so how large gradients are beside the noise",
        ),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        ("forms", "both forms match the upload's expectation, which is the gradient"),
    ),
)
