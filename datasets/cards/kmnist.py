"""Card of `kmnist`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="kmnist",
    title="Kuzushiji-MNIST: cursive Japanese characters, grey 28×28",
    n_train=60000,
    n_test=10000,
    licence="CC BY-SA 4.0 (ROIS-DS Center for Open Data in the Humanities)",
    files=(
        File(
            name="kmnist.npz",
            shape=(1, 28, 28),
            n_classes=10,
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:kmnist",
    paper="Deep Learning for Classical Japanese Literature",
    authors="Clanuwat, Bober-Irizar, Kitamoto, Lamb, Yamamoto, Ha",
    year=2018,
    url="https://arxiv.org/abs/1812.01718",
    facts=SPEC.facts(),
)
