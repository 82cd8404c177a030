"""Would a client notice the broadcast of a malicious server? Checks that a client can make, and how often they fire.

A client of the protocol makes no check. These are what it could look at in the model W' that it receives, with its own
batch (x, y) of n samples, beside the server's honest model W of the same round:

    loss    L(W'; x, y) > 2 L₀, where L₀ is the loss of a constant guess: ln C for C classes
    norm    ‖W'‖ > 2 ‖W‖; a client knows ‖W‖ about, from the rounds before
    dead    more than 9 in 10 units of some layer of ReLUs are inactive for all samples
    alike   more than half of the rows of some dense or convolutional layer are multiples of another row

A check that fires tells no attack from an honest model by itself: the share of honest rounds in which it fires on the
same clients' batches stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedarena.contracts.transcript import Round, cut
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation.tampered_run import TamperedRun
from fedarena.problem.task import Task

GUESSES = 2.0
"""How many times the loss of a constant guess a model may have."""
LONGER = 2.0
"""How many times as long as the honest model a model may be."""
INACTIVE = 0.9
"""The share of a layer's units that may be inactive."""
ALIKE, SAME = 0.5, 1 - 1e-4
"""The share of a layer's rows that may be multiples of another, and the |cosine| from which two are."""

Check = Callable[[Task, Tensors, Tensors, Tensor, Tensor], bool]
"""(task, received model, honest model, x, y) → whether it fires."""


def _loss(task: Task, received: Tensors, honest: Tensors, x: Tensor, y: Tensor) -> bool:
    if not task.n_classes:
        return False
    constant = math.log(task.n_classes) if task.schedule.loss == "cross-entropy" else 1.0
    return not float(task.loss(received, x, y)) <= GUESSES * constant


def _norm(task: Task, received: Tensors, honest: Tensors, x: Tensor, y: Tensor) -> bool:
    return not float(flatten(received).norm()) <= LONGER * float(flatten(honest).norm())


def _dead(task: Task, received: Tensors, honest: Tensors, x: Tensor, y: Tensor) -> bool:
    inactive: list[float] = []

    def note(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        inactive.append(float((out.flatten(1) <= 0).all(0).float().mean()))

    hooks = [m.register_forward_hook(note) for m in task.model.modules() if isinstance(m, nn.ReLU)]
    try:
        functional_call(task.model, dict(received), (x,))
    finally:
        for hook in hooks:
            hook.remove()
    return any(share > INACTIVE for share in inactive)


def _alike(task: Task, received: Tensors, honest: Tensors, x: Tensor, y: Tensor) -> bool:
    for name, _ in task.layers[:-1]:
        rows = F.normalize(received[f"{name}.weight"].flatten(1), dim=1)
        cosines = (rows @ rows.T).abs().fill_diagonal_(0)
        if float((cosines.amax(1) > SAME).float().mean()) > ALIKE:
            return True
    return False


CHECKS: Mapping[str, Check] = {"loss": _loss, "norm": _norm, "dead": _dead, "alike": _alike}
"""The checks, by the names that metrics and tables have."""


def checked_rounds(run: TamperedRun) -> dict[str, float]:
    """How often each check fires in shaped rounds, a share over clients and rounds; {} if clients do not see the model.

    `check_NAME` is of the targets, and `check_NAME_others` of clients that get another message, if there are any.
    `check_NAME_honest` is of the honest model of the same round, for all of these clients.
    """
    fired: dict[str, list[bool]] = {}
    for t, shaped in run.tampered.items():
        honest, bait = next(r for r in run.run.rounds if r.index == t), shaped.bait
        for client, message in bait.messages.items():
            whose = "" if client in bait.targets else "_others"
            if whose and message is bait.message:
                continue
            sent = replace(honest, params=message.params, down=message.down, secret=message.secret)
            x, y = honest.batches[honest.participants.index(client)].images()
            known, received = _received(run, honest, client), _received(run, sent, client)
            if known is None or received is None or not len(y):
                continue
            for name, check in CHECKS.items():
                for suffix, model in ((whose, received), ("_honest", known)):
                    fired.setdefault(f"check_{name}{suffix}", []).append(check(run.problem.task, model, known, x, y))
    return {name: sum(values) / len(values) for name, values in fired.items()}


@torch.no_grad()
def _received(run: TamperedRun, r: Round, client: int) -> Tensors | None:
    """The model that a client can tell from the broadcast; None where it cannot."""
    threat = Threat("client", "paper", client=client)
    disclosed = run.defense.in_round(r.index).disclosure(threat, cut([r], threat)[r.index])
    return None if isinstance(disclosed, NotApplicable) else disclosed.params
