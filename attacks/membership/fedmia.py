"""FedMIA and what it is compared with: which samples does a client hold, by its uploads? (Zhu et al. 2025)

With v the upload of client c in round t, a(x) what a batch of nothing but x would have given, and W_tc the model that
the client's work alone led to, three measures tell how much v says of x:

    cosine        s_tc(x) = ⟨a(x), v⟩/(‖a(x)‖·‖v‖)
    loss          s_tc(x) = −L(W_tc; x)
    difference    s_tc(x) = ‖v‖² − ‖v − a(x)‖² = 2⟨a(x), v⟩ − ‖a(x)‖²

A statistic takes one of them, in one round or in all that are read, for the client alone or against the others. No
other client holds x, so that their uploads show what s is like where x is no member. With their mean μ and variance σ²
(and 1e-8, as in the authors' code), Φ((s_tc − μ)/σ) is the one-tailed likelihood, Φ the normal distribution function.
It takes two others: a round in which fewer of them are seen one by one says nothing, and is left out.

    fedmia          Σ_t Φ((s_tc − μ_t)/σ_t) of the cosine    FedMIA-II
    fedmia-loss     the same of the loss                     FedMIA-I
    avg-cosine      Σ_t s_tc of the cosine                   (Li, Li, Ribeiro 2023)
    loss-series     Σ_t s_tc of the loss                     (Gu, Bai, Xu 2022)
    grad-cosine     the cosine in the last round that is read in which the client was seen
    grad-diff       the difference in that round             (Li, Li, Ribeiro 2023)
    blackbox-loss   the loss in that round                   (Yeom et al. 2018)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.membership.cards.fedmia import Options
from fedarena.attacks.membership.helpers.contributions import (
    NO_MODEL,
    asked_about,
    compared,
    cosines,
    differences,
    minus_losses,
)
from fedarena.contracts.inference import GoalName, Inference, Progress, Scores, Watch
from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

LEAST_VARIANCE = 1e-8
BY_LOSS = ("fedmia-loss", "loss-series", "blackbox-loss")
AGAINST_OTHERS = ("fedmia", "fedmia-loss")
OF_ONE_ROUND = ("grad-cosine", "grad-diff", "blackbox-loss")
OTHERS = 2
"""The fewest other clients whose mean and variance are taken."""


class FedMIA(Inference):
    """The attack; see the module's docstring."""

    goal: ClassVar[GoalName] = "client-membership"
    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_models = options.statistic in BY_LOSS

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.throughout(self.options.rounds, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Scores] | NotApplicable:
        candidates, statistic = view.candidates, self.options.statistic
        assert candidates is not None, "the harness gives candidates"
        if statistic in BY_LOSS and any(seen.left is None for seen in view.observations):
            return NotApplicable(NO_MODEL)
        rounds = [list(same) for _, same in groupby(view.observations, key=lambda o: o.round)]
        if statistic in OF_ONE_ROUND:
            rounds.reverse()
        seen_by_round = [torch.stack([asked_about(seen, candidates) for seen in same]) for same in rounds]
        if statistic in AGAINST_OTHERS and not any(bool(comparable(whose).any()) for whose in seen_by_round):
            return NotApplicable(
                f"statistic={statistic} compares a client with {OTHERS} others, and no round shows so many one by one"
            )
        asked = torch.ones(len(candidates.y), dtype=torch.bool, device=candidates.y.device)
        total = torch.zeros_like(asked, dtype=torch.float64)
        for i, (same_round, whose) in enumerate(zip(rounds, seen_by_round, strict=True)):
            total += self._evidence(same_round, whose, candidates, asked, view.n_classes)
            if statistic in OF_ONE_ROUND:
                asked = asked & ~whose.any(0)
            progress((i + 1) / len(rounds), f"round {same_round[0].round}")
        return [Scores(total)]

    def _evidence(
        self, same_round: Sequence[Observation], whose: Tensor, candidates: Candidates, asked: Tensor, n_classes: int
    ) -> Tensor:
        """What one round adds to the score of every candidate [m].

        Args:
            whose: whether the observation is of the client that the candidate is asked about, [k, m] (bool).
            asked: the candidates that it may add to, [m] (bool).
        """
        alone = self.options.statistic not in AGAINST_OTHERS
        wanted = whose & asked if alone else comparable(whose).expand_as(whose)
        measures = torch.zeros_like(wanted, dtype=torch.float64)
        for seen, row, which in zip(same_round, measures, wanted, strict=True):
            if which.any():
                row[which] = self._measure(seen, candidates, which.nonzero().squeeze(1), n_classes)
        mine = torch.where(whose, measures, 0.0).sum(0) / whose.sum(0).clamp(min=1)
        if alone:
            return mine
        others = (~whose).sum(0).clamp(min=1)
        mean = torch.where(whose, 0.0, measures).sum(0) / others
        variance = torch.where(whose, 0.0, (measures - mean).square()).sum(0) / others + LEAST_VARIANCE
        evidence = torch.special.ndtr((mine - mean) / variance.sqrt())
        return torch.where(comparable(whose), evidence, 0.0)

    def _measure(self, seen: Observation, candidates: Candidates, which: Tensor, n_classes: int) -> Tensor:
        """s of some candidates [n].

        Args:
            which: their indices [n] (int64).
        """
        if self.options.statistic in BY_LOSS:
            return minus_losses(seen, candidates, which)
        measure = differences if self.options.statistic == "grad-diff" else cosines
        return compared(seen, candidates, which, n_classes, measure)


def comparable(whose: Tensor) -> Tensor:
    """The candidates whose client is seen in a round beside enough others, [m] (bool), from `whose` [k, m] (bool)."""
    return whose.any(0) & ((~whose).sum(0) >= OTHERS)
