"""Methods that the harness knows like those of an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from fedarena.core.method_caches import forget_methods

Points = Mapping[str, Mapping[str, str]]
"""Group of entry points, such as "attacks" → name → "module:attribute" of the card."""


def install(folder: Path, points: Points, package: str = "plugins") -> Path:
    """A folder that makes these methods known where it is on the path of Python."""
    info = folder / f"{package}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    lines = []
    for group, targets in points.items():
        lines += [f"[fedarena.{group}]", *(f"{name} = {target}" for name, target in targets.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@contextmanager
def installed(folder: Path, points: Points, package: str = "plugins") -> Iterator[Path]:
    """These methods are known as long as the block runs."""
    place = install(folder, points, package)
    sys.path.insert(0, str(place))
    forget_methods()
    try:
        yield place
    finally:
        sys.path.remove(str(place))
        forget_methods()
