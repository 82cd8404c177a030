"""Loading .npz files: search order, layout, checksums, subsets, and one clear line for whatever is wrong."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedarena import datasets
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.datasets import checksum
from fedarena.datasets.archive import Archive
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.datasets.survey import survey

FILES = ["bank-marketing", "cifar10", "cifar100", "fashion-mnist", "ham10000", "mnist", "olivetti", "usps"]


def expect_load_error(name: str, folder: Path, *words: str) -> None:
    """Loading raises one line that holds all these words."""
    with pytest.raises(UserError) as caught:
        datasets.load(name, folder)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


# -- the real files --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_the_real_file_is_in_the_table(name: str, real_data: Path) -> None:
    archive = registry.find("dataset", name).load()
    assert isinstance(archive, Archive)
    found = archive.find(real_data)
    if found is None or found.path.parent != real_data:
        pytest.skip(f"no file of {name} in {real_data}")
    assert checksum.check(found.path, found.file).state == "verified"
    assert archive.check(found)["x_train"].shape[0] <= archive.spec.n_train


def test_mnist_is_complete_and_in_its_original_order(real_data: Path) -> None:
    data = datasets.load("mnist", real_data)
    assert data.x_train.shape == (60000, 1, 28, 28)
    assert data.x_test.shape == (10000, 1, 28, 28)
    assert data.y_train[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.provenance.verified
    assert data.provenance.subset is None


def test_colour_images_go_channels_first_and_a_subset_is_told(real_data: Path) -> None:
    data = datasets.load("cifar10", real_data)
    with np.load(real_data / "cifar10.npz") as raw:
        assert np.array_equal(data.x_test[7, 2], raw["x_test"][7, :, :, 2])
    assert data.x_test.shape[1:] == (3, 32, 32)
    assert data.provenance.subset == "15000 of 50000 training images, 3000 of 10000 test images"


def test_a_file_that_is_a_subset_by_nature_says_so(real_data: Path) -> None:
    data = datasets.load("ham10000", real_data)
    assert data.x_train.shape == data.x_test.shape == (1000, 3, 64, 64)
    assert np.bincount(data.y_train).tolist() == np.bincount(data.y_test).tolist() == [500, 500]
    assert data.provenance.verified
    assert data.provenance.subset == "2 of 7 classes, balanced: 2000 of 10015 images"


def test_what_else_is_missing_is_told_after_it(
    tmp_path: Path, cache: Path, little: Callable[..., dict[str, np.ndarray]]
) -> None:
    np.savez(tmp_path / "ham10000_mel_nv_64.npz", **little(64, 64, 3, classes=2))
    subset = datasets.load("ham10000", tmp_path).provenance.subset
    assert subset is not None
    assert subset.endswith("10015 images; 20 of 1000 training images, 10 of 1000 test images")


def test_faces_come_from_either_file(real_data: Path) -> None:
    data = datasets.load("olivetti", real_data)
    assert data.n_classes == len(np.unique(data.y_train)) == len(np.unique(data.y_test))


def test_damage_anywhere_in_a_real_file_is_noticed(real_data: Path, cache: Path) -> None:
    cache.mkdir()
    whole = bytearray((real_data / "usps.npz").read_bytes())
    whole[len(whole) // 2] ^= 1
    (cache / "usps.npz").write_bytes(whole)
    expect_load_error("usps", cache, "usps.npz is damaged", "x_train")


# -- the search path -------------------------------------------------------------------------------


def test_the_option_comes_before_the_variable_before_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, little: Callable[..., dict[str, np.ndarray]]
) -> None:
    option, variable = tmp_path / "option", tmp_path / "variable"
    arrays = little(16, 16)
    for mark, folder in enumerate((option, variable, cache)):
        folder.mkdir()
        np.savez(
            folder / "usps.npz",
            **(
                arrays
                | {"x_train": np.full((5 + mark, 16, 16), mark, np.uint8)}
                | {"y_train": np.zeros(5 + mark, np.int64)}
            ),
        )
    monkeypatch.setenv("FEDARENA_DATA", str(variable))
    assert datasets.load("usps", option).x_train.max() == 0
    assert datasets.load("usps").x_train.max() == 1
    (option / "usps.npz").unlink()
    assert datasets.load("usps", option).x_train.max() == 1
    monkeypatch.delenv("FEDARENA_DATA")
    assert datasets.load("usps").x_train.max() == 2


def test_an_absent_file_is_named_with_its_place_and_the_command(tmp_path: Path, cache: Path) -> None:
    expect_load_error(
        "kmnist", tmp_path, "'kmnist' is absent", "kmnist.npz", str(tmp_path), str(cache), "bench data fetch kmnist"
    )


def test_a_file_that_nobody_offers_is_to_be_put_there_by_hand(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UserError) as caught:
        datasets.load("ham10000", tmp_path)
    said = str(caught.value)
    assert f"put ham10000_mel_nv_64.npz into {tmp_path} or {cache}; it cannot be downloaded: there is no " in said
    assert "bench data fetch" not in said


def test_a_folder_that_is_none_is_refused(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect_load_error("mnist", tmp_path / "nowhere", "--data-dir", "nowhere")
    monkeypatch.setenv("FEDARENA_DATA", str(tmp_path / "gone"))
    expect_load_error("mnist", tmp_path, "FEDARENA_DATA", "gone")


# -- checksums -------------------------------------------------------------------------------------


def test_an_unknown_checksum_is_accepted_and_recorded(
    tmp_path: Path, cache: Path, little: Callable[..., dict[str, np.ndarray]]
) -> None:
    np.savez(tmp_path / "kmnist.npz", **little(28, 28))
    facts = datasets.load("kmnist", tmp_path).provenance
    assert not facts.verified
    assert facts.sha256 == hashlib.sha256((tmp_path / "kmnist.npz").read_bytes()).hexdigest()
    assert facts.subset == "20 of 60000 training images, 10 of 10000 test images"


def test_a_sidecar_tells_changes_and_verifies_nothing(
    tmp_path: Path, cache: Path, little: Callable[..., dict[str, np.ndarray]]
) -> None:
    path = tmp_path / "kmnist.npz"
    np.savez(path, **little(28, 28))
    beside = tmp_path / "kmnist.npz.sha256"
    beside.write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  kmnist.npz\n")
    assert not datasets.load("kmnist", tmp_path).provenance.verified
    assert survey("kmnist", tmp_path).checksum == "unchanged"
    np.savez(path, **little(28, 28, y_test=np.zeros(10, np.int64)))
    expect_load_error("kmnist", tmp_path, "kmnist.npz", "sha256")
    beside.write_text("")
    expect_load_error("kmnist", tmp_path, "kmnist.npz", "sha256", "remove both and run `bench data fetch kmnist`")


# -- bad files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y_test": None}, ["lacks y_test"]),
        ({"x_train": np.zeros((20, 28, 27), np.uint8)}, ["x_train is uint8 [20, 28, 27]", "[N, 28, 28]"]),
        ({"x_train": np.zeros((20, 28, 28, 1), np.uint8)}, ["x_train", "[N, 28, 28]"]),
        ({"x_train": np.zeros((20, 28, 28))}, ["x_train is float64", "uint8"]),
        ({"x_test": np.zeros((0, 28, 28), np.uint8), "y_test": np.zeros(0, int)}, ["x_test holds 0 images", "1 to"]),
        ({"x_test": np.zeros((10001, 28, 28), np.uint8), "y_test": np.zeros(10001, int)}, ["10001", "1 to 10000"]),
        ({"x_train": np.array(3, np.uint8)}, ["x_train is uint8 []"]),
        ({"y_train": np.zeros(19, int)}, ["y_train is int64 [19]", "[20]"]),
        ({"y_train": np.zeros(20)}, ["y_train is float64", "integers"]),
        ({"y_train": np.zeros((20, 1), int)}, ["y_train is int64 [20, 1]"]),
        ({"y_train": np.full(20, 10)}, ["labels from 10 to 10", "0 to 9"]),
        ({"y_test": np.full(10, -1)}, ["labels from -1 to -1", "0 to 9"]),
        ({"y_test": np.full(10, None)}, ["y_test is object"]),
    ],
)
def test_wrong_contents_are_told_in_one_line(
    change: dict[str, np.ndarray | None],
    words: list[str],
    tmp_path: Path,
    cache: Path,
    little: Callable[..., dict[str, np.ndarray]],
) -> None:
    np.savez(tmp_path / "kmnist.npz", **little(28, 28, **change))
    expect_load_error("kmnist", tmp_path, "kmnist.npz", *words)


@pytest.mark.parametrize("kind", ["truncated", "text", "empty", "folder", "npy", "header"])
def test_a_damaged_archive_is_told_in_one_line(
    kind: str, tmp_path: Path, cache: Path, little: Callable[..., dict[str, np.ndarray]]
) -> None:
    path = tmp_path / "kmnist.npz"
    if kind == "truncated":
        np.savez(path, **little(28, 28))
        path.write_bytes(path.read_bytes()[:-1000])
    elif kind == "text":
        path.write_text("404: Not Found\n")
    elif kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "npy":
        with path.open("wb") as stream:
            np.save(stream, np.zeros(3))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for key in ("x_train", "y_train", "x_test", "y_test"):
                archive.writestr(f"{key}.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '|u1',")
    expect_load_error("kmnist", tmp_path, "kmnist.npz", "cannot be read" if kind == "folder" else "is damaged")


def test_unsigned_bytes_serve_as_labels(
    tmp_path: Path, cache: Path, little: Callable[..., dict[str, np.ndarray]]
) -> None:
    arrays = little(28, 28)
    np.savez_compressed(tmp_path / "mnist.npz", **(arrays | {"y_train": arrays["y_train"].astype(np.uint8)}))
    data = datasets.load("mnist", tmp_path)
    assert data.y_train.dtype == np.int64
    assert np.array_equal(data.y_train, arrays["y_train"])


def test_a_copy_of_a_known_file_is_known_wherever_it_lies(real_data: Path, tmp_path: Path, cache: Path) -> None:
    shutil.copy(real_data / "usps.npz", tmp_path)
    facts = datasets.load("usps", tmp_path).provenance
    assert facts.verified
    assert facts.file == "usps.npz"


# -- the contract, for third parties' loaders --------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x_train": np.zeros((4, 8, 8), np.uint8)}, "x_train is uint8 [4, 8, 8]"),
        ({"x_train": np.zeros((4, 1, 8, 8))}, "x_train is float64"),
        ({"x_train": np.full((4, 1, 8, 8), np.nan, np.float32)}, "not finite"),
        ({"y_train": np.zeros(4, np.int32)}, "y_train is int32"),
        ({"y_train": np.zeros(3, np.int64)}, "y_train is int64 [3]"),
        ({"y_test": np.full(4, 2)}, "labels from 2 to 2"),
        ({"x_test": np.zeros((4, 1, 8, 9), np.uint8)}, "differ in shape"),
        ({"scale": 0.0}, "scale is 0.0"),
        ({"domains": np.zeros(3, np.int64)}, "domains is int64 [3]"),
        ({"domains": np.zeros(4)}, "domains is float64 [4]"),
        ({"domains": np.full(4, -1)}, "numbers from 0"),
    ],
)
def test_a_dataset_refuses_what_breaks_its_contract(change: dict[str, object], words: str) -> None:
    x, y = np.zeros((4, 1, 8, 8), np.uint8), np.zeros(4, np.int64)
    good = {"x_train": x, "y_train": y, "x_test": x, "y_test": y, "scale": 255.0, "n_classes": 2}
    where = Provenance("made here", None, None, False)
    Dataset(name="toy", provenance=where, **good)  # type: ignore[arg-type]
    with pytest.raises(UserError) as caught:
        Dataset(name="toy", provenance=where, **(good | change))  # type: ignore[arg-type]
    assert words in str(caught.value)
