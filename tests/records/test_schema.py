"""The schema of a record: every field is described, and the checks of a file follow from the types."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints, is_typeddict

import pytest

from fedarena.records import schema
from fedarena.records.json_schema import MAY_LACK, parts_of
from fedarena.records.schema import RECORD, VOLATILE, Record
from fedarena.records.upgrade import upgrade

FILE = Path(__file__).parent / "files" / "0043805be569f1d2788a.json"


@pytest.fixture
def record() -> dict[str, Any]:
    """A record of a poisoned run, as an earlier version of the package wrote it, in the present schema."""
    return upgrade(json.loads(FILE.read_text()))


def test_every_field_of_the_schema_is_described() -> None:
    for table in ast.parse(inspect.getsource(schema)).body:
        if not isinstance(table, ast.ClassDef):
            continue
        for field, after in zip(table.body, [*table.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign):
                described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                assert described, f"{table.name}.{ast.unparse(field.target)}"


def needed(table: Any = Record, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all fields that a file must have."""
    for name, hint in get_type_hints(table, include_extras=True).items():
        value, notes = parts_of(hint)
        if MAY_LACK in notes:
            continue
        if table.__total__:
            yield (*path, name)
        if is_typeddict(value):
            yield from needed(value, (*path, name))


@pytest.mark.parametrize("path", list(needed()), ids=".".join)
def test_a_field_that_is_missing_or_wrong_is_named(path: tuple[str, ...], record: dict[str, Any]) -> None:
    RECORD(record, "")
    odd, without = copy.deepcopy(record), copy.deepcopy(record)
    for changed in (odd, without):
        table = changed
        for name in path[:-1]:
            table = table[name]
        if changed is odd:
            table[path[-1]] = [[[]]]
        else:
            del table[path[-1]]
    with pytest.raises(ValueError, match=rf"^{re.escape('.'.join(path))}\b"):
        RECORD(odd, "")
    with pytest.raises(ValueError, match=f"has no {path[-1]}$"):
        RECORD(without, "")


def test_two_runs_may_differ_in_time_and_place_alone() -> None:
    assert set(VOLATILE) == {"cost.seconds", "cost.attack_seconds", "cost.relative_seconds", "environment", "sum"}
