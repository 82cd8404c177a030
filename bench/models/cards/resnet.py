"""Card and options of `resnet`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.models.cards.distributions import init_option
from fedarena.models.cards.layers import BATCH_FACT, norm_option


@dataclass(frozen=True)
class Options:
    """Options of the residual network."""

    depth: int = option(20, "layers with weights, shortcuts not counted: 6n + 2", choices=(20, 32, 56))
    skip: str = option(
        "add",
        "how a block joins its input and its own output: add sums them as in ResNets, concat puts them side by side",
        choices=("add", "concat"),
    )
    bias: bool = option(False, "biases in all layers")
    init: str = init_option("kaiming")
    branch_scale: float | None = option(
        None,
        "initial factor on the last convolution of every block; none: 1/blocks with skip=add without a norm, else 1",
        above=0,
        idle_with=("norm", "group", "batch"),
    )
    norm: str = norm_option("none", listed=False)


CARD = Card(
    name="resnet",
    kind="model",
    title="ResNet of depth 20, 32 or 56 for small images: without normalisation, as PBPFL trains it, or with it",
    target="fedarena.models.resnet:ResNet",
    options=Options,
    paper="Deep Residual Learning for Image Recognition (CVPR)",
    authors="He, Zhang, Ren, Sun",
    year=2016,
    url="https://arxiv.org/abs/1512.03385",
    equations="Section 4.2, n = 3, 5, 9; Eq. 1 and 2",
    departures=(
        "Without norm=batch no batch normalisation and, unless bias=true, no biases: as in the released code of PBPFL "
        "(Feng et al. 2020, arXiv 2002.09843), whose masks rest on it. Norms have no parameters; those of He et al. "
        "have.",
        "Where a stage begins with stride 2, the shortcut is a 1x1 convolution of stride 2, as in PBPFL's code; its "
        "paper gives no detail. He et al. subsample and fill up with zeros on CIFAR-10.",
        "PBPFL's paper says that skip connections are concatenated (Figure 2) and gives no widths; its code adds. "
        "With skip=concat, the n blocks of a stage of width w add w channels together, ⌊(i+1)w/n⌋ − ⌊iw/n⌋ by block "
        "i, so that channels go 16 → 32 → 64 → 128. The first convolution of a block has w channels.",
        "The last convolution of a block starts `branch_scale` times as large as `init` says; PBPFL's code starts it "
        "at factor 1.",
    ),
    check="270,896, 464,432 and 851,504 parameters on 3x32x32 inputs and 10 classes at depth 20, 32 and 56 with "
    "skip=add (He et al., Table 6: 0.27 M, 0.46 M, 0.85 M): tests/models/test_resnet.py. PBPFL's 0.85 MB of ResNet56 "
    "are millions of parameters, 3.4 MB as 32-bit numbers",
    facts=(
        BATCH_FACT,
        ("skip=concat", "247,744, 391,888 and 680,176 parameters at depth 20, 32 and 56"),
        (
            "scale at the start",
            "skip=add with branch_scale=1 nearly doubles the power in every block: at depth 56, logits of 32 CIFAR-10 "
            "images have standard deviations from 3,000 to 17,000 (three seeds), with the default from 0.2 to 0.9. "
            "With skip=concat no factor is needed: 0.3 to 0.5.",
        ),
        (
            "first steps",
            "Depth 56, 10,000 images of Fashion-MNIST, Adam at 0.001, batches of 32, one seed. The mean loss of steps "
            "81 to 100 is 2.28 with skip=add and branch_scale=1 (log 10 = 2.30), 1.39 with 1/√27, 1.30 with 1/27, 1.01 "
            "with skip=concat. Which is no final accuracy.",
        ),
    ),
)
