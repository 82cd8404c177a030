"""The memory that one client's round takes, as `--client-memory` limits it and as every run prints it.

    peak = what comes down + what the client keeps + its batch + all tensors of its step

The step is counted in both forms that a defense has of it, `client_low_memory` and `clients` with this one client, and
the smaller count is taken: which of them is thriftier depends on the model, and a device would run that one. The
scratch of kernels is not counted.
"""

from __future__ import annotations

from functools import partial

from fedarena.contracts.defense import Defense
from fedarena.core.peak_memory import peak_bytes
from fedarena.core.tensors import Tensors, nbytes
from fedarena.problem.batch import Batch


def client_peak(defense: Defense, down: Tensors, batch: Batch, kept: Tensors, noise: Tensors) -> int:
    """Bytes.

    Args:
        down: the broadcast. kept: the client's memory of earlier rounds. noise: its randomness of this one.
    """
    forms = (
        partial(defense.client_low_memory, down, batch, kept, noise),
        partial(defense.clients, down, [batch], [kept], [noise]),
    )
    step = min(peak_bytes(form)[1] for form in forms)
    return step + nbytes(down) + nbytes(kept) + nbytes(vars(batch))
