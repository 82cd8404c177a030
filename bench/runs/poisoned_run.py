"""A run in which corrupted clients take part, or nobody is corrupted: trained, judged, written down."""

from __future__ import annotations

from collections.abc import Callable

from fedarena.contracts.defense import Defense
from fedarena.contracts.poisoning import Poisoning
from fedarena.core.errors import UserError, describe
from fedarena.core.rng import Rng
from fedarena.core.tensors import finite
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of, why_not
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.integrity import by_round, means_over_rounds, shares, success_rate
from fedarena.federation.spec import GroupSpec
from fedarena.federation.tuning import tune
from fedarena.goals.metrics.reconstruction import only_finite
from fedarena.problem.problem import Problem
from fedarena.records.identity import options_of
from fedarena.records.record_of import record_of
from fedarena.records.schema import Record

Progress = Callable[[float, str], None]


def honest(finished: FinishedRun) -> Record:
    """The record of a run in which nobody is corrupted; with a probe, how often its trigger works on the model."""
    spec, run = finished.spec, finished.run
    told = ("ok", "") if run.diverged_at is None else ("diverged", run.why)
    metrics = means_over_rounds(shares(run.verdicts, frozenset()))
    probe = compose.trigger_of(spec.probe)
    if probe is not None and finished.problem.corrupted:
        trigger = compose.make_poisoning(probe, knowledge_of(finished.problem, finished.defense, "own"))
        metrics |= success_rate(trigger, finished.problem, run.params)
    return record_of(finished, None, "", *told, only_finite(metrics))


def record(spec: GroupSpec, problem: Problem, defense: Defense, progress: Progress) -> Record:
    """Train and judge one run. An attack that cannot start, or breaks, gives a record that says so."""
    assert spec.attack is not None
    rng = Rng(spec.seed).child("federation")
    (threat,) = spec.threats
    knowledge = knowledge_of(problem, defense, threat.knows or "own")
    # A seed of its own, from which the run's seed cannot be computed back.
    own = Rng(Rng(spec.seed).child("attack").integer())

    def untrained(status: str, reason: str) -> Record:
        return record_of(FinishedRun(spec, problem, defense, federation.untrained(problem)), threat, "", status, reason)

    try:
        attack = compose.make_poisoning(spec.attack, knowledge)
        reason = why_not(attack)
        if reason is not None:
            return untrained("n/a", reason.reason)
        method, tuned = tune(spec.attack, knowledge, own.child("tuning"), lambda share: progress(share / 2, "tuning"))
        if tuned:
            attack = compose.make_poisoning(method, knowledge)
            if (reason := why_not(attack, tuned=True)) is not None:
                return untrained("n/a", reason.reason)
        adversary = Adversary(attack, frozenset(problem.corrupted), own.child("attack"))
        run = federation.run(
            defense, problem, rng, progress=lambda share: progress(share, "training"), adversary=adversary
        )
    except UserError:
        raise
    except Exception as error:  # a third party's code; the trial stays in the denominator
        return untrained("failed", describe(error))
    made = _judged(FinishedRun(spec, problem, defense, run), threat, attack)
    if tuned:
        # `options` is what was asked for, and names the record; the strength given there is not the one of the run.
        made["tuned"] = {**tuned, "ran_with": options_of("attack", method)}
    return made


def _judged(finished: FinishedRun, threat: Threat, attack: Poisoning) -> Record:
    run, problem = finished.run, finished.problem
    # A model that the attack drove out of the floating-point numbers is a result: it predicts one class.
    reason = "" if run.diverged_at is None else run.why
    rounds = shares(run.verdicts, frozenset(problem.corrupted))
    metrics = {
        "accuracy": run.accuracy,
        **means_over_rounds(rounds),
        **(success_rate(attack, problem, run.params) if finite(run.params) else {}),
    }
    made = record_of(finished, threat, "", "ok", reason, only_finite(metrics))
    made["attacked"] |= {"by_round": by_round(rounds), "begins": attack.begins, "strengths": attack.strengths}
    return made
