"""What running a group of trials gives: its records, and pictures beside them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedarena.federation.spec import GroupSpec
from fedarena.records.record import Record


@dataclass(frozen=True)
class Gallery:
    """Originals and reconstructions of one cell, for pictures: arrays [n, *input_shape]."""

    key: str
    originals: Tensor
    guesses: Tensor


@dataclass(frozen=True)
class GroupResult:
    """Records of a group and pictures."""

    spec: GroupSpec
    records: list[Record]
    galleries: list[Gallery]
