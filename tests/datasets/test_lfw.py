"""LFW: who is on which side of the split, what the attributes say, and what is said of unexpected files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedarena import datasets
from fedarena.core.errors import UserError
from fedarena.datasets.cards.lfw import CARD
from fedarena.datasets.dataset import Dataset
from fedarena.datasets.lfw import by_person, cut
from fedarena.datasets.npz import Array, Arrays
from fedarena.datasets.survey import survey, verify

LABELS = ("person", "gender", "race", "smile")

Make = Callable[..., dict[str, Array]]


@pytest.fixture(scope="module")
def file(real_data: Path) -> Path:
    path = real_data / "lfw_62x47.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.fixture(scope="module")
def real(file: Path) -> Dataset:
    return datasets.load("lfw", file.parent)


@pytest.fixture(scope="module")
def labels(file: Path) -> Arrays:
    with np.load(file) as raw:
        return {name: raw[name] for name in LABELS}


@pytest.fixture
def few() -> Make:
    """A file of 40 images of 20 people, two each in turn; keyword arguments replace arrays, None removes one."""

    def make(**changes: Array | None) -> dict[str, Array]:
        rng = np.random.default_rng(0)
        person = np.repeat(np.arange(20), 2)
        made = {
            "x": rng.integers(0, 256, (40, 62, 47), dtype=np.uint8),
            "person": person,
            "gender": (person % 2).astype(np.int8),
            "race": (person % 4 - 1).astype(np.int8),
            "smile": np.tile(np.array([0, 1, -1, -1], np.int8), 10),
        }
        return {key: value for key, value in (made | changes).items() if value is not None}

    return make


# -- the real file -----------------------------------------------------------------------------------


def test_every_image_whose_gender_is_known_is_there_once_under_its_gender(real: Dataset, file: Path) -> None:
    assert (real.x_train.shape, real.x_test.shape) == ((9256, 1, 62, 47), (3968, 1, 62, 47))
    with np.load(file) as raw:
        x, gender = raw["x"], raw["gender"]
    theirs = np.c_[x[gender >= 0].reshape(-1, 62 * 47), gender[gender >= 0]].astype(np.uint8)
    ours = np.concatenate(
        [np.c_[x.reshape(len(x), -1), y] for x, y in ((real.x_train, real.y_train), (real.x_test, real.y_test))]
    ).astype(np.uint8)
    assert sorted(row.tobytes() for row in ours) == sorted(row.tobytes() for row in theirs)
    assert real.provenance.verified
    assert real.provenance.subset == "9 of 13233 images are left out, their gender is unknown"


def test_nobody_is_in_both_parts_and_the_frequent_are_in_both(labels: Arrays) -> None:
    parts, person = cut(labels), labels["person"]
    train, test = (np.unique(person[part]) for part in (parts.train, parts.test))
    assert not np.intersect1d(train, test).size
    assert f"{len(train)} people for training, {len(test)} others" in dict(CARD.facts)["split"]
    often = np.flatnonzero(np.bincount(person) >= 20)
    assert 0.2 < np.isin(often, test).mean() < 0.4


def test_parts_agree_in_races_and_genders(real: Dataset) -> None:
    assert len(real.y_test) / (len(real.y_train) + len(real.y_test)) == pytest.approx(0.3, abs=0.001)
    assert real.y_train.mean() == pytest.approx(real.y_test.mean(), abs=0.001)
    for race in ("black", "asian", "white"):
        train, test = real.attributes[race]
        assert (train == 1).mean() == pytest.approx((test == 1).mean(), abs=0.001)
        by_gender = [y[has == 1].mean() for has, y in ((train, real.y_train), (test, real.y_test))]
        assert by_gender[0] == pytest.approx(by_gender[1], abs=0.02)


def test_attributes_are_the_file_s_own_labels(real: Dataset, labels: Arrays) -> None:
    parts = cut(labels)
    for part, index in enumerate((parts.train, parts.test)):
        race, smile = labels["race"][index], labels["smile"][index]
        for number, name in ((0, "white"), (1, "black"), (2, "asian")):
            assert np.array_equal(real.attributes[name][part], np.where(race < 0, -1, race == number))
        assert np.array_equal(real.attributes["smile"][part], smile)


def test_the_card_has_the_counts(real: Dataset, labels: Arrays) -> None:
    facts = dict(CARD.facts)
    for name, parts in real.attributes.items():
        counts = [f"{(has == 1).sum()} and {(has == 0).sum()}" for has in parts]
        assert f"{name} {' + '.join(counts)}" in facts["images with and without, training + testing"]
    black = np.bincount(labels["person"][cut(labels).train][real.attributes["black"][0] == 1])
    assert (
        f"the {black.sum()} training images that are `black` show {(black > 0).sum()} people, {black.max()} of"
        in facts["few people"]
    )


def test_bench_data_knows_the_file(file: Path) -> None:
    seen, read = survey("lfw", file.parent), verify("lfw", file.parent)
    assert seen == read
    assert (seen.state, seen.checksum, seen.train, seen.test) == ("present", "verified", 9256, 3968)
    assert (seen.shape, seen.classes) == ((1, 62, 47), 2)


# -- the split ---------------------------------------------------------------------------------------


def test_a_person_whose_images_are_labelled_differently_stays_whole() -> None:
    person = np.repeat(np.arange(30), 3)
    test = by_person(person, np.arange(90) % 2, np.random.default_rng(0))
    assert np.isin(test.reshape(30, 3).sum(1), (0, 3)).all()
    assert test.mean() == pytest.approx(0.3, abs=0.04)


def test_equals_are_drawn_and_the_same_seed_draws_the_same() -> None:
    person = np.arange(50)
    first, again, other = (by_person(person, np.zeros(50, int), np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.sum() == other.sum() == 15


# -- files that are not as expected ------------------------------------------------------------------


def test_a_smaller_file_loads_and_says_what_it_lacks(tmp_path: Path, cache: Path, few: Make) -> None:
    gender = np.repeat(np.arange(20), 2).astype(np.int8) % 2
    gender[7] = -1
    np.savez(tmp_path / "lfw_62x47.npz", **few(gender=gender))
    data = datasets.load("lfw", tmp_path)
    assert len(data.y_train) + len(data.y_test) == 39
    assert not data.provenance.verified
    assert data.provenance.subset is not None
    assert data.provenance.subset.endswith("unknown; 39 of 13224 images")
    row = verify("lfw", tmp_path)
    assert (row.state, row.checksum, row.train) == ("present", "unknown", len(data.y_train))


def test_an_absent_file_is_to_be_put_there_by_hand(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UserError) as caught:
        datasets.load("lfw", tmp_path)
    said = str(caught.value)
    assert f"put lfw_62x47.npz into {tmp_path} or {cache}; it cannot be downloaded: there is no download of" in said
    assert "vis-www.cs.umass.edu/lfw" in said
    assert survey("lfw", tmp_path).state == "absent"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"race": None}, "lacks race: expected the keys x, person, gender, race, smile"),
        ({"x": np.zeros((40, 64, 47), np.uint8)}, "x is uint8 [40, 64, 47], expected uint8 [N, 62, 47]"),
        ({"x": np.zeros((40, 62, 47))}, "x is float64 [40, 62, 47], expected uint8 [N, 62, 47]"),
        ({"x": np.zeros((0, 62, 47), np.uint8)}, "x is uint8 [0, 62, 47], expected uint8 [N, 62, 47]"),
        ({"smile": np.zeros(39, np.int8)}, "smile is int8 [39], expected integers [40]"),
        ({"gender": np.zeros(40)}, "gender is float64 [40], expected integers [40]"),
        ({"gender": np.full(40, 2)}, "gender holds values from 2 to 2, expected -1 to 1"),
        ({"gender": np.full(40, -1)}, "y_train is int64 [0], expected int64 [0], 1 sample or more"),
    ],
)
def test_wrong_contents_are_told_in_one_line(
    change: dict[str, Array | None], words: str, tmp_path: Path, cache: Path, few: Make
) -> None:
    np.savez(tmp_path / "lfw_62x47.npz", **few(**change))
    with pytest.raises(UserError) as caught:
        datasets.load("lfw", tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    row = verify("lfw", tmp_path)
    assert (row.state, row.problem) == ("damaged", str(caught.value))


def test_a_checksum_beside_the_file_that_is_not_its_own_is_damage(tmp_path: Path, cache: Path, few: Make) -> None:
    np.savez(tmp_path / "lfw_62x47.npz", **few())
    (tmp_path / "lfw_62x47.npz.sha256").write_text("0" * 64 + "  lfw_62x47.npz\n")
    with pytest.raises(UserError, match=r"lfw_62x47\.npz\.sha256 says otherwise: remove both; it cannot be downloaded"):
        datasets.load("lfw", tmp_path)
    assert survey("lfw", tmp_path).state == "damaged"


def test_damage_within_the_images_is_noticed(tmp_path: Path, cache: Path, few: Make) -> None:
    path = tmp_path / "lfw_62x47.npz"
    np.savez(path, **few())
    whole = bytearray(path.read_bytes())
    whole[40 * 62 * 47 // 2] ^= 1
    path.write_bytes(whole)
    assert survey("lfw", tmp_path).state == "present"  # which does not read them
    row = verify("lfw", tmp_path)
    assert row.state == "damaged"
    assert row.problem is not None
    assert "is damaged" in row.problem


def test_fetch_refuses_and_says_what_the_file_holds(tmp_path: Path) -> None:
    from fedarena.datasets.fetch import fetch
    from fedarena.datasets.lfw import lfw

    with pytest.raises(
        UserError, match=r"x uint8 \[N, 62, 47\] and integers \[N\] person \(0 to 5748\), .* of which 13224 images"
    ):
        fetch(lfw, tmp_path)
