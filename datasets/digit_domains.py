"""Handwritten digits of several origins in one data set, which records the origin of each training sample."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.datasets.cards.digit_domains import PARTS
from fedarena.datasets.dataset import AbsentData, Dataset, Provenance

SCALE = 255.0
BLIND_AUC = 0.57


@dataclass(frozen=True)
class Joined:
    """The loader of a data set made from others that have the same classes; calling it loads.

    Attributes:
        name: registry name.
        parts: registry names of the data sets that it is made from; domain i is part i.
        side: pixels a side of every image.
    """

    name: str
    parts: tuple[str, ...]
    side: int

    def __call__(self, data_dir: Path | None = None) -> Dataset:
        """Load the parts and join them in their order. Raises UserError for a part that cannot be loaded."""
        try:
            sets: list[Dataset] = [registry.find("dataset", part).load()(data_dir) for part in self.parts]
        except UserError as error:
            told = f"data set '{self.name}' is made from {', '.join(self.parts)}: {error}"
            raise (AbsentData if isinstance(error, AbsentData) else UserError)(told) from error
        facts = [part.provenance for part in sets]
        return Dataset(
            name=self.name,
            x_train=np.concatenate([resized(part.x_train, part.scale, self.side) for part in sets]),
            y_train=np.concatenate([part.y_train for part in sets]),
            x_test=np.concatenate([resized(part.x_test, part.scale, self.side) for part in sets]),
            y_test=np.concatenate([part.y_test for part in sets]),
            scale=SCALE,
            n_classes=max(part.n_classes for part in sets),
            provenance=Provenance(
                source=" + ".join(fact.source for fact in facts),
                file=" + ".join(fact.file for fact in facts if fact.file) or None,
                sha256=together(fact.sha256 for fact in facts),
                verified=all(fact.verified for fact in facts),
                subset=lacking(zip(self.parts, (fact.subset for fact in facts), strict=True)),
            ),
            blind_auc=BLIND_AUC,
            domains=np.repeat(np.arange(len(sets)), [len(part.y_train) for part in sets]).astype(np.int64),
        )


def resized(images: npt.NDArray[np.uint8 | np.float32], scale: float, side: int) -> npt.NDArray[np.uint8]:
    """[N, C, h, w] with `scale` for 1.0 → the same at side×side, bilinear, 8 bits with 255 for 1.0."""
    if images.shape[2:] == (side, side) and scale == SCALE and images.dtype == np.uint8:
        return images.astype(np.uint8, copy=False)
    import torch
    import torch.nn.functional as F

    x = torch.from_numpy(images).float() / scale
    x = F.interpolate(x, (side, side), mode="bilinear", align_corners=False)
    levels: npt.NDArray[np.uint8] = (x * SCALE).round().clamp(0, SCALE).to(torch.uint8).numpy()
    return levels


def together(checksums: Iterable[str | None]) -> str | None:
    """One checksum for several, written one after the other; None where one is not known."""
    known = list(checksums)
    if None in known:
        return None
    return hashlib.sha256("".join(c for c in known if c).encode()).hexdigest()


def lacking(subsets: Iterable[tuple[str, str | None]]) -> str | None:
    """What the parts lack of complete data, each with its name; None when nothing is missing."""
    return "; ".join(f"{name}: {subset}" for name, subset in subsets if subset) or None


load = Joined("digit-domains", PARTS, 28)
