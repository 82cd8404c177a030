"""What every partition asks of its arguments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedarena.core.errors import UserError
from fedarena.core.text.numbers import plural

Labels = npt.NDArray[np.int64 | np.float32]
Shards = list[npt.NDArray[np.int64]]


def check_clients(labels: Labels, n_clients: int, each: int = 1, option: str = "") -> None:
    """Refuse more clients than `labels` [N] has samples for, or more samples for `each`. Raises UserError.

    Args:
        option: of the partition, which says how many samples each client is to have.
    """
    if not 1 <= n_clients <= len(labels):
        raise UserError(
            f"option 'clients' is {n_clients}, but {len(labels)} training samples allow 1 to {len(labels)} clients"
        )
    most = len(labels) // n_clients
    if each > most:
        raise UserError(
            f"option 'partition.{option}' is {each}, allowed with {len(labels)} training samples for "
            f"{plural(n_clients, 'client')}: 1 to {most}"
        )


def check_classes(labels: Labels, name: str) -> None:
    """Refuse the numbers of a regression to a partition that shares out classes. Raises UserError."""
    if labels.dtype.kind not in "iu":
        raise UserError(
            f"option 'partition' is {name}, which shares out classes, but these samples carry numbers in their place, "
            "allowed: a partition that needs no classes (iid, copies, few)"
        )
