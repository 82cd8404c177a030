"""Source inference: which client holds a sample that is known to be trained on? (Hu et al. 2021)

The client whose model has the least loss on x is the likeliest holder of x. With W_tc the model that the work of client
c alone led to in round t (`fedarena.contracts.left_models`)

    named(x) = argmax_c mean_t s_tc(x),   s_tc(x) = mean_c' L(W_tc'; x) − L(W_tc; x)

where means are over the rounds that are read in which c was seen, and over the clients c' seen in a round. Where every
client is seen in every round, this is the least mean loss. Else the loss of all models falls over the training, and a
client that was seen late would be named for that alone.

    loss      s as above
    cosine    s_tc(x) = cos(a(x), v_tc) less its mean over the clients seen in the round, with v the upload and a(x)
              what a batch of nothing but x would have given. It needs no model.
"""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

import torch
from torch import Tensor

from fedarena.attacks.membership.cards.source_inference import Options
from fedarena.attacks.membership.helpers.contributions import NO_MODEL, compared, cosines, minus_losses
from fedarena.contracts.inference import GoalName, Inference, Progress, Sources, Watch
from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.view import View
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.problem.schedule import Schedule


class SourceInference(Inference):
    """The attack; see the module's docstring."""

    goal: ClassVar[GoalName] = "source"
    options: Options

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.needs_models = options.statistic == "loss"

    def watch(self, schedule: Schedule) -> Watch:
        return Watch.throughout(self.options.rounds, schedule)

    def run(self, view: View, rng: Rng, progress: Progress) -> Sources | NotApplicable:
        candidates = view.candidates
        assert candidates is not None, "the harness gives candidates"
        if self.needs_models and any(seen.left is None for seen in view.observations):
            return NotApplicable(NO_MODEL)
        clients = sorted({seen.clients[0] for seen in view.observations})
        place = {client: i for i, client in enumerate(clients)}
        total = torch.zeros(len(clients), len(candidates.y), dtype=torch.float64, device=candidates.y.device)
        times = torch.zeros_like(total)
        done = 0
        for _, same_round in groupby(view.observations, key=lambda o: o.round):
            seen = list(same_round)
            rows = torch.tensor([place[o.clients[0]] for o in seen], device=total.device)
            fits = torch.stack([self._fit(o, candidates, view.n_classes) for o in seen])
            total.index_add_(0, rows, fits - fits.mean(0))
            times.index_add_(0, rows, torch.ones_like(fits))
            done += len(seen)
            progress(done / len(view.observations), f"round {seen[0].round}")
        best = (total / times.clamp(min=1)).argmax(0)
        return Sources(torch.tensor(clients, device=best.device)[best])

    def _fit(self, seen: Observation, candidates: Candidates, n_classes: int) -> Tensor:
        """How well every candidate fits what was seen of a client, [m]; higher: better."""
        everyone = torch.arange(len(candidates.y), device=candidates.y.device)
        if self.needs_models:
            return minus_losses(seen, candidates, everyone)
        return compared(seen, candidates, everyone, n_classes, cosines)
