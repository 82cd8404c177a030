"""What a loader returns: images, labels and where they came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedarena.errors import UserError


@dataclass(frozen=True)
class Provenance:
    """Where a data set came from; part of every record.

    Attributes:
        source: what the data are, in words.
        file: name of the file that was read (without its folder), of several files joined by " + "; None for
            embedded data.
        sha256: checksum of that file, or of the arrays of embedded data; of a data set made from others, the checksum
            of theirs, written one after the other.
        verified: the checksum stands in this package's table or in the sidecar that a download wrote.
        subset: what is missing, such as "15000 of 50000 training images"; None for complete data.
    """

    source: str
    file: str | None
    sha256: str | None
    verified: bool
    subset: str | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels, in the units of the file.

    Attributes:
        name: registry name.
        x_train, x_test: images [N, C, H, W], uint8 or float32.
        y_train, y_test: classes [N], int64 in [0, n_classes).
        scale: the raw value that means 1.0 (255 for 8-bit images).
        n_classes: number of classes.
        provenance: where the data came from.
        domains: where in particular each training sample came from [N], int64 from 0; None where that is not known
            or all are of one origin.

    Raises:
        UserError: arrays that do not keep to this.
    """

    name: str
    x_train: npt.NDArray[np.uint8 | np.float32]
    y_train: npt.NDArray[np.int64]
    x_test: npt.NDArray[np.uint8 | np.float32]
    y_test: npt.NDArray[np.int64]
    scale: float
    n_classes: int
    provenance: Provenance
    domains: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for part, x, y in (("train", self.x_train, self.y_train), ("test", self.x_test, self.y_test)):
            where = f"data set '{self.name}'"
            if x.ndim != 4 or x.dtype not in (np.uint8, np.float32):
                raise UserError(
                    f"{where}: x_{part} is {x.dtype} {list(x.shape)}, expected uint8 or float32 [N, C, H, W]"
                )
            if y.dtype != np.int64 or y.shape != x.shape[:1] or not len(y):
                raise UserError(
                    f"{where}: y_{part} is {y.dtype} {list(y.shape)}, expected int64 [{len(x)}], 1 sample or more"
                )
            if y.min() < 0 or y.max() >= self.n_classes:
                raise UserError(
                    f"{where}: y_{part} holds labels from {y.min()} to {y.max()}, expected 0 to {self.n_classes - 1}"
                )
            if x.dtype == np.float32 and not np.isfinite(x).all():
                raise UserError(f"{where}: x_{part} holds values that are not finite")
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            shapes = f"{list(self.x_train.shape[1:])} and {list(self.x_test.shape[1:])}"
            raise UserError(f"data set '{self.name}': images of x_train and x_test differ in shape: {shapes}")
        d = self.domains
        if d is not None and (d.dtype != np.int64 or d.shape != self.y_train.shape or d.min() < 0):
            raise UserError(
                f"data set '{self.name}': domains is {d.dtype} {list(d.shape)}, expected int64 "
                f"[{len(self.y_train)}] of numbers from 0"
            )
        if not self.scale > 0:
            raise UserError(f"data set '{self.name}': scale is {self.scale}, expected a number above 0")
