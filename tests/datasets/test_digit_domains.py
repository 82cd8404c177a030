"""Digits of three origins: what each part becomes, what is said of it, and what happens without its files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedarena import datasets
from fedarena.cli import data as command
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.datasets.cards.digit_domains import CARD, PARTS
from fedarena.datasets.dataset import Dataset
from fedarena.datasets.digit_domains import resized, together
from fedarena.datasets.npz import Array
from fedarena.datasets.survey import survey, verify

Little = Callable[..., dict[str, Array]]


@pytest.fixture
def folder(tmp_path: Path, cache: Path, little: Little) -> Path:
    """Twenty images of each part that lies in a file."""
    folder = tmp_path / "here"
    folder.mkdir()
    np.savez(folder / "mnist.npz", **little(28, 28))
    np.savez(folder / "usps.npz", **little(16, 16))
    return folder


@pytest.fixture(scope="module")
def real(real_data: Path) -> Dataset:
    return datasets.load("digit-domains", real_data)


def test_real_parts_are_whole_and_in_their_order(real: Dataset, real_data: Path) -> None:
    assert real.x_train.shape == (68729, 1, 28, 28)
    assert real.x_test.shape == (12366, 1, 28, 28)
    assert dict(CARD.facts)["images"] == "68729 for training, 12366 for testing"
    assert real.domains is not None
    assert np.bincount(real.domains).tolist() == [60000, 7291, 1438]
    assert real.n_classes == 10
    for i, name in enumerate(PARTS):
        part = datasets.load(name, real_data)
        assert np.array_equal(real.y_train[real.domains == i], part.y_train)
        assert f"{i} {name}" in dict(CARD.facts)["domains"]
    mnist = datasets.load("mnist", real_data)
    assert np.array_equal(real.x_train[:60000], mnist.x_train)
    assert np.array_equal(real.x_test[:10000], mnist.x_test)


def test_real_domains_show_bright_ink_on_a_dark_ground_and_the_same_digits(real: Dataset) -> None:
    assert real.domains is not None
    images = [real.x_train[real.domains == i].astype(np.float32) / 255 for i in range(3)]
    labels = [real.y_train[real.domains == i] for i in range(3)]
    for x in images:
        assert x[:, 0, 0, 0].mean() < 0.01  # a corner
        assert 0.1 < x.mean() < 0.4
        assert x.max() > 0.95

    # Within their frames (MNIST's digits have a margin of four pixels), a digit of one origin is most like the same
    # digit of another, for most digits: the labels mean the same.
    def means(x: Array, y: Array) -> Array:
        rows = np.stack([x[y == k].mean(0).ravel() for k in range(10)])
        return (rows - rows.mean(0)) / np.linalg.norm(rows - rows.mean(0), axis=1, keepdims=True)

    framed = resized(np.ascontiguousarray(real.x_train[:60000, :, 4:24, 4:24]), 255.0, 28).astype(np.float32)
    mnist = means(framed, labels[0])
    for x, y in zip(images[1:], labels[1:], strict=True):
        assert np.count_nonzero((mnist @ means(x, y).T).argmax(1) == np.arange(10)) >= 8


def test_real_data_are_told_to_be_verified(real: Dataset, real_data: Path) -> None:
    facts = real.provenance
    assert facts.verified
    assert facts.file == "mnist.npz + usps.npz"
    assert facts.subset is None
    row = verify("digit-domains", real_data)
    assert (row.state, row.checksum, row.sha256) == ("present", "verified", facts.sha256)
    assert (row.train, row.test, row.classes, row.shape) == (68729, 12366, 10, (1, 28, 28))


def test_enlarging_keeps_brightness_and_is_bilinear() -> None:
    flat = np.full((2, 1, 8, 8), 4, np.uint8)
    assert np.array_equal(resized(flat, 16.0, 28), np.full((2, 1, 28, 28), 64))
    assert np.array_equal(resized(np.full((1, 1, 8, 8), 16, np.uint8), 16.0, 28), np.full((1, 1, 28, 28), 255))
    ramp = np.tile(np.arange(8, dtype=np.uint8), (1, 1, 8, 1))
    wide = resized(ramp, 255.0, 16)[0, 0, 4]
    # Pixel j of the wide row lies at (j + ½)/2 − ½ of the narrow one: j/2 − ¼, within its ends.
    assert np.abs(wide - np.clip(np.arange(16) / 2 - 0.25, 0, 7)).max() <= 0.5
    same = np.random.default_rng(0).integers(0, 256, (3, 1, 28, 28), dtype=np.uint8)
    assert np.array_equal(resized(same, 255.0, 28), same)


def test_subsets_are_told_of_each_part(folder: Path) -> None:
    made = datasets.load("digit-domains", folder)
    assert made.domains is not None
    assert np.bincount(made.domains).tolist() == [20, 20, 1438]
    said = (
        "mnist: 20 of 60000 training images, 10 of 10000 test images; "
        "usps: 20 of 7291 training images, 10 of 2007 test images"
    )
    assert made.provenance.subset == said
    assert not made.provenance.verified
    row = survey("digit-domains", folder)
    assert (row.state, row.checksum, row.subset, row.train) == ("present", "unknown", said, 1478)
    assert row.sha256 == made.provenance.sha256


def test_its_checksum_is_that_of_its_parts(folder: Path, little: Little) -> None:
    before = survey("digit-domains", folder).sha256
    parts = [survey(name, folder).sha256 for name in PARTS]
    assert before == together(parts)
    np.savez(folder / "usps.npz", **little(16, 16, y_train=np.zeros(20, np.int64)))
    assert survey("digit-domains", folder).sha256 != before
    assert together(["a", None]) is None


@pytest.mark.parametrize("missing", ["mnist", "usps"])
def test_without_a_part_it_is_absent_and_says_which(folder: Path, missing: str) -> None:
    (folder / f"{missing}.npz").unlink()
    assert survey("digit-domains", folder).state == "absent"
    with pytest.raises(UserError, match=rf"'digit-domains' is made from mnist, usps, digits: .*'{missing}' is absent"):
        datasets.load("digit-domains", folder)


def test_damage_of_a_part_is_its_own(folder: Path) -> None:
    path = folder / "usps.npz"
    path.write_bytes(path.read_bytes()[:400])
    row = survey("digit-domains", folder)
    assert row.state == "damaged"
    assert not row.healthy
    assert row.problem is not None
    assert "usps" in row.problem


def test_there_is_nothing_to_fetch_but_its_parts(folder: Path) -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["data", "fetch", "digit-domains"])
    with pytest.raises(UserError, match="no file of its own: fetch mnist and usps instead"):
        args.run(args)


def test_every_data_set_that_says_it_has_domains_has_them(folder: Path) -> None:
    for name in registry.registries()["dataset"].names():
        card = registry.find("dataset", name)
        if "domains" in dict(card.facts):
            made = card.load()(folder)
            assert made.domains is not None
            assert len(np.unique(made.domains)) > 1
