"""The gradient of a loss as `torch.func.grad` gives it, in a third of the time where nothing looks on.

`torch.func.grad` can be differentiated and vectorised, which takes longer than the gradient itself of a small network.
Where nobody vectorises, autograd computes the same numbers without it, and keeps a graph only for who differentiates.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode

from fedarena.core.tensors import Tensors


def gradient(loss: Callable[..., Tensor], params: Tensors, *given: Tensor) -> Tensors:
    """∂loss/∂params at (params, *given), named and shaped like `params`; zeros for what the loss does not use.

    What `loss` refers to besides must need no gradient.
    """
    if _plain():
        kept = torch.is_grad_enabled() and any(t.requires_grad for t in (*params.values(), *given))
        with torch.enable_grad():
            at = {
                n: p.view_as(p) if kept and p.requires_grad else p.detach().requires_grad_() for n, p in params.items()
            }
            value = loss(at, *given)
        if value.dim() == 0 and value.requires_grad:
            found = torch.autograd.grad(value, list(at.values()), create_graph=kept, materialize_grads=True)
            return dict(zip(at, found, strict=True))
    transformed: Tensors = torch.func.grad(loss)(params, *given)
    return transformed


def _plain() -> bool:
    """Whether nothing vectorises or counts what is done now, and autograd may see it."""
    return (
        torch._C._functorch.peek_interpreter_stack() is None
        and _get_current_dispatch_mode() is None
        and not torch.is_inference_mode_enabled()
    )
