"""A data set in an .npz file: the file is located, checked, and turned into [N, C, H, W] or [N, D]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedarena.core.errors import UserError
from fedarena.datasets import checksum, folders, npz
from fedarena.datasets.cards.spec import File, Spec
from fedarena.datasets.dataset import AbsentData, Dataset, Provenance
from fedarena.datasets.tables import to_unit

SCALE = 255.0  # 8-bit images

Download = Callable[[Path], npz.Arrays]


@dataclass(frozen=True)
class ByHand:
    """Stands in place of a download if there is none for this file.

    Attributes:
        why: why there is none, and where the content comes from; a clause that follows a colon.
    """

    why: str


@dataclass(frozen=True)
class LocatedFile:
    """A file on the search path."""

    path: Path
    file: File


@dataclass(frozen=True)
class Archive:
    """The loader of one data set; calling it loads.

    Attributes:
        spec: counts, shapes, file names, checksums.
        download: fetches the complete data set into arrays (x as the file holds it, see `File.dtype` and
            `File.layout`, y integers), with raw files in the folder given.
    """

    spec: Spec
    download: Download | ByHand

    def __call__(self, data_dir: Path | None = None) -> Dataset:
        """Load the data set.

        Raises:
            AbsentData: there is no file. UserError: a damaged file, or one with other content; the error names it.
        """
        located = self.find(data_dir)
        if located is None:
            raise AbsentData(f"data set '{self.spec.name}' is absent: {self.how_to_get(data_dir)}")
        return self.read(located)

    def find(self, data_dir: Path | None = None) -> LocatedFile | None:
        """The file that loading would read; None when there is none. Raises UserError for a wrong folder."""
        path = folders.find((f.name for f in self.spec.files), data_dir)
        if path is None:
            return None
        return LocatedFile(path, next(f for f in self.spec.files if f.name == path.name))

    def how_to_get(self, data_dir: Path | None = None) -> str:
        """Which file to put where, and the command that would do so."""
        names = " or ".join(f.name for f in self.spec.files)
        places = " or ".join(str(folder) for folder in folders.search_path(data_dir))
        return f"put {names} into {places}{self._or_fetch(', or run')}"

    def _or_fetch(self, before: str) -> str:
        """`before` with the download command, or why there is no download."""
        if isinstance(self.download, ByHand):
            return f"; it cannot be downloaded: {self.download.why}"
        return f"{before} `bench data fetch {self.spec.name}`"

    def read(self, located: LocatedFile) -> Dataset:
        """Load one file. Raises UserError as `__call__`, and for a file that contradicts its sidecar."""
        path, file = located.path, located.file
        provenance = self.provenance(located)
        content = npz.arrays(path)
        for part in ("train", "test"):
            labels = content[f"y_{part}"]
            low, high = int(labels.min()), int(labels.max())
            if low < 0 or high >= file.n_classes:
                allowed = f"0 to {file.n_classes - 1}"
                raise UserError(f"data file {path}: y_{part} holds labels from {low} to {high}, expected {allowed}")
            if not np.isfinite(content[f"x_{part}"]).all():
                raise UserError(f"data file {path}: x_{part} holds values that are not finite")
        table = file.samples == "rows"
        x_train, x_test = content["x_train"], content["x_test"]
        x_train, x_test = to_unit(x_train, x_test) if table else (to_nchw(x_train, file), to_nchw(x_test, file))
        return Dataset(
            name=self.spec.name,
            x_train=x_train,
            y_train=content["y_train"].astype(np.int64),
            x_test=x_test,
            y_test=content["y_test"].astype(np.int64),
            scale=1.0 if table else SCALE,
            n_classes=file.n_classes,
            provenance=provenance,
            blind_auc=self.spec.blind_auc,
        )

    def provenance(self, located: LocatedFile) -> Provenance:
        """Where a file comes from and what it lacks. Raises UserError for one that contradicts its sidecar."""
        path, file = located.path, located.file
        known = checksum.check(path, file)
        if known.state == "mismatch":
            raise UserError(
                f"data file {path} has sha256 {known.sha256}, {checksum.sidecar(path).name} says otherwise: "
                f"remove both{self._or_fetch(' and run')}"
            )
        return Provenance(
            source=known.source or f"{self.spec.title}, file of unknown origin",
            file=file.name,
            sha256=known.sha256,
            verified=known.state == "verified",
            subset=self.subset(self.counts(located), file),
        )

    def counts(self, located: LocatedFile) -> dict[str, int]:
        """Samples that a file gives, by the words of `missing`. Raises UserError as `check`."""
        headers = self.check(located)
        return {"training": headers["x_train"].shape[0], "test": headers["x_test"].shape[0]}

    def contents(self) -> str:
        """What the preferred file holds when complete: its arrays with their types and shapes."""
        file, spec = self.spec.files[0], self.spec
        sample = ", ".join(map(str, file.layout))
        return (
            f"x_train {file.dtype} [{spec.n_train}, {sample}], y_train int64 [{spec.n_train}], "
            f"x_test {file.dtype} [{spec.n_test}, {sample}], y_test int64 [{spec.n_test}]"
        )

    def check(self, located: LocatedFile) -> dict[str, npz.Header]:
        """Check that types, shapes and counts in the file's headers are those of the data set.

        Raises:
            UserError: they differ. The error names the file, the array and what is expected.
        """
        file = located.file
        headers = npz.headers(located.path)
        for part, full in (("train", self.spec.n_train), ("test", self.spec.n_test)):
            x, y = headers[f"x_{part}"], headers[f"y_{part}"]
            where = f"data file {located.path}: "
            if x.dtype != np.dtype(file.dtype) or x.shape[1:] != file.layout or not x.shape:
                expected = f"{file.dtype} [N, {', '.join(map(str, file.layout))}]"
                raise UserError(f"{where}x_{part} is {x.dtype} {list(x.shape)}, expected {expected}")
            if y.dtype.kind not in "iu" or y.shape != x.shape[:1]:
                raise UserError(f"{where}y_{part} is {y.dtype} {list(y.shape)}, expected integers [{x.shape[0]}]")
            if not 1 <= x.shape[0] <= full:
                raise UserError(f"{where}x_{part} holds {x.shape[0]} {file.samples}, expected 1 to {full}")
        return headers

    def subset(self, counts: Mapping[str, int], file: File) -> str | None:
        """What a file with these counts lacks of the complete data set; None when it lacks nothing."""
        missing = self.missing(counts, file)
        return "; ".join(part for part in (file.lacks, missing) if part) or None

    def missing(self, counts: Mapping[str, int], file: File) -> str | None:
        """How many samples a file with these counts lacks, as text; None if it lacks none."""
        full = {"training": self.spec.n_train, "test": self.spec.n_test}
        parts = [f"{counts[part]} of {n} {part} {file.samples}" for part, n in full.items() if counts[part] < n]
        return ", ".join(parts) or None


def to_nchw(images: npz.Array, file: File) -> npz.Array:
    """[N, H, W] or [N, H, W, C] → [N, C, H, W], contiguous."""
    if file.shape[0] == 1:
        return images[:, None]
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
