"""The contract of protocols whose clients report loss differences along directions that all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from torch import Tensor

from fedarena.core.tensors import Tensors


class SharedDirections(ABC):
    """A protocol whose server steps only along directions that every client can draw from the broadcast.

    A client uploads K loss differences u_k, one for each direction z_k. To first order its gradient g gives

        u_k = h z_kᵀ g,   h the length of `spacing`.

    A party that knows the z_k can therefore write the upload that any other gradient would have given. A defense
    derives from this class besides `fedarena.contracts.defense.Defense`.
    """

    @abstractmethod
    def why_not_shared(self) -> str:
        """Why a client that keeps no model cannot write differences for a gradient of its choice; empty if it can.

        It cannot where directions are private, where no differences are uploaded, or where the broadcast lacks the
        parameters.
        """

    @abstractmethod
    def shared_directions(self, down: Tensors) -> Iterator[Tensor]:
        """z_1 … z_K of a round, each [n] for n parameters, from its broadcast."""

    @property
    @abstractmethod
    def spacing(self) -> float:
        """h, the distance in units of z_k between the two points whose losses are compared."""

    @abstractmethod
    def upload_of(self, differences: Tensor) -> Tensors:
        """The uploads that consist of these differences [clients, K]."""
