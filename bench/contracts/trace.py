"""What a party makes of a neighbour's messages, where there is no server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedarena.core.tensors import Tensors


@dataclass(frozen=True)
class Trace:
    """The steps of one neighbour, as a party estimates them.

    Attributes:
        name: of the reading.
        models: round → the models before and after the neighbour's local step, W_v and h_v, in plain parameters.
        estimated: the parameters that are estimated; None: all.
    """

    name: str
    models: Mapping[int, tuple[Tensors, Tensors]]
    estimated: tuple[str, ...] | None = None
