"""The random forest of property inference, with what the authors of the attack set (Melis et al. 2019, their code)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor

from fedarena.rng import Rng

TREES, LEAF, SPLIT = 100, 5, 5
FOLDS = 5


def forest(x: Tensor, y: Tensor, rng: Rng) -> RandomForestClassifier:
    """Trained on samples [n, f] with labels [n] (bool), both present."""
    made = RandomForestClassifier(TREES, min_samples_leaf=LEAF, min_samples_split=SPLIT, random_state=rng.integer(32))
    return made.fit(x.numpy(), y.numpy())


def votes(trained: RandomForestClassifier, x: Tensor) -> Tensor:
    """The share of evidence for True, [n] (float64)."""
    column = list(trained.classes_).index(True)
    return torch.from_numpy(trained.predict_proba(x.numpy())[:, column])


def held_out_votes(x: Tensor, y: Tensor, groups: Sequence[int], rng: Rng) -> Tensor:
    """Each sample's votes by a forest that saw none of its group, [n]; groups are shared out among `FOLDS` folds."""
    fold = torch.from_numpy(np.unique(groups, return_inverse=True)[1] % FOLDS)
    found = torch.zeros(len(y), dtype=torch.float64)
    for k in fold.unique().tolist():
        out = fold == k
        found[out] = votes(forest(x[~out], y[~out], rng.child(k)), x[out])
    return found
