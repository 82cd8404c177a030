"""Can training samples be told from held-out ones without any upload?

    FEDARENA_DATA=… python benchmarks/membership_blind.py                    # the data sets that are present
    FEDARENA_DATA=… python benchmarks/membership_blind.py digits mnist       # some of them

The two files of a data set may differ: other writers, other people. A random forest learns on half of both, as many of
each file in every class, and ranks the other half. For each data set it prints the AUC of five splits, their mean with
its 95 % interval (Student's t, which takes the splits as independent, though they share samples), and what the data set
declares (`Dataset.blind_auc`). Exits with 1 where the interval lies above what is declared by more than .01.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.text.numbers import mean
from fedarena.datasets.dataset import Dataset

SPLITS = 5
MOST = 5000
"""The most samples of a file that a forest learns from, and that it ranks."""
FROM = 0.01


def auc(data: Dataset, seed: int) -> float:
    """The AUC of one split, over as many samples of each file in every class."""
    rng = np.random.default_rng(seed)
    train, test = _alike(data, rng)
    half = min(len(train) // 2, MOST)
    learn = np.concatenate([_flat(data.x_train[train[:half]]), _flat(data.x_test[test[:half]])])
    rank = np.concatenate([_flat(data.x_train[train[half : 2 * half]]), _flat(data.x_test[test[half : 2 * half]])])
    truth = np.repeat([1, 0], half)
    forest = RandomForestClassifier(300, min_samples_leaf=2, random_state=seed, n_jobs=1).fit(learn, truth)
    return float(roc_auc_score(truth, forest.predict_proba(rank)[:, 1]))


def _alike(data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of both files, in random order, with the same classes at the same places."""
    if not data.n_classes:
        n = min(len(data.y_train), len(data.y_test))
        return rng.permutation(len(data.y_train))[:n], rng.permutation(len(data.y_test))[:n]
    pairs = []
    for c in range(data.n_classes):
        one, other = (rng.permutation(np.flatnonzero(y == c)) for y in (data.y_train, data.y_test))
        n = min(len(one), len(other))
        pairs.append(np.stack([one[:n], other[:n]]))
    together = np.concatenate(pairs, axis=1)
    train, test = together[:, rng.permutation(together.shape[1])]
    return train, test


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1)


def rows(names: Sequence[str]) -> Iterator[tuple[str, Dataset, list[float]]]:
    """Each data set that is present, with the AUCs of its splits."""
    for name in names:
        try:
            data = registry.find("dataset", name).load()(None)
        except UserError as error:
            print(f"{name:20} left out: {str(error)[:90]}", flush=True)
        else:
            yield name, data, [auc(data, seed) for seed in range(SPLITS)]


def main() -> int:
    """Measure, print, and say whether what the data sets declare holds."""
    names = sys.argv[1:] or registry.registries()["dataset"].names()
    wrong = 0
    for name, data, found in rows(names):
        average = mean(found)
        half = average.half or 0.0
        fails = average.value - half > data.blind_auc + FROM
        wrong += fails
        splits = " ".join(f"{one:.3f}" for one in found)
        end = "  HIGHER" if fails else ""
        print(f"{name:20} {average.value:.3f} ± {half:.3f} ({splits}), declared {data.blind_auc:.2f}{end}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
