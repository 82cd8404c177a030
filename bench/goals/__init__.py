"""Goals: what attacks are after, one a file.

An inference attack names its goal (`Inference.goal`), which is in the file of that name. A poisoning attack names none:
its goal is `fedarena.goals.integrity`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from fedarena.core.card import import_target
from fedarena.core.method_caches import method_cache

if TYPE_CHECKING:
    from fedarena.contracts.inference import GoalName
    from fedarena.federation.spec import MethodSpec
    from fedarena.goals.goal import Goal
    from fedarena.goals.inference_goal import InferenceGoal
    from fedarena.records.schema import Record

INTEGRITY = "integrity"


@cache
def find(name: GoalName) -> InferenceGoal:
    """The goal that inference attacks call by that name (`fedarena.contracts.inference.GoalName` lists them)."""
    goal: InferenceGoal = _load(name)
    return goal


@method_cache
def of_attack(attack: MethodSpec) -> Goal:
    """The goal of an attack. Raises UserError for a chain of attacks that is impossible."""
    from fedarena.contracts.poisoning import Poisoning
    from fedarena.federation import compose

    method = compose.attack_class(attack)
    return recorded("" if issubclass(method, Poisoning) else method.goal)


def recorded(name: str) -> Goal:
    """The goal that the record of an attack names. The record of a poisoned run names none.

    Raises:
        KeyError: there is no goal of that name.
    """
    from fedarena.contracts.goal_names import GOAL_NAMES

    if name not in ("", *GOAL_NAMES):
        raise KeyError(name)
    goal: Goal = _load(name or INTEGRITY)
    return goal


@cache
def _load(name: str) -> Any:
    return import_target(f"fedarena.goals.{name.replace('-', '_')}:GOAL", f"goal '{name}'")


def of_record(record: Record) -> Goal | None:
    """The goal of a record's attack; None for a run without an attack."""
    return None if record["attack"] == "none" else recorded(record["goal"])
