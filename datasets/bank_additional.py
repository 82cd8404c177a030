"""UCI's Bank Marketing with economic indicators: a table of codes becomes one-hot columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.datasets import npz
from fedarena.datasets.archive import ByHand, LocatedFile
from fedarena.datasets.cards.bank_additional import SPEC
from fedarena.datasets.dataset import SPLIT_SEED, Dataset, stratified
from fedarena.datasets.npz import Array, Arrays
from fedarena.datasets.one_piece import OnePiece, Parts
from fedarena.datasets.tables import to_unit

COLUMNS = (
    *("age", "job", "marital", "education", "default", "housing", "loan", "contact", "month", "day_of_week"),
    *("duration", "campaign", "pdays", "previous", "poutcome"),
    *("emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"),
)
"""The file's columns, in its order."""
NUMBERS = (
    *("age", "duration", "campaign", "pdays", "previous"),
    *("emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"),
)
CODES: Mapping[str, tuple[int, int]] = {
    "job": (-1, 10),
    "marital": (-1, 2),
    "education": (-1, 6),
    "default": (-1, 1),
    "housing": (-1, 1),
    "loan": (-1, 1),
    "day_of_week": (1, 5),
}
"""Lowest and highest code of each category; -1 is unknown."""


def columns(x: Array) -> Array:
    """The ten numbers as they are, then 38 one-hot columns; contact, month and poutcome are left out.

    Args:
        x: [N, 20], the columns `COLUMNS`.

    Returns:
        float32 [N, 48].

    Raises:
        ValueError: a category has another code than those of `CODES`.
    """
    out = [x[:, COLUMNS.index(name)] for name in NUMBERS]
    for name, (low, high) in CODES.items():
        codes, column = np.arange(low, high + 1), x[:, COLUMNS.index(name)]
        if not np.isin(column, codes).all():
            raise ValueError(f"{name} holds codes other than {low} to {high}")
        out += [column == code for code in codes]
    made: Array = np.stack(out, axis=1).astype(np.float32)
    return made


def cut(labels: Arrays) -> Parts:
    """A fifth of each class is for testing, by a fixed seed.

    Args:
        labels: y [N], 1 for a subscription.
    """
    y = np.asarray(labels["y"], np.int64)
    train, test = stratified(y, Rng(SPLIT_SEED).child("bank-additional").numpy())
    return Parts(train=train, test=test, y=y, attributes={})


@dataclass(frozen=True)
class CodedTable(OnePiece):
    """The loader of a table of numbers and codes in one array `x` [N, 20] with the names of its columns."""

    def read(self, located: LocatedFile) -> Dataset:
        """Load one file. Raises UserError as `OnePiece.read`, and for other columns, codes or values."""
        provenance, parts = self.provenance(located), self.parts(located)
        content, where = npz.arrays(located.path, ("x", "feature_names")), f"data file {located.path}: "
        if content["feature_names"].tolist() != list(COLUMNS):
            raise UserError(f"{where}feature_names are others than expected: {', '.join(COLUMNS)}")
        if not np.isfinite(content["x"]).all():
            raise UserError(f"{where}x holds values that are not finite")
        try:
            made = columns(content["x"])
        except ValueError as error:
            raise UserError(f"{where}{error}") from None
        x_train, x_test = to_unit(made[parts.train], made[parts.test])
        return Dataset(
            name=self.spec.name,
            x_train=x_train,
            y_train=parts.y[parts.train],
            x_test=x_test,
            y_test=parts.y[parts.test],
            scale=1.0,
            n_classes=located.file.n_classes,
            provenance=provenance,
        )


bank_additional = CodedTable(
    SPEC,
    ByHand(
        "there is no download of this file; UCI's own (https://doi.org/10.24432/C5K306, bank-additional-full.csv) has "
        "words in place of the codes",
    ),
    labels={"y": (0, 1)},
    cut=cut,
)
