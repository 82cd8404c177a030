"""The results of a group of trials: records, and originals and reconstructions for pictures."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedarena.federation.spec import GroupSpec
from fedarena.records.schema import Record


@dataclass(frozen=True)
class Gallery:
    """Originals and reconstructions of one record, for pictures; arrays [n, *input_shape].

    Attributes:
        key: the record's key.
    """

    key: str
    originals: Tensor
    guesses: Tensor


@dataclass(frozen=True)
class GroupResult:
    """The records of a group of trials, and their pictures."""

    spec: GroupSpec
    records: list[Record]
    galleries: list[Gallery]
