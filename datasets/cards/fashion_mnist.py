"""Card of `fashion-mnist`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="fashion-mnist",
    title="Fashion-MNIST: clothing, grey 28×28",
    n_train=60000,
    n_test=10000,
    licence="MIT (Zalando SE)",
    files=(
        File(
            name="fashion_mnist.npz",
            shape=(1, 28, 28),
            n_classes=10,
            sha256="ea91edf676b573e984b6c58d14149c11e53da377abf91446116b2b298fc9f282",
            source="Fashion-MNIST, complete, in its original order",
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:fashion_mnist",
    paper="Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms",
    authors="Xiao, Rasul, Vollgraf",
    year=2017,
    url="https://arxiv.org/abs/1708.07747",
    facts=SPEC.facts(),
)
