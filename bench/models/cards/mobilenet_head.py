"""Card and options of `mobilenet-head`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option


@dataclass(frozen=True)
class Options:
    """Options of the head on a frozen MobileNetV2."""

    weights: str = option(
        "pretrained",
        "the frozen features: pretrained (mobilenet_v2-b0353104.pth in FEDARENA_DATA, the cache folder or torch's hub "
        "cache; refused where it is absent), random (never trained), or the path of a torchvision state dict",
    )
    init: str = init_option("default")
    size: int | None = option(None, "resize images to this many pixels a side; the weights' own: 224", low=32)


CARD = Card(
    name="mobilenet-head",
    kind="model",
    title="Frozen MobileNetV2 features with a trained output layer",
    target="fedarena.models.mobilenet_head:MobileNetHead",
    options=Options,
    paper="MobileNetV2: Inverted Residuals and Linear Bottlenecks (CVPR)",
    authors="Sandler, Howard, Zhu, Zhmoginov, Chen",
    year=2018,
    url="https://arxiv.org/abs/1801.04381",
    equations="Table 2, torchvision's mobilenet_v2",
    departures=(
        "BAFFLE (Feng et al. 2023, arXiv 2301.12195) trains the last layers of a pretrained MobileNet of 1.3e7 "
        "parameters. Here it is torchvision's MobileNetV2, whose 2,223,872 parameters before the classifier are "
        "frozen; one dense layer of 1280 inputs is trained, without torchvision's dropout.",
    ),
    facts=(
        (
            "frozen",
            "known to every party, never sent; batch normalisation with its stored statistics, of ImageNet where "
            "pretrained",
        ),
        ("inputs", "3 channels, or one that is repeated; normalised by ImageNet's mean and standard deviation"),
        (
            "weights=random",
            "features of fixed random filters, the same for every seed: a stand-in that shows how the protocol runs, "
            "not how well a pretrained model learns",
        ),
    ),
    check="2,223,872 frozen and 12,810 trained parameters with 10 classes: tests/models/test_baffle_models.py",
)
