"""Judges a run in which no client is corrupted."""

from __future__ import annotations

from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.integrity import means_over_rounds, shares, success_rate
from fedarena.goals.metrics.reconstruction import only_finite
from fedarena.records.record_of import record_of
from fedarena.records.schema import Record, Status


def clean_record(finished: FinishedRun) -> Record:
    """The record of the run; with a probe, also how often the probe's trigger works on the model."""
    spec, run = finished.spec, finished.run
    status: Status = "ok" if run.diverged_at is None else "diverged"
    metrics = means_over_rounds(shares(run.verdicts, frozenset()))
    probe = compose.trigger_of(spec.probe)
    if probe is not None and finished.problem.corrupted:
        trigger = compose.make_poisoning(probe, knowledge_of(finished.problem, finished.defense, "own"))
        metrics |= success_rate(trigger, finished.problem, run.params)
    return record_of(finished, None, "", status, run.why, only_finite(metrics))
