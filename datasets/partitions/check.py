"""What every partition asks of its arguments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedarena.errors import UserError

Labels = npt.NDArray[np.int64 | np.float32]
Shards = list[npt.NDArray[np.int64]]


def check_clients(labels: Labels, n_clients: int, min_size: int = 1) -> None:
    """Refuse more clients than `labels` [N] has samples for. Raises UserError."""
    most = len(labels) // min_size
    if not 1 <= n_clients <= most:
        each = f" of at least {min_size} each" if min_size > 1 else ""
        raise UserError(
            f"option 'clients' is {n_clients}, but {len(labels)} training samples allow 1 to {most} clients{each}"
        )


def check_classes(labels: Labels, name: str) -> None:
    """Refuse the numbers of a regression to a partition that shares out classes. Raises UserError."""
    if labels.dtype.kind not in "iu":
        raise UserError(
            f"option 'partition' is {name}, which shares out classes, but these samples carry numbers in their place, "
            "allowed: a partition that needs no classes (iid, copies, few)"
        )
