"""Dissensus (He, Karimireddy & Jaggi 2022): nodes are kept from agreeing.

To node i a corrupted neighbour sends h_i − ε·Σ_k w_ik (h_k − h_i)/Σ_c w_ic, k being i's honest neighbours and c its
corrupted ones. In the differences u = h_i − h, which an aggregator gets in place of uploads:

    every colluder sends −ε·Σ_k w_k u_k/Σ_c w_c

With ε = 1 the weighted mean of all is 0: node i stays where its own step led, whatever its neighbours say. With a
larger ε it moves away from them. Before a server the same makes the mean (1 − ε) times the honest clients' part.
"""

from __future__ import annotations

from fedarena.attacks.poisoning.cards.dissensus import Options
from fedarena.attacks.poisoning.helpers.honest_estimate import honest_rows, same
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors


class Dissensus(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.dissensus.Options`."""

    options: Options
    knowledge_levels = ("omniscient", "own")
    tunes = {"epsilon": (0.25, 0.5, 1.0, 1.5, 2.0, 4.0, 10.0)}  # noqa: RUF012  (a ClassVar of the base)

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        weights = view.weights or (1.0,) * view.participants
        honest, corrupted = weights[: -view.size], weights[-view.size :]
        seen = honest_rows(self.knowledge, view)
        # Without the honest uploads, the mean of one's own stands for each of them.
        shares = seen.new_tensor(
            honest if len(seen) == len(view.honest_clients) else [sum(honest) / len(seen)] * len(seen)
        )
        return same(-self.options.epsilon / sum(corrupted) * (shares @ seen), view), memory
