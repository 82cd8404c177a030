"""What a table's part trains, by which parts of several tables are known to be one run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """What is trained for a part.

    Attributes:
        trained: equal where it is the same run.
        heading: columns of the part's rows that are the table's, not the run's, such as the paper's number.
    """

    trained: Hashable
    heading: Mapping[str, Any]
