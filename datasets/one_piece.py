"""A data set whose file holds all samples in one array `x` with several labels of each.

The data set decides which label is the class, which labels are attributes, and which samples are for testing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedarena.core.errors import UserError
from fedarena.datasets import npz
from fedarena.datasets.archive import SCALE, Archive, LocatedFile, to_nchw
from fedarena.datasets.cards.spec import File
from fedarena.datasets.dataset import Dataset, Index


@dataclass(frozen=True)
class Parts:
    """The split of a file's samples, their classes and attributes.

    Attributes:
        train, test: the samples for training and for testing; samples in neither part are left out.
        y: class of each [N], int64; read only for the samples of both parts.
        attributes: by name [N], int8: 1 has it, 0 has it not, -1 unknown.
    """

    train: Index
    test: Index
    y: npt.NDArray[np.int64]
    attributes: Mapping[str, npt.NDArray[np.int8]]


@dataclass(frozen=True)
class OnePiece(Archive):
    """The loader of such a data set; calling it loads.

    Attributes:
        labels: the label arrays [N] that are read beside `x`, integers, each with its lowest and highest value.
        cut: makes the parts from these arrays; the same file always gives the same parts.
    """

    labels: Mapping[str, tuple[int, int]]
    cut: Callable[[npz.Arrays], Parts]

    def read(self, located: LocatedFile) -> Dataset:
        """Load one file. Raises UserError as `__call__`, and for a file that contradicts its sidecar."""
        provenance = self.provenance(located)
        parts = self.parts(located)
        x = npz.arrays(located.path, ("x",))["x"]
        return Dataset(
            name=self.spec.name,
            x_train=to_nchw(x[parts.train], located.file),
            y_train=parts.y[parts.train],
            x_test=to_nchw(x[parts.test], located.file),
            y_test=parts.y[parts.test],
            scale=SCALE,
            n_classes=located.file.n_classes,
            provenance=provenance,
            blind_auc=self.spec.blind_auc,
            attributes={name: (has[parts.train], has[parts.test]) for name, has in parts.attributes.items()},
        )

    def parts(self, located: LocatedFile) -> Parts:
        """Training and test part of a file.

        Raises:
            UserError: as `check`, and for a label out of its range. The error names the file and the array.
        """
        self.check(located)
        labels = npz.arrays(located.path, tuple(self.labels))
        for name, (low, high) in self.labels.items():
            least, most = int(labels[name].min()), int(labels[name].max())
            if least < low or most > high:
                raise UserError(
                    f"data file {located.path}: {name} holds values from {least} to {most}, expected {low} to {high}"
                )
        return self.cut(labels)

    def counts(self, located: LocatedFile) -> dict[str, int]:
        """Samples of each part. Raises UserError as `parts`."""
        parts = self.parts(located)
        return {"training": len(parts.train), "test": len(parts.test)}

    def contents(self) -> str:
        """What the file holds when complete, before any sample is left out."""
        file, n = self.spec.files[0], self.spec.n_train + self.spec.n_test
        sample = ", ".join(map(str, file.layout))
        labels = ", ".join(f"{name} ({low} to {high})" for name, (low, high) in self.labels.items())
        return f"x {file.dtype} [N, {sample}] and integers [N] {labels}, of which {n} {file.samples} are used"

    def check(self, located: LocatedFile) -> dict[str, npz.Header]:
        """Check that types and shapes in the file's headers are those of the data set.

        Raises:
            UserError: they differ. The error names the file, the array and what is expected.
        """
        file, where = located.file, f"data file {located.path}: "
        headers = npz.headers(located.path, ("x", *self.labels))
        x = headers["x"]
        if x.dtype != np.dtype(file.dtype) or x.shape[1:] != file.layout or not x.shape or not x.shape[0]:
            expected = f"{file.dtype} [N, {', '.join(map(str, file.layout))}]"
            raise UserError(f"{where}x is {x.dtype} {list(x.shape)}, expected {expected}")
        for name in self.labels:
            header = headers[name]
            if header.dtype.kind not in "iub" or header.shape != x.shape[:1]:
                shown = f"{header.dtype} {list(header.shape)}"
                raise UserError(f"{where}{name} is {shown}, expected integers [{x.shape[0]}]")
        return headers

    def missing(self, counts: Mapping[str, int], file: File) -> str | None:
        """How many samples of both parts a file lacks, as text; None if it lacks none."""
        held, full = sum(counts.values()), self.spec.n_train + self.spec.n_test
        return f"{held} of {full} {file.samples}" if held < full else None


def flag(has: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int8]:
    """An attribute: 1 or 0 as in `has`, -1 where it is not known [N]; None: known everywhere."""
    values = has.astype(np.int8)
    return values if known is None else np.where(known, values, np.int8(-1)).astype(np.int8)
