"""FoolsGold (Fung, Yoon & Beschastnikh 2020, Algorithm 1): clients whose histories point the same way lose weight.

H_i   = the sum of all uploads of client i
cs_ij = cos(H_i, H_j), 0 for i = j;   v_i = max_j cs_ij
cs_ij ← cs_ij v_i/v_j  where v_j > v_i                        (pardoning)
α_i   = 1 − max_j cs_ij;   α_i ← α_i / max_j α_j
α_i   ← κ (ln(α_i/(1 − α_i)) + 0.5), cut to [0, 1]
Σ_i α_i x_i / Σ_i α_i
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.core.tensors import Tensors
from fedarena.defenses.aggregators.cards.foolsgold import Options
from fedarena.defenses.aggregators.geometry import Matrix
from fedarena.defenses.aggregators.lengths import directions, lengths

CLIENTS, HISTORY = "clients", "history"

ALIKE = 1e-6
"""Where no α is larger, all clients count alike: what is left of 1 − cs is rounding, which max_j α_j would enlarge."""
SMALL = 1e-12
"""Norms whose squares may have vanished in float32."""


class FoolsGold(Aggregator):
    """The rule does not use f. `used`: α_i / Σ_j α_j of this round's participants, or α_i / n.

    A client that is absent sends nothing, so that its history stays as it is. All clients that ever took part are
    compared with each other, whether or not they take part in the round.
    """

    options: Options

    @property
    def by_sender(self) -> bool:
        return True

    def __call__(self, x: Tensor, call: Call) -> Aggregate:
        senders = call.clients(len(x))
        clients, history = remembered(call.memory, x, senders)
        weights = foolsgold_weights(cosines(history), self.options.confidence)
        row = {client: i for i, client in enumerate(clients)}
        present = weights[[row[client] for client in senders]]
        if present.sum() == 0:
            present = np.ones(len(x))
        total = present.sum() if self.options.divide == "weights" else len(x)
        used = torch.from_numpy(present / total).to(x)
        memory = {CLIENTS: torch.tensor(clients, device=x.device), HISTORY: history}
        return Aggregate(used @ x, used, memory)


def remembered(memory: Tensors, x: Tensor, senders: tuple[int, ...]) -> tuple[list[int], Tensor]:
    """All clients that ever took part, ascending [c], and the sums of their uploads [c, d], those in x included.

    What overflows is cut to the largest number of the type.
    """
    before: list[int] = memory[CLIENTS].tolist() if CLIENTS in memory else []
    clients = sorted({*before, *senders})
    row = {client: i for i, client in enumerate(clients)}
    if list(senders) == clients and before in ([], clients):
        history = memory[HISTORY].to(x) + x if before else x
    else:
        history = x.new_zeros(len(clients), x.shape[1])
        if before:
            history[[row[client] for client in before]] = memory[HISTORY].to(x)
        history[[row[client] for client in senders]] += x
    return clients, history.nan_to_num(nan=0.0)


def cosines(x: Tensor) -> Matrix:
    """[c, d] → [c, c] float64; 0 for a row without a direction."""
    products: Matrix = (x @ x.T).double().cpu().numpy()
    norms = np.sqrt(products.diagonal())
    if not np.isfinite(products).all() or (norms <= SMALL).any():  # squares overflow, or vanish
        units = directions(x, lengths(x))
        found: Matrix = (units @ units.T).double().cpu().numpy()
        return found
    products /= np.outer(norms, norms)
    return products


def foolsgold_weights(cosines: Matrix, confidence: float) -> Matrix:
    """[c, c] → [c]: α from the cosines of the histories; all 1 where all histories are alike."""
    similar = cosines.copy()
    np.fill_diagonal(similar, 0)
    most = similar.max(axis=1)  # ≥ 0: the diagonal
    pardoned = np.where(most[None] > most[:, None], similar * most[:, None] / np.maximum(most[None], ALIKE), similar)
    alpha = np.clip(1 - pardoned.max(axis=1), 0, 1)
    if alpha.max() <= ALIKE:
        return np.ones(len(alpha))
    alpha = alpha / alpha.max()
    with np.errstate(divide="ignore"):
        odds: Matrix = np.log(alpha) - np.log1p(-alpha)
    return np.clip(confidence * (odds + 0.5), 0, 1)
