"""Damaged results: records, plans, pictures and boards, and what else can lie in their place."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.case import BOARD, RESULTS, SUITE, Case, Ground
from fuzz.changes import Bytes, Change, as_json, byte_changes, changes
from fuzz.data_files import Array, archive, changed
from fuzz.judge import BLOCKED, Outcome
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.records.store import GALLERY, sum_of
from fedarena.records.trial_key import key_of, trial_key

MARKUP = "<b>odd</b>"
"""Must not stand in a page as it is."""
MEANT = (
    *(
        "read",
        "poison",
        "server",
        "client",
        "own",
        "none",
        "ok",
        "failed",
        "n/a",
        "diverged",
        "privacy",
        "integrity",
        "utility",
    ),
    *(
        "reconstruction",
        "labels",
        "membership",
        "property",
        "0",
        "1",
        "7",
        "fedavg+krum",
        "a+b",
        "x:y",
        "digits",
        "rejected",
    ),
    *("accuracy", "psnr", "ssim", ""),
)
HARM = ("../../../evil", "/evil", "\x1b[2J", "a\nb", "$x^{", "=1+1", MARKUP, "`", "|", "\ud800")
NAMES = tuple(name for known in registry.registries().values() for name in known.names())
WORDS = st.one_of(*(st.sampled_from(some) for some in (NAMES, MEANT, HARM)))
"""Texts that mean something in results, or that do harm in what is made of them, one as often as the other."""
SPECIALS = ("pipe", "folder", "loop", "nowhere", "elsewhere", "no-utf-8", "copy", "empty", "socket-like name\n.json")
READS = (
    *(
        ("leaderboard", RESULTS),
        ("leaderboard", RESULTS, "--format", "md"),
        ("leaderboard", RESULTS, "--format", "csv"),
    ),
    *(("leaderboard", RESULTS, "--out", "made.json"), ("leaderboard", RESULTS, "--out", "made.html")),
    *(
        ("leaderboard", BOARD, "--with", RESULTS),
        ("report", RESULTS, "--out", "rep"),
        ("export", RESULTS, "--to", "csv"),
    ),
    ("compare", RESULTS, RESULTS, "--markdown", "made.md", "--junit", "made.xml"),
    ("compare", BOARD, RESULTS, "--json"),
    ("suite", "plan", SUITE, "--out", RESULTS, "--quiet"),
)
BOARD_READS = (
    *(("leaderboard", BOARD), ("leaderboard", BOARD, "--format", "md"), ("leaderboard", BOARD, "--format", "csv")),
    *(("leaderboard", BOARD, "--out", "made.json"), ("leaderboard", BOARD, "--out", "made.html"), ("report", BOARD)),
    *(
        ("leaderboard", RESULTS, "--with", BOARD),
        ("compare", BOARD, RESULTS, "--markdown", "made.md", "--junit", "made.xml"),
    ),
    ("compare", BOARD, BOARD, "--json"),
)


LAID = {RESULTS, SUITE, BOARD, BLOCKED, "data", "cache", ".config", "reports"}
"""What may be in the folder of a case without being named. It is the home of libraries; `report` has its own folder."""


class _Read(Case):
    """A command that reads results."""

    def then(self, outcome: Outcome, folder: Path) -> tuple[str, ...]:
        return ("leaderboard", "made.json") if outcome.code == 0 and "made.json" in self.argv else ()

    def wrong(self, outcome: Outcome, folder: Path) -> str:
        if outcome.code in (0, 1) and (folder / "made.json").is_file():
            board = json.loads((folder / "made.json").read_text(encoding="utf-8"))
            scores = [score for cell in board["cells"] for score in cell["scores"].values()]
            if not all(0 <= score <= 1 for score in scores):
                return "a score outside of [0, 1] was accepted"
        page = folder / "made.html"
        if page.is_file() and MARKUP in page.read_text(encoding="utf-8"):
            return "markup of a stranger stands in a page"
        named = {Path(word).parts[0] for word in self.argv if word}
        if beside := {path.name for path in folder.iterdir()} - named - LAID:
            return f"{sorted(beside)} were written beside what the command names"
        return super().wrong(outcome, folder)


@dataclass(frozen=True)
class ChangedResults(_Read):
    """A folder of results with one file changed.

    Attributes:
        file: its path in the folder.
        changes, bytes: what is changed in it, in this order.
        signed: whether a record's sum and keys fit the changed content, so that other checks are reached.
        special: what stands in the place of the file; empty: the file.
        arrays: of a file of pictures in its place: originals and guesses.
    """

    file: str = ""
    changes: tuple[Change, ...] = ()
    bytes: tuple[Bytes, ...] = ()
    signed: bool = False
    special: str = ""
    arrays: tuple[Array, ...] = ()

    def wrong(self, outcome: Outcome, folder: Path) -> str:
        if outcome.code == 0 and (folder / "made.json").is_file() and self.file.startswith("records/"):
            notes = json.loads((folder / "made.json").read_text(encoding="utf-8"))["notes"]
            if not notes and not self.signed and not self.special and self._differs(folder):
                return "a record that was changed was accepted"
        return super().wrong(outcome, folder)

    def _differs(self, folder: Path) -> bool:
        """Whether the changed record says something else than it did. Its file may be another without that."""
        path = folder / RESULTS / self.file
        try:
            content = json.loads(path.read_bytes())
            return bool(content["sum"] != sum_of(content))
        except (ValueError, TypeError, KeyError, RecursionError):
            return True

    def lay(self, folder: Path, ground: Ground) -> None:
        shutil.copytree(ground.folder / RESULTS, folder / RESULTS)
        for name in (BOARD, SUITE):
            shutil.copy(ground.folder / name, folder / name)
        path = folder / RESULTS / self.file
        if self.special:
            place(path, self.special)
            return
        if self.arrays:
            path.write_bytes(archive(zip(GALLERY, self.arrays, strict=True)))
            return
        content = path.read_bytes()
        if self.changes:
            document = json.loads(content)
            for change in self.changes:
                document = change.apply(document)
            if self.signed:
                path.unlink()
                path = path.with_name(f"{sign(document, path.stem)}.json")
            content = as_json(document).encode("utf-8", "surrogatepass")
        for change in self.bytes:
            content = change.apply(content)
        path.write_bytes(content)


@dataclass(frozen=True)
class ChangedBoard(_Read):
    """A published board that was changed."""

    changes: tuple[Change, ...] = ()
    bytes: tuple[Bytes, ...] = ()

    def lay(self, folder: Path, ground: Ground) -> None:
        if RESULTS in self.argv:
            shutil.copytree(ground.folder / RESULTS, folder / RESULTS)
        document = json.loads((ground.folder / BOARD).read_text(encoding="utf-8"))
        for change in self.changes:
            document = change.apply(document)
        content = as_json(document).encode("utf-8", "surrogatepass")
        for change in self.bytes:
            content = change.apply(content)
        (folder / BOARD).write_bytes(content)


def sign(record: Any, stem: str) -> str:
    """Renew a record's keys and its sum, as far as it has them; the name that its file then has."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):  # it may have no identity any more
        record["trial"]["key"], record["key"] = trial_key(record), key_of(record)
    with suppress(TypeError, ValueError, AttributeError, UnicodeEncodeError):  # nor numbers that are finite
        record["sum"] = sum_of(record)
    key = record.get("key") if isinstance(record, dict) else None
    return key if isinstance(key, str) and key.isalnum() else stem


def place(path: Path, special: str) -> None:
    """Put something in a file's place, or beside it."""
    whole = path.read_bytes()
    if special not in ("no-utf-8", "copy") and not special.endswith(".json"):
        path.unlink()
    if special == "pipe":
        os.mkfifo(path)
    elif special == "folder":
        path.mkdir()
    elif special in ("loop", "nowhere", "elsewhere"):
        path.symlink_to({"loop": path.name, "nowhere": "gone", "elsewhere": "/etc/passwd"}[special])
    elif special == "empty":
        path.touch()
    else:
        name = {"no-utf-8": b"\xff\x1b[2J" + os.fsencode(path.suffix), "copy": f"copy{path.suffix}".encode()}
        Path(os.fsdecode(os.fsencode(path.parent) + b"/" + name.get(special, special.encode()))).write_bytes(whole)


@st.composite
def folders(draw: Any, base: Path) -> ChangedResults:
    """Changed folders of results. `base` is the unchanged one."""
    files = sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_file() and path.name[0] != ".")
    groups = [[f for f in files if f.startswith("records/")]] * 4 + [["plan.json"]] * 4
    groups += [[f for f in files if f.startswith("pictures/")]] * 2 + [files]
    argv, file = draw(st.sampled_from(READS)), draw(st.sampled_from(draw(st.sampled_from(groups))))
    how = draw(st.integers(0, 9))
    if how == 0:
        return ChangedResults(argv, file=file, special=draw(st.sampled_from(SPECIALS)))
    if file.endswith(".npz") and how < 6:
        shape = (draw(st.integers(0, 2)), 1, 8, 8)
        return ChangedResults(argv, file=file, arrays=(Array("|u1", shape), draw(changed(Array("|u1", shape)))))
    if how == 1 or not file.endswith(".json"):
        return ChangedResults(argv, file=file, bytes=tuple(draw(st.lists(byte_changes, min_size=1, max_size=3))))
    some = tuple(
        draw(st.lists(changes(json.loads((base / file).read_text()), words=WORDS, keys=WORDS), min_size=1, max_size=2))
    )
    return ChangedResults(argv, file=file, changes=some, signed=file.startswith("records/") and how > 2)


@st.composite
def boards(draw: Any, base: Any) -> ChangedBoard:
    """Changed boards. `base` is the unchanged document."""
    argv = draw(st.sampled_from(BOARD_READS))
    some = tuple(draw(st.lists(changes(base, words=WORDS, keys=WORDS), min_size=1, max_size=2)))
    return ChangedBoard(
        argv,
        changes=some,
        bytes=tuple(draw(st.lists(byte_changes, max_size=1))) if draw(st.integers(0, 19)) == 0 else (),
    )
