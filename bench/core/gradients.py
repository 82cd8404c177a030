"""The gradient of a loss as `torch.func.grad` gives it, in a third of the time where nothing looks on.

`torch.func.grad` can be differentiated and vectorised, which takes longer than the gradient itself of a small network.
Where nobody asks for it, autograd computes the same numbers without it.
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
    if _plain(*params.values(), *given):
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        with torch.enable_grad():
            value = loss(leaves, *given)
        if value.dim() == 0 and value.requires_grad:
            found = torch.autograd.grad(value, list(leaves.values()), materialize_grads=True)
            return dict(zip(leaves, found, strict=True))
    transformed: Tensors = torch.func.grad(loss)(params, *given)
    return transformed


def _plain(*tensors: Tensor) -> bool:
    """Whether nothing differentiates, vectorises or counts what is done with these tensors."""
    return (
        torch._C._functorch.peek_interpreter_stack() is None
        and _get_current_dispatch_mode() is None
        and not torch.is_inference_mode_enabled()
        and not any(t.requires_grad for t in tensors)
    )
