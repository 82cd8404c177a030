"""A suite's file: which defenses meet which attacks on which problems.

title = "…"                       one line
about = "…"                       what it is for
seeds = [0, 1, 2]
minutes = 8                       on two cores, as measured; what `plan` says before anything is measured here

[problems.NAME]                   dataset, model, partition, clients, corrupted, corrupted_data,
                                  assumed_corrupted
training = { rounds = 100 }       options of the schedule; likewise model_options, partition_options

[methods.METHOD]                  options of a method, wherever it takes part
[training.PROTOCOL]               what a protocol needs of the schedule, such as loss = "mse"

[[matrix]]                        every defense meets every attack
problem = "NAME"
defenses = ["fedavg", "nnm+krum"]
attacks = ["dlg", "delayed+label-flip"]
parties, forms, knows = [...]     where not all that apply are wanted
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedarena.core.did_you_mean import did_you_mean
from fedarena.core.errors import UserError
from fedarena.core.files import TOO_LONG
from fedarena.core.options import to_text
from fedarena.core.rng import LARGEST_SEED
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS

FOLDER = Path(__file__).resolve().parents[2] / "suites"
"""The folder of the package's own suites."""

Options = dict[str, str]
"""Options as text, as on the command line."""

PROBLEM = ("dataset", "model", "partition", "clients", "corrupted", "corrupted_data", "assumed_corrupted")
OLD_NAMES = {"belief": "assumed_corrupted"}
"""Old name of a problem's entry, which files may still use → its name now."""
GROUPS = {"training": "training", "model_options": "model", "partition_options": "partition"}
"""Table of a problem → its group of settings."""


@dataclass(frozen=True)
class ProblemTable:
    """A problem as the file describes it: `named` holds what has a flag, `settings` the values for `--set`, by group.

    `utility` says whether accuracy on it counts as utility.
    """

    named: Options
    settings: dict[str, Options]
    utility: bool = True


@dataclass(frozen=True)
class Matrix:
    """Defenses × attacks on a problem, for the parties, forms and knowledge given (all that apply where empty)."""

    problem: str
    defenses: tuple[str, ...]
    attacks: tuple[str, ...]
    parties: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    knows: tuple[str, ...] = ()
    counts: bool = True


@dataclass(frozen=True)
class Suite:
    """A suite's file, checked as far as it can be without loading any method.

    Attributes:
        name: the name of its file. text: the content of the file.
        minutes: the time on two cores, as measured when it was written; None: not stated.
        problems, methods, training, matrices: its tables.
    """

    name: str
    text: str
    title: str
    about: str
    seeds: tuple[int, ...]
    minutes: float | None
    problems: dict[str, ProblemTable]
    matrices: tuple[Matrix, ...]
    methods: dict[str, Options] = field(default_factory=dict)
    training: dict[str, Options] = field(default_factory=dict)


def names() -> list[str]:
    """The package's own suites."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Suite:
    """A suite by name, or by the path of a file. Raises UserError."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        if name.endswith(".toml"):
            raise UserError(f"there is no suite file {name}")
        raise UserError(f"unknown suite {name!r}{did_you_mean(name, names())} (or give the path of a .toml file)")
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError:
        raise UserError(f"{path} is not TOML: it is no text in UTF-8") from None


def parse(text: str, path: Path) -> Suite:
    """A suite from its text. Raises UserError that names the file, the key, and what is allowed."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    except ValueError:
        raise UserError(f"{path} cannot be read: {TOO_LONG}") from None
    except RecursionError:
        raise UserError(f"{path} cannot be read: its lists and tables are nested too deeply") from None
    known = ("title", "about", "seeds", "minutes", "problems", "methods", "training", "matrix")
    _known(content, known, str(path))
    problems = {
        name: _problem(table, f"{path}: problems.{name}")
        for name, table in _table(content.get("problems", {}), f"{path}: problems").items()
    }
    methods = _table(content.get("methods", {}), f"{path}: methods")
    training = _table(content.get("training", {}), f"{path}: training")
    return Suite(
        name=path.stem,
        text=text,
        title=_line(content.get("title", path.stem), f"{path}: title"),
        about=_line(content.get("about", ""), f"{path}: about"),
        seeds=_seeds(content.get("seeds", [0]), path),
        minutes=_minutes(content.get("minutes"), path),
        problems=problems,
        matrices=_matrices(content.get("matrix", []), problems, path),
        methods={name: _options(table, f"{path}: methods.{name}") for name, table in methods.items()},
        training={name: _options(table, f"{path}: training.{name}") for name, table in training.items()},
    )


def _seeds(value: Any, path: Path) -> tuple[int, ...]:
    seeds = _list(value, int, f"{path}: seeds")
    if not seeds or len(set(seeds)) < len(seeds) or not all(0 <= s <= LARGEST_SEED for s in seeds):
        raise UserError(f"{path}: seeds is {seeds}, allowed: distinct integers from 0 to {LARGEST_SEED}")
    return tuple(seeds)


def _minutes(value: Any, path: Path) -> float | None:
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value <= 0:
        raise UserError(f"{path}: minutes is {value!r}, allowed: a number above 0")
    minutes: float = value
    return minutes


def _matrices(tables: Any, problems: Mapping[str, ProblemTable], path: Path) -> tuple[Matrix, ...]:
    if not isinstance(tables, list):
        raise UserError(f"{path}: matrix is one table or value, allowed: a list of tables, each begun with [[matrix]]")
    if not tables:
        raise UserError(f"{path} has no [[matrix]]: nothing would be run")
    return tuple(_matrix(table, problems, f"{path}: matrix {i}") for i, table in enumerate(tables, 1))


def _problem(table: Any, where: str) -> ProblemTable:
    renamed = _renamed(_table(table, where), where)
    _known(renamed, (*PROBLEM, *GROUPS, "utility"), where)
    said = {name: _text(renamed[name], f"{where}.{name}") for name in PROBLEM if name in renamed}
    if "dataset" not in said:
        raise UserError(f"{where} names no dataset")
    settings = {GROUPS[g]: _options(table[g], f"{where}.{g}") for g in GROUPS if g in table}
    return ProblemTable(said, settings, _flag(table, "utility", where))


def _renamed(table: dict[str, Any], where: str) -> dict[str, Any]:
    """A problem's table with the present names. Raises UserError for an entry under both its old and its new name."""
    for old, new in OLD_NAMES.items():
        if old in table and new in table:
            raise UserError(f"{where} has {old} and {new}, allowed: {new} alone")
    return {OLD_NAMES.get(name, name): value for name, value in table.items()}


def _matrix(table: Any, problems: Mapping[str, ProblemTable], where: str) -> Matrix:
    allowed = {"parties": READERS, "forms": FORMS, "knows": KNOWLEDGE}
    _known(_table(table, where), ("problem", "defenses", "attacks", "counts", *allowed), where)
    problem = table.get("problem")
    if not isinstance(problem, str) or problem not in problems:
        raise UserError(f"{where}: problem is {problem!r}, allowed: {', '.join(problems) or 'none is described'}")
    lists = {}
    for name in ("defenses", "attacks", *allowed):
        lists[name] = tuple(_list(table.get(name, []), str, f"{where}: {name}"))
        for word in lists[name]:
            if name in allowed and word not in allowed[name]:
                raise UserError(f"{where}: {name} has '{word}', allowed: {', '.join(allowed[name])}")
        if len(set(lists[name])) < len(lists[name]):
            raise UserError(f"{where}: {name} names something twice")
    if not lists["defenses"]:
        raise UserError(f"{where} names no defenses")
    return Matrix(problem, **lists, counts=_flag(table, "counts", where))


def _options(table: Any, where: str) -> Options:
    return {name: _text(value, f"{where}.{name}") for name, value in _table(table, where).items()}


def _text(value: Any, where: str) -> str:
    """A value as text, as on the command line. Raises UserError for dates and tables."""
    if isinstance(value, list):
        return ",".join(_text(item, where) for item in value)
    if not isinstance(value, str | int | float | bool):
        raise UserError(f"{where} is {value!r}, allowed: text, a number, true, false, or a list of them")
    return to_text(value)


def _flag(table: Mapping[str, Any], name: str, where: str) -> bool:
    value = table.get(name, True)
    if not isinstance(value, bool):
        raise UserError(f"{where}: {name} is {value!r}, allowed: true, false")
    return value


def _line(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{where} is {value!r}, allowed: text")
    return value


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where} is {value!r}, allowed: a table")
    return value


def _list(value: Any, kind: type, where: str) -> list[Any]:
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise UserError(f"{where} is {value!r}, allowed: a list of {'integers' if kind is int else 'names'}")
    return value


def _known(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise UserError(f"{where} has an unknown key {name!r}{did_you_mean(name, known)}")
