"""Card of `olivetti`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="olivetti",
    title="Olivetti (AT&T, ORL) faces: 40 people, ten images each",
    n_train=280,
    n_test=120,
    licence="free for research; credit AT&T Laboratories Cambridge",
    files=(
        File(
            name="olivetti.npz",
            shape=(1, 64, 64),
            n_classes=40,
        ),
        File(
            name="att_faces.npz",
            shape=(1, 112, 92),
            n_classes=39,
            sha256="d0cdaf994960bee264aba08afc10ed3a6088f238a15b7e5516bd6583ae10bf5c",
            source="AT&T faces in the original 112×92 pixels, 39 of the 40 people",
        ),
    ),
    blind_auc=0.61,
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.sources:olivetti",
    paper="Parameterisation of a stochastic model for human face identification",
    authors="Samaria, Harter",
    year=1994,
    url="https://doi.org/10.1109/ACV.1994.341300",
    departures=(
        "No official split: images 1 to 7 of each person are for training, 8 to 10 for testing.",
        "olivetti.npz holds the faces at 64×64 as scikit-learn gives them, att_faces.npz at the original 112×92.",
    ),
    facts=SPEC.facts(),
    version=3,  # identification counts by chance among the images of a person
)
