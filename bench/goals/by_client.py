"""Records of one pairing → in words, what the models are worth to single clients where these hold different data."""

from __future__ import annotations

from collections.abc import Sequence

from fedarena.core.text.numbers import mean, percent
from fedarena.records.schema import Record

HEAD = "By client, each on held-out data with its own shares of classes (mean, lowest decile of the honest clients): "


def by_client(records: Sequence[Record]) -> str:
    """A line with the means over seeds of each run; empty where no record has accuracies by client."""
    runs: dict[str, dict[int, tuple[float, float]]] = {}
    for r in records:
        if "by_client" in r:
            under = f" under {r['attack']} ({r['attacker_knowledge']})" if r["attacker_knowledge"] else ""
            each = r["by_client"]
            runs.setdefault(r["defense"] + under, {})[r["seed"]] = each["mean"], each["lowest_decile"]
    parts = []
    for run, seeds in runs.items():
        middle, lowest = (percent(mean([values[i] for values in seeds.values()])) for i in (0, 1))
        parts.append(f"{run} {middle}, {lowest}")
    return f"{HEAD}{'; '.join(parts)}" if parts else ""
