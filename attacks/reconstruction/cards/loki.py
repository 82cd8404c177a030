"""Card and options of `loki`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of LOKI."""

    gain: float = option(
        0.005,
        "value of the kernels that pass pixels on; the smaller it is, the less do local steps move what sorts samples",
        above=0,
    )


CARD = Card(
    name="loki",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server's kernels keep the clients of a secure sum apart, and bins their samples (LOKI)",
    target="fedarena.attacks.reconstruction.loki:Loki",
    options=Options,
    version=2,
    paper="LOKI: Large-scale Data Reconstruction Attack against Federated Learning through Model Manipulation (S&P)",
    authors="Zhao, Sharma, Elkordy, Ezzeldin, Avestimehr, Bagchi",
    year=2024,
    url="https://arxiv.org/abs/2303.12233",
    equations="Section IV, client-specific identity kernels and the imprint of mean brightness",
    departures=(
        "The model's own convolutions and first dense layers are set; the paper inserts a convolution and two dense "
        "layers. Strides are made up for by more kernels, poolings are not.",
        "A block has one more channel, which is constant. Its gradient is what the bias's would be of the block's "
        "clients alone; the paper stretches what it finds to [0, 1].",
        "Where the channels are too few for all clients, several share a block.",
        "Bins are differences of units with ReLUs, as in imprint, and not units that are bounded on both sides.",
        "The kernels' value is small. The paper's factor of 500 comes with a dense layer that is divided by it.",
        "Labels of more than 16 samples are not put in order: which sample has which label is then left open.",
    ),
    check="more samples of a secure sum come back than with imprint at the same width, also after several local steps, "
    "tests/attacks/reconstruction/test_loki.py",
    facts=(
        ("reads", "what clients answer to models whose first layers it has set, different ones behind a secure sum"),
        ("model", "convolutions without pooling and two dense layers with ReLUs, such as cnn; else n/a"),
        ("knows", "half of the held-out data, for its thresholds"),
    ),
    usual=(("model", "cnn"), ("lr", "0.05"), ("batch-size", "8")),
)
