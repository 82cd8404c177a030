"""What a part of a table trains. It identifies parts of several tables that are one run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrainedRun:
    """The run that is trained for a part.

    Attributes:
        trained: a value that is equal for parts that are the same run.
        heading: columns of the part's rows that belong to the table and not to the run, such as the paper's number.
    """

    trained: Hashable
    heading: Mapping[str, Any]
