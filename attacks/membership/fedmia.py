"""FedMIA: which samples does a client hold, judged against the uploads of the other clients? (Zhu et al. 2025)

With v the upload of client c in round t, and a(x) what a batch of nothing but x would have given, the measure is the
cosine s_tc(x) of both. No other client holds x, so that their uploads show what s is like where x is no member. With
their mean μ and variance σ² (and 1e-8, as in the authors' code)

    fedmia       Σ_t Φ((s_tc − μ)/σ)           the one-tailed likelihood, Φ the normal distribution function
    avg-cosine   Σ_t s_tc                      (Li, Li, Ribeiro 2023, over several rounds)
    grad-diff    Σ_t ‖v‖² − ‖v − a(x)‖²        which is 2⟨a(x), v⟩ − ‖a(x)‖²
"""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.membership.cards.fedmia import Options
from fedarena.attacks.membership.helpers.contributions import asked_about, contributions
from fedarena.contracts.inference import GoalName, Inference, Progress, Scores, Watch
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule

LEAST_VARIANCE = 1e-8


class FedMIA(Inference):
    """The attack; see the module's docstring."""

    goal: ClassVar[GoalName] = "client-membership"
    options: Options

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.throughout(self.options.rounds, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> list[Scores] | NotApplicable:
        candidates = view.candidates
        assert candidates is not None, "the harness gives candidates"
        everyone = torch.arange(len(candidates.y), device=candidates.y.device)
        total, done = torch.zeros_like(everyone, dtype=torch.float64), 0
        for _, same_round in groupby(view.observations, key=lambda o: o.round):
            measures: list[Tensor] = []
            whose: list[Tensor] = []
            for seen in same_round:
                own = contributions(seen, candidates, everyone, view.n_classes)
                measures.append(self._measure(own, flatten(seen.target).double()))
                whose.append(asked_about(seen, candidates))
                done += 1
                progress(done / len(view.observations), f"round {seen.round}")
            total += self._evidence(torch.stack(measures), torch.stack(whose))
        return [Scores(total)]

    def _measure(self, own: Tensor, target: Tensor) -> Tensor:
        """s of every candidate [m]; a cosine is 0, no evidence, where either vector is zero."""
        along = own @ target
        if self.options.statistic == "grad-diff":
            return 2 * along - own.square().sum(1)
        lengths = own.norm(dim=1) * target.norm()
        return torch.where(lengths > 0, along / lengths, 0.0)

    def _evidence(self, measures: Tensor, whose: Tensor) -> Tensor:
        """What one round adds to the score of every candidate [m].

        Args:
            measures: s by observation and candidate, [k, m]. whose: whether the observation is of the client that the
                candidate is asked about, [k, m] (bool).
        """
        mine = torch.where(whose, measures, 0.0).sum(0) / whose.sum(0).clamp(min=1)
        others = (~whose).sum(0)
        if self.options.statistic != "fedmia" or int(others.min()) < 2:
            return mine
        mean = torch.where(whose, 0.0, measures).sum(0) / others
        variance = torch.where(whose, 0.0, (measures - mean).square()).sum(0) / others + LEAST_VARIANCE
        evidence = torch.special.ndtr((mine - mean) / variance.sqrt())
        return torch.where(whose.any(0), evidence, 0.0)
