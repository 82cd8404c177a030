"""Card of `mnist`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="mnist",
    title="MNIST: handwritten digits, grey 28×28",
    n_train=60000,
    n_test=10000,
    licence="CC BY-SA 3.0",
    files=(
        File(
            name="mnist.npz",
            shape=(1, 28, 28),
            n_classes=10,
            sha256="382bb97ca2541ee7177de658d8d589d0584e3ac85da8f9c6df1d8ce368e14c43",
            source="MNIST, complete, in its original order",
        ),
    ),
    blind_auc=0.57,
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:mnist",
    version=2,
    paper="Gradient-based learning applied to document recognition",
    authors="LeCun, Bottou, Bengio, Haffner",
    year=1998,
    url="https://doi.org/10.1109/5.726791",
    facts=SPEC.facts(),
)
