"""Which trials will most likely be n/a, before anything is measured.

Two rounds are really played, and for every attack it is checked whether it could start from what its party saw.

This is a forecast: a whole run may differ, and a reason that a method notices only while it works (such as too large a
batch) is not seen here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedarena import goals
from fedarena.contracts.defense import Defense
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.rounds import Run
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.suite.trials import Trial

ROUNDS = 2

Name = tuple[str, ...]


def expected(
    trials: Sequence[Trial], progress: Callable[[float, str], object] = lambda share, text: None
) -> dict[Name, str]:
    """Trial name → reason, for trials that could not start after two rounds of their first seed."""
    attacked: dict[tuple[ProblemSpec, MethodSpec], dict[Name, Trial]] = {}
    for trial in trials:
        if trial.spec.attack is not None:
            of_defense = attacked.setdefault((trial.spec.problem, trial.spec.defense), {})
            of_defense.setdefault(trial.name[:-1], trial)
    reasons: dict[Name, str] = {}
    for i, ((_, defense), by_name) in enumerate(attacked.items()):
        reasons |= _of_defense(list(by_name.values()))
        progress((i + 1) / len(attacked), defense.label)
    return {trial.name: reasons[trial.name[:-1]] for trial in trials if trial.name[:-1] in reasons}


def _of_defense(trials: Sequence[Trial]) -> dict[Name, str]:
    """The same for the attacks on one defense, by name without the seed."""
    spec = trials[0].spec
    reasons: dict[Name, str] = {}
    try:
        problem = build(spec.problem, spec.root, spec.data_dir, spec.device, compose.auxiliary(spec.defense))
        protocol = compose.make_defense(spec.defense, problem.task)  # planned for the whole schedule
        run = _played(problem, protocol, spec.root)
    except UserError:  # the plan lists it as refused
        return {}
    for trial in trials:
        try:
            why = _why_not(trial, problem, protocol, run)
        except Exception:  # a method that cannot be checked in advance: there is no forecast for it
            continue
        if why:
            reasons[trial.name[:-1]] = why
    return reasons


def _played(problem: Problem, protocol: Defense, seed: int) -> Run:
    short = replace(problem.task.schedule, rounds=min(ROUNDS, problem.task.schedule.rounds), eval_every=0)
    brief = replace(problem, task=replace(problem.task, schedule=short))
    return federation.run(protocol, brief, Rng(seed).child("federation"), watch=range(ROUNDS))


def _why_not(trial: Trial, problem: Problem, protocol: Defense, run: Run) -> str:
    threat, attack = trial.threat, trial.spec.attack
    assert threat is not None
    assert attack is not None
    return goals.of_attack(attack).why_not(threat, attack, problem, protocol, run)
