"""UCI's Bank Marketing: the download, and its one-hot columns."""

from __future__ import annotations

import csv
import hashlib
import io
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedarena.datasets.dataset import TEST_SHARE
from fedarena.datasets.npz import Array, Arrays

URL = "https://archive.ics.uci.edu/static/public/222/bank+marketing.zip"
CSV = "bank-full.csv"
CSV_SHA256 = "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"

NUMBERS = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
CATEGORIES: Mapping[str, Sequence[str]] = {
    "job": (
        "admin.",
        "blue-collar",
        "entrepreneur",
        "housemaid",
        "management",
        "retired",
        "self-employed",
        "services",
        "student",
        "technician",
        "unemployed",
        "unknown",
    ),
    "marital": ("divorced", "married", "single"),
    "education": ("primary", "secondary", "tertiary", "unknown"),
    "default": ("no", "yes"),
    "housing": ("no", "yes"),
    "loan": ("no", "yes"),
    "contact": ("cellular", "telephone", "unknown"),
    "month": ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    "poutcome": ("failure", "other", "success", "unknown"),
}


def bank_marketing(folder: Path) -> Arrays:
    """Download bank-full.csv, verify its checksum, and turn it into arrays; raw files go to `folder`."""
    path = folder / "bank-marketing.zip"
    with urllib.request.urlopen(URL) as answer:
        path.write_bytes(answer.read())
    text = unpacked(path.read_bytes())
    if text is None:
        raise ValueError(f"{URL} holds no {CSV}")
    sha256 = hashlib.sha256(text).hexdigest()
    if sha256 != CSV_SHA256:
        raise ValueError(f"{CSV} of {URL} has sha256 {sha256}, expected {CSV_SHA256}")
    return convert(text.decode())


def unpacked(archive: bytes) -> bytes | None:
    """bank-full.csv out of a zip or of a zip within it; None when it is in neither."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for name in opened.namelist():
            content = opened.read(name) if name.endswith((CSV, ".zip")) else None
            if content is not None and name.endswith(".zip"):
                content = unpacked(content)
            if content is not None:
                return content
    return None


def convert(text: str) -> Arrays:
    """The seven numbers as they are, then 44 one-hot columns; y is 1 for a subscription.

    A fifth of each class, rounded, is for testing: the split of the .npz file whose checksum is known.

    Args:
        text: bank-full.csv.
    """
    table = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    columns = [np.array([float(row[name]) for row in table]) for name in NUMBERS]
    for name, values in CATEGORIES.items():
        column = np.array([row[name] for row in table])
        columns += [column == value for value in values]
    x: Array = np.stack(columns, axis=1).astype(np.float32)
    y: Array = np.array([row["y"] == "yes" for row in table]).astype(np.int64)
    test = np.zeros(len(y), bool)
    rng = np.random.RandomState(0)  # the generator behind that file
    for k in range(2):
        members = np.flatnonzero(y == k)
        test[rng.permutation(members)[: round(TEST_SHARE * len(members))]] = True
    return {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
