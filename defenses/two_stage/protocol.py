"""Two-stage DP and Byzantine-resilient FL (Xiang, Wang, Lin & Wang, SIGMOD 2023, Algorithms 1 to 3).

server → client   W
client → server   g = (1/b)(Σ_j φ_j/‖φ_j‖ + N(0, σ² I)), as in `fedarena.defenses.dp_sgd.protocol`
server            zero the g that do not look like noise (stage one); score the rest against the gradient g_s of the
                  server's own samples, add the scores up, select the k best clients (stage two);
                  W ← W − η (1/n) Σ_selected g, or (1/k) for (1/n): option `divisor`

Stage one is `fedarena.defenses.two_stage.first_stage`, stage two `fedarena.defenses.two_stage.second_stage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.two_stage.card import Options
from fedarena.defenses.two_stage.check_options import check
from fedarena.defenses.two_stage.first_stage import FirstStage
from fedarena.defenses.two_stage.second_stage import counted, select, size
from fedarena.problem.task import Auxiliary, Batch, Task

SCORES, SMOOTHED = "scores", "smoothed"
CODE_MOMENTUM = 0.99
"""The momentum of the server's gradient in the authors' code."""


class TwoStage(DPSGD):
    """The protocol; see the module's docstring and `fedarena.defenses.two_stage.card.Options`."""

    options: Options
    name = "two-stage"
    sums = False

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        if rule is not None:
            raise UserError(
                "defense two-stage takes no aggregation rule: it aggregates by its own filter; DP noise with another "
                "rule is dp-sgd+RULE"
            )
        super().__init__(options, task)
        self.code = options.variant == "code"
        first = options.first_stage if options.first_stage is not None else not self.code
        check(options, first, bool(self.sigma))
        self.first = FirstStage(options.norm_sds, options.level) if first else None

    @classmethod
    def holds(cls, options: Any) -> Auxiliary | None:
        if not options.second_stage:
            return None
        return Auxiliary(options.aux_per_class, options.aux_dataset, "aux_per_class")

    def init(self, params: Tensors, rng: Rng, auxiliary: Batch | None = None) -> State:
        if not self.options.second_stage:
            return State(params)
        assert auxiliary is not None, "the harness gives a defense the samples that it `holds`"
        flat = flatten(params)
        extra = {SCORES: flat.new_zeros(len(self.task.sizes))}
        if self.code:
            extra[SMOOTHED] = torch.zeros_like(flat)
        return State(params, extra=extra, auxiliary=auxiliary)

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """Algorithm 3.

        The verdict has `used` [n], 1 for uploads in the aggregate; `first_stage`, 1 for those that stage one zeroed;
        `score`, s of this round before the threshold.
        """
        x = rows(ups)
        chosen = torch.ones(len(x), dtype=torch.bool, device=x.device)
        extra, verdict = dict(state.extra), {}
        if self.first is not None:
            rejected = self.first.rejects(x, self.noise_std)
            x[rejected] = 0.0  # `rows` made a copy
            chosen, verdict["first_stage"] = ~rejected, rejected.to(x)
        divisor = len(x)
        if self.options.second_stage:
            reference = self._reference_gradient(state, extra)
            scores = x @ reference
            if self.code:
                scores = scores / x.norm(dim=1).clamp_min(torch.finfo(x.dtype).tiny)
            n, o = len(x), self.options
            k = size(n, len(self.task.sizes), self.task.assumed_corrupted, o.gamma, whole=self.code)
            members = torch.tensor(cohort.clients, device=x.device)
            totals = extra[SCORES].index_add(0, members, counted(scores, k))
            selected = select(totals[members], k, rng.child("ties"))
            extra[SCORES], verdict["score"] = totals, scores
            chosen = chosen & selected
            if o.divisor == "selected" or (o.divisor == "rule" and self.code):
                divisor = k
        verdict["used"] = chosen.to(x)
        return Direction(shaped(verdict["used"] @ x / divisor, state.params), extra, verdict)

    def _reference_gradient(self, state: State, extra: Tensors) -> Tensor:
        """g_s [d], the gradient of the server's samples; in the authors' code averaged over rounds, with length 1."""
        assert state.auxiliary is not None
        x, y = state.auxiliary.images()
        own = flatten(gradient(self.task.loss, state.params, x, y))
        if not self.code:
            return own
        extra[SMOOTHED] = CODE_MOMENTUM * extra[SMOOTHED] + (1 - CODE_MOMENTUM) * own
        return F.normalize(extra[SMOOTHED], dim=0)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """As with DP-SGD, except for a client: broadcasts show a sum over a selection that it does not know."""
        if threat.party == "client":
            return NotApplicable(
                "consecutive broadcasts show the sum of the uploads that the server selected, which no client knows"
            )
        return super().readings(threat, seen, victims)
