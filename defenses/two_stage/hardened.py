"""Two-stage aggregation with two further tests and a fading memory, against adaptive attackers. Not from a paper.

The two-stage protocol tests each upload alone and never forgets a score. So an upload without noise can take on the
values of noise (the attack `rank-map`), and a client can earn trust before it does harm (the attack `bank`). Before
stage one this protocol runs two tests. Such clients fail them, but noise of standard deviation σ_u on each coordinate
does not. An upload that fails has no weight in its round:

    score   s_i = ⟨g_i, g_s⟩ < −c·σ_u‖g_s‖: farther against the server's own gradient than noise explains, whatever
            score its client has earned

    trace   e_i ← λ e_i + (1 − λ) g_i over a client's rounds. Noise averages out, a direction that persists does not:

                ‖e_i‖² > σ_u² κ (d + a√(2d)) + 2 κ r σ_u√d/λ + 6 w r σ_u√κ + w² r²

            κ = Σ_j w_j², w = Σ_j w_j of the weights w_j = (1 − λ)λ^j; r = C, the greatest length of an honest batch of
            nominal size without its noise; a = norm_sds. The second term exists only with momentum, which repeats up to
            r of the noise of the round before.

The trace is stored for two λ. The quick one, `decay`, catches a direction that is sent in a few rounds at full length.
If a sender's noise cancels over its rounds, its signal can use the whole first term, √κ σ_u√d. The slow λ averages for
so long that this is r: κ = (1 − λ)/(1 + λ) in the long run, hence λ = (σ_u²d − r²)/(σ_u²d + r²).

Stage two's sum of scores fades, S_i ← ρ S_i + s_i over a client's rounds, ρ = `score_decay`: the scores earned before a
strike have faded after 1/(1 − ρ) rounds.

Together these tests limit what an attacker can send in a persistent direction. With fresh noise in every round, it is
no more than an honest client's largest signal; with noise that cancels, it is about half as much again. In directions
that the server's own gradient opposes, it is nothing. Attackers may still push sideways.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, rows, shaped
from fedarena.defenses.two_stage.hardened_card import Options
from fedarena.defenses.two_stage.protocol import SCORES, TwoStage
from fedarena.problem.task import Task

TRACE, REACH, SPREAD = "trace", "reach", "spread"
"""The server's memory, for each client that took part under NAME.CLIENT: e [2, d], w [2], κ [2] for both λ."""


class TwoStageHardened(TwoStage):
    """The protocol; see the module's docstring and `fedarena.defenses.two_stage.hardened_card.Options`."""

    options: Options
    name = "two-stage-hardened"

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        if self.first is None or not options.second_stage:
            raise UserError(
                "defense two-stage-hardened needs both stages: set first_stage=true (variant=code leaves it out) and "
                "second_stage=true"
            )

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """As inherited, on uploads that pass. The verdict has `implausible` [n], 1 for the others, and all `score`."""
        x, extra = rows(ups), dict(state.extra)
        members, keep = torch.tensor(cohort.clients, device=x.device), self._decays(x[0])
        trace = torch.lerp(x.unsqueeze(1), _kept(extra, TRACE, cohort, x.new_zeros(2, x.shape[1])), keep.unsqueeze(1))
        reach = keep * _kept(extra, REACH, cohort, x.new_zeros(2)) + (1 - keep)
        spread = keep**2 * _kept(extra, SPREAD, cohort, x.new_zeros(2)) + (1 - keep) ** 2
        for name, values in ((TRACE, trace), (REACH, reach), (SPREAD, spread)):
            # Of clients that are sampled, one row in memory would keep those of all clients of its round.
            own = values if self.task.participants == len(self.task.sizes) else [one.clone() for one in values]
            extra.update(zip((f"{name}.{client}" for client in cohort.clients), own, strict=True))
        extra[SCORES] = extra[SCORES].index_copy(0, members, self.options.score_decay * extra[SCORES][members])
        reference = self._reference_gradient(state, dict(extra))
        scores = x @ reference
        harmful = scores < -self.options.score_sds * self.noise_std * reference.norm()
        persistent = trace.square().sum(2) > self._room(keep, reach, spread, x.shape[1])
        implausible = harmful | persistent.any(1)
        passed = shaped(torch.where(implausible.unsqueeze(1), 0.0, x), row(ups, 0))
        direction = super().direction(replace(state, extra=extra), sent, passed, cohort, rng)
        verdict = {
            **direction.verdict,
            "first_stage": direction.verdict["first_stage"] * ~implausible,  # a row of zeros never looks like noise
            "implausible": implausible.to(x),
            "score": scores,
        }
        return replace(direction, verdict=verdict)

    def _decays(self, like: Tensor) -> Tensor:
        """Both λ [2], quick and slow, for uploads of the size, type and device of `like` [d]."""
        noise, signal = self.noise_std**2 * len(like), self.options.clip**2
        slow = self.options.slow_decay
        if slow is None:
            slow = max((noise - signal) / (noise + signal), self.options.decay)
        return like.new_tensor([self.options.decay, slow])

    def _room(self, keep: Tensor, reach: Tensor, spread: Tensor, d: int) -> Tensor:
        """The largest ‖e‖² [n, 2] that an honest client may have, for λ [2], w [n, 2] and κ [n, 2]."""
        std, r = self.noise_std, self.options.clip
        noise = std**2 * spread * (d + self.options.norm_sds * math.sqrt(2 * d))
        repeated = 2 * spread * r * std * math.sqrt(d) / keep if self.options.momentum else 0.0
        return noise + repeated + 6 * reach * r * std * spread.sqrt() + (reach * r) ** 2


def _kept(extra: Tensors, name: str, cohort: Cohort, nothing: Tensor) -> Tensor:
    """What the server remembers of the cohort's clients, stacked; `nothing` of one that never took part."""
    return torch.stack([extra.get(f"{name}.{client}", nothing) for client in cohort.clients])
