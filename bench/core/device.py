"""Where computation runs, and that it gives the same numbers there every time."""

from __future__ import annotations

import os

import torch

from fedarena.core.errors import UserError

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
"""Read when the first product is computed; without it cuBLAS adds up in an order of its own each time."""


def find_device(name: str) -> torch.device:
    """The device of that name. Raises UserError when this machine has none."""
    if name == "cuda":
        if not torch.cuda.is_available():
            raise UserError("option 'device' is cuda, but this machine has no usable CUDA device: allowed here: cpu")
        _repeatable()
    return torch.device(name)


def _repeatable() -> None:
    """Products in the precision of their type and sums in a fixed order, in this process from now on.

    Convolutions would else round their inputs to 10 bits (TF32), which a mask that is to cancel, or a gradient that is
    to be matched, does not survive. An operator that has no fixed order warns.
    """
    os.environ.setdefault(WORKSPACE, ":4096:8")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
