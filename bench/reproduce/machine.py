"""The data folder and the device with which a table is measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Machine:
    """The machine that a measurement runs on.

    Attributes:
        data_dir: the folder with data files; None stands for the cache.
        device: cpu or cuda.
    """

    data_dir: Path | None = None
    device: str = "cpu"
