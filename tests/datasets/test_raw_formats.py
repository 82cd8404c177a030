"""Published files of data sets become arrays, and what is no such file is refused."""

from __future__ import annotations

import bz2
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from helpers.raw_data import cifar_tar, idx

from fedarena.datasets import raw_formats
from fedarena.datasets.raw_formats import read_cifar, read_idx, read_libsvm

PIXELS = 3 * 32 * 32


@pytest.mark.parametrize("shape", [(3, 28, 28), (5,)])
def test_idx_files_become_arrays(shape: tuple[int, ...], tmp_path: Path) -> None:
    values = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    (tmp_path / "a.gz").write_bytes(idx(values))
    assert np.array_equal(read_idx(tmp_path / "a.gz"), values)


def test_idx_of_other_types_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(struct.pack(">HBBI", 0, 13, 1, 1) + b"1234"))
    with pytest.raises(ValueError, match=r"a\.gz holds no unsigned bytes in IDX"):
        read_idx(tmp_path / "a.gz")


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_formats, "MOST", 1000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(10_000)))
    with pytest.raises(ValueError, match=r"a\.gz unpacks to more than 1000 bytes"):
        read_idx(tmp_path / "a.gz")
    cifar_tar(tmp_path / "b", one=bytes(PIXELS + 1))
    with pytest.raises(ValueError, match=r"one\.bin unpacks to more than 1000 bytes"):
        read_cifar(tmp_path / "b", ("one.bin",), labels=1)


@pytest.mark.parametrize("labels", [1, 2])
def test_cifar_s_rows_become_images(labels: int, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 10, (4, labels + PIXELS), dtype=np.uint8)
    cifar_tar(tmp_path / "a", two=rows[2:].tobytes(), other=b"text", one=rows[:2].tobytes())
    x, y = read_cifar(tmp_path / "a", ("one.bin", "two.bin"), labels)
    assert y.tolist() == rows[:, labels - 1].tolist()
    assert x.shape == (4, 32, 32, 3)
    for channel in range(3):
        assert np.array_equal(x[..., channel].reshape(4, -1), rows[:, labels:].reshape(4, 3, -1)[:, channel])


def test_usps_becomes_bytes(tmp_path: Path) -> None:
    values = np.linspace(-1, 1, 256)
    line = "10 " + " ".join(f"{i + 1}:{v:.6f}" for i, v in enumerate(values)) + "\n"
    (tmp_path / "usps.bz2").write_bytes(bz2.compress((line * 2).encode()))
    x, y = read_libsvm(tmp_path / "usps.bz2")
    assert x.shape == (2, 16, 16)
    assert np.abs(x[0].ravel().astype(int) - np.arange(256)).max() <= 1
    assert y.tolist() == [9, 9]
