"""Each published data set is downloaded into its arrays, from a web server on this machine."""

from __future__ import annotations

import bz2
import hashlib
from pathlib import Path

import numpy as np
from helpers.raw_data import cifar_tar, idx
from helpers.web import Web

from fedarena.datasets.download import IDX_FILES, CifarTar, IdxFiles, UspsFiles, olivetti_faces, split_people
from fedarena.datasets.raw_file import RawFile


def known(content: bytes) -> tuple[int, str]:
    """The size and the checksum of a file."""
    return len(content), hashlib.sha256(content).hexdigest()


def test_images_and_labels_in_idx_are_downloaded(web: Web, tmp_path: Path) -> None:
    x, y = np.arange(3 * 784).reshape(3, 28, 28).astype(np.uint8), np.array([3, 1, 2], np.uint8)
    packed = [idx(x), idx(y), idx(x[:1]), idx(y[:1])]
    web.files = dict(zip(IDX_FILES, packed, strict=True))
    made = IdxFiles(web.url(""), tuple(known(content) for content in packed))(tmp_path)
    assert np.array_equal(made["x_train"], x)
    assert made["x_test"].dtype == np.uint8
    assert (made["y_train"].tolist(), made["y_test"].tolist()) == ([3, 1, 2], [3])
    assert made["y_train"].dtype == np.int64


def test_a_tar_of_cifar_is_downloaded_without_a_pickle(web: Web, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 10, (3, 2 + 3072), dtype=np.uint8)
    web.files["c.gz"] = cifar_tar(tmp_path / "made", train=rows[:2].tobytes(), test=rows[2:].tobytes())
    raw = RawFile(web.url("c.gz"), *known(web.files["c.gz"]))
    made = CifarTar(raw, train=("train.bin",), test=("test.bin",), labels=2)(tmp_path)
    assert made["x_train"].shape == (2, 32, 32, 3)
    assert np.array_equal(made["x_test"][0, :, :, 2].ravel(), rows[2, -1024:])
    assert (made["y_train"].tolist(), made["y_test"].tolist()) == (rows[:2, 1].tolist(), [rows[2, 1]])


def test_usps_is_downloaded(web: Web, tmp_path: Path) -> None:
    line = "10 " + " ".join(f"{i + 1}:{-1 + i / 128}" for i in range(256)) + "\n"
    web.files = {name: bz2.compress(line.encode() * (n + 1)) for n, name in enumerate(("usps.bz2", "usps.t.bz2"))}
    made = UspsFiles(*(RawFile(web.url(name), *known(content)) for name, content in web.files.items()))(tmp_path)
    assert (made["x_train"].shape, made["x_test"].shape) == ((1, 16, 16), (2, 16, 16))
    assert made["y_test"].tolist() == [9, 9]


def test_each_person_is_in_both_parts() -> None:
    y = np.repeat(np.arange(4), 10)
    x = np.arange(40, dtype=np.uint8)[:, None, None].repeat(2, 1)
    made = split_people(x, y)
    assert np.bincount(made["y_train"]).tolist() == [7] * 4
    assert np.bincount(made["y_test"]).tolist() == [3] * 4
    assert made["x_test"][:, 0, 0].tolist()[:4] == [7, 8, 9, 17]


def test_olivetti_floats_become_bytes(tmp_path: Path) -> None:
    import joblib

    levels = np.random.default_rng(0).integers(0, 256, (400, 4096))
    levels.flat[:2] = 0, 255
    joblib.dump(levels / 255, tmp_path / "olivetti_py3.pkz", compress=6)
    made = olivetti_faces(tmp_path)
    assert made["x_train"].shape == (280, 64, 64)
    first = levels[0].reshape(64, 64).T  # the source file holds images column by column
    assert np.array_equal(made["x_train"][0], first)
    assert made["y_test"].tolist()[:4] == [0, 0, 0, 1]
