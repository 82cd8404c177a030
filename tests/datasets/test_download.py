"""The conversion of what torchvision and scikit-learn give, on little raw files in their own formats."""

from __future__ import annotations

import bz2
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from fedarena.datasets.download import FromTorchvision, olivetti_faces, split_people


@pytest.mark.parametrize("class_name", ["MNIST", "FashionMNIST", "KMNIST"])
def test_idx_files_become_arrays(class_name: str, tmp_path: Path) -> None:
    raw = tmp_path / class_name / "raw"
    raw.mkdir(parents=True)
    x, y = np.arange(3 * 784).reshape(3, 28, 28).astype(np.uint8), np.array([3, 1, 2], np.uint8)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, 3, 28, 28) + x.tobytes())
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, 3) + y.tobytes())
    made = FromTorchvision(class_name)(tmp_path)
    assert np.array_equal(made["x_train"], x)
    assert made["x_test"].dtype == np.uint8
    assert made["y_test"].tolist() == [3, 1, 2]


def test_usps_becomes_bytes(tmp_path: Path) -> None:
    values = np.linspace(-1, 1, 256)
    line = "10 " + " ".join(f"{i + 1}:{v:.6f}" for i, v in enumerate(values)) + "\n"
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / name).write_bytes(bz2.compress((line * 2).encode()))
    made = FromTorchvision("USPS")(tmp_path)
    assert made["x_train"].shape == (2, 16, 16)
    assert np.abs(made["x_train"][0].ravel().astype(int) - np.arange(256)).max() <= 1
    assert made["y_test"].tolist() == [9, 9]


def test_cifar_batches_become_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedarena.core.torchvision_import import import_torchvision

    torchvision = import_torchvision()
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "_check_integrity", lambda self: True)
    monkeypatch.setattr(torchvision.datasets.CIFAR10, "_load_meta", lambda self: None)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    rows = np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8)
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        (folder / name).write_bytes(pickle.dumps({"data": rows, "labels": [4, 7]}))
    made = FromTorchvision("CIFAR10")(tmp_path)
    assert made["x_train"].shape == (10, 32, 32, 3)
    assert np.array_equal(made["x_test"][1, :, :, 2].ravel(), rows[1, 2048:])
    assert made["y_test"].tolist() == [4, 7]


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
