"""What the corrupted clients learn of the server's steps from broadcasts that show the model in clear."""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable


def needs_plain_broadcast(knowledge: AttackerKnowledge) -> NotApplicable | None:
    """Why an attack cannot start that reads the model's path from broadcasts. It tries the protocol's on the start."""
    defense, init = knowledge.defense, knowledge.init
    down = defense.broadcast(defense.init(dict(init), Rng(0)), Rng(0)).down
    if down.keys() == init.keys() and all(torch.equal(down[name], init[name]) for name in init):
        return None
    return NotApplicable(
        "it follows the model from broadcast to broadcast, and this protocol's do not show it in clear"
    )


def needs_plain_uploads(knowledge: AttackerKnowledge) -> NotApplicable | None:
    """Why an attack cannot start that sends changes of the model: an upload is shaped otherwise. It tries one."""
    x, y = knowledge.data.draw(1, Rng(0))
    if not len(y):
        return None
    up = knowledge.defense.expected_upload(dict(knowledge.init), x, y)
    if {name: t.shape for name, t in up.items()} == {name: t.shape for name, t in knowledge.init.items()}:
        return None
    return NotApplicable("it sends a change of the model's parameters, and this protocol's uploads are none")


def direction_since(before: Tensors, down: Tensors, knowledge: AttackerKnowledge) -> Tensor:
    """What the server has stepped against between two broadcasts, [d], as if it had taken one plain step."""
    return flatten(knowledge.defense.direction_between(before, dict(down)))


def stored(down: Tensors, prefix: str) -> Tensors:
    """A broadcast as entries of an attack's memory."""
    return {prefix + name: t for name, t in down.items()}


def recalled(memory: Tensors, prefix: str) -> Tensors:
    """The broadcast that `stored` put into a memory; {} where there is none."""
    return {name.removeprefix(prefix): t for name, t in memory.items() if name.startswith(prefix)}
