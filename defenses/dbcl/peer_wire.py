"""DBCL's messages between peers, and what a node mixes of a neighbour's."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedarena.core.tensors import Tensors
from fedarena.defenses.dbcl.wire import SEED, DBCLWire


@dataclass(frozen=True)
class PeerWire:
    """The public facts by which a message is made and read.

    Attributes:
        wire: which parameters are sketched, and how S is drawn.
        ratio: s/d. unbiased: whether the factor c is 1; else it is s/d.
    """

    wire: DBCLWire
    ratio: float
    unbiased: bool

    def message(self, half: Tensors, secret: int) -> Tensors:
        """The seed, h S of every sketched parameter, and the others as they are."""
        sent: Tensors = {SEED: torch.tensor([secret], dtype=torch.int32)}
        for layer, (name, w) in enumerate(half.items()):
            if name in self.wire.shapes:
                flat = w.flatten(1)
                size = max(1, round(self.ratio * flat.shape[1]))
                w = self.wire.sketch(secret, layer, name, size).to(w.device).apply(flat)
            sent[name] = w
        return sent

    def expanded(self, differences: Tensors, message: Tensors) -> Tensors:
        """c·Y Sᵀ of sketched differences Y, by the message's S; the others as they are."""
        whole = self.wire.expand(differences, self.wire.open(message)[1])
        return {name: t * self.factor(message, name) for name, t in whole.items()}

    def in_clear(self, message: Tensors) -> Tensors:
        """Of a message the parameters that are not sketched."""
        return {name: t for name, t in message.items() if name != SEED and name not in self.wire.shapes}

    def factor(self, message: Tensors, name: str) -> float:
        """c of a parameter, by the size of its sketch; 1 for those in clear."""
        if name not in self.wire.shapes or self.unbiased:
            return 1.0
        return message[name].shape[1] / self.wire.shapes[name][1:].numel()
