"""Card of `utkface`."""

from fedarena.core.card import Card
from fedarena.datasets.cards.spec import File, Spec

SPEC = Spec(
    name="utkface",
    title="UTKFace, man or woman: photographs of all ages, colour 32×32, with attributes",
    n_train=7722,
    n_test=1930,
    licence="non-commercial research only; copyright with the original owners",
    files=(
        File(
            name="utkface_32.npz",
            shape=(3, 32, 32),
            n_classes=2,
            sha256="f485f8acfc7f2df4dc325accae8f14cbfa5a3f114ab24a0fcfdce1b328f4d82b",
            source="UTKFace, aligned crops of its part crop_part1, scaled to 32×32",
            lacks="of UTKFace only crop_part1, without exact duplicates and images of contradictory labels",
        ),
    ),
)

CARD = Card(
    name=SPEC.name,
    kind="dataset",
    title=SPEC.title,
    target="fedarena.datasets.utkface:utkface",
    paper="Age Progression/Regression by Conditional Adversarial Autoencoder (CVPR)",
    authors="Zhang, Song, Qi",
    year=2017,
    url="https://susanqq.github.io/UTKFace/",
    departures=(
        "A part, crop_part1, and scaled from 200×200 to 32×32.",
        "A fifth, drawn at random, is for testing; UTKFace has no split of its own, and does not say who is on which "
        "image, so that a person may be in both parts.",
    ),
    facts=(
        *SPEC.facts(),
        ("labels", "0 male, 1 female (in lfw it is the other way round); 55 % of the images are of women"),
        (
            "attributes",
            "white, black, asian, indian, of UTKFace's labels of race, which have a fifth value for all others; child "
            "(younger than 13 years), old (60 or older). Known of every image. How many have it, training + testing: "
            "white 4137 + 1051, black 307 + 93, asian 1247 + 300, indian 1178 + 266, child 2565 + 657, old 1106 + 309",
        ),
        ("origin", "crop_part1 of Mohanish-5744/Major_Ensemble_Gender (GitHub)"),
        (
            "care",
            "real people, many of them children, who were not asked. Age, gender and race are others' or a program's "
            "judgements. For research on what leaks; show no more faces than that needs",
        ),
    ),
    usual=(("model", "cnn-lfw"),),
)
