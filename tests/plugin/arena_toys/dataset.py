"""Stripes: 8×8 images of horizontal, vertical and two kinds of diagonal stripes, with noise."""

import hashlib

import numpy as np

from fedarena.core.card import Card
from fedarena.core.rng import Rng
from fedarena.datasets.dataset import Dataset, Provenance

PER_CLASS = 60


def load(data_dir=None):
    """A Dataset: x uint8 or float32 [N, C, H, W], y int64 [N], `scale` the value that means 1.0."""
    noise = Rng(0).child("stripes").numpy()
    row, column = np.mgrid[:8, :8]
    phases = [row, column, row + column, row - column]
    clean = np.stack([phase // 2 % 2 for phase in phases]).repeat(PER_CLASS, axis=0)
    x = np.clip(clean * 200 + noise.integers(0, 56, clean.shape), 0, 255).astype(np.uint8)[:, None]
    y = np.arange(4).repeat(PER_CLASS)
    test = np.arange(len(y)) % 5 == 0
    checksum = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    return Dataset(
        name="stripes",
        x_train=x[~test],
        y_train=y[~test],
        x_test=x[test],
        y_test=y[test],
        scale=255.0,
        n_classes=4,
        provenance=Provenance(source="drawn by arena-toys", file=None, sha256=checksum, verified=False),
    )


CARD = Card(
    name="stripes",
    kind="dataset",
    title="Stripes in four directions (a toy)",
    target=load,
    facts=(("images", "192 for training, 48 for testing"), ("shape", "1×8×8"), ("classes", "4")),
)
