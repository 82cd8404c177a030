"""Card and options of `april`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of the closed form for vision transformers."""


CARD = Card(
    name="april",
    version=3,
    kind="attack",
    goal="reconstruction",
    title="APRIL: an image read off the position embedding's gradient of a vision transformer",
    target="fedarena.attacks.reconstruction.april:April",
    options=Options,
    paper="APRIL: Finding the Achilles' Heel on Privacy for Vision Transformers (CVPR)",
    authors="Lu, Zhang, Zhao, He, Cheng",
    year=2022,
    url="https://arxiv.org/abs/2112.14087",
    equations="the closed form: ∂L/∂Z from the trained position embedding, then a linear system",
    departures=(
        "The right side of the system is the gradient of the patch embedding, ∂L/∂E = Σ_p δ_p x_pᵀ. The paper takes "
        "Q∇Q + K∇K + V∇V = Σ_p δ_p z_pᵀ of the first block.",
        "So a norm before the attention does no harm, and no patch embedding has to be inverted. Behind a norm the "
        "paper's system holds neither the embedding's δ_p nor its z_p.",
        "The paper's optimisation for other blocks, which matches the position embedding's gradient by a cosine, is "
        "left out: the linear system is exact for them.",
        "Noise, pruning and quantisation are met by a ridge, whose size follows from what the system leaves "
        "unexplained. It helps little: the system is ill-conditioned, and a little noise blurs a digit.",
        "What a system of too low rank leaves open is filled in by mid-grey, so that the image is the nearest to grey.",
    ),
    check="single images come back to 60 dB and more in double precision, and the paper's own system on its block "
    "without a norm: tests/attacks/reconstruction/test_april.py. Breaching's notebook reports 23.90 dB and SSIM .811 "
    "for the paper's system on one image of ImageNet",
    facts=(
        (
            "reads",
            "the gradient or update of the patch embedding and of the position embedding, and its own plays of the "
            "protocol",
        ),
        (
            "model",
            "vit and the like; n/a where positions are not trained or not sent, and for several samples behind an "
            "upload",
        ),
        (
            "exact",
            "for fewer patches than the width: norms leave ∂L/∂Z no part along the ones, so its rank is at most "
            "width − 1",
        ),
    ),
    usual=(("model", "vit"), ("lr", "0.05")),
)
