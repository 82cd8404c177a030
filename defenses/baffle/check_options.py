"""Which of BAFFLE's options contradict each other, or would do nothing together; and the number formats."""

from __future__ import annotations

from dataclasses import fields

import torch

from fedarena.contracts.aggregator import Aggregator
from fedarena.core.errors import UserError
from fedarena.core.option_values import to_text
from fedarena.defenses.baffle.card import Options
from fedarena.problem.task import Task

FORMATS = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}
"""What `precision` names."""


def check(o: Options, task: Task, rule: Aggregator | None) -> None:
    """Refuse options that contradict each other or would do nothing. Raises UserError."""
    schedule = task.schedule

    def refuse(name: str, because: str) -> None:
        raise UserError(f"defense baffle: option '{name}' is {to_text(getattr(o, name))}, but {because}")

    changed = {f.name for f in fields(o) if getattr(o, f.name) != f.default}
    if o.min_directions is not None and o.min_directions > o.directions:
        refuse("min_directions", f"at most directions={o.directions} is possible")
    if o.law:
        if schedule.client_memory is not None:
            raise UserError("option 'client-memory' holds for forward passes, of which law=true runs none")
        for name in sorted(changed & {"sigma", "scheme", "precision"}):
            refuse(name, "law=true does not depend on it: the law is that of small σ and exact arithmetic")
        if o.min_directions is not None and schedule.fedsgd:
            refuse("min_directions", "law=true knows the law of one K for all clients only (FedSGD)")
        if not schedule.fedsgd and o.perturbations == "shared":
            refuse(
                "law",
                "with local epochs and shared perturbations the clients' estimates are dependent, whose law "
                "it does not draw from: set perturbations=client",
            )
    if o.ema is None:
        for name in sorted(changed & {"ema_warmup", "ema_per"}):
            refuse(name, "ema=none deploys no average")
    if schedule.fedsgd:
        if o.ema_per == "step":
            refuse("ema_per", "with local-epochs 0 a round is one step")
        if o.optimizer_state == "kept":
            refuse("optimizer_state", "with local-epochs 0 clients take no step of their own")
    elif schedule.client_optimizer == "sgd" and o.optimizer_state == "kept":
        refuse("optimizer_state", "client_optimizer=sgd has no memory to keep")
    if o.downlink == "scalars":
        needs = {
            "local-epochs 0": schedule.fedsgd,
            "participation 1": task.participants == len(task.sizes),
            "perturbations=shared": o.perturbations == "shared",
            "law=false": not o.law,
            "min_directions=none": o.min_directions is None,
            "no rule that needs the server's own data": rule is None or not rule.auxiliary,
        }
        for need, holds in needs.items():
            if not holds:
                refuse("downlink", f"it needs {need}")
    if rule is not None and o.min_directions is not None and o.perturbations == "shared":
        refuse(
            "min_directions",
            "an aggregation rule needs vectors of one length: leave one of them out, or set perturbations=client",
        )
