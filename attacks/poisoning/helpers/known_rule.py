"""Attackers who know the server's rule, and try on the round's honest uploads what it would make of theirs.

With X the honest uploads, μ their mean and R the rule with all that is put before it:

    every colluder sends u(τ*),   u(τ) = a + τ·p,   τ* maximises ‖R(X ∪ {u(τ), …, u(τ)}) − μ‖

A subclass writes a, p and the search for τ*. A rule's memory is kept by running the rule on what was sent, and a rule
with a reference gets one from the colluders' own samples. Rounds without a colluder are not seen, and their part of the
memory is missing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from fedarena.attacks.poisoning.helpers.honest_estimate import same
from fedarena.contracts.aggregator import Aggregate, Call, checked
from fedarena.contracts.poisoning import Poisoning, RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows
from fedarena.core.threat import NotApplicable

Distance = Callable[[float], float]
"""τ → ‖R(X ∪ {u(τ), …}) − μ‖."""


class AgainstKnownRule(Poisoning):
    """Colluders who send the upload that drives the server's rule farthest from the honest mean."""

    knowledge_levels = ("omniscient",)

    @abstractmethod
    def line(self, honest: Tensor) -> tuple[Tensor, Tensor]:
        """a and p [d] for honest uploads [n, d]."""

    @abstractmethod
    def search(self, distance: Distance) -> float:
        """τ*."""

    def applies(self) -> NotApplicable | None:
        if self.knowledge.defense.rule is None and not self.knowledge.defense.sums:
            return NotApplicable(
                "it searches the server's aggregation rule, and this protocol treats uploads in a way of its own"
            )
        return None

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        honest = rows(view.honest)
        if not len(honest):
            return view.own, memory
        mean, (start, p) = honest.mean(0), self.line(honest)
        uploads = torch.cat([honest, honest.new_empty(view.size, honest.shape[1])])

        def combined(strength: float) -> Aggregate:
            uploads[len(honest) :] = start + strength * p
            return self._combined(uploads, view, memory, rng)

        strength = self.search(lambda s: float((combined(s).vector - mean).norm()))
        return same(start + strength * p, view), combined(strength).memory

    def _combined(self, x: Tensor, view: RoundView, memory: Tensors, rng: Rng) -> Aggregate:
        """What the server would make of uploads x [n, d]."""
        knowledge, rule = self.knowledge, self.knowledge.defense.rule
        if rule is None:
            return Aggregate(x.mean(0), None)

        def reference() -> Tensor:
            drawn = knowledge.data.draw(rule.auxiliary * knowledge.task.n_classes, rng.child("reference"))
            return flatten(knowledge.defense.expected_upload(view.down, *drawn))

        call = Call(
            weights=x.new_ones(len(x)),
            f=knowledge.task.assumed_corrupted_per_round,
            memory=memory,
            rng=rng.child("rule"),
            reference=reference,
            senders=(*view.honest_clients, *view.clients),
            shapes=tuple(tuple(t.shape[1:]) for t in view.own.values()),
        )
        return checked(rule(x, call), rule, x)
