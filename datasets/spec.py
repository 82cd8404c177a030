"""What is known of a data set before its file is opened: counts, shapes, checksums, terms. Light: no NumPy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One file that can hold a data set.

    Attributes:
        name: file name.
        shape: channels, height and width of an image.
        n_classes: number of classes.
        sha256: checksum of the one such file that we know.
        source: what the file with that checksum is.
    """

    name: str
    shape: tuple[int, int, int]
    n_classes: int
    sha256: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Spec:
    """A data set.

    Attributes:
        name: registry name.
        title: one line for tables.
        n_train, n_test: images of the complete data set.
        licence: licence or terms of use.
        files: the files that can hold it, the preferred one first.
    """

    name: str
    title: str
    n_train: int
    n_test: int
    licence: str
    files: tuple[File, ...]

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Lines for the card."""
        first = self.files[0]
        return (
            ("images", f"{self.n_train} for training, {self.n_test} for testing"),
            ("shape", show_shape(first.shape)),
            ("classes", str(first.n_classes)),
            ("file", " or ".join(f.name for f in self.files)),
            ("licence", self.licence),
        )


def show_shape(shape: tuple[int, ...]) -> str:
    """(1, 28, 28) → "1×28×28"."""
    return "×".join(str(n) for n in shape)
