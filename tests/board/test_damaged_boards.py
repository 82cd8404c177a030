"""Published boards that no run gives: each is refused in one line that names the file, the place and the field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.board import make_board
from helpers.paths import REPORTS

from fedarena.board.published import from_json, to_json
from fedarena.core.errors import UserError

Tamper = Callable[[dict[str, Any]], object]
CELL, HONEST = "cell 1 (digits · fedavg · dlg · server · paper)", "clean run 1 (digits · fedavg)"
POISON = "cell 7 (digits · fedavg · sign-flip · client · paper · own)"


def cell(i: int = 0, **changes: Any) -> Tamper:
    return lambda b: b["cells"][i].update(changes)


def honest(**changes: Any) -> Tamper:
    return lambda b: b["honest"][0].update(changes)


def arena(**changes: Any) -> Tamper:
    return lambda b: b["arenas"][0].update(changes)


def whole(**changes: Any) -> Tamper:
    return lambda b: b.update(changes)


def without(name: str, field: str) -> Tamper:
    return lambda b: b[name][0].pop(field)


OK = {"0": "ok", "1": "ok", "2": "ok"}
DAMAGE: list[tuple[Tamper, str]] = [
    # what a field is
    (cell(scores={"0": -4.0}), f"{CELL}: scores.0 is -4.0, which is not a number in [0, 1]"),
    (cell(scores={"0": "x"}), f'{CELL}: scores.0 is "x", which is not a number in [0, 1]'),
    (cell(scores={"0": None}), f"{CELL}: scores.0 is null, which is not a number in [0, 1]"),
    (cell(scores={"0": True}), f"{CELL}: scores.0 is true, which is not a number in [0, 1]"),
    (cell(scores={"0": 10**400}), f"{CELL}: scores.0 is 1{'0' * 39}…, which is not a number in [0, 1]"),
    (cell(scores={"x0": 0.5}), f'{CELL}: scores is of seed "x0", which is no whole number'),
    (cell(scores={"00": 0.5}), f'{CELL}: scores is of seed "00", which is no whole number'),
    (cell(scores=[0.5]), f"{CELL}: scores is a list, which is not a table"),
    (cell(metrics={"recovered": {"0": None}}), f"{CELL}: metrics.recovered.0 is null, which is not a number"),
    (cell(axis="banana"), f'{CELL}: axis is "banana", allowed: privacy, integrity'),
    (cell(goal="model"), f'{CELL}: goal is "model", allowed: nothing, reconstruction, membership'),
    (
        cell(party="nobody"),
        'cell 1 (digits · fedavg · dlg · nobody · paper): party is "nobody", allowed: server, client',
    ),
    (cell(form=""), 'cell 1 (digits · fedavg · dlg · server): form is "", allowed: paper, adaptive'),
    (cell(knows="all"), f'{CELL[:-1]} · all): knows is "all", allowed: nothing, none, own, omniscient'),
    (cell(status="weird"), f'{CELL}: status is "weird", allowed: ok, n/a, mixed, diverged'),
    (cell(statuses={**OK, "1": "weird"}), f'{CELL}: statuses.1 is "weird", allowed: ok, n/a, mixed'),
    (cell(curve=[[1]]), f"{CELL}: curve[0] is a list, which is not a list of two numbers"),
    (cell(counts=1), f"{CELL}: counts is 1, which is not true or false"),
    (cell(versions={"attack": 1.5}), f"{CELL}: versions.attack is 1.5, which is not a whole number"),
    (cell(colour="red"), f'{CELL} has "colour", which is not a known field'),
    (without("cells", "defense"), "cell 1 (digits · dlg · server · paper) has no defense"),
    (lambda b: b["cells"].insert(0, None), "cell 1 is null, which is not a table"),
    (honest(bytes_up=-1), f"{HONEST}: bytes_up is -1, which is not a number from 0 on"),
    (honest(bytes_down=-0.5), f"{HONEST}: bytes_down is -0.5, which is not a number from 0 on"),
    (honest(utility={"0": 1.5}), f"{HONEST}: utility.0 is 1.5, which is not a number in [0, 1]"),
    (honest(marks="odd"), f'{HONEST}: marks is "odd", which is not a list'),
    (without("honest", "accuracy"), f"{HONEST} has no accuracy"),
    (arena(chance="0.1"), 'problem 1 (digits): chance is "0.1", which is not a number'),
    (arena(subset=50), "problem 1 (digits): subset is 50, which is not a text"),
    (whole(seeds="012"), 'seeds is "012", which is not a list'),
    (whole(cells={}), "cells is a table, which is not a list"),
    (whole(notes=[1]), "notes[0] is 1, which is not a text"),
    (lambda b: b.pop("cells"), "it has no cells"),
    # what fields are together
    (cell(status="n/a"), f'{CELL}: status is "n/a", and of its seeds it is "ok" (statuses)'),
    (cell(status="mixed"), f'{CELL}: status is "mixed", and of its seeds it is "ok" (statuses)'),
    (cell(statuses={**OK, "1": "failed"}), f'{CELL}: status is "ok", and of its seeds it is "mixed" (statuses)'),
    (cell(statuses={}), f'{CELL}: status is "ok", and of its seeds it is "missing" (statuses)'),
    (
        cell(statuses={**OK, "1": "failed"}, status="mixed"),
        f"{CELL}: scores has seed 1, which is failed (statuses)",
    ),
    (cell(statuses={"0": "ok"}), f"{CELL}: scores has seed 1, which is missing (statuses)"),
    (cell(axis="integrity"), f'{CELL}: axis is "integrity", and of one with knows "" it is "privacy"'),
    (cell(6, axis="privacy"), f'{POISON}: axis is "privacy", and of one with knows "own" it is "integrity"'),
    (cell(goal=""), f'{CELL}: goal is "", which no cell of axis privacy has'),
    (cell(6, goal="labels"), f'{POISON}: goal is "labels", which no cell of axis integrity has'),
    (honest(accuracy={}, utility={}), f'{HONEST}: status is "ok", and accuracy has no seed'),
    (honest(utility={"7": 1.0}), f"{HONEST}: utility has seed 7, which accuracy has not"),
    (whole(arenas=[]), f'{CELL}: problem is "digits", which is not among the board\'s arenas'),
    (
        honest(problem="other"),
        'clean run 1 (other · fedavg): problem is "other", which is not among the board\'s arenas',
    ),
    (lambda b: b["cells"].append(b["cells"][0]), "digits · fedavg · dlg · server · paper is there twice"),
    (lambda b: b["honest"].append(b["honest"][0]), "digits · fedavg is there twice"),
    (lambda b: b["arenas"].append(b["arenas"][0]), "digits is there twice"),
    (whole(seeds=[0, 1, 2, 3]), "seeds is 0, 1, 2, 3: seed 3 is in no cell"),
    (whole(seeds=[0, 1, 2, 2]), "seeds has 2 twice"),
    (whole(seeds=[0, 1]), "seeds is 0, 1: seed 2 is in cells, and not there"),
    (whole(seeds=[]), "seeds is none: seed 0 is in cells, and not there"),
]


@pytest.mark.parametrize(("tamper", "why"), DAMAGE, ids=[why for _, why in DAMAGE])
def test_impossible_values_are_refused_with_row_and_field(tamper: Tamper, why: str) -> None:
    board = json.loads(to_json(make_board()))
    tamper(board)
    with pytest.raises(UserError) as found:
        from_json(json.dumps(board), Path("here.json"))
    assert str(found.value).startswith(f"here.json is damaged: {why}")
    assert "\n" not in str(found.value)
    assert not re.search(r"Error|object|NoneType|literal", str(found.value))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"board": true}', "is a board of layout true, allowed: 1"),
        ('{"board": "1"}', 'is a board of layout "1", allowed: 1'),
        ('{"board": 1.0}', "is a board of layout 1.0, allowed: 1"),
        ("[" * 100_000, "is damaged: its lists and tables are nested too deeply"),
        ('{"board": 1,', "is damaged: it is no JSON from line 1, column 13 on"),
        ('{"board": 1, "suite": NaN}', "is damaged: it holds NaN, which is no number"),
    ],
)
def test_a_file_of_another_layout_is_refused(content: str, why: str) -> None:
    with pytest.raises(UserError) as found:
        from_json(content, Path("here.json"))
    assert str(found.value).startswith(f"here.json {why}")


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*/board.json")), ids=lambda path: path.parent.name)
def test_published_boards_can_be_read(path: Path) -> None:
    assert from_json(path.read_text(encoding="utf-8"), path).cells
