"""The memory that a client's round takes, as it is limited and as every run prints it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from fedarena.contracts.defense import Defense
from fedarena.core.errors import UserError
from fedarena.core.peak_memory import peak_bytes
from fedarena.core.tensors import Tensors, nbytes
from fedarena.problem.task import Batch


def client_peak(defense: Defense, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> int:
    """The memory that one client's round takes, as `--client-memory` limits it and as every run prints it, in bytes.

        peak = broadcast + the client's memory + its batch + all tensors of its step

    The step is counted in both forms that a defense has of it, `client_low_memory` and `clients` with this one client.
    The smaller count is taken: which form is thriftier depends on the model, and a device would run that one. The
    scratch of kernels is not counted.

    Args:
        down: the broadcast. memory: the client's memory of earlier rounds. noise: its randomness of this one.
    """
    forms = (
        partial(defense.client_low_memory, down, batch, memory, noise),
        partial(defense.clients, down, [batch], [memory], [noise]),
    )
    step = min(peak_bytes(form)[1] for form in forms)
    return step + nbytes(down) + nbytes(memory) + batch.nbytes


@dataclass
class PeakMemory:
    """The largest peak that a client had so far.

    A step is measured again only when the client holds tensors of other names, since its memory may grow for some
    rounds.

    Attributes:
        limit: MB (10^6 bytes) that a client may use, if there is a limit.
        bytes: the peak.
    """

    limit: float | None
    bytes: int = 0
    _measured: set[tuple[frozenset[str], frozenset[str]]] = field(default_factory=set)

    def measure(self, defense: Defense, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> None:
        """Measure a client's step, given as for `client_peak`. Raises UserError where it takes more than the limit."""
        names = (frozenset(down), frozenset(memory))
        if names in self._measured:
            return
        self._measured.add(names)
        needed = client_peak(defense, down, batch, memory, noise)
        if self.limit is not None and needed > self.limit * 1e6:
            raise UserError(
                f"option 'client-memory' is {self.limit:g} MB, but a client's step takes {needed / 1e6:.3f} MB with "
                "this defense, model and batch"
            )
        self.bytes = max(self.bytes, needed)
