"""Which of BAFFLE's options contradict each other, or would do nothing together; and the number formats."""

from __future__ import annotations

from dataclasses import fields
from typing import NoReturn

import torch

from fedarena.contracts.aggregator import Aggregator
from fedarena.core.errors import UserError
from fedarena.core.options import to_text
from fedarena.defenses.baffle.card import Options
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Task

FORMATS = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}
"""The number formats that the option `precision` names."""


def check(o: Options, task: Task, rule: Aggregator | None) -> None:
    """Refuse options that contradict each other or would do nothing. Raises UserError."""
    if o.min_directions is not None and o.min_directions > o.directions:
        _refuse(o, "min_directions", f"at most directions={o.directions} is possible")
    if o.law:
        _check_simulation(o, task.schedule)
    if o.ema is None:
        for name in sorted(_changed(o) & {"ema_warmup", "ema_per"}):
            _refuse(o, name, "ema=none deploys no average")
    _check_local_steps(o, task.schedule)
    if o.downlink == "scalars":
        _check_downlink(o, task, rule)
    if rule is not None and o.min_directions is not None and o.perturbations == "shared":
        _refuse(
            o,
            "min_directions",
            "an aggregation rule needs vectors of one length: leave one of them out, or set perturbations=client",
        )


def _refuse(o: Options, name: str, because: str) -> NoReturn:
    raise UserError(f"defense baffle: option '{name}' is {to_text(getattr(o, name))}, but {because}")


def _changed(o: Options) -> set[str]:
    """The options that differ from their defaults."""
    return {f.name for f in fields(o) if getattr(o, f.name) != f.default}


def _check_simulation(o: Options, schedule: Schedule) -> None:
    """Refuse options that a simulation in distribution (law=true) does not depend on. Raises UserError."""
    if schedule.client_memory is not None:
        raise UserError("option 'client-memory' holds for forward passes, of which law=true runs none")
    for name in sorted(_changed(o) & {"sigma", "scheme", "precision"}):
        _refuse(o, name, "law=true does not depend on it: it assumes small σ and exact arithmetic")
    if o.min_directions is not None and schedule.fedsgd:
        _refuse(o, "min_directions", "law=true needs the same K for all clients (FedSGD)")
    if not schedule.fedsgd and o.perturbations == "shared":
        _refuse(
            o,
            "law",
            "with local epochs and shared perturbations the clients' estimates are dependent, and it does not "
            "draw from their joint distribution: set perturbations=client",
        )


def _check_local_steps(o: Options, schedule: Schedule) -> None:
    """Refuse options of local steps if there are none, or if their optimiser keeps no memory. Raises UserError."""
    if schedule.fedsgd and o.ema_per == "step":
        _refuse(o, "ema_per", "with local-epochs 0 a round is one step")
    if o.optimizer_state != "kept":
        return
    if schedule.fedsgd:
        _refuse(o, "optimizer_state", "with local-epochs 0 clients take no step of their own")
    if schedule.client_optimizer == "sgd":
        _refuse(o, "optimizer_state", "client_optimizer=sgd has no memory to keep")


def _check_downlink(o: Options, task: Task, rule: Aggregator | None) -> None:
    """Refuse options with which a client cannot rebuild the model from scalars. Raises UserError."""
    needs = {
        "local-epochs 0": task.schedule.fedsgd,
        "participation 1": task.participants == len(task.sizes),
        "perturbations=shared": o.perturbations == "shared",
        "law=false": not o.law,
        "a constant learning rate": task.schedule.in_round(0) is task.schedule,
        "min_directions=none": o.min_directions is None,
        "no rule that needs the server's own data": rule is None or not rule.auxiliary,
    }
    for need, holds in needs.items():
        if not holds:
            _refuse(o, "downlink", f"it needs {need}")
