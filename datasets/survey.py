"""The data sets that are present, and their state: the rows of `bench data` and `bench data verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fedarena.core import registry
from fedarena.core.card import Card
from fedarena.core.errors import UserError, describe
from fedarena.datasets import checksum, load
from fedarena.datasets.archive import Archive
from fedarena.datasets.dataset import load_from
from fedarena.datasets.digit_domains import Joined, lacking, together

State = Literal["embedded", "present", "absent", "damaged", "plug-in", "broken"]


@dataclass(frozen=True)
class Row:
    """One data set.

    Attributes:
        name: registry name.
        state: `embedded`, `present` or `absent` (a file, or all of the data sets that it is made from), `damaged`,
            `plug-in` (no file of ours), `broken` (its card cannot be loaded).
        path: the file that loading reads; None for a data set made from others.
        train, test: samples in that file, or in the complete data set while it is absent.
        classes: number of classes; 0 where samples carry numbers in their place.
        shape: channels, height and width of an image; columns of a table's row.
        checksum: `verified`, `unchanged`, `unknown` or `mismatch` (`Checksum.state`); None when nothing was compared.
        sha256: of the file, or of embedded arrays.
        subset: what the file lacks of the complete data set.
        licence: licence or terms of use.
        problem: why the state is `damaged` or `broken`.
    """

    name: str
    state: State
    path: str | None = None
    train: int | None = None
    test: int | None = None
    classes: int | None = None
    shape: tuple[int, ...] | None = None
    checksum: checksum.State | None = None
    sha256: str | None = None
    subset: str | None = None
    licence: str | None = None
    problem: str | None = None

    @property
    def healthy(self) -> bool:
        """Neither damaged, nor mismatched, nor broken."""
        return self.problem is None

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self) | {"shape": list(self.shape) if self.shape else None}


def survey(name: str, data_dir: Path | None = None) -> Row:
    """Look at a data set without reading its samples: counts and shapes from the file's headers, and its checksum.

    Labels are read only if a file holds all samples in one array: they decide which samples are for testing.

    Raises:
        UserError: a search path that is not a folder. Damage raises no error; the row describes it.
    """
    try:
        card = registry.find("dataset", name)
        source = card.load()
    except UserError as error:
        return Row(name, state="broken", problem=str(error))
    if isinstance(source, Joined):
        return _joined(card, source, data_dir)
    if not isinstance(source, Archive):
        return _fileless(card, source, data_dir)
    spec, file = source.spec, source.spec.files[0]
    row = Row(
        name,
        state="absent",
        path=None,
        train=spec.n_train,
        test=spec.n_test,
        classes=file.n_classes,
        shape=file.shape,
        licence=spec.licence,
    )
    located = source.find(data_dir)
    if located is None:
        return row
    row = replace(
        row, state="present", path=str(located.path), classes=located.file.n_classes, shape=located.file.shape
    )
    try:
        known = checksum.check(located.path, located.file)
        row = replace(row, checksum=known.state, sha256=known.sha256)
        counts = source.counts(located)
    except UserError as error:
        return replace(row, state="damaged", train=None, test=None, problem=str(error))
    row = replace(row, train=counts["training"], test=counts["test"], subset=source.subset(counts, located.file))
    if known.state == "mismatch":
        problem = f"sha256 of {located.path} differs from {checksum.sidecar(located.path).name}"
        return replace(row, state="damaged", problem=problem)
    return row


def verify(name: str, data_dir: Path | None = None) -> Row:
    """Survey a data set and read all of it. Raises UserError as `survey`."""
    row = survey(name, data_dir)
    if row.state != "present":
        return row
    try:
        load(name, data_dir)
    except UserError as error:
        return replace(row, state="damaged", problem=str(error))
    return row


def _joined(card: Card, source: Joined, data_dir: Path | None) -> Row:
    """The row of a data set made from others, from their rows. An absent part counts as complete, as it does alone."""
    parts = [survey(part, data_dir) for part in source.parts]
    row = Row(
        card.name,
        state="absent" if any(part.state == "absent" for part in parts) else "present",
        classes=max(part.classes or 0 for part in parts),
        shape=(1, source.side, source.side),
        licence=dict(card.facts).get("licence"),
    )
    problems = [f"{part.name}: {part.problem}" for part in parts if part.problem]
    if problems:
        return replace(row, state="damaged", problem="; ".join(problems))
    row = replace(row, train=sum(part.train or 0 for part in parts), test=sum(part.test or 0 for part in parts))
    if row.state == "absent":
        return row
    return replace(
        row,
        checksum=_weakest([part.checksum for part in parts]),
        sha256=together(part.sha256 for part in parts),
        subset=lacking((part.name, part.subset) for part in parts),
    )


def _weakest(states: Sequence[checksum.State | None]) -> checksum.State:
    """What is known of data made from parts: no more than is known of each part."""
    if set(states) <= {"verified"}:
        return "verified"
    return "unchanged" if set(states) <= {"verified", "unchanged"} else "unknown"


def _fileless(card: Card, source: Any, data_dir: Path | None) -> Row:
    """The row of embedded data, or of a third party's loader, from what they load."""
    licence = dict(card.facts).get("licence")
    try:
        loaded = load_from(source, data_dir)
    except Exception as error:  # a third party's loader may fail in any way
        return Row(card.name, state="broken", licence=licence, problem=" ".join(describe(error).split()))
    facts = loaded.provenance
    return Row(
        name=card.name,
        state="embedded" if facts.file is None else "plug-in",
        train=len(loaded.y_train),
        test=len(loaded.y_test),
        classes=loaded.n_classes,
        shape=loaded.x_train.shape[1:],
        checksum="verified" if facts.verified else "unknown",
        sha256=facts.sha256,
        subset=facts.subset,
        licence=licence,
    )
