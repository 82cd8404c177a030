"""Card of `ham10000`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="ham10000",
    title="HAM10000, nevus or melanoma: dermatoscopic photographs, colour 64×64",
    n_train=1000,
    n_test=1000,
    licence="CC BY-NC-SA 4.0 (Tschandl, Rosendahl, Kittler)",
    files=(
        File(
            name="ham10000_mel_nv_64.npz",
            shape=(3, 64, 64),
            n_classes=2,
            sha256="cdbedd4d9caeec0edba1108fb1c4bf679eee505f6786e738af4ef412b8a686fc",
            source="HAM10000, 1000 nevi and 1000 melanomas, scaled to 64×64; new split, by image",
            lacks="2 of 7 classes, balanced: 2000 of 10015 images",
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:ham10000",
    paper="The HAM10000 dataset, a large collection of multi-source dermatoscopic images of common pigmented skin "
    "lesions",
    authors="Tschandl, Rosendahl, Kittler",
    year=2018,
    url="https://doi.org/10.1038/sdata.2018.161",
    departures=(
        "A subset: nevi (class 0) and melanomas (class 1), 500 of each for training and for testing. PBPFL (Feng et "
        "al. 2020) uses all 7 classes, 8,000 images for training and 2,000 for testing.",
        "The images had 150×150 pixels where they were found and are scaled to 64×64.",
        "HAM10000 has several images of some lesions. The split is by image, so that a lesion may be in both parts.",
    ),
    facts=SPEC.facts(),
)
