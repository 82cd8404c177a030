"""A plan.json of wrong types, and suites that are nested too deeply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedarena.core.errors import UserError
from fedarena.runs.suite import plan as plans
from fedarena.runs.suite.plan import Plan, Planned, read_plan, write_plan
from fedarena.runs.suite.suite import parse

TRIAL = Planned(
    name=("digits", "fedavg", "dlg"),
    key="k",
    problem="digits",
    defense="fedavg",
    attack="dlg",
    party="outsider",
    form="paper",
    knows="",
    goal="reconstruction",
    seed=0,
    shown=True,
    counts=True,
)
PLAN = Plan(
    suite="play",
    title="Play",
    about="",
    digest="d",
    seeds=(0,),
    problems={"digits": {"dataset": "digits"}},
    aside=(),
    trials=(TRIAL,),
)
WRONG = [True, -1, 1.5, None, [], {}, [{}], [None], {"a": 1}, 10**400]


def changed(folder: Path, path: tuple[str | int, ...], value: Any) -> Path:
    """A folder whose plan has another value in one place."""
    write_plan(PLAN, folder)
    content = json.loads((folder / "plan.json").read_text())
    *parents, last = path
    node = content
    for name in parents:
        node = node[name]
    node[last] = value
    (folder / "plan.json").write_text(json.dumps(content))
    return folder


def test_the_plan_itself_is_read(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path)
    assert read_plan(tmp_path) == PLAN


@pytest.mark.parametrize("field", [name for name in TRIAL.__dataclass_fields__ if name not in ("shown", "counts")])
def test_a_trial_of_wrong_types_makes_a_damaged_plan(field: str, tmp_path: Path) -> None:
    right = {"seed": [-1, 10**400], "name": [[]]}.get(field, [])
    for value in (wrong for wrong in WRONG if wrong not in right):
        assert read_plan(changed(tmp_path, ("trials", 0, field), value)) is None, value


@pytest.mark.parametrize("field", ["suite", "title", "about", "digest", "seeds", "problems", "aside", "trials"])
def test_a_plan_of_wrong_types_is_damaged(field: str, tmp_path: Path) -> None:
    right = {"seeds": [[]], "aside": [[]], "trials": [[]], "problems": [{}, {"a": 1}]}.get(field, [])
    for value in (wrong for wrong in WRONG if wrong not in right):
        assert read_plan(changed(tmp_path, (field,), value)) is None, value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("goal", "\ud800"), ("goal", "1.5"), ("party", "x"), ("form", "x"), ("knows", "x"), ("shown", 1)),
        *(("party", ""), ("form", "")),
    ],
)
def test_a_word_that_no_plan_has_makes_it_damaged(field: str, value: Any, tmp_path: Path) -> None:
    assert read_plan(changed(tmp_path, ("trials", 0, field), value)) is None


def test_the_checks_know_every_field() -> None:
    write = {"name", *(f for f in TRIAL.__dataclass_fields__)}
    plans.TRIAL({**{f: getattr(TRIAL, f) for f in write}, "name": ["a"]}, "")
    with pytest.raises(ValueError, match="not a known field"):
        plans.TRIAL({**{f: getattr(TRIAL, f) for f in write}, "name": ["a"], "more": 1}, "")


@pytest.mark.parametrize("text", ["a = " + "[" * 3000 + "]" * 3000, "a = " + "{b = " * 1500 + "1" + "}" * 1500])
def test_a_suite_that_is_nested_too_deeply_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    with pytest.raises(UserError) as told:
        parse(text, path)
    assert str(told.value) == f"{path} cannot be read: its lists and tables are nested too deeply"
