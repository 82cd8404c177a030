"""The gradient of a loss as `torch.func.grad` gives it, in a third of the time where nothing looks on.

`torch.func.grad` can be differentiated and vectorised, which takes longer than the gradient itself of a small network.
Where nobody vectorises, autograd computes the same numbers without it, and keeps a graph only for who differentiates.

`torch.func.grad` also imports torch's compiler when it is first used, which takes as long as torch itself. `grad` here
does the same without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._functorch.eager_transforms import (
    _create_differentiable,
    _undo_create_differentiable,
    _wrap_all_tensors,
    grad_increment_nesting,
)
from torch.utils._python_dispatch import _get_current_dispatch_mode
from torch.utils._pytree import tree_flatten, tree_unflatten

from fedarena.core.tensors import Tensors


def grad(loss: Callable[..., Tensor]) -> Callable[..., Any]:
    """`torch.func.grad(loss)`: ∂loss/∂(its first argument), which is a tensor or a dictionary of tensors.

    Raises RuntimeError where the loss is no single number.
    """

    def gradient_at(*given: Any) -> Any:
        with grad_increment_nesting() as level, torch.enable_grad():
            given = _wrap_all_tensors(given, level)
            leaves, shape = tree_flatten(_create_differentiable(given[0], level))
            value = loss(*given)
            if not value.requires_grad:
                found = [torch.zeros_like(leaf) for leaf in leaves]
            else:
                derived = torch.autograd.grad(value, leaves, retain_graph=False, create_graph=True, allow_unused=True)
                found = [torch.zeros_like(leaf) if t is None else t for leaf, t in zip(leaves, derived, strict=True)]
            return _undo_create_differentiable(tree_unflatten(found, shape), level)

    return gradient_at


def gradient(loss: Callable[..., Tensor], params: Tensors, *given: Tensor) -> Tensors:
    """∂loss/∂params at (params, *given), named and shaped like `params`; zeros for what the loss does not use.

    What `loss` refers to besides must need no gradient.
    """
    if untransformed():
        kept = torch.is_grad_enabled() and any(t.requires_grad for t in (*params.values(), *given))
        with torch.enable_grad():
            at = {
                n: p.view_as(p) if kept and p.requires_grad else p.detach().requires_grad_() for n, p in params.items()
            }
            value = loss(at, *given)
        if value.dim() == 0 and value.requires_grad:
            found = torch.autograd.grad(value, list(at.values()), create_graph=kept, materialize_grads=True)
            return dict(zip(at, found, strict=True))
    transformed: Tensors = grad(loss)(params, *given)
    return transformed


def untransformed() -> bool:
    """Whether nothing vectorises or counts what is done now, and autograd may see it."""
    return (
        torch._C._functorch.peek_interpreter_stack() is None
        and _get_current_dispatch_mode() is None
        and not torch.is_inference_mode_enabled()
    )
