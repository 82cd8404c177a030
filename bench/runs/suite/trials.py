"""A suite → its trials, as specs that the engine runs. Loads the methods, but trains nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from fedarena import goals
from fedarena.contracts.baseline import BASELINE
from fedarena.core.errors import UserError
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.goal import Choices
from fedarena.problem.spec import ProblemSpec, usual_problem
from fedarena.runs.suite.suite import Matrix, Suite


@dataclass(frozen=True)
class Trial:
    """One trial of a suite.

    Attributes:
        problem: the name of the problem in the suite.
        spec: what is run, with one threat, or without a threat for a clean run.
        shown: whether it is a cell of the board; other trials are only references.
        counts: whether it counts in scores and ranks.
    """

    problem: str
    spec: GroupSpec
    shown: bool
    counts: bool = True

    @property
    def threat(self) -> Threat | None:
        """The threat; None for a clean run."""
        return self.spec.threats[0] if self.spec.threats else None

    @cached_property
    def name(self) -> tuple[str, ...]:
        """The name by which an existing plan has the trial."""
        t, spec = self.threat, self.spec
        who = (t.party, t.form, t.knows or "") if t else ("", "", "")
        probe = compose.trigger_of(spec.probe)
        what = spec.attack.label if spec.attack else f"probe {probe.label}" if probe else ""
        problem_digest = hashlib.sha256(repr(spec.problem).encode()).hexdigest()[:8]
        return (self.problem, problem_digest, spec.defense.label, what, *who, str(spec.seed))


def has_foreign_attack(suite: Suite) -> bool:
    """Whether an attack of another package takes part."""
    return any(compose.foreign("attack", _attack(suite, text)) for matrix in suite.matrices for text in matrix.attacks)


def trials_of(suite: Suite, seeds: Sequence[int], data_dir: Path | None = None, secret: str = "") -> list[Trial]:
    """Every trial once, including references, seed by seed. Raises UserError."""
    _check_names(suite)
    _check_threats(suite)
    of_one_seed: dict[tuple[str, ...], Trial] = {}
    for matrix in suite.matrices:
        for trial in _of_matrix(suite, matrix, data_dir, secret):
            known = of_one_seed.get(trial.name)
            if known is None or (trial.shown, trial.counts) > (known.shown, known.counts):
                of_one_seed[trial.name] = trial
    return [replace(t, spec=replace(t.spec, seed=seed)) for seed in dict.fromkeys(seeds) for t in of_one_seed.values()]


def _of_matrix(suite: Suite, matrix: Matrix, data_dir: Path | None, secret: str) -> Iterator[Trial]:
    """The trials of a matrix, with seed 0."""
    attacks = [_attack(suite, text) for text in matrix.attacks]
    plain = MethodSpec(BASELINE)
    for text in dict.fromkeys((BASELINE, *matrix.defenses)):
        defense = _defense(suite, text)
        problem = _problem(suite, matrix.problem, defense.name)
        as_it_stands = problem == _problem(suite, matrix.problem, BASELINE)
        calm = GroupSpec(problem, defense=plain, attack=None, threats=(), seed=0, data_dir=data_dir, secret=secret)
        yield Trial(matrix.problem, calm, shown=as_it_stands)
        yield Trial(matrix.problem, replace(calm, defense=defense), shown=text in matrix.defenses)
        if text in matrix.defenses:
            for attack in attacks:
                yield from _attacked(matrix, replace(calm, defense=defense, attack=attack))


def _attacked(matrix: Matrix, spec: GroupSpec) -> Iterator[Trial]:
    """An attack on a defense under each threat of the matrix, each trial after its references."""
    assert spec.attack is not None
    goal = goals.of_attack(spec.attack)
    for threat in _threats(matrix, spec.attack, spec.defense):
        one = replace(spec, threats=(threat,), other_rounds=goal.finds_other_rounds and matrix.counts)
        for reference in goal.references_beside(one):
            yield Trial(matrix.problem, reference, shown=False)
        yield Trial(matrix.problem, one, shown=True, counts=matrix.counts)


def _wanted(matrix: Matrix) -> Choices:
    # The words were checked when the suite was read.
    return Choices(matrix.parties, matrix.forms, matrix.knows)  # type: ignore[arg-type]


def _check_names(suite: Suite) -> None:
    """Refuse options of methods that take part nowhere. Raises UserError."""
    taking_part = {
        card.name
        for matrix in suite.matrices
        for cards in (
            *(compose.defense_cards(text) for text in matrix.defenses),
            *(compose.attack_cards(text) for text in matrix.attacks),
        )
        for card in cards
    }
    protocols = {compose.defense_cards(text)[0].name for matrix in suite.matrices for text in matrix.defenses}
    for name in suite.methods:
        if name not in taking_part:
            raise UserError(f"suite {suite.name}: [methods.{name}] is of no method that takes part")
    for name in suite.training:
        if name not in protocols:
            raise UserError(f"suite {suite.name}: [training.{name}] is of no protocol that takes part")


def _check_threats(suite: Suite) -> None:
    """Refuse an attack for which a matrix's parties, forms and knowledge leave no threat: it would never run.

    Raises UserError.
    """
    for i, matrix in enumerate(suite.matrices, 1):
        wanted = _wanted(matrix)
        for text in matrix.attacks:
            attack = _attack(suite, text)
            goal = goals.of_attack(attack)
            possible = goal.choices(attack)
            for name in ("parties", "forms", "knows"):
                words, having = getattr(wanted, name), getattr(possible, name)
                if words and having and not set(words) & set(having):
                    raise UserError(
                        f"suite {suite.name}: matrix {i}: {name} is {', '.join(words)}, of which {attack.label} has "
                        f"none: it has {', '.join(having)}"
                    )
            played = [t for defense in matrix.defenses for t in _threats(matrix, attack, _defense(suite, defense))]
            goal.check_options(attack, f"suite {suite.name}: matrix {i}: attack {attack.name}", played)


def _threats(matrix: Matrix, attack: MethodSpec, defense: MethodSpec) -> list[Threat]:
    """The threats that an attack poses to one defense of a matrix, in the order of its goal."""
    goal, wanted = goals.of_attack(attack), _wanted(matrix)
    if defense == MethodSpec(BASELINE):
        wanted = goal.undefended_choices(wanted)
    chosen = goal.threats(attack, wanted)
    return [threat for threat in goal.threats(attack, Choices()) if threat in chosen]


def _defense(suite: Suite, text: str) -> MethodSpec:
    return compose.parse(compose.defense_cards(text), {}, suite.methods)


def _attack(suite: Suite, text: str) -> MethodSpec:
    return compose.parse(compose.attack_cards(text), {}, suite.methods)


def _problem(suite: Suite, name: str, protocol: str) -> ProblemSpec:
    """The problem as a protocol needs it."""
    table = suite.problems[name]
    changed = suite.training.get(protocol, {})
    settings = {**table.settings, "training": {**table.settings.get("training", {}), **changed}}
    return usual_problem(table.named, settings)
