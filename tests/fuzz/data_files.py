"""Files of data sets: valid ones with arrays, headers, the archive or bytes changed."""

from __future__ import annotations

import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fuzz import odd
from fuzz.case import Case, Ground
from fuzz.changes import Bytes, byte_changes
from fuzz.judge import BLOCKED
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.datasets.archive import Archive

KEYS = ("x_train", "y_train", "x_test", "y_test")
DTYPES = ("|u1", "|i1", "<i8", "<u8", ">i8", "<f4", "<f8", "<f2", "<c8", "|b1", "<U3", "|S2", "<M8[s]", "|V4", "|O")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
SPECIALS = ("", "", "", "pipe", "folder", "loop", "text", "pickle", "empty archive", "twice")
SIDECARS = (
    None,
    None,
    None,
    b"",
    b"0" * 64 + b"\n",
    b"\xff\xfe",
    b"a" * 100_000,
    b"0" * 64 + b"  x\nfrom nowhere\x1b[2J",
)


class Owned:
    """Unpickling it would make a folder: a file of data must never be unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("unpickled",)


@dataclass(frozen=True)
class Array:
    """A member of an archive.

    Attributes:
        dtype, shape: what it holds. fill: each of its values.
        claim: the header's shape, where it is another. header: the header's text, where there is an odd one.
        left: bytes behind the values.
    """

    dtype: str
    shape: tuple[int, ...]
    fill: float = 0
    claim: tuple[int, ...] | None = None
    header: str = ""
    left: bytes = b""

    def content(self) -> bytes:
        """The bytes of the .npy file."""
        out = io.BytesIO()
        if self.dtype == "|O":
            values = pickle.dumps([Owned()])
        else:
            with np.errstate(all="ignore"):
                values = np.full(self.shape, self.fill).astype(self.dtype, casting="unsafe").tobytes()
        claim = self.shape if self.claim is None else self.claim
        if self.header:
            text = self.header.encode("utf-8", "surrogatepass") + b"\n"
            out.write(b"\x93NUMPY\x01\x00" + (len(text) & 0xFFFF).to_bytes(2, "little") + text)
        else:
            np.lib.format.write_array_header_1_0(out, {"descr": self.dtype, "fortran_order": False, "shape": claim})
        return out.getvalue() + values + self.left


def archive(members: Iterable[tuple[str, Array]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The bytes of a .npz file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about a name that is there twice
        for key, array in members:
            made.writestr(f"{key}.npy", array.content())
    return out.getvalue()


@dataclass(frozen=True)
class DataFile(Case):
    """A command that reads a data set's file.

    Attributes:
        name: the file's. arrays: its members. missing: a member that it lacks.
        method: how it is compressed.
        bytes: changes of the archive. special: what is in its place. sidecar: the file with the checksum.
    """

    name: str = ""
    arrays: tuple[Array, ...] = ()
    missing: str = ""
    method: int = zipfile.ZIP_DEFLATED
    bytes: tuple[Bytes, ...] = ()
    special: str = ""
    sidecar: bytes | None = None

    def lay(self, folder: Path, ground: Ground) -> None:
        path = folder / "data" / self.name
        if self.sidecar is not None:
            path.with_name(f"{path.name}.sha256").write_bytes(self.sidecar)
        if self.special == "pipe":
            os.mkfifo(path)
        elif self.special == "folder":
            path.mkdir()
        elif self.special == "loop":
            path.symlink_to(path.name)
        elif self.special in ("text", "pickle"):
            path.write_bytes(b"no archive\n" if self.special == "text" else pickle.dumps(Owned()))
        else:
            content = self._archive()
            for change in self.bytes:
                content = change.apply(content)
            path.write_bytes(content)

    def _archive(self) -> bytes:
        members = [(key, array) for key, array in zip(KEYS, self.arrays, strict=True) if key != self.missing]
        repeated = [pair for pair in members for _ in range(1 + (self.special == "twice"))]
        return archive([] if self.special == "empty archive" else repeated, self.method)

    def wrong(self, outcome: Any, folder: Path) -> str:
        if (folder / "unpickled").exists():
            return "it was unpickled"
        if outcome.lacked_memory:
            return "a file that claims too much was read"
        return "" if outcome.code == 1 else super().wrong(outcome, folder)


@cache
def _archives() -> dict[str, tuple[str, tuple[Array, ...], int]]:
    """Data set → its file's name, the arrays of a valid small one, and its number of classes."""
    return dict(_found())


def _found() -> Iterator[tuple[str, tuple[str, tuple[Array, ...], int]]]:
    known = registry.registries()["dataset"]
    for name in known.names():
        source = registry.find("dataset", name).load()
        if isinstance(source, Archive):
            file = source.spec.files[0]
            x = Array(np.dtype(file.dtype).str, (6, *file.layout), 1)
            y = Array("<i8", (6,), 1)
            yield name, (file.name, (x, y, replace(x, shape=(3, *file.layout)), replace(y, shape=(3,))), file.n_classes)


def nonsense(arrays: tuple[Array, ...], classes: int) -> str:
    """What of a file's arrays makes no sense."""
    for key, array in zip(KEYS, arrays, strict=True):
        if array.dtype in ("|O", "<c8", "<M8[s]", "<U3", "|S2", "|V4"):
            return f"{key} of type {array.dtype}"
        if array.dtype[1] == "f" and not abs(array.fill) <= np.finfo(array.dtype).max:
            return f"{key} with values that are not finite"
        if key[0] == "y" and array.dtype == "<i8" and not 0 <= array.fill < max(classes, 1):
            return f"{key} with labels of no class"
    return "samples without labels" if any(arrays[i].shape[:1] != arrays[i + 1].shape[:1] for i in (0, 2)) else ""


def _with_axis(shape: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    """The shapes in which one axis is so long."""
    return [(*shape[:i], size, *shape[i + 1 :]) for i in range(len(shape))]


@st.composite
def changed(draw: Any, array: Array) -> Array:
    """A change of an array."""
    how = draw(st.sampled_from(["dtype", "shape", "fill", "claim", "header", "left"]))
    if how == "dtype":
        return replace(array, dtype=draw(st.sampled_from(DTYPES)))
    if how == "shape":
        shapes = [
            (),
            (0,),
            array.shape[:-1],
            (*array.shape, 1),
            (0, *array.shape[1:]),
            (2, *array.shape[1:]),
            array.shape[::-1],
            *_with_axis(array.shape, 0),
        ]
        return replace(array, shape=draw(st.sampled_from(shapes)))
    if how == "fill":
        return replace(
            array, fill=draw(st.sampled_from([np.nan, np.inf, -np.inf, -1, 2, 255, 256, 1e300, 1e308, -1e308, 2.0**62]))
        )
    if how == "claim":
        sizes = st.sampled_from([10**12, 10**12, 2**63, 10**30, -1, 0, 1, 7, 60_000])
        claims = sizes.flatmap(lambda size: st.sampled_from([*_with_axis(array.shape, size), (), (size,)]))
        return replace(array, claim=draw(claims))
    if how == "header":
        texts = [
            "",
            "{",
            "{}",
            "None",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
            "[" * 500,
            "(" * 9000,
            "x" * 60_000,
        ]
        texts += [
            f"{{'descr': {one!r}, 'fortran_order': False, 'shape': (6,)}}"
            for one in ("", "x", "<f99", None, [], ("a",) * 9)
        ]
        texts += [
            "{'descr': '|u1', 'fortran_order': 0, 'shape': (1e3,)}",
            "{'descr': '|u1', 'fortran_order': False, 'shape': 'x'}",
        ]
        return replace(array, header=draw(st.one_of(st.sampled_from(texts), odd.texts(nul=True))))
    return replace(array, left=draw(st.sampled_from([b"\0", b"x" * 1000])))


@st.composite
def cases(draw: Any) -> DataFile:
    """Commands with changed files of data."""
    dataset = draw(st.sampled_from(sorted(_archives())))
    name, arrays, classes = _archives()[dataset]
    argv = draw(
        st.sampled_from(
            [
                ("data", "--data-dir", "data"),
                ("data", "verify", dataset, "--data-dir", "data"),
                ("data", "verify", "--data-dir", "data", "--json"),
                (
                    "run",
                    "--defense",
                    "fedavg",
                    "--attack",
                    "dlg",
                    "--dataset",
                    dataset,
                    "--model",
                    "mlp",
                    "--quiet",
                    "--out",
                    BLOCKED,
                ),
            ]
        )
    )
    new = list(arrays)
    for i in draw(st.lists(st.integers(0, 3), max_size=2)):
        new[i] = draw(changed(new[i]))
    rare = draw(st.integers(0, 9))
    case = DataFile(argv, "", name=name, arrays=tuple(new), method=draw(st.sampled_from(METHODS)))
    if rare == 0:
        case = replace(case, special=draw(st.sampled_from(SPECIALS)), missing=draw(st.sampled_from(["", *KEYS])))
    if rare in (1, 2):
        case = replace(case, bytes=tuple(draw(st.lists(byte_changes, min_size=1, max_size=2))))
    case = replace(case, sidecar=draw(st.sampled_from(SIDECARS)))
    tells = argv[:2] != ("data", "--data-dir") and not (
        case.special or case.bytes or any(a.header or a.claim for a in new)
    )
    return replace(case, nonsense=nonsense(case.arrays, classes) if tells else "")
