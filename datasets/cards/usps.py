"""Card of `usps`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="usps",
    title="USPS: handwritten digits of zip codes, grey 16×16",
    n_train=7291,
    n_test=2007,
    licence="none stated; research use",
    files=(
        File(
            name="usps.npz",
            shape=(1, 16, 16),
            n_classes=10,
            sha256="5b386d43fec051f90b81099ba89db8369b6c502b0968a940ecee1e792e899d26",
            source="USPS, complete, standard split, grey levels rounded to 8 bits",
        ),
    ),
    blind_auc=0.54,
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:usps",
    version=2,
    paper="A database for handwritten text recognition research",
    authors="Hull",
    year=1994,
    url="https://doi.org/10.1109/34.291440",
    facts=(
        *SPEC.facts(),
        (
            "copies",
            "LIBSVM's, which torchvision and `bench data fetch usps` download, is smoothed. It is the file whose "
            "checksum is known here, blurred by a Gaussian of 0.75 pixels, zeros outside. The two were compared in "
            "112 pixels of 3 test images, and in mean and deviation of the training set. Models train to other "
            "accuracies on it. The option blur of mlp-two-stage and cnn-two-stage turns the unsmoothed pixels into the "
            "smoothed ones.",
        ),
    ),
)
