"""Which trials can read one training run, and which runs they are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fedarena import goals
from fedarena.contracts.poisoning import Poisoning
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.goal import Goal
from fedarena.problem.spec import ProblemSpec


@dataclass(frozen=True)
class Training:
    """A training run, as far as its result follows from it. Groups that have the same one share it.

    Attributes:
        problem, defense, seed, device, data_dir: as in `GroupSpec`.
        under: the attack that takes part in it, or that says what clients work on; None where all do as always.
        knows: what corrupted clients know.
        probe: the backdoor that the finished model is tried with, of references only.
    """

    problem: ProblemSpec
    defense: MethodSpec
    seed: int
    device: str
    data_dir: Path | None
    under: MethodSpec | None = None
    knows: str = ""
    probe: MethodSpec | None = None


def training_of(spec: GroupSpec) -> Training:
    """The run that a group reads, without a probe: the same run serves all."""
    knows = spec.threats[0].knows or "" if poisons(spec) else ""
    under = spec.attack if knows or _draws(spec.attack) else None
    return Training(spec.problem, spec.defense, spec.seed, spec.device, spec.data_dir, under, knows)


def poisons(spec: GroupSpec) -> bool:
    """Whether corrupted clients take part."""
    return spec.attack is not None and _poisoning(spec.attack)


def given_by(spec: GroupSpec) -> list[Training]:
    """For which runs a group's record can stand as the reference; none for poisoned ones."""
    if poisons(spec):
        return []
    run, probe = training_of(spec), compose.trigger_of(spec.probe)
    return [run] if probe is None else [run, replace(run, probe=probe)]


def references(spec: GroupSpec) -> tuple[Training, Training]:
    """What a group is measured against: its own defense's run that nobody poisons, and FedAvg's."""
    run = training_of(spec)
    plain = replace(run, defense=MethodSpec(compose.PLAIN))
    if not poisons(spec):
        return run, plain
    own = replace(run, under=None, knows="", probe=compose.trigger_of(spec.attack))
    return own, replace(plain, under=None, knows="")


def shared(groups: Sequence[GroupSpec]) -> list[list[int]]:
    """Indices of the groups that read one run each, in the order in which runs first come."""
    found: dict[object, list[int]] = {}
    for i, group in enumerate(groups):
        # A poisoned run has one reader; the same one asked for twice is run twice.
        found.setdefault(i if poisons(group) else training_of(group), []).append(i)
    return list(found.values())


@cache
def _poisoning(attack: MethodSpec) -> bool:
    return issubclass(compose.attack_class(attack), Poisoning)


@cache
def _draws(attack: MethodSpec | None) -> bool:
    """Whether the attack's experiment says what clients work on."""
    if attack is None or _poisoning(attack):
        return False
    goal = goals.find(compose.attack_class(attack).goal)  # type: ignore[union-attr]
    return type(goal).draws is not Goal.draws
