"""Where a measurement finds its data files and computes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Where:
    """A place on the machine.

    Attributes:
        data_dir: with data files; None: the cache.
        device: cpu or cuda.
    """

    data_dir: Path | None = None
    device: str = "cpu"
