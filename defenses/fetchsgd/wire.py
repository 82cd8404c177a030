"""What crosses FetchSGD's wire: the model with the seed of the hash functions, and sketches."""

from __future__ import annotations

from fedarena.core.tensors import Tensors
from fedarena.defenses.fetchsgd.card import Options
from fedarena.defenses.fetchsgd.count_sketch import CountSketch, count_sketch

SEED, SKETCH = "fetchsgd.seed", "fetchsgd.sketch"


def without_seed(down: Tensors) -> Tensors:
    """The parameters of a broadcast."""
    return {name: t for name, t in down.items() if name != SEED}


def hashes_of(options: Options, down: Tensors) -> CountSketch:
    """The hash functions of a broadcast, with c = ratio·d/r columns."""
    entries = sum(t.numel() for t in without_seed(down).values())
    columns = max(1, round(options.ratio * entries / options.rows))
    return count_sketch(int(down[SEED]), entries, options.rows, columns)
