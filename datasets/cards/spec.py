"""What is known of a data set before its file is opened: counts, shapes, checksums, terms. Light: no NumPy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One file that can hold a data set.

    Attributes:
        name: file name.
        shape: channels, height and width of an image; columns of a table's row.
        n_classes: number of classes.
        sha256: checksum of the one such file that is known.
        source: a description of the file with that checksum.
        lacks: what every such file leaves out of the data set, however many samples it holds.
        stored: columns of a row in the file, where the loader makes other ones of them; None: those of `shape`.
    """

    name: str
    shape: tuple[int, ...]
    n_classes: int
    sha256: str | None = None
    source: str | None = None
    lacks: str | None = None
    stored: tuple[int, ...] | None = None

    @property
    def samples(self) -> str:
        """What a sample is called, in the plural."""
        return "images" if len(self.shape) == 3 else "rows"

    @property
    def dtype(self) -> str:
        """Type of x in the file: images have 8 bits, tables have numbers in units of their own."""
        return "uint8" if len(self.shape) == 3 else "float32"

    @property
    def layout(self) -> tuple[int, ...]:
        """Shape of one sample in the file, where colours come last and grey images have no axis for them."""
        if len(self.shape) != 3:
            return self.shape if self.stored is None else self.stored
        channels, height, width = self.shape
        return (height, width) if channels == 1 else (height, width, channels)


@dataclass(frozen=True)
class Spec:
    """A data set.

    Attributes:
        name: registry name.
        title: one line for tables.
        n_train, n_test: samples of the complete data set.
        licence: licence or terms of use.
        files: the files that can hold it, the preferred one first.
        blind_auc: see `fedarena.datasets.dataset.Dataset`.
    """

    name: str
    title: str
    n_train: int
    n_test: int
    licence: str
    files: tuple[File, ...]
    blind_auc: float = 0.5

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Lines for the card."""
        first = self.files[0]
        return (
            (first.samples, f"{self.n_train} for training, {self.n_test} for testing"),
            ("shape", show_shape(first.shape)),
            ("classes", str(first.n_classes)),
            ("file", " or ".join(f.name for f in self.files)),
            ("licence", self.licence),
            *self._blind(),
        )

    def _blind(self) -> tuple[tuple[str, str], ...]:
        """What the files give away by themselves; nothing where they are alike."""
        if self.blind_auc == 0.5:
            return ()
        told = f"training and held-out samples differ: a forest has AUC {self.blind_auc:g} without an upload"
        return (("chance of membership", f"{told} (python benchmarks/membership_blind.py)"),)


def show_shape(shape: tuple[int, ...]) -> str:
    """(1, 28, 28) → "1×28×28", (51,) → "51"."""
    return "×".join(str(n) for n in shape)
