"""`bench data fetch`: download into a folder, all or nothing.

The download runs in a process of its own, so that a silent network cannot hang the caller, and in a
temporary folder beside its destination. Only a complete file that loads is renamed into place, followed
by its checksum. If an earlier step fails, no file is left behind.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.datasets import checksum, npz
from fedarena.datasets.archive import Archive, ByHand, Download, LocatedFile
from fedarena.datasets.dataset import Dataset

TIMEOUT = 600.0  # seconds for a whole download
SILENCE = 20.0  # seconds without a byte


@dataclass(frozen=True)
class Fetched:
    """The result of a fetch.

    Attributes:
        path: the file.
        downloaded: False when an intact file was there already.
        subset: what that file lacks of the complete data set, if anything.
    """

    path: Path
    downloaded: bool
    subset: str | None


def fetchable() -> list[str]:
    """The names of the data sets that have a download."""
    found = []
    for name in registry.registries()["dataset"].names():
        with contextlib.suppress(UserError):  # a stranger's card that cannot be loaded
            source = registry.find("dataset", name).load()
            if isinstance(source, Archive) and not isinstance(source.download, ByHand):
                found.append(name)
    return found


def fetch(archive: Archive, folder: Path, timeout: float = TIMEOUT) -> Fetched:
    """Download a data set into `folder` unless an intact file is there.

    Args:
        archive: the data set.
        folder: destination, created if it does not exist.
        timeout: seconds for the whole download.

    Raises:
        UserError: no network, a folder that cannot be written, a download with unexpected content, a data set without
            a download.
    """
    spec, download = archive.spec, archive.download
    target = folder / spec.files[0].name
    intact = _intact(archive, target)
    if intact is not None:
        return Fetched(target, False, intact.provenance.subset)
    if isinstance(download, ByHand):
        raise UserError(f"cannot download '{spec.name}' ({download.why}): {_by_hand(archive, folder)}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as name:
            downloaded = _in_a_process(archive, download, Path(name), timeout)
            _publish(archive, downloaded, target)
    except OSError as error:
        raise UserError(f"cannot write data into folder {folder}: {error.strerror or error}") from error
    return Fetched(target, True, None)


def _intact(archive: Archive, path: Path) -> Dataset | None:
    """The data set in this file, or None when the file is absent or damaged."""
    if not path.exists():
        return None
    with contextlib.suppress(UserError):
        return archive.read(LocatedFile(path, archive.spec.files[0]))
    return None


def _in_a_process(archive: Archive, download: Download, folder: Path, timeout: float) -> Path:
    """Download into `folder` in a fresh process and return the .npz written there. Raises UserError."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    target = folder / archive.spec.files[0].name
    process = context.Process(target=_work, args=(download, folder, target, send), daemon=True)
    process.start()
    send.close()
    try:
        if not receive.poll(timeout):
            why = f"nothing complete after {timeout:g} s"
        else:
            try:
                why = receive.recv()
            except EOFError:
                process.join()
                why = f"the download ended with exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()
        receive.close()
    if why:
        name = archive.spec.name
        raise UserError(f"cannot download '{name}' ({why}): {_by_hand(archive, folder.parent)}")
    return target


def _by_hand(archive: Archive, folder: Path) -> str:
    names = " or ".join(f.name for f in archive.spec.files)
    return f"put {names} ({archive.contents()}) into {folder} or into the folder of --data-dir or FEDARENA_DATA"


def _work(download: Download, folder: Path, target: Path, result: Connection) -> None:
    """The work of the process: download, convert, write. It sends "", or the error in one line."""
    socket.setdefaulttimeout(SILENCE)  # this process does nothing else
    raw = folder / "raw"
    try:
        raw.mkdir()
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            content = download(raw)
        npz.write(target, content)
    except Exception as error:  # any error of a library is reported to the parent, in one line
        result.send(" ".join(f"{type(error).__name__}: {error}".split())[:300])
    else:
        result.send("")


def _publish(archive: Archive, downloaded: Path, target: Path) -> None:
    """Check a downloaded file and rename it into place, then its checksum. Raises UserError."""
    located = LocatedFile(downloaded, archive.spec.files[0])
    missing = archive.missing(archive.counts(located), located.file)
    if missing:
        raise UserError(f"the download of '{archive.spec.name}' is incomplete: {missing}")
    archive.read(located)
    sidecar, source = checksum.sidecar(target), f"{archive.spec.title}, complete, downloaded"
    text = checksum.sidecar_text(target, checksum.digest(downloaded), source)
    fresh_sidecar = checksum.sidecar(downloaded)
    fresh_sidecar.write_text(text, encoding="utf-8")
    sidecar.unlink(missing_ok=True)  # never an old checksum beside a new file
    os.replace(downloaded, target)
    os.replace(fresh_sidecar, sidecar)
