"""A suite → its trials, as specs that the engine runs. Loads the methods, but trains nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedarena import goals
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Poisoning
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.options import check_acting
from fedarena.core.threat import FORMS, Form, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.goal import Goal
from fedarena.problem.defaults import usual_problem
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.shared_training import references
from fedarena.runs.suite.suite import Matrix, Suite


@dataclass(frozen=True)
class Trial:
    """One trial of a suite.

    Attributes:
        problem: the suite's name for it.
        spec: what is run, with one threat, or none where everybody is honest.
        shown: whether it is a cell of the board; others are there only because something is measured against them.
        counts: whether it counts in scores and ranks.
    """

    problem: str
    spec: GroupSpec
    shown: bool
    counts: bool = True

    @property
    def threat(self) -> Threat | None:
        """Who attacks."""
        return self.spec.threats[0] if self.spec.threats else None

    @property
    def name(self) -> tuple[str, ...]:
        """By which it is found in a plan that was made before."""
        t, spec = self.threat, self.spec
        who = (t.party, t.form, t.knows or "") if t else ("", "", "")
        probe = compose.trigger_of(spec.probe)
        what = spec.attack.label if spec.attack else f"probe {probe.label}" if probe else ""
        law = hashlib.sha256(repr(spec.problem).encode()).hexdigest()[:8]
        return (self.problem, law, spec.defense.label, what, *who, str(spec.seed))


def trials_of(suite: Suite, seeds: Sequence[int], data_dir: Path | None = None) -> list[Trial]:
    """Every trial once, references included, seed by seed. Raises UserError."""
    _check_names(suite)
    _check_threats(suite)
    found: dict[tuple[str, ...], Trial] = {}
    for seed in seeds:
        for matrix in suite.matrices:
            for trial in _of_matrix(suite, matrix, seed, data_dir):
                known = found.get(trial.name)
                if known is None or (trial.shown, trial.counts) > (known.shown, known.counts):
                    found[trial.name] = trial
    return list(found.values())


def _of_matrix(suite: Suite, matrix: Matrix, seed: int, data_dir: Path | None) -> Iterator[Trial]:
    attacks = [_attack(suite, text) for text in matrix.attacks]
    for text in dict.fromkeys((compose.PLAIN, *matrix.defenses)):
        defense = _defense(suite, text)
        shown = text in matrix.defenses
        problem = _problem(suite, matrix.problem, defense.name)

        def spec(
            method: MethodSpec,
            attack: MethodSpec | None = None,
            threat: Threat | None = None,
            probe: MethodSpec | None = None,
            problem: ProblemSpec = problem,
        ) -> GroupSpec:
            whom = () if threat is None else (threat,)
            return GroupSpec(problem, method, attack, whom, seed, data_dir=data_dir, probe=probe)

        plain = MethodSpec(compose.PLAIN)
        yield Trial(matrix.problem, spec(plain), problem == _problem(suite, matrix.problem, compose.PLAIN))
        yield Trial(matrix.problem, spec(defense), shown)
        if not shown:
            continue
        for attack, made in attacks:
            if issubclass(made, Poisoning):
                if compose.trigger_of(attack):
                    yield Trial(matrix.problem, spec(defense, probe=attack), False)
                form: Form = "adaptive" if _is_adaptive(attack) else "paper"
                if matrix.forms and form not in matrix.forms:
                    continue
                for knows in compose.knowledge_levels(attack):
                    if not matrix.knows or knows in matrix.knows:
                        yield Trial(
                            matrix.problem,
                            spec(defense, attack, Threat("client", form, knows=knows)),
                            True,
                            matrix.counts,
                        )
                continue
            goal = goals.find(made.goal)
            forms = FORMS if defense != plain else (goal.undefended,)
            for party in goal.parties:
                for form in forms:
                    if matrix.parties and party not in matrix.parties:
                        continue
                    if matrix.forms and form not in matrix.forms and defense != plain:
                        continue
                    one = Trial(matrix.problem, spec(defense, attack, Threat(party, form)), True, matrix.counts)
                    # An experiment that says what clients work on has a FedAvg of its own.
                    if references(one.spec)[1].under is not None and defense != plain:
                        yield Trial(matrix.problem, spec(plain, attack, Threat(party, goal.undefended)), False)
                    yield one


def _check_names(suite: Suite) -> None:
    """Options of methods that take part nowhere act on nothing. Raises UserError."""
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
    """An attack of which a matrix's parties, forms and knowledge leave nothing would be listed and never run. Raises
    UserError."""
    for i, matrix in enumerate(suite.matrices, 1):
        for text in matrix.attacks:
            spec, made = _attack(suite, text)
            allowed: dict[str, tuple[str, ...]]
            if issubclass(made, Poisoning):
                form = "adaptive" if _is_adaptive(spec) else "paper"
                allowed = {"forms": (form,), "knows": compose.knowledge_levels(spec)}
            else:
                allowed = {"parties": goals.find(made.goal).parties}
            for name, words in allowed.items():
                asked = getattr(matrix, name)
                if asked and not set(asked) & set(words):
                    raise UserError(
                        f"suite {suite.name}: matrix {i}: {name} is {', '.join(asked)}, of which {spec.label} has "
                        f"none: it has {', '.join(words)}"
                    )
            if not issubclass(made, Poisoning):
                goal = goals.find(made.goal)
                parties = [p for p in goal.parties if not matrix.parties or p in matrix.parties]
                owner = f"suite {suite.name}: matrix {i}: attack {spec.name}"
                check_acting(spec.options, owner, parties, _forms(suite, matrix, goal))


def _forms(suite: Suite, matrix: Matrix, goal: Goal) -> list[Form]:
    """In which an attack that reads is run on a matrix's defenses."""
    plain = [_defense(suite, text) == MethodSpec(compose.PLAIN) for text in matrix.defenses]
    asked = {form for form in FORMS if not matrix.forms or form in matrix.forms} if not all(plain) else set()
    return [form for form in FORMS if form in asked or (any(plain) and form == goal.undefended)]


def _defense(suite: Suite, text: str) -> MethodSpec:
    return compose.parse(compose.defense_cards(text), {}, suite.methods)


def _attack(suite: Suite, text: str) -> tuple[MethodSpec, type[Inference] | type[Poisoning]]:
    spec = compose.parse(compose.attack_cards(text), {}, suite.methods)
    return spec, compose.attack_class(spec)


def _is_adaptive(attack: MethodSpec) -> bool:
    return any(registry.find("attack", part.name).form == "adaptive" for part in (attack, *attack.rest))


def _problem(suite: Suite, name: str, protocol: str) -> ProblemSpec:
    """The problem as a protocol needs it."""
    table = suite.problems[name]
    changed = suite.training.get(protocol, {})
    settings = {**table.settings, "training": {**table.settings.get("training", {}), **changed}}
    return usual_problem(table.said, settings)
