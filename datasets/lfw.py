"""Labeled Faces in the Wild: gender as the class, race and smile as attributes."""

from __future__ import annotations

import numpy as np

from fedarena.core.rng import Rng
from fedarena.datasets.archive import ByHand
from fedarena.datasets.cards.lfw import SPEC
from fedarena.datasets.dataset import SPLIT_SEED
from fedarena.datasets.npz import Array, Arrays
from fedarena.datasets.one_piece import OnePiece, Parts, flag

TEST_SHARE = 0.3
"""About that of DBCL's 8,150 images for training and 3,400 for testing."""

CAUCASIAN, AFRICAN, EAST_ASIAN = 0, 1, 2
"""Numbers of the file's `race_names`."""


def cut(labels: Arrays) -> Parts:
    """Gender is the class; images without one are left out. All images of a person are in one part.

    Args:
        labels: person, gender (0 female, 1 male), race (index into `race_names`) and smile [N]; -1 unknown.
    """
    person, gender, race, smile = (np.asarray(labels[name], np.int64) for name in ("person", "gender", "race", "smile"))
    known = np.flatnonzero(gender >= 0)
    test = np.zeros(len(gender), bool)
    test[known] = by_person(person[known], race[known] * 2 + gender[known], Rng(SPLIT_SEED).child("lfw").numpy())
    return Parts(
        train=known[~test[known]],
        test=known[test[known]],
        y=gender,
        attributes={
            "black": flag(race == AFRICAN, race >= 0),
            "asian": flag(race == EAST_ASIAN, race >= 0),
            "white": flag(race == CAUCASIAN, race >= 0),
            "smile": flag(smile == 1, smile >= 0),
        },
    )


def by_person(person: Array, stratum: Array, rng: np.random.Generator) -> Array:
    """Which images are for testing [N], bool: a share of `TEST_SHARE` of every stratum, by whole people.

    Within a stratum, people are ordered by falling numbers of images, with ties in random order. Each person goes to
    the part whose share is less filled. So both parts get people with many images, and the last people, who have one
    image each, even out the shares.

    Args:
        person: the person on each image [N].
        stratum: the stratum of each image [N]; that of a person is that of the person's first image.
    """
    people, first, size = np.unique(person, return_index=True, return_counts=True)
    chosen = np.zeros(len(people), bool)
    for each in np.unique(stratum[first]):
        members = rng.permutation(np.flatnonzero(stratum[first] == each))
        train = test = 0
        for one in members[np.argsort(-size[members], kind="stable")]:
            chosen[one] = test * (1 - TEST_SHARE) < train * TEST_SHARE
            test, train = (test + size[one], train) if chosen[one] else (test, train + size[one])
    mine: Array = np.isin(person, people[chosen])
    return mine


lfw = OnePiece(
    SPEC,
    ByHand(
        "there is no download of this file; it joins the aligned images of LFW "
        "(http://vis-www.cs.umass.edu/lfw/) with label lists of others, see `bench show lfw`",
    ),
    labels={"person": (0, 5748), "gender": (-1, 1), "race": (-1, 5), "smile": (-1, 1)},
    cut=cut,
)
