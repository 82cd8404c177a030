"""UCI's Bank Marketing: the download, and its one-hot columns."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedarena.datasets.dataset import TEST_SHARE
from fedarena.datasets.npz import Array, Arrays
from fedarena.datasets.raw_file import RawFile, download

ZIP = RawFile("https://archive.ics.uci.edu/static/public/222/bank+marketing.zip", 10_000_000, checksum=None)
CSV = "bank-full.csv"
CSV_SHA256 = "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"
MOST = 20_000_000
"""Bytes that a file of the zip may unpack to; the table has 4.6 million."""

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
    text = unpacked(download(ZIP, folder).read_bytes())
    if text is None:
        raise ValueError(f"{ZIP.url} holds no {CSV}")
    sha256 = hashlib.sha256(text).hexdigest()
    if sha256 != CSV_SHA256:
        raise ValueError(f"{CSV} of {ZIP.url} has sha256 {sha256}, expected {CSV_SHA256}")
    return convert(text.decode())


def unpacked(archive: bytes, depth: int = 2) -> bytes | None:
    """bank-full.csv out of a zip or of a zip within it; None when it is in neither.

    Raises ValueError where a file unpacks to more than `MOST` bytes.
    """
    if not depth:
        return None
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for member in opened.infolist():
            if not member.filename.endswith((CSV, ".zip")):
                continue
            if member.file_size > MOST:  # zipfile reads no further than this size
                raise ValueError(f"{member.filename} unpacks to more than {MOST} bytes")
            content: bytes | None = opened.read(member)
            if content is not None and member.filename.endswith(".zip"):
                content = unpacked(content, depth - 1)
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
