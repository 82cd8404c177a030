"""Trains and judges a run in which corrupted clients take part."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.contracts.defense import Defense
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning
from fedarena.core.errors import UserError, describe
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, finite
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of, why_not
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.integrity import by_round, means_over_rounds, shares
from fedarena.federation.nodes import node_metrics
from fedarena.federation.one_round import Draw
from fedarena.federation.replay import Replays
from fedarena.federation.spec import GroupSpec
from fedarena.federation.triggered_inputs import TriggeredInputs, success_rate, why_not_judged
from fedarena.federation.tuning import tune
from fedarena.goals.backdoor import inputs_of
from fedarena.goals.goal import Progress
from fedarena.goals.metrics.lifespan import lifespan
from fedarena.goals.metrics.reconstruction import only_finite
from fedarena.problem.problem import Problem
from fedarena.records.record_of import options_of, record_of
from fedarena.records.schema import Record, Status, Tuned


def poisoned_record(
    spec: GroupSpec,
    problem: Problem,
    defense: Defense,
    replays: Replays,
    progress: Progress,
    draw: Draw = lambda t, client: None,
) -> Record:
    """Train and judge one run. If the attack cannot start or breaks, the record says so.

    Args:
        replays: remembers some calls of the defense.
        draw: prescribes the batches of an experiment.
    """
    (threat,) = spec.threats
    # A seed of its own, from which the run's seed cannot be computed back.
    rng = Rng(Rng(spec.root).child("attack").integer())
    try:
        knowledge = knowledge_of(problem, defense, threat.knows or "own")
        assert spec.attack is not None
        triggered = inputs_of(spec.attack, problem, defense)
        if (reason := why_not_judged(triggered)) is not None:
            return _untrained(spec, problem, defense, "n/a", reason.reason)
        attack, tuned = _ready(spec, problem, knowledge, rng, progress)
        if isinstance(attack, NotApplicable):
            return _untrained(spec, problem, defense, "n/a", attack.reason)
        adversary = Adversary(attack, frozenset(problem.corrupted), rng.child("attack"))
        run = federation.run(
            defense,
            problem,
            Rng(spec.root).child("federation"),
            progress=lambda share: progress(share, "training"),
            adversary=adversary,
            draw=draw,
            replays=replays,
            probe=lambda models: _success(triggered, problem, models).get("attack_success_rate"),
        )
        if run.not_replayed:
            return _untrained(spec, problem, defense, "failed", run.not_replayed)
        record = _judged(FinishedRun(spec, problem, defense, run), threat, attack, triggered)
    except UserError:
        raise
    except Exception as error:  # a third party's code; the trial stays in the denominator
        return _untrained(spec, problem, defense, "failed", describe(error))
    record["tuned"] = tuned
    return record


def _ready(
    spec: GroupSpec, problem: Problem, knowledge: AttackerKnowledge, rng: Rng, progress: Progress
) -> tuple[Poisoning | NotApplicable, Tuned]:
    """The attack, tuned if its options ask for it, and the tuning's result.

    In place of the attack it may be why it cannot start.
    """
    assert spec.attack is not None
    attack = compose.make_poisoning(spec.attack, knowledge)
    if (reason := why_not(attack)) is not None:
        return reason, {}
    method, tuned = tune(spec.attack, knowledge, rng.child("tuning"), lambda share: progress(share / 2, "tuning"))
    if not tuned:
        return attack, {}
    attack = compose.make_poisoning(method, knowledge)
    # `options` of the record holds what the user gave, not the tuned strength of the run.
    ran_with = options_of("attack", method)
    chosen = Tuned(options=tuned["options"], tried=tuned["tried"], chosen=tuned["chosen"], ran_with=ran_with)
    return why_not(attack, tuned=True) or attack, chosen


def _untrained(spec: GroupSpec, problem: Problem, defense: Defense, status: Status, reason: str) -> Record:
    finished = FinishedRun(spec, problem, defense, federation.untrained(problem))
    return record_of(finished, spec.threats[0], "", status, reason)


def _judged(finished: FinishedRun, threat: Threat, attack: Poisoning, triggered: TriggeredInputs | None) -> Record:
    run, problem = finished.run, finished.problem
    # A model that the attack made overflow is a result: it predicts one class.
    reason = "" if run.diverged_at is None else run.why
    rounds = shares(run.verdicts, frozenset(problem.corrupted))
    success = [[p.rounds, round(p.probed, 4)] for p in run.curve if p.probed is not None]
    metrics = {
        "accuracy": run.accuracy,
        **means_over_rounds(rounds),
        **node_metrics(finished),
        **_success(triggered, problem, run.in_use),
        **lifespan(success, attack.ends),
    }
    record = record_of(finished, threat, "", "ok", reason, only_finite(metrics))
    record["attacked"] |= {"by_round": by_round(rounds), "begins": attack.begins, "strengths": attack.strengths}
    record["attacked"]["untuned"] = list(attack.untuned)
    if success:
        record["attacked"]["success"] = success
    if attack.ends is not None:
        record["attacked"]["ends"] = attack.ends
    return record


def _success(triggered: TriggeredInputs | None, problem: Problem, models: Sequence[Tensors]) -> dict[str, float]:
    """How often the trigger succeeds; empty for attacks without one, and where a model overflowed."""
    return success_rate(triggered, problem, models) if all(map(finite, models)) else {}
