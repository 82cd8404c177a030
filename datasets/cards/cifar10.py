"""Card of `cifar10`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="cifar10",
    title="CIFAR-10: small photographs, colour 32×32",
    n_train=50000,
    n_test=10000,
    licence="none stated; cite Krizhevsky 2009",
    files=(
        File(
            name="cifar10.npz",
            shape=(3, 32, 32),
            n_classes=10,
            sha256="009d179a9019e14fbcb75685c5635812acab82599b547bb8611d72ffe2148d7d",
            source="CIFAR-10, class-balanced subset; members of the original training and test set stay apart",
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:cifar10",
    paper="Learning Multiple Layers of Features from Tiny Images",
    authors="Krizhevsky",
    year=2009,
    url="https://www.cs.toronto.edu/~kriz/cifar.html",
    facts=SPEC.facts(),
)
