"""What a loader returns (samples, labels, provenance), its split and checksum, and the checks of partitions."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedarena.core.contract import is_built_in
from fedarena.core.errors import UserError, describe, of_type, place_of, type_of
from fedarena.core.method_caches import on_change
from fedarena.core.short_repr import ShortRepr
from fedarena.core.text.numbers import plural
from fedarena.datasets.npz import Array

Labels = npt.NDArray[np.int64 | np.float32]
"""Classes, or the numbers of a regression."""
Shards = list[npt.NDArray[np.int64]]
"""The indices of each client's samples, by client."""


@dataclass(frozen=True)
class Provenance:
    """Where a data set came from; part of every record.

    Attributes:
        source: what the data are, in words.
        file: name of the file that was read (without its folder), of several files joined by " + "; None for
            embedded data.
        sha256: checksum of that file, or of the arrays of embedded data; of a data set made from others, the checksum
            of theirs, written one after the other.
        verified: the checksum stands in this package's table. A sidecar beside the file proves nothing of its content.
        subset: what is missing, such as "15000 of 50000 training images"; None for complete data.

    Raises:
        UserError: one of the texts is something else, such as a path.
    """

    source: str
    file: str | None = None
    sha256: str | None = None
    verified: bool = False
    subset: str | None = None

    def __post_init__(self) -> None:
        for part in ("source", "file", "sha256", "subset"):
            value = getattr(self, part)
            if not isinstance(value, str) and (part == "source" or value is not None):
                raise UserError(f"provenance: {part} is {type_of(value)}, expected a text")


class AbsentData(UserError):
    """The file of a data set is not there."""


LEAST_OF_SCALE = 0.5
"""The share of `Dataset.scale` that the largest value has at least. With less the scale is doubtful."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(ShortRepr):
    """Samples and labels, in the units of the file.

    Attributes:
        name: registry name.
        x_train, x_test: images [N, C, H, W], uint8 or float32; rows of a table [N, D], float32; texts as one-hot codes
            of their words [N, length, words], uint8 or float32. Values lie in [0, scale]. The largest one may not be
            far below `scale`: see `warnings`.
        y_train, y_test: classes [N], int64 in [0, n_classes); numbers [N], float32 in [0, 1], of a regression.
        scale: the raw value that means 1.0 (255 for 8-bit images).
        n_classes: number of classes; 0 for a regression.
        provenance: where the data came from.
        domains: the origin of each training sample [N], int64 from 0; None if it is not known, or the same for all.
        blind_auc: how well training samples can be told from held-out ones of their class by themselves, as an AUC
            (`benchmarks/membership_blind.py`). It is the chance of a membership attack; .5 where both files are alike.
        attributes: further facts about samples, by name: (of x_train, of x_test), int8 [N]. 1: the sample has the
            attribute, 0: it does not, -1: unknown. Property inference guesses them.
        words: of texts the word that each place of a one-hot code stands for, padding first; () for other samples.

    Arrays may come in any layout: reversed, in Fortran order, of another byte order, read-only or mapped from a file.
    Of such an array the data set holds a copy with the usual layout. Lists become arrays.

    Raises:
        UserError: arrays that are not as described here.
    """

    name: str
    x_train: npt.NDArray[np.uint8 | np.float32]
    y_train: npt.NDArray[np.int64 | np.float32]
    x_test: npt.NDArray[np.uint8 | np.float32]
    y_test: npt.NDArray[np.int64 | np.float32]
    scale: float
    n_classes: int
    provenance: Provenance
    domains: npt.NDArray[np.int64] | None = None
    attributes: Mapping[str, tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]] = field(default_factory=dict)
    blind_auc: float = 0.5
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_types()
        self._lay_out()
        if not 0 < self.scale < math.inf:
            raise UserError(f"data set '{self.name}': scale is {self.scale}, expected a number above 0")
        for part, x, y in (("train", self.x_train, self.y_train), ("test", self.x_test, self.y_test)):
            self._check_samples(part, x)
            self._check_labels(part, y, len(x))
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            shapes = f"{list(self.x_train.shape[1:])} and {list(self.x_test.shape[1:])}"
            raise UserError(f"data set '{self.name}': samples of x_train and x_test differ in shape: {shapes}")
        d = self.domains
        if d is not None and (d.dtype != np.int64 or d.shape != self.y_train.shape or d.min() < 0):
            raise UserError(
                f"data set '{self.name}': domains is {d.dtype} {list(d.shape)}, expected int64 "
                f"[{len(self.y_train)}] of numbers from 0"
            )
        for attribute, parts in self.attributes.items():
            for part, values, n in zip(("train", "test"), parts, (len(self.y_train), len(self.y_test)), strict=True):
                if values.dtype != np.int8 or values.shape != (n,) or not np.isin(values, (-1, 0, 1)).all():
                    raise UserError(
                        f"data set '{self.name}': attribute {attribute} of the {part} part is {values.dtype} "
                        f"{list(values.shape)}, expected int8 [{n}] of 1, 0 and -1"
                    )
        if self._largest <= 1 < self.scale and self.warnings:
            raise UserError(
                f"data set '{self.name}': x_train and x_test hold values up to {self._largest:g}, but scale is "
                f"{self.scale:g}, expected the value that means 1.0, such as 1"
            )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must stand beside every number of a run: that no value comes near the scale.

        Such samples are all dark. A guess of the mean image then looks like every one of them.
        """
        if not 0 < self._largest < LEAST_OF_SCALE * self.scale:
            return ()
        return (f"data set {self.name}: no value exceeds {self._largest:g}, but scale is {self.scale:g}",)

    @cached_property
    def _largest(self) -> float:
        return float(max(x.max(initial=0) for x in (self.x_train, self.x_test)))

    def _check_types(self) -> None:
        """What is no array."""
        wanted: tuple[tuple[str, type, str], ...] = (
            ("name", str, "a text"),
            ("scale", Real, "a number above 0"),
            ("n_classes", Integral, "a whole number"),
            ("provenance", Provenance, "a Provenance"),
        )
        for part, kind, expected in wanted:
            if not isinstance(value := getattr(self, part), kind):
                raise UserError(f"data set {self.name!r}: {part} is {type_of(value)}, expected {expected}")

    def _lay_out(self) -> None:
        """Give every array the layout that torch reads."""
        for name in ("x_train", "y_train", "x_test", "y_test", "domains"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, self._laid_out(name, values))
        attributes = {
            name: tuple(self._laid_out(f"attribute {name}", values) for values in parts)
            for name, parts in self.attributes.items()
        }
        object.__setattr__(self, "attributes", attributes)

    def _laid_out(self, name: str, values: npt.ArrayLike) -> Array:
        """An array in C order and native byte order that may be written to; the same one if it is so already."""
        if np.ma.is_masked(values):
            raise UserError(f"data set '{self.name}': {name} has masked values, expected an array without")
        try:
            array = np.asarray(values)
        except ValueError:
            raise UserError(
                f"data set '{self.name}': {name} holds rows of different lengths, expected an array"
            ) from None
        usual = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        return usual if usual.flags.writeable else usual.copy()

    def _check_samples(self, part: str, x: npt.NDArray[np.uint8 | np.float32]) -> None:
        where = f"data set '{self.name}': x_{part}"
        if self.words:
            self._check_texts(where, x)
        elif (x.ndim, x.dtype.name) not in ((4, "uint8"), (4, "float32"), (2, "float32")):
            expected = "uint8 or float32 [N, C, H, W], or float32 [N, D]"
            raise UserError(f"{where} is {x.dtype} {list(x.shape)}, expected {expected}")
        if not all(x.shape[1:]):
            raise UserError(f"{where} is {list(x.shape)}, expected inputs of 1 number or more")
        if x.ndim == 4 and x.shape[-1] in CHANNELS and x.shape[1] not in CHANNELS:
            raise UserError(
                f"{where} is {x.dtype} {list(x.shape)}, with channels last, expected [N, C, H, W]: "
                "np.moveaxis(x, -1, 1)"
            )
        if x.dtype == np.float32 and not np.isfinite(x).all():
            raise UserError(f"{where} holds values that are not finite")
        if x.size and not 0 <= x.min() <= x.max() <= self.scale:
            raise UserError(f"{where} holds values from {x.min():g} to {x.max():g}, expected 0 to {self.scale:g}")

    def _check_texts(self, where: str, x: npt.NDArray[np.uint8 | np.float32]) -> None:
        n = len(self.words)
        if x.ndim != 3 or x.dtype.name not in ("uint8", "float32") or x.shape[2] != n:
            raise UserError(
                f"{where} is {x.dtype} {list(x.shape)}, expected uint8 or float32 [N, length, {n}] for {n} words"
            )
        if not ((x == 0) | (x == self.scale)).all() or not (x.astype(bool).sum(2) == 1).all():
            raise UserError(f"{where} holds texts that are no one-hot codes, expected one {self.scale:g} for each word")

    def _check_labels(self, part: str, y: npt.NDArray[np.int64 | np.float32], n: int) -> None:
        where, kind = f"data set '{self.name}': y_{part}", "int64" if self.n_classes else "float32"
        if y.dtype.name != kind or y.shape != (n,) or not n:
            raise UserError(f"{where} is {y.dtype} {list(y.shape)}, expected {kind} [{n}], 1 sample or more")
        if self.n_classes and (y.min() < 0 or y.max() >= self.n_classes):
            raise UserError(f"{where} holds labels from {y.min()} to {y.max()}, expected 0 to {self.n_classes - 1}")
        if not self.n_classes and not (y.min() >= 0 and y.max() <= 1):  # written so that NaN is refused, too
            raise UserError(f"{where} holds numbers from {y.min():g} to {y.max():g}, expected 0 to 1")


def load_from(loader: Any, data_dir: Path | None) -> Dataset:
    """The data set of a loader, which may be a user's own.

    Raises:
        UserError: what it refuses, or returns in place of a data set, with its place.
    """
    try:
        made = loader(data_dir)
    except AbsentData:
        raise
    except UserError as error:
        raise UserError(describe(error)) from error
    data = of_type(Dataset, made, "dataset", loader)
    if not is_built_in(loader):
        _require_the_same(loader, data_dir, data)
    return data


_loaded: dict[tuple[int, Path | None], tuple[Any, int]] = {}
"""Loaders of other packages by their id, and where they look → they, and a checksum of what they returned first."""
on_change(_loaded.clear)


def _require_the_same(loader: Any, data_dir: Path | None, data: Dataset) -> None:
    """Raise UserError, with its place, for a loader that returns other samples than before, or than a second time."""
    key, found = (id(loader), data_dir), _sum(data)
    if key not in _loaded:
        _loaded[key] = loader, _sum(loader(data_dir))
    if _loaded[key][1] != found:
        raise UserError(
            f"dataset {place_of(loader)} returned other samples than before, allowed: the same at each call (draw from "
            "a generator with a fixed seed)"
        )


def _sum(data: Dataset) -> int:
    found = 0
    for array in (data.x_train, data.y_train, data.x_test, data.y_test):
        found = zlib.crc32(array.data, found)
    return found


CHANNELS = (1, 3)
"""Channels of grey images and of coloured ones."""
TEST_SHARE = 0.2
SPLIT_SEED = 0

Index = npt.NDArray[np.int64]


def stratified(labels: Array, rng: np.random.Generator) -> tuple[Index, Index]:
    """Indices of the training and of the test part, each in ascending order; a fifth of every class for testing.

    Args:
        labels: [N]; a constant label splits all samples as one class.
    """
    order = [rng.permutation(np.flatnonzero(labels == k)) for k in np.unique(labels)]
    cuts = [round(TEST_SHARE * len(members)) for members in order]
    test = np.concatenate([members[:cut] for members, cut in zip(order, cuts, strict=True)])
    train = np.concatenate([members[cut:] for members, cut in zip(order, cuts, strict=True)])
    return np.sort(train), np.sort(test)


def checksum(arrays: Iterable[Array]) -> str:
    """sha256 of arrays one after the other (C order, little-endian)."""
    return hashlib.sha256(b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays)).hexdigest()


def check_clients(labels: Labels, n_clients: int, each: int = 1, option: str = "") -> None:
    """Refuse more clients, or more samples for `each` client, than `labels` [N] allow. Raises UserError.

    Args:
        option: the partition's option that sets the samples of each client; "" if there is none.
    """
    if not 1 <= n_clients <= len(labels):
        raise UserError(
            f"option 'clients' is {n_clients}, but {len(labels)} training samples allow 1 to {len(labels)} clients"
        )
    most = len(labels) // n_clients
    if each > most:
        raise UserError(
            f"option 'partition.{option}' is {each}, allowed with {len(labels)} training samples for "
            f"{plural(n_clients, 'client')}: 1 to {most}"
        )


def check_classes(labels: Labels, name: str) -> None:
    """Refuse the numbers of a regression to a partition that shares out classes. Raises UserError."""
    if labels.dtype.kind not in "iu":
        raise UserError(
            f"option 'partition' is {name}, which shares out classes, but these samples carry numbers in their place, "
            "allowed: a partition that needs no classes (iid, copies, few)"
        )
