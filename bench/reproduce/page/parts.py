"""The parts of a table: one file for each piece and seed, written as soon as it is measured.

    OUT/parts/<table>/<piece>-<hash>-seed<N>.json
    OUT/parts/<table>/<piece>-<hash>-seed<N>.guess     how long it takes, of parts that were given up
    REPORT/parts.jsonl                                 those that a page was made of, a line each, published beside it

A part is valid for the package version and the table's setting that it was measured with. Under others it is stale, and
is measured again. The code may change while its version stays the same, so a part also holds the commit.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedarena import __version__
from fedarena.core.errors import UserError
from fedarena.core.files import read_bytes, write_atomically

SCHEMA = 1
GUESS = ".guess"
PUBLISHED = "parts.jsonl"


@dataclass(frozen=True)
class PartKey:
    """What identifies a part of a table."""

    table: str
    piece: str
    seed: int

    @property
    def name(self) -> str:
        """The key in one line."""
        return f"{self.table}: {self.piece}, seed {self.seed}"


@dataclass(frozen=True)
class MeasuredPart:
    """A part that was measured.

    Attributes:
        setting: the setting of the table.
        rows: the rows as the table gives them.
        cpu_seconds: the CPU time of the process that measured it.
        environment: the machine and the package, as in records.
        run_of: the name of the part of another table whose run it is (`fedarena.reproduce.page.shared`); "" if the run
            is its own.
    """

    key: PartKey
    setting: str
    rows: Sequence[dict[str, Any]]
    cpu_seconds: float
    environment: dict[str, Any]
    run_of: str = ""

    @property
    def device(self) -> str:
        """The device on which it was computed."""
        return str(self.environment.get("device", "cpu"))

    def holds(self, setting: str) -> bool:
        """Whether it is valid: measured by this version of the package, with this setting."""
        return self.environment["fedarena"] == __version__ and self.setting == setting


def path_of(out: Path, key: PartKey) -> Path:
    """The file of a part."""
    name = re.sub(r"[^A-Za-z0-9.]+", "-", key.piece).strip("-")[:60]
    mark = hashlib.sha256(key.piece.encode()).hexdigest()[:8]
    return folder_of(out, key.table) / f"{name}-{mark}-seed{key.seed}.json"


def folder_of(out: Path, table: str) -> Path:
    """The folder of a table's parts."""
    return out / "parts" / table.replace("/", "-")


def save(out: Path, part: MeasuredPart) -> None:
    """Write a part, atomically. Raises UserError for a folder that cannot be written, ValueError for NaN."""
    path = path_of(out, part.key)
    write_atomically(path, json.dumps(_content(part), indent=2, allow_nan=False) + "\n")
    path.with_suffix(GUESS).unlink(missing_ok=True)


def publish(report: Path, parts: Iterable[MeasuredPart]) -> None:
    """Add parts to those beside a page. They replace former ones of the same names.

    Raises:
        UserError: the folder cannot be written, or the present file cannot be read. It is then not replaced, since its
            content would be lost.
    """
    former = _published(report / PUBLISHED)[0]
    every = {part.key: part for part in (*former, *parts)}
    if every:
        in_order = sorted(every.values(), key=lambda p: (p.key.table, p.key.piece, p.key.seed))
        lines = [json.dumps(_content(part), ensure_ascii=False, allow_nan=False) + "\n" for part in in_order]
        write_atomically(report / PUBLISHED, "".join(lines))


def published(report: Path) -> tuple[list[MeasuredPart], list[str]]:
    """The parts beside a page, and one line for each that is damaged."""
    try:
        return _published(report / PUBLISHED)
    except UserError as error:
        return [], [str(error)]


def _published(path: Path) -> tuple[list[MeasuredPart], list[str]]:
    try:
        lines = read_bytes(path).decode().splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}); what it holds counts as not measured") from None
    parts, complaints = [], []
    for i, line in enumerate(lines):
        try:
            parts.append(_parse(line, f"{path}, line {i + 1},"))
        except UserError as error:
            complaints.append(str(error))
    return parts, complaints


def save_guess(out: Path, key: PartKey, cpu_seconds: float) -> None:
    """Write how long a part that was given up is expected to take. Raises UserError."""
    content = {"table": key.table, "piece": key.piece, "seed": key.seed, "cpu_seconds": cpu_seconds}
    write_atomically(path_of(out, key).with_suffix(GUESS), json.dumps(content, indent=2) + "\n")


def guesses(out: Path, table: str) -> dict[PartKey, float]:
    """The expected CPU seconds of a table's parts that were given up; a guess that cannot be read is ignored."""
    seconds = {}
    for path in sorted(folder_of(out, table).glob(f"*{GUESS}")):
        try:
            content = json.loads(read_bytes(path).decode())
            key = PartKey(content["table"], content["piece"], int(content["seed"]))
            seconds[key] = float(content["cpu_seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return seconds


def load(out: Path, table: str) -> tuple[list[MeasuredPart], list[str]]:
    """A table's undamaged parts by name of the file, and one line for each damaged file."""
    parts, complaints = [], []
    for path in sorted(folder_of(out, table).glob("*.json")):
        try:
            parts.append(_read(path))
        except UserError as error:
            complaints.append(str(error))
    return parts, complaints


def _content(part: MeasuredPart) -> dict[str, Any]:
    return {
        "part": SCHEMA,
        "table": part.key.table,
        "piece": part.key.piece,
        "seed": part.key.seed,
        "setting": part.setting,
        "cpu_seconds": part.cpu_seconds,
        "rows": list(part.rows),
        "environment": part.environment,
    }


def _read(path: Path) -> MeasuredPart:
    try:
        text = read_bytes(path).decode()
    except (OSError, ValueError) as error:
        raise _damaged(str(path), error) from None
    part = _parse(text, str(path))
    if path_of(path.parent.parent.parent, part.key) != path:
        raise UserError(f"{path} holds another part ({part.key.name}); it counts as not measured")
    return part


def _parse(text: str, source: str) -> MeasuredPart:
    try:
        content = json.loads(text, parse_constant=_no_number)
        if content["part"] != SCHEMA:
            raise UserError(f"{source} has layout {content['part']}, allowed: {SCHEMA}; it is measured again")
        if not content["rows"] or not all(content["rows"]):
            raise ValueError("rows without a column")
        return MeasuredPart(
            key=PartKey(content["table"], content["piece"], int(content["seed"])),
            setting=content["setting"],
            rows=[dict(row) for row in content["rows"]],
            cpu_seconds=float(content["cpu_seconds"]),
            environment={"fedarena": content["environment"]["fedarena"], **content["environment"]},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(source, error) from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _damaged(source: str, error: Exception) -> UserError:
    reason = " ".join(str(error).split())
    return UserError(f"{source} is damaged ({type(error).__name__}: {reason}); it counts as not measured")
