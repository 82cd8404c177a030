"""The random forest of property inference, with what the authors of the attack set (Melis et al. 2019, their code)."""

from __future__ import annotations

from torch import Tensor, from_numpy

from fedarena.core.rng import Rng

TREES, LEAF, SPLIT = 100, 5, 5


def forest_scores(x: Tensor, y: Tensor, queries: Tensor, rng: Rng) -> Tensor:
    """Train on samples, then score others: the share of evidence for the property, [m] (float64).

    Args:
        x: samples [n, f]. y: which of them have the property, [n] (bool), of both kinds. queries: [m, f].
    """
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(TREES, min_samples_leaf=LEAF, min_samples_split=SPLIT, random_state=rng.integer(32))
    forest.fit(x.cpu().numpy(), y.cpu().numpy())
    return from_numpy(forest.predict_proba(queries.cpu().numpy())[:, 1])  # classes are in order, False and True
