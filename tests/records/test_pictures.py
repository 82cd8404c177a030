"""Pictures of records: what was written is read, and what is damaged or claims too much is left out."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from fedarena.records.results import Gallery
from fedarena.records.store import MOST_VALUES, load_pictures, save_pictures

IMAGES = torch.linspace(0, 1, 2 * 3 * 64).reshape(2, 3, 8, 8)


def saved(folder: Path) -> Path:
    return save_pictures(Gallery("a", IMAGES, 1 - IMAGES), folder)


def npy(header_of: tuple[int, ...], data: bytes, dtype: str = "|u1") -> bytes:
    """A .npy member that claims a shape."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": header_of})
    return out.getvalue() + data


def archive(folder: Path, member: bytes) -> None:
    path = folder / "pictures" / "a.npz"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in ("originals", "guesses"):
            out.writestr(f"{name}.npy", member)


def test_pictures_are_read_as_they_were_written(tmp_path: Path) -> None:
    saved(tmp_path)
    pictures = load_pictures(tmp_path, "a")
    assert pictures is not None
    assert [part.dtype for part in pictures] == [np.float32, np.float32]
    assert np.abs(pictures[0] - IMAGES.numpy()).max() <= 0.5 / 255 + 1e-6
    assert np.abs(pictures[0] + pictures[1] - 1).max() <= 1 / 255 + 1e-6


def test_every_damaged_byte_is_read_or_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    left_out = 0
    for i in range(0, len(whole), 3):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :])
        left_out += load_pictures(tmp_path, "a") is None
    assert left_out > len(whole) / 10


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (npy((3, 1, 10**5, 10**4), b"\0" * 100), "it claims gigabytes"),
        (npy((2**40, 1, 1, 1), b""), "it claims terabytes"),
        (npy((4,), b"\0" * 4), "it has one axis"),
        (npy((1, 1, 2, 2), b"\0" * 32, "<f8"), "it holds numbers of 64 bits"),
        (npy((1, 1, 2, 2), b"\0" * 9), "bytes are left over"),
        (npy((1, 1, 2, 2), b"\0"), "bytes are missing"),
        (npy((0, 1, 2, 2), b""), "it has no image"),
        (npy((1, 1, 0, 0), b""), "its images have no pixel"),
        (npy((1, 0, 2, 2), b""), "its images have no channel"),
        (npy((1, 2, 2, 2), b"\0" * 8), "its images have two channels"),
    ],
)
def test_files_of_another_content_are_left_out(member: bytes, why: str, tmp_path: Path) -> None:
    assert MOST_VALUES < 3 * 10**9
    archive(tmp_path, member)
    assert load_pictures(tmp_path, "a") is None, why


def test_a_key_that_is_a_path_shows_no_pictures(tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.rename(tmp_path / "secret.npz")
    assert load_pictures(tmp_path, "../secret") is None
    assert load_pictures(tmp_path, str(tmp_path / "secret")) is None
