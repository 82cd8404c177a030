"""Integrity: how much of the trained model's quality is left when corrupted clients poison the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.peers import Peers
from fedarena.core import registry
from fedarena.core.errors import ToldByProcess
from fedarena.core.threat import KNOWLEDGE_MEANING, Form, Threat
from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of, require_corrupted, why_not
from fedarena.federation.spec import GroupSpec, MethodSpec, Training, training_under
from fedarena.federation.triggered_inputs import triggered_inputs, why_not_judged
from fedarena.goals import integrity_table
from fedarena.goals.goal import Axis, Choices, Goal, PartyFacts, Progress, wanted_of, without_attack
from fedarena.goals.metrics.gain import floor_of, worthwhile
from fedarena.goals.metrics.harm import damage, score
from fedarena.goals.poisoned_run import poisoned_record
from fedarena.goals.prepared import CompleteRecord

if TYPE_CHECKING:
    from fedarena.federation.replay import Replays
    from fedarena.federation.rounds import Run
    from fedarena.goals.pairing_table import Figure, PairingTable
    from fedarena.problem.problem import Problem
    from fedarena.problem.spec import ProblemSpec
    from fedarena.records.results import GroupResult
    from fedarena.records.schema import Record

CORRUPTED = "acts as corrupted clients: see --knows"


class Integrity(Goal):
    """The goal of poisoning attacks. A poisoned run has one threat, and no other attack reads it."""

    axis: ClassVar[Axis] = "integrity"
    idle_options: ClassVar[Mapping[str, str]] = {"party": CORRUPTED, "form": CORRUPTED}

    def choices(self, attack: MethodSpec) -> Choices:
        """The form follows from the attack: it is adaptive if one of its parts is."""
        parts = [registry.find("attack", part.name) for part in (attack, *attack.rest)]
        form: Form = "adaptive" if any(card.form == "adaptive" for card in parts) else "paper"
        return Choices(forms=(form,), knows=compose.knowledge_levels(attack))

    def threats(self, attack: MethodSpec, wanted: Choices) -> tuple[Threat, ...]:
        possible = self.choices(attack)
        forms, levels = wanted_of(possible.forms, wanted.forms), wanted_of(possible.knows, wanted.knows)
        return tuple(Threat("client", form, knows=level) for form in forms for level in levels)

    def check_options(self, attack: MethodSpec, owner: str, threats: Sequence[Threat]) -> None:
        """Every option acts on every threat."""

    def require_runnable(self, spec: ProblemSpec, problem: Problem, protocol: Defense, attack: MethodSpec) -> None:
        self.require_attackers(spec, attack)
        with suppress(ToldByProcess):  # an attack that breaks fails its own trials, which say why
            compose.make_poisoning(attack, knowledge_of(problem, protocol, "own"))

    def require_attackers(self, spec: ProblemSpec, attack: MethodSpec) -> None:
        require_corrupted(spec.corrupted, attack.label)

    def groups(self, spec: GroupSpec, threats: tuple[Threat, ...]) -> list[GroupSpec]:
        return [replace(spec, threats=(threat,)) for threat in threats]

    def clean_runs(self, spec: GroupSpec) -> list[GroupSpec]:
        return [without_attack(spec, spec.attack)]

    def references_beside(self, spec: GroupSpec) -> list[GroupSpec]:
        """The clean run that a backdoor's trigger is tried on."""
        return [without_attack(spec, spec.attack)] if compose.trigger_of(spec.attack) else []

    def training(self, spec: GroupSpec) -> Training:
        return training_under(spec, spec.attack, spec.threats[0].knows or "")

    def references(self, spec: GroupSpec) -> tuple[Training, Training]:
        clean = replace(training_under(spec), alone=True)
        return replace(clean, probe=compose.trigger_of(spec.attack)), replace(clean, defense=MethodSpec(BASELINE))

    def play(
        self, spec: GroupSpec, problem: Problem, defense: Defense, replays: Replays, progress: Progress
    ) -> list[CompleteRecord] | None:
        record = poisoned_record(spec, problem, defense, replays, progress)
        return [CompleteRecord(spec, threat, record) for threat in spec.threats]

    def scores(self, metrics: Mapping[str, float], utility: Mapping[str, Any]) -> dict[str, float]:
        """The score integrity (`fedarena.goals.metrics.harm.score`)."""
        base = metrics.get("clean_success_rate", 0.0)
        return score(metrics, utility["clean_accuracy"], floor_of(utility), base, worthwhile(utility))

    def add_reference(self, record: Record, own: Record) -> None:
        """Fill in the clean run's accuracy, the damage done to it, and the score."""
        utility, metrics = record["utility"], record["metrics"]
        utility["clean_accuracy"] = own["utility"]["clean_accuracy"]
        utility["clean_curve"] = own["utility"]["clean_curve"]
        if record["status"] != "ok":
            return
        attacked = record["attacked"]
        metrics |= damage(attacked["curve"], utility["clean_curve"], attacked.get("begins", 0), floor_of(utility))
        if "attack_success_rate" in metrics:
            metrics["clean_success_rate"] = own["metrics"].get("attack_success_rate", 0.0)
            ends = {end: own["metrics"].get(f"attack_success_rate_{end}") for end in ("low", "high")}
            metrics |= {f"clean_success_rate_{end}": value for end, value in ends.items() if value is not None}
        record["scores"] = self.scores(metrics, utility)

    def why_not(self, threat: Threat, attack: MethodSpec, problem: Problem, protocol: Defense, run: Run) -> str:
        poisoning = compose.make_poisoning(attack, knowledge_of(problem, protocol, threat.knows or "own"))
        reason = why_not(poisoning) or why_not_judged(triggered_inputs(poisoning, problem))
        return reason.reason if reason else ""

    def explain(self, problem: Problem, protocol: Defense, run: Run, attack: MethodSpec) -> list[PartyFacts]:
        """One row for each level of knowledge: what the harness would hand over to the corrupted clients."""
        rows = []
        shared = f", {n:,} of which honest clients hold, too" if (n := _shared(problem)) else ""
        for level in compose.knowledge_levels(attack):
            knowledge = knowledge_of(problem, protocol, level)
            poisoning = compose.make_poisoning(attack, knowledge)
            reason = why_not(poisoning) or why_not_judged(triggered_inputs(poisoning, problem))
            pool = f"{len(knowledge.data.y):,} samples of {knowledge.corrupted} corrupted clients, pooled{shared}"
            received, honest = _received(protocol, knowledge.clients - knowledge.corrupted)
            given = [received] if level == "none" else [pool, received]
            if poisoning.follows:
                given.append("what the protocol would have them send")
            if level == "omniscient":
                given.append(honest)
            if not poisoning.sends:
                given.append("it changes what they train on, and then follows the protocol")
            who = f"{knowledge.corrupted} corrupted clients of {knowledge.clients}"
            text = f"n/a: {reason.reason}" if reason else "\n".join(given)
            rows.append(PartyFacts(who, level, KNOWLEDGE_MEANING[level], text))
        return rows

    def table(self, records: Sequence[Record], defense: str, attack: str) -> PairingTable:
        return integrity_table.pairing_table(records, defense, attack)

    def figure(self, results: Sequence[GroupResult], defense: str, attack: str) -> Figure | None:
        records = [record for result in results for record in result.records]
        return integrity_table.accuracy_figure(records, defense, attack)


def _received(protocol: Defense, honest: int) -> tuple[str, str]:
    """What corrupted clients get in a round, and what omniscient ones know of the honest clients' uploads."""
    if isinstance(protocol, Peers):
        return "the models of the honest neighbours", "what honest neighbours of these send them in the round"
    return "the broadcast", f"{honest} honest uploads of the round"


def _shared(problem: Problem) -> int:
    """How many of the corrupted clients' samples honest clients hold as well."""
    honest = {i for c, s in enumerate(problem.shards) if c not in problem.corrupted for i in s.tolist()}
    return sum(i in honest for c in problem.corrupted for i in problem.shards[c].tolist())


GOAL = Integrity()
