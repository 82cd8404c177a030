"""Bank Marketing: the file at hand, and the download, which makes the same arrays out of UCI's own file."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.web import Web

from fedarena import datasets
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.datasets import bank_marketing as bank
from fedarena.datasets.dataset import Dataset
from fedarena.datasets.npz import KEYS
from fedarena.datasets.raw_file import RawFile
from fedarena.datasets.survey import verify

HEADER = (
    "age;job;marital;education;default;balance;housing;loan;contact;day;month;duration;campaign;pdays;previous;"
    "poutcome;y"
)


@pytest.fixture(scope="module")
def file(real_data: Path) -> Path:
    path = real_data / "bank_marketing.npz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return path


@pytest.fixture(scope="module")
def real(file: Path) -> Dataset:
    return datasets.load("bank-marketing", file.parent)


@pytest.fixture(scope="module")
def text(file: Path) -> str:
    """bank-full.csv, written anew from the columns that the file keeps as they were."""
    with np.load(file) as raw:
        columns = {name: raw["raw_numeric"][:, j].astype(str) for j, name in enumerate(raw["raw_numeric_names"])}
        values = json.loads(str(raw["raw_categorical_values"][0]))
        for j, name in enumerate(raw["raw_categorical_names"]):
            columns[name] = np.array([f'"{v}"' for v in values[name]])[raw["raw_categorical"][:, j]]
        columns["y"] = np.where(raw["raw_y"] == 1, '"yes"', '"no"')
    names = HEADER.split(";")
    lines = [";".join(f'"{name}"' for name in names)]
    lines += [";".join(row) for row in zip(*(columns[name] for name in names), strict=True)]
    return "\n".join(lines) + "\n"


def test_the_file_is_complete_verified_and_in_0_to_1(real: Dataset, file: Path) -> None:
    assert (real.x_train.shape, real.x_test.shape) == ((36169, 51), (9042, 51))
    assert real.provenance.verified
    assert real.provenance.subset is None
    assert real.scale == 1
    assert (real.x_train.min(0) == 0).all()
    assert (real.x_train.max(0) == 1).all()
    assert real.y_train.mean() == pytest.approx(0.117, abs=5e-4)  # as the card says
    with np.load(file) as raw:
        x, cut = raw["x_train"].astype(np.float64), raw["x_test"][:, 3]
        assert np.array_equal(real.y_test, raw["y_test"])
    assert np.abs(real.x_train - (x - x.min(0)) / np.ptp(x, axis=0)).max() < 1e-6
    assert cut.max() > x[:, 3].max()  # the longest call of all is in the test part: it is cut
    assert real.x_test[:, 3].max() == 1
    row = verify("bank-marketing", file.parent)
    assert (row.state, row.checksum, row.classes, row.shape) == ("present", "verified", 2, (51,))


def test_uci_s_own_file_becomes_the_same_arrays(text: str, file: Path) -> None:
    assert hashlib.sha256(text.encode()).hexdigest() == bank.CSV_SHA256
    made = bank.convert(text)
    with np.load(file) as raw:
        assert all(np.array_equal(made[key], raw[key]) for key in KEYS)
        assert all(made[key].dtype == raw[key].dtype for key in KEYS)
        one_hot = [f"{name}={value}" for name, values in bank.CATEGORIES.items() for value in values]
        assert raw["feature_names"].tolist() == [*bank.NUMBERS, *one_hot]


def test_one_hot_columns_have_one_1_each(real: Dataset) -> None:
    start = len(bank.NUMBERS)
    for values in bank.CATEGORIES.values():
        assert (real.x_test[:, start : start + len(values)].sum(1) == 1).all()
        start += len(values)
    assert start == 51


def archive(content: bytes) -> bytes:
    """A zip with another zip in front of the one that holds the file."""
    stream, inner, other = io.BytesIO(), io.BytesIO(), io.BytesIO()
    for target, name in ((inner, "bank-full.csv"), (other, "bank-additional/bank-additional-full.csv")):
        with zipfile.ZipFile(target, "w") as made:
            made.writestr(name, content if target is inner else b"another table")
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("bank-additional.zip", other.getvalue())
        made.writestr("bank.zip", inner.getvalue())
    return stream.getvalue()


def test_the_table_is_found_in_a_zip_within_a_zip() -> None:
    assert bank.unpacked(archive(b"the table")) == b"the table"
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as made:
        made.writestr("bank/bank-full.csv", b"at once")
        made.writestr("bank/bank.csv", b"a tenth")
    assert bank.unpacked(stream.getvalue()) == b"at once"
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as made:
        made.writestr("bank.csv", b"a tenth")
    assert bank.unpacked(stream.getvalue()) is None


def test_a_zip_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bank, "MOST", 8)
    with pytest.raises(ValueError, match=r"bank-additional\.zip unpacks to more than 8 bytes"):
        bank.unpacked(archive(b"the table"))


def test_a_download_is_held_to_its_checksum(
    text: str, file: Path, tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bank, "ZIP", RawFile(web.url("bank.zip"), 10_000_000, checksum=None))
    web.files["bank.zip"] = archive(text.encode())
    made = bank.bank_marketing(tmp_path)
    with np.load(file) as raw:
        assert np.array_equal(made["x_test"], raw["x_test"])
    web.files["bank.zip"] = archive(text.replace("tertiary", "secondary", 1).encode())
    with pytest.raises(ValueError, match=r"bank-full\.csv of .* has sha256 .*, expected d1513ec6"):
        bank.bank_marketing(tmp_path)
    with zipfile.ZipFile(stream := io.BytesIO(), "w") as other:
        other.writestr("readme", b"moved")
    web.files["bank.zip"] = stream.getvalue()
    with pytest.raises(ValueError, match=r"holds no bank-full\.csv"):
        bank.bank_marketing(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x_train": np.zeros((3, 51))}, ["x_train is float64 [3, 51]", "float32 [N, 51]"]),
        ({"x_train": np.zeros((3, 48), np.float32)}, ["x_train is float32 [3, 48]", "float32 [N, 51]"]),
        ({"x_train": np.full((3, 51), np.inf, np.float32)}, ["x_train holds values that are not finite"]),
        ({"y_test": np.array([0, 2])}, ["y_test holds labels from 0 to 2, expected 0 to 1"]),
        (
            {"x_test": np.zeros((9043, 51), np.float32), "y_test": np.zeros(9043, int)},
            ["9043 rows, expected 1 to 9042"],
        ),
    ],
)
def test_wrong_tables_are_told_in_one_line(
    change: dict[str, np.ndarray], words: list[str], tmp_path: Path, cache: Path
) -> None:
    good = {
        "x_train": np.eye(3, 51, dtype=np.float32),
        "y_train": np.array([0, 1, 0]),
        "x_test": np.eye(2, 51, dtype=np.float32),
        "y_test": np.array([0, 1]),
    }
    np.savez(tmp_path / "bank_marketing.npz", **good)
    facts = datasets.load("bank-marketing", tmp_path).provenance
    assert facts.subset == "3 of 36169 training rows, 2 of 9042 test rows"
    np.savez(tmp_path / "bank_marketing.npz", **(good | change))
    with pytest.raises(UserError) as caught:
        datasets.load("bank-marketing", tmp_path)
    assert all(word in str(caught.value) for word in ["bank_marketing.npz", *words])


def test_the_card_has_the_file_s_own_counts() -> None:
    assert dict(registry.find("dataset", "bank-marketing").facts)["rows"] == "36169 for training, 9042 for testing"
