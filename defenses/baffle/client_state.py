"""What a client keeps between rounds, by name: an optimiser's moments, or a copy of the server's model with them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from fedarena.contracts.defense import State
from fedarena.core.tensors import Tensors

MODEL, MEMORY, STEPS = "model.", "memory", "steps"


def steps(memory: Tensors) -> int:
    """How many steps the optimiser has taken."""
    return int(memory[STEPS]) if STEPS in memory else 0


def moments(memory: Tensors, name: str) -> tuple[Tensor, ...] | None:
    """An optimiser's memory of one parameter, None before its first step."""
    moments = tuple(memory[key] for key in (f"{MEMORY}{i}.{name}" for i in (0, 1)) if key in memory)
    return moments or None


def optimizer_memory(moments_of: Mapping[str, tuple[Tensor, ...] | None], steps: int) -> Tensors:
    """An optimiser's memory after so many steps, by parameter."""
    memory = {f"{MEMORY}{i}.{name}": m for name, states in moments_of.items() for i, m in enumerate(states or ())}
    return {**memory, STEPS: torch.tensor(steps)}


def packed(state: State) -> Tensors:
    """A copy of the server's model and optimiser."""
    return {**{MODEL + name: p for name, p in state.params.items()}, **optimizer_memory(state.optimizer, state.steps)}


def unpacked(memory: Tensors, like: Tensors) -> State:
    """Undoes `packed`."""
    optimizer = {name: states for name in like if (states := moments(memory, name)) is not None}
    return State({name: memory[MODEL + name] for name in like}, optimizer=optimizer, steps=steps(memory))
