"""UTKFace: gender as the class, race and age as attributes."""

from __future__ import annotations

import numpy as np

from fedarena.datasets.archive import ByHand
from fedarena.datasets.cards.utkface import SPEC
from fedarena.datasets.npz import Arrays
from fedarena.datasets.one_piece import OnePiece, Parts, flag

WHITE, BLACK, ASIAN, INDIAN = 0, 1, 2, 3
"""Numbers of the file's `race_names`; 4 is for others."""

CHILD = 13
"""Years: younger ones have the attribute `child`."""

OLD = 60
"""Years: of these and more, `old`."""


def cut(labels: Arrays) -> Parts:
    """Gender is the class, the file's own flags are the split.

    Args:
        labels: age (years), gender (0 male, 1 female), race (index into `race_names`) and is_test [N].
    """
    age, race, test = labels["age"], labels["race"], labels["is_test"].astype(bool)
    return Parts(
        train=np.flatnonzero(~test),
        test=np.flatnonzero(test),
        y=labels["gender"].astype(np.int64),
        attributes={
            "white": flag(race == WHITE),
            "black": flag(race == BLACK),
            "asian": flag(race == ASIAN),
            "indian": flag(race == INDIAN),
            "child": flag(age < CHILD),
            "old": flag(age >= OLD),
        },
    )


utkface = OnePiece(
    SPEC,
    ByHand(
        "there is no download of this selection and scaling; the images themselves are at "
        "https://susanqq.github.io/UTKFace/",
    ),
    labels={"age": (0, 150), "gender": (0, 1), "race": (0, 4), "is_test": (0, 1)},
    cut=cut,
)
