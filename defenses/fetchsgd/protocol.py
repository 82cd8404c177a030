"""FetchSGD (Rothchild et al. 2020, Algorithm 1).

    server → client   W_t and the seed of the hash functions
    client → server   S(g_c), r·c numbers
    server            S_u ← ρ S_u + Σ_c (N_c/N) S(g_c)           momentum
                      S_e ← S_e + η S_u                          error
                      Δ = the k largest entries of U(S_e), 0 elsewhere
                      S_e ← S_e − S(Δ)
                      W ← W − Δ

S is the Count Sketch and U reads it (`fedarena.defenses.fetchsgd.count_sketch`). Momentum and error live in the sketch,
which is linear, so that clients keep nothing. k is well below the c columns: an entry is read with the noise of those
that share its buckets, and with k near c the error grows from round to round until the training diverges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Direction, State
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.defenses.fetchsgd.card import Options
from fedarena.defenses.fetchsgd.readings import readings
from fedarena.defenses.fetchsgd.wire import SEED, SKETCH, hashes_of, without_seed
from fedarena.problem.task import Batch, Task

MOMENTUM, ERROR = "fetchsgd.momentum", "fetchsgd.error"


class FetchSGD(FedAvg):
    """The protocol; see the module's docstring and `fedarena.defenses.fetchsgd.card.Options`."""

    options: Options
    no_momentum = "its momentum is the server's, in the sketch"
    dropout = True
    sums = True

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        if rule is not None:
            raise UserError("defense fetchsgd takes no aggregation rule: the server adds sketches")
        if task.schedule.server_optimizer != "sgd":
            raise UserError(
                f"option 'training.server_optimizer' is {task.schedule.server_optimizer}, allowed with defense "
                "fetchsgd: sgd, since its momentum and error are in the sketch"
            )
        super().__init__(options, task)

    # -- the wire ----------------------------------------------------------------------------------

    def init(self, params: Tensors, rng: Rng, auxiliary: Batch | None = None) -> State:
        state = super().init(params, rng, auxiliary)
        seed = torch.tensor([rng.child("hash functions").integer(31)], dtype=torch.int32)
        return replace(state, extra={SEED: seed})

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        return Broadcast(down={**state.params, SEED: state.extra[SEED]})

    # -- a client ----------------------------------------------------------------------------------

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        up, memory = super().client(without_seed(down), batch, memory, noise)
        return {SKETCH: hashes_of(self.options, down).sketch(flatten(up))}, memory

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        ups, after = super().clients(without_seed(down), batches, memories, noises)
        hashes = hashes_of(self.options, down)
        return {SKETCH: torch.stack([hashes.sketch(g) for g in rows(ups)])}, after

    # -- the server --------------------------------------------------------------------------------

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """Δ over the step that the server takes against it."""
        combined = self.combine(state, sent, ups, cohort, rng)
        hashes, mean = hashes_of(self.options, sent.down), combined.step[SKETCH]
        momentum = self.options.momentum * state.extra.get(MOMENTUM, torch.zeros_like(mean)) + mean
        error = state.extra.get(ERROR, torch.zeros_like(mean)) + self.step_size * momentum
        change = largest(hashes.estimate(error), max(1, round(self.options.kept * hashes.columns)))
        extra = {SEED: state.extra[SEED], MOMENTUM: momentum, ERROR: error - hashes.sketch(change)}
        return replace(combined, step=shaped(change / self.step_size, state.params), extra=extra)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, threat, seen, victims)


def largest(values: Tensor, count: int) -> Tensor:
    """The values [d] with 0 in all entries but `count`, those of the largest |value|."""
    kept = values.abs().topk(min(count, len(values))).indices
    return torch.zeros_like(values).index_copy(0, kept, values[kept])
