"""Card of `cifar100`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="cifar100",
    title="CIFAR-100: small photographs of 100 kinds, colour 32×32",
    n_train=50000,
    n_test=10000,
    licence="none stated; cite Krizhevsky 2009",
    files=(
        File(
            name="cifar100.npz",
            shape=(3, 32, 32),
            n_classes=100,
            sha256="3c97a681c49f77de9ff0b983dea3f7c19546340cc92cfaac6c9ac9ddb2dd0fa6",
            source="CIFAR-100, class-balanced subset, fine labels; new split, the original one is not known",
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:cifar100",
    paper="Learning Multiple Layers of Features from Tiny Images",
    authors="Krizhevsky",
    year=2009,
    url="https://www.cs.toronto.edu/~kriz/cifar.html",
    facts=SPEC.facts(),
)
