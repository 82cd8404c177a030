"""Comparative elimination: the mean of the n − f shortest uploads."""

from fedarena.contracts.aggregator import Aggregate, Aggregator, require
from fedarena.core.card import Card


class Shortest(Aggregator):
    """Leaves out the f longest of n uploads: those who shout. Whoever lies in a low voice stays in."""

    def check(self, n, f):
        require(n >= 2 * f + 1, "shortest", n, f, "2f + 1 uploads or more")

    def __call__(self, x, call):
        used = x.new_zeros(len(x))
        used[x.norm(dim=1).argsort()[: len(x) - call.f]] = 1 / (len(x) - call.f)
        return Aggregate(used @ x, used)


CARD = Card(
    name="shortest",
    kind="aggregator",
    title="The mean of the n − f shortest uploads (a toy)",
    target=Shortest,
    paper="Byzantine Fault-Tolerant Distributed Machine Learning Using Stochastic Gradient Descent (SGD) and "
    "Norm-Based Comparative Gradient Elimination (CGE)",
    authors="Gupta, Liu, Vaidya",
    year=2020,
    url="https://arxiv.org/abs/2008.04699",
    equations="the CGE gradient filter",
    departures=("The kept uploads are averaged, not summed, so that the learning rate keeps its meaning.",),
    facts=(("needs", "n ≥ 2f + 1"),),
)
