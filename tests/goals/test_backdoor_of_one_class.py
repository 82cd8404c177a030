"""A backdoor where all held-out samples are of its target's class: it has no result, and simulations go by accuracy."""

from __future__ import annotations

from dataclasses import replace

from helpers.poisoning import problem as small_problem

from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of
from fedarena.federation.replay import NO_REPLAYS
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.federation.triggered_inputs import success_rate, triggered_inputs, why_not_judged
from fedarena.federation.tuning import tune
from fedarena.goals.poisoned_run import poisoned_record
from fedarena.problem.problem import Problem
from fedarena.problem.spec import ProblemSpec

TARGET = 3


def judged_on(classes: list[int]) -> Problem:
    """The small federation with held-out samples of these classes alone."""
    problem = small_problem()
    kept = sum(problem.y_test == k for k in classes).bool()
    return replace(problem, x_test=problem.x_test[kept], y_test=problem.y_test[kept])


def of_one_class() -> Problem:
    """The small federation, whose corrupted clients hold samples of the target's class alone."""
    problem = small_problem()
    members = (problem.y == TARGET).nonzero().flatten()
    shards = tuple(members[:20] if c in problem.corrupted else s for c, s in enumerate(problem.shards))
    return replace(problem, shards=shards)


def trigger(**options: str) -> MethodSpec:
    return compose.parse_attack("pixel-trigger", {"target": str(TARGET), **options})


def test_a_record_says_that_no_other_class_is_held_out() -> None:
    problem = judged_on([TARGET])
    defense = compose.make_defense(compose.parse_defense("fedavg"), problem.task)
    spec = GroupSpec(
        ProblemSpec("digits", model="mlp", partition="iid", clients=10, corrupted=3, schedule=problem.task.schedule),
        defense=compose.parse_defense("fedavg"),
        attack=trigger(),
        threats=(Threat("client", "paper", knows="own"),),
        seed=0,
    )
    record = poisoned_record(spec, problem, defense, NO_REPLAYS, lambda share, text: None)
    assert record["status"] == "n/a"
    assert record["reason"] == "all held-out samples are of the target's class 3: none shows the backdoor"


def test_a_single_sample_of_another_class_is_enough() -> None:
    for classes, applies in (([TARGET], False), ([TARGET, 4], True), ([4], True)):
        problem = judged_on(classes)
        defense = compose.make_defense(compose.parse_defense("fedavg"), problem.task)
        attack = compose.make_poisoning(trigger(), knowledge_of(problem, defense, "own"))
        assert (why_not_judged(triggered_inputs(attack, problem)) is None) == applies
        assert (
            "attack_success_rate" in success_rate(triggered_inputs(attack, problem), problem, [problem.init])
        ) == applies


def test_an_attacker_with_one_class_tunes_by_accuracy() -> None:
    problem = of_one_class()
    defense = compose.make_defense(compose.parse_defense("fedavg"), problem.task)
    knowledge = knowledge_of(problem, defense, "own")
    assert set(knowledge.data.y.tolist()) == {TARGET}
    _, report = tune(trigger(tune="2", tune_rounds="2"), knowledge, Rng(4))
    assert len(report["tried"]) == 2
    assert all(0 <= harm <= 1 for _, harm in report["tried"])
