"""Judges a run in which no client is corrupted, and measures what its parties would reach alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress

from fedarena.contracts.baseline import BASELINE
from fedarena.core.errors import ToldByProcess
from fedarena.core.rng import Rng
from fedarena.federation import compose
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.integrity import means_over_rounds, shares
from fedarena.federation.spec import MethodSpec
from fedarena.federation.triggered_inputs import success_rate
from fedarena.goals.backdoor import inputs_of
from fedarena.goals.metrics.reconstruction import only_finite
from fedarena.problem.alone.parties import local_only, server_only
from fedarena.records.record_of import record_of
from fedarena.records.schema import Record, Status, Utility


def clean_record(finished: FinishedRun, parties_alone: bool) -> Record:
    """The record of the run; with a probe, also how often the probe's trigger works on the model.

    Args:
        parties_alone: whether to measure what the parties reach alone.
    """
    spec, run = finished.spec, finished.run
    status: Status = "failed" if run.not_replayed else "ok" if run.diverged_at is None else "diverged"
    metrics = means_over_rounds(shares(run.verdicts, frozenset()))
    if spec.probe is not None and finished.problem.corrupted:
        with suppress(ToldByProcess, ValueError):  # then the run with the attack fails, and says why
            triggered = inputs_of(spec.probe, finished.problem, finished.defense)
            metrics |= success_rate(triggered, finished.problem, run.in_use)
    record = record_of(finished, None, "", status, run.not_replayed or run.why, only_finite(metrics))
    if parties_alone:
        _add_parties_alone(record["utility"], finished)
    return record


KNOWN: dict[Hashable, float | None] = {}
"""What parties reach alone, by problem and party, in this process: many defenses are run on one problem."""


def _add_parties_alone(utility: Utility, finished: FinishedRun) -> None:
    """What the server reaches alone; and with FedAvg, what its clients do."""
    spec, problem = finished.spec, finished.problem
    rng, auxiliary = Rng(spec.root).child("alone"), compose.auxiliary(spec.defense)
    # Both follow from these alone. The server's samples are taken from the clients', FedAvg's holds none.
    key = (spec.problem, spec.root, spec.device, problem.provenance, auxiliary)
    server = _once((*key, "server"), lambda: server_only(problem, rng.child("server")))
    if server is not None:
        utility["references"]["server_only"] = server
    if spec.defense == MethodSpec(BASELINE):
        clients = _once((*key, "clients"), lambda: local_only(problem, rng.child("clients")))
        assert clients is not None
        utility["references"]["local_only"] = clients


def _once(key: Hashable, measure: Callable[[], float | None]) -> float | None:
    """What was measured under the key, or is now."""
    if key not in KNOWN:
        KNOWN[key] = measure()
    return KNOWN[key]
