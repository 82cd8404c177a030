"""Damaged results: records, plans, pictures and boards, and what else can lie in their place."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints, is_typeddict

from fuzz.case import BOARD, RESULTS, SUITE, Case, Ground
from fuzz.changes import Bytes, Change, as_json, byte_changes, changes, other_type, spreads
from fuzz.data_files import Array, archive, changed
from fuzz.judge import BLOCKED, Outcome
from fuzz.made_files import MARKUPS, wrong_in_files
from hypothesis import strategies as st

from fedarena.board.board import STATUSES, Board, BoardCell, CleanRun, ProblemInfo
from fedarena.board.published_schema import FILE_NAMES
from fedarena.contracts.goal_names import GOAL_NAMES
from fedarena.core import registry
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS
from fedarena.records.schema import Record
from fedarena.records.store import GALLERY, sum_of
from fedarena.records.trial_key import key_of, trial_key

CONTROLS = ("\x1b[2J", "\x9b2J", "a\nb", "\x07", "\x7f")
ELSEWHERE = ("..", "../evil", "../../../evil", "/evil", "a/../../../evil", ".")
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
HARM = (*MARKUPS, *CONTROLS, *ELSEWHERE, "$x^{", "=1+1", "`", "|", "\ud800")


def fields_of(kind: Any) -> Iterator[str]:
    """The names of a type's fields in files, and of those in its fields."""
    for name, hint in get_type_hints(kind).items():
        yield name
        yield from (table[name] for table in FILE_NAMES.values() if name in table)
        if is_typeddict(hint):
            yield from fields_of(hint)


NAMES = tuple(name for known in registry.registries().values() for name in known.names())
WORDS = st.one_of(*(st.sampled_from(some) for some in (NAMES, MEANT, HARM)))
"""Texts that mean something in results, or that do harm in what is made of them, one as often as the other."""
FIELDS = tuple(sorted({name for kind in (Board, ProblemInfo, CleanRun, BoardCell, Record) for name in fields_of(kind)}))
"""Names of fields of boards and records, those too that the tiny suite's lack."""
KEYS = st.one_of(WORDS, st.sampled_from(FIELDS))
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


GATE = "compare {} {} --markdown made.md --junit made.xml"
PICTURED = (("leaderboard", RESULTS, "--out", "made.html"), ("report", RESULTS, "--out", "rep"))
"""Commands that read pictures."""
PAGE = "leaderboard {} --out made.html"
AIMS = (
    (MARKUPS, (PAGE, PAGE, PAGE, "leaderboard {} --out made.md", "report {}", GATE)),
    (CONTROLS, ("leaderboard {}", "leaderboard {} --format csv", "report {}", GATE)),
    (ELSEWHERE, ("report {}",)),
)
"""Texts that do harm in one way, and the commands in which they may do it to whoever reads a file."""
FIXED = frozenset({*READERS, *FORMS, *KNOWLEDGE, *STATUSES, *GOAL_NAMES, "privacy", "integrity", "none"})
"""Words of which a field has one, so that a file with another is refused."""
FREE = frozenset({"options", "tuned", "attacked", "clean_curve", "problems", "key", "sum"})
"""Fields of records and plans that may hold values of any type, or that `sign` renews."""


LAID = {RESULTS, SUITE, BOARD, BLOCKED, "data", "cache", ".config", "reports"}
"""What may be in the folder of a case without being named. It is the home of libraries; `report` has its own folder."""


def _told(outcome: Outcome, folder: Path) -> str:
    """What a reader of a leaderboard sees."""
    made = [folder / name for name in ("made.json", "made.html") if (folder / name).is_file()]
    return "\n".join([outcome.out, outcome.err, *(path.read_text(encoding="utf-8") for path in made)])


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
        if outcome.lacked_memory:
            return "a file that claims too much was read"
        if why := wrong_in_files(path for path in folder.rglob("*") if path.suffix in (".html", ".md", ".xml")):
            return why
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
        loose: whether there is no plan, so that records of any trial are shown.
    """

    file: str = ""
    changes: tuple[Change, ...] = ()
    bytes: tuple[Bytes, ...] = ()
    signed: bool = False
    special: str = ""
    arrays: tuple[Array, ...] = ()
    loose: bool = False

    def wrong(self, outcome: Outcome, folder: Path) -> str:
        if outcome.code == 0 and (folder / "made.json").is_file() and self.file.startswith("records/"):
            notes = json.loads((folder / "made.json").read_text(encoding="utf-8"))["notes"]
            if not notes and not self.signed and not self.special and self._differs(folder):
                return "a record that was changed was accepted"
        if self.nonsense and any(word in _told(outcome, folder) for word in ("damaged", "another schema")):
            return replace(self, nonsense="").wrong(outcome, folder)
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
        if self.loose:
            (folder / RESULTS / "plan.json").unlink()
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
        array = Array("|u1", (draw(st.integers(0, 2)), draw(st.sampled_from([1, 1, 3, 2])), 8, 8))
        return ChangedResults(draw(st.sampled_from(PICTURED)), file=file, arrays=(array, draw(changed(array))))
    if how == 1 or not file.endswith(".json"):
        return ChangedResults(argv, file=file, bytes=tuple(draw(st.lists(byte_changes, min_size=1, max_size=3))))
    document, signed = json.loads((base / file).read_text()), file.startswith("records/") and how > 2
    if how > 7:
        argv, some = draw(_aimed(document, RESULTS))
        return ChangedResults(argv, file=file, changes=some, signed=signed, loose=signed)
    some = tuple(draw(st.lists(changes(document, words=WORDS, keys=KEYS), min_size=1, max_size=2)))
    shown = argv[:2] == ("leaderboard", RESULTS) and "csv" not in argv  # others do not tell what they left out
    return ChangedResults(argv, _retyped(document, some) if shown else "", file=file, changes=some, signed=signed)


@st.composite
def boards(draw: Any, base: Any) -> ChangedBoard:
    """Changed boards. `base` is the unchanged document."""
    if draw(st.integers(0, 2)) == 0:
        argv, some = draw(_aimed(base, BOARD))
        return ChangedBoard(argv, changes=some)
    argv = draw(st.sampled_from(BOARD_READS))
    some = tuple(draw(st.lists(changes(base, words=WORDS, keys=KEYS), min_size=1, max_size=2)))
    if draw(st.integers(0, 19)) == 0:
        return ChangedBoard(argv, changes=some, bytes=(draw(byte_changes),))
    return ChangedBoard(argv, _retyped(base, some), changes=some)


@st.composite
def _aimed(draw: Any, document: Any, place: str) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """Texts that do harm in a document that otherwise fits together, and a command in which they may."""
    harm, commands = draw(st.sampled_from(AIMS))
    argv = draw(st.sampled_from(commands)).format(place, place).split()
    return tuple(argv), draw(spreads(document, draw(st.sampled_from(harm)), FIXED))


def _retyped(document: Any, some: Sequence[Change]) -> str:
    """Where changes put a value of another type."""
    after = copy.deepcopy(document)
    for change in some:
        after = change.apply(after)
    return other_type(document, after, FREE)
