"""The package's own suites: they can be planned, and the smoke suite has every method of the package."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from fedarena import goals
from fedarena.federation import compose
from fedarena.runs.suite.plan import make_plan
from fedarena.runs.suite.suite import Matrix, load, names
from fedarena.runs.suite.trials import trials_of

METHODS = [
    (kind, name)
    for kind, package in (
        ("defense", "defenses"),
        ("defense", "defenses.aggregators"),
        ("defense", "defenses.secure"),
        ("attack", "attacks"),
    )
    for name in import_module(f"fedarena.{package}").CARDS
]


def parts(matrix: Matrix, kind: str) -> set[str]:
    cards, texts = (
        (compose.defense_cards, matrix.defenses) if kind == "defense" else (compose.attack_cards, matrix.attacks)
    )
    return {card.name for text in texts for card in cards(text)}


def is_after_data(attack: str) -> bool:
    goal = compose.attack_cards(attack)[0].goal
    return goal != "poisoning" and goals.recorded(goal).of_data


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_the_smoke_suite_has_every_method(kind: str, name: str) -> None:
    assert any(name in parts(matrix, kind) for matrix in load("smoke").matrices), (
        f"add {name} to bench/suites/smoke.toml"
    )


def test_nothing_of_the_smoke_suite_is_refused_but_what_is_known(tmp_path: Path) -> None:
    plan = make_plan(load("smoke"), (0,), None, trials_of(load("smoke"), (0,)))
    assert [(t.defense, t.attack) for t in plan.trials if t.refused] == []
    assert len({t.key for t in plan.trials}) == len(plan.trials)


@pytest.mark.parametrize("name", names())
def test_every_suite_has_its_trials(name: str) -> None:
    suite = load(name)
    trials = trials_of(suite, suite.seeds[:1])
    assert len({t.name for t in trials}) == len(trials) > 10
    assert {t.problem for t in trials} == set(suite.problems)


@pytest.mark.parametrize("name", ["smoke", "digits", "iid", "heterogeneous", "graph"])
def test_privacy_is_attacked_on_each_federation_that_counts_as_utility(name: str) -> None:
    """Else a defense could send nothing where it is attacked, and be useful elsewhere."""
    suite = load(name)
    counting = [m for m in suite.matrices if m.counts]
    private = {m.problem for m in counting for a in m.attacks if is_after_data(a)}
    assert {m.problem for m in counting if suite.problems[m.problem].utility} <= private


@pytest.mark.parametrize("name", ["smoke", "digits", "iid", "heterogeneous", "graph"])
def test_every_ranked_defense_meets_every_counted_attack(name: str) -> None:
    """Else it would have no rank."""
    assert len({frozenset(m.defenses) for m in load(name).matrices if m.counts}) == 1
