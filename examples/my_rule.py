"""An aggregation rule: the coordinate-wise median."""

from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.core.card import Card


class Middle(Aggregator):
    def __call__(self, x, call):  # x [n, d]: the uploads; call.f: how many are assumed to be corrupted
        return Aggregate(x.median(0).values, used=None)


CARD = Card(name="middle", kind="aggregator", title="The median of every coordinate", target=Middle)
