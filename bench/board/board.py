"""A board: records of a suite or a folder, put together cell by cell.

It is the published form of results (`board.json`): what leaderboards, reports and the regression gate read. Everything
in it comes from records; nothing is computed that could not be computed anew from them.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedarena.errors import UserError
from fedarena.goals import GOALS
from fedarena.records import read_json
from fedarena.shape import (
    amount,
    anything,
    brief,
    by_seed,
    each,
    either,
    fields,
    flag,
    named,
    number,
    pair,
    perhaps,
    share,
    text,
    whole,
)

SCHEMA = 1

STATUSES = ("ok", "n/a", "mixed", "diverged", "failed", "missing")
"""Of a cell or an honest run, over its seeds."""

BySeed = dict[int, float]


@dataclass(frozen=True)
class Arena:
    """A problem of the board, on which several defenses meet several attacks.

    Attributes:
        name: what the suite calls it.
        told: it in a line: data set, model, clients, how they train.
        dataset: registry name.
        measure: `accuracy` or `R2`.
        chance: what a constant prediction reaches.
        fedavg: FedAvg's accuracy by seed.
        subset: what is missing from the data, None for complete data.
        utility: whether accuracy on it counts as utility; false where it is there for an attack's sake, and trains too
            short or on a network too odd for its accuracy to mean anything.
    """

    name: str
    told: str
    dataset: str
    measure: str
    chance: float
    fedavg: BySeed
    subset: str | None = None
    utility: bool = True


@dataclass(frozen=True)
class Honest:
    """A defense on a problem while nobody poisons.

    Attributes:
        problem, defense: where.
        status: ok, diverged, failed, `mixed` when seeds disagree, or missing.
        reason: why, where it is not ok.
        accuracy: clean accuracy by seed.
        utility: accuracy / FedAvg's accuracy on the suite's problem, cut to [0, 1], by seed.
        bytes_up, bytes_down: per client and round. relative_seconds: training time / FedAvg's. peak_bytes: of a
            client's step. Means over seeds.
        guarantees: what the protocol promises, such as epsilon.
        marks: what must stand beside every number.
        curve: [round, accuracy] of the least seed.
        keys: its records.
        command: makes it anew.
    """

    problem: str
    defense: str
    status: str
    reason: str
    accuracy: BySeed
    utility: BySeed
    bytes_up: float
    bytes_down: float
    relative_seconds: float | None
    peak_bytes: float
    guarantees: dict[str, float]
    marks: tuple[str, ...]
    curve: tuple[tuple[float, float], ...]
    keys: tuple[str, ...]
    command: str


@dataclass(frozen=True)
class Cell:
    """One attack on one defense as one threat, over seeds.

    Attributes:
        problem, defense, attack: what met what.
        axis: `integrity` of poisoning, `privacy` of inference attacks.
        goal: what an inference attack is after; empty for poisoning.
        party, form: who, and how. knows: what corrupted clients know; empty for inference.
        status: ok, n/a, diverged, failed, `mixed` when seeds disagree, or missing: planned and not there.
        reason: why, where it is not ok; empty for missing.
        statuses: by seed; of planned seeds that are not there `missing`.
        reading: how the party looked at what it saw: of several the one with the lowest mean score, which is the one
            that the cell shows.
        scores: in [0, 1], higher is better for the defender, by seed; only of seeds that have one.
        metrics: what was measured, by name and seed.
        curve: of poisoned runs [round, accuracy] of the least seed.
        series: further series of the least seed, by name: [[x, y], ...]; `roc` is [false positive rate, true positive
            rate].
        keys: record keys by seed, of the reading shown.
        beside: mean scores of the other readings, by name.
        found_by: who made the attack, where it is not this package's own; else empty.
        settings: digest of every option and of the problem, all seeds alike; a cell of another board with another
            digest is another experiment.
        defended: digest of the problem and of the defense's options alone.
        versions: versions of the methods.
        command: makes the cell anew.
        counts: whether it counts in its axis's score; what tells of the server's model, or of a gradient alone, stands
            beside (`fedarena.goals.goal.Goal.of_data`).
    """

    problem: str
    defense: str
    attack: str
    axis: str
    goal: str
    party: str
    form: str
    knows: str
    status: str
    reason: str
    statuses: dict[int, str]
    reading: str
    scores: BySeed
    metrics: dict[str, BySeed]
    curve: tuple[tuple[float, float], ...] = ()
    series: dict[str, list[list[float]]] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    beside: dict[str, float] = field(default_factory=dict)
    found_by: str = ""
    settings: str = ""
    defended: str = ""
    versions: dict[str, int] = field(default_factory=dict)
    command: str = ""
    counts: bool = True

    @property
    def place(self) -> tuple[str, ...]:
        """By which a cell is found on another board."""
        return (self.problem, self.defense, self.attack, self.party, self.form, self.knows)

    @property
    def threat(self) -> str:
        """Who attacks, in words: "server, adaptive" or "corrupted clients (own), paper"."""
        who = f"corrupted clients ({self.knows})" if self.knows else self.party
        return f"{who}, {self.form}"


@dataclass(frozen=True)
class Board:
    """All cells of a suite or a folder.

    Attributes:
        suite: its name; of loose records the folder's.
        title: in words.
        seeds: all seeds, ascending.
        arenas, honest, cells: what was run.
        made: package version, commit, date of the newest record (empty where unknown), by name.
        notes: what a reader must know first, such as records left out because they were damaged.
    """

    suite: str
    title: str
    seeds: tuple[int, ...]
    arenas: tuple[Arena, ...]
    honest: tuple[Honest, ...]
    cells: tuple[Cell, ...]
    made: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def defenses(self) -> list[str]:
        """In the order in which they first come."""
        return list(dict.fromkeys([h.defense for h in self.honest] + [c.defense for c in self.cells]))


def to_json(board: Board) -> str:
    """The published form: a line for each problem, honest run and cell, so that a change shows as the lines that it
    touches. What a cell does not have, such as a curve, is left out."""
    told: dict[str, Any] = {"board": SCHEMA, **asdict(board)}
    told["cells"] = [_brief(cell) for cell in told["cells"]]
    return "{\n" + ",\n".join(f"{_line(name)}:{_lines(value)}" for name, value in told.items()) + "\n}\n"


def _brief(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in cell.items() if name not in _USUAL or value != _USUAL[name]}


def _usual() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for f in dataclasses.fields(Cell):
        if f.default is not MISSING:
            found[f.name] = f.default
        elif f.default_factory is not MISSING:
            found[f.name] = f.default_factory()
    return found


_USUAL = _usual()
"""What a cell has where nothing is said."""


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _lines(value: Any) -> str:
    """A list of tables with a line each, anything else in one."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    return _line(value)


def from_json(published: str, where: Path) -> Board:
    """A published board. Raises UserError for what is none, naming the file, the place in it and the field."""
    try:
        data: Any = read_json(published)
        if not isinstance(data, Mapping) or "board" not in data:
            raise UserError(f"{where} is not a board: `bench leaderboard --format json` writes one")
        layout = data["board"]
        if type(layout) is not int or layout != SCHEMA:
            raise UserError(f"{where} is a board of layout {brief(layout)}, allowed: {SCHEMA}; make it anew")
        _FILE(data, "")
        for name, check in (("arenas", _ARENA), ("honest", _HONEST), ("cells", _CELL)):
            for i, one in enumerate(data[name]):
                check(one, f"{_place(name, i, one)}: ")
        board = Board(
            data["suite"],
            data["title"],
            tuple(data["seeds"]),
            tuple(Arena(**{**a, "fedavg": _by_seed(a["fedavg"])}) for a in data["arenas"]),
            tuple(_honest(h) for h in data["honest"]),
            tuple(_cell(c) for c in data["cells"]),
            data["made"],
            tuple(data["notes"]),
        )
        _check(board)
        return board
    except ValueError as error:
        raise UserError(f"{where} is damaged: {error}") from None


_FILE = fields(
    {
        "suite": text,
        "title": text,
        "seeds": each(whole),
        **dict.fromkeys(("arenas", "honest", "cells"), each(anything)),
        "made": named(text),
        "notes": each(text),
    }
)
_ARENA = fields(
    {
        **dict.fromkeys(("name", "told", "dataset", "measure"), text),
        "chance": number,
        "fedavg": by_seed(number),
    },
    {"subset": perhaps(text), "utility": flag},
    closed=True,
)
_HONEST = fields(
    {
        **dict.fromkeys(("problem", "defense", "reason", "command"), text),
        "status": either(*STATUSES),
        "accuracy": by_seed(number),
        "utility": by_seed(share),
        **dict.fromkeys(("bytes_up", "bytes_down", "peak_bytes"), amount),
        "relative_seconds": perhaps(amount),
        "guarantees": named(number),
        "marks": each(text),
        "curve": each(pair),
        "keys": each(text),
    },
    closed=True,
)
_CELL = fields(
    {
        **dict.fromkeys(("problem", "defense", "attack", "party", "form", "knows", "reason", "reading"), text),
        "axis": either("privacy", "integrity"),
        "goal": either("", *GOALS),
        "status": either(*STATUSES),
        "statuses": by_seed(either(*STATUSES)),
        "scores": by_seed(share),
        "metrics": named(by_seed(number)),
    },
    {
        "curve": each(pair),
        "series": named(each(pair)),
        "keys": by_seed(text),
        "beside": named(share),
        **dict.fromkeys(("found_by", "settings", "defended", "command"), text),
        "versions": named(whole),
        "counts": flag,
    },
    closed=True,
)


def _place(name: str, i: int, one: Any) -> str:
    """Where a field is, in words, be the other fields what they may: "cell digits · krum · sign-flip · client"."""
    what, parts = _NAMED[name]
    known = [one.get(part) for part in parts] if isinstance(one, Mapping) else []
    told = [word for word in known if isinstance(word, str) and word]
    return f"{what} {i + 1} ({' · '.join(told)})" if told else f"{what} {i + 1}"


_NAMED = {
    "arenas": ("problem", ("name",)),
    "honest": ("honest run", ("problem", "defense")),
    "cells": ("cell", ("problem", "defense", "attack", "party", "form", "knows")),
}
"""What the rows of a list are called, and by which fields one is told from the others."""


def _check(board: Board) -> None:
    """Raise ValueError for fields that are each as they should be, and together what no run gives."""
    faults: list[tuple[str, int, Cell | Honest, str]] = [
        *(("cells", i, c, _cell_fault(c)) for i, c in enumerate(board.cells)),
        *(("honest", i, h, _honest_fault(h)) for i, h in enumerate(board.honest)),
    ]
    arenas = {a.name for a in board.arenas}
    for name, i, one, why in faults:
        if one.problem not in arenas:
            why = f"problem is {brief(one.problem)}, which is not among the board's arenas"
        if why:
            raise ValueError(f"{_place(name, i, vars(one))}: {why}")
    places = Counter(
        [
            *((a.name,) for a in board.arenas),
            *(c.place for c in board.cells),
            *((h.problem, h.defense) for h in board.honest),
        ]
    )
    if twice := [place for place, count in places.items() if count > 1]:
        raise ValueError(f"{' · '.join(filter(None, twice[0]))} is there twice")


def _cell_fault(c: Cell) -> str:
    """What of a cell cannot be; empty where all can."""
    together = overall(c.statuses.values())
    if c.status != together:
        return f"status is {brief(c.status)}, and of its seeds it is {brief(together)} (statuses)"
    # What corrupted clients do is poisoning, and what they know is told of that alone.
    axis = "integrity" if c.knows else "privacy"
    if c.axis != axis:
        return f"axis is {brief(c.axis)}, and of one with knows {brief(c.knows)} it is {brief(axis)}"
    if bool(c.goal) != (axis == "privacy"):
        return f"goal is {brief(c.goal)}, which no cell of axis {axis} has"
    for seed in c.scores:
        if c.statuses.get(seed, "missing") in ("n/a", "failed", "missing"):
            return f"scores has seed {seed}, which is {c.statuses.get(seed, 'missing')} (statuses)"
    return ""


def _honest_fault(h: Honest) -> str:
    """What of an honest run cannot be; empty where all can."""
    if h.status in ("ok", "diverged") and not h.accuracy:
        return f"status is {brief(h.status)}, and accuracy has no seed"
    if lacking := [seed for seed in h.utility if seed not in h.accuracy]:
        return f"utility has seed {lacking[0]}, which accuracy has not"
    return ""


def overall(statuses: Iterable[str]) -> str:
    """The status of a cell whose seeds have these."""
    known = list(dict.fromkeys(statuses))
    return "missing" if not known else known[0] if len(known) == 1 else "mixed"


def _by_seed(found: Mapping[str, Any]) -> dict[int, Any]:
    return {int(seed): value for seed, value in found.items()}


def _curve(points: Any) -> tuple[tuple[float, float], ...]:
    return tuple((x, y) for x, y in points)


def _honest(h: dict[str, Any]) -> Honest:
    seeds = {name: _by_seed(h[name]) for name in ("accuracy", "utility")}
    return Honest(**{**h, **seeds, "marks": tuple(h["marks"]), "curve": _curve(h["curve"]), "keys": tuple(h["keys"])})


def _cell(c: dict[str, Any]) -> Cell:
    seeds = {name: _by_seed(c.get(name, {})) for name in ("statuses", "scores", "keys")}
    metrics = {name: _by_seed(values) for name, values in c["metrics"].items()}
    return Cell(**{**c, **seeds, "metrics": metrics, "curve": _curve(c.get("curve", ()))})
