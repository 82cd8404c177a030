"""BAFFLE, Backpropagation-Free Federated Learning (Feng et al., "Does Federated Learning Really Need
Backpropagation?", 2023), Algorithm 1.

    server → client   W and a 4-byte seed s, from which both ends draw δ_1 … δ_K ~ N(0, σ² I)
    client            ΔL_k = L(W + δ_k; D_c) − L(W; D_c)             forward (Eq. 2), K + 1 forward passes
                      ΔL_k = L(W + δ_k; D_c) − L(W − δ_k; D_c)       central (Eq. 3), 2K forward passes
    client → server   ΔL_1 … ΔL_K, 4K bytes
    server            ΔL_k = Σ_c (N_c/N) ΔL_{c,k};  ĝ = (1/K) Σ_k δ_k ΔL_k / σ²  (central: / 2σ²)      (Eq. 6)
                      W ← W − step(ĝ), SGD or Adam;  deployed is a moving average of W

That is the batch level (FedSGD). At the epoch level (FedAvg), where all of the paper's tables are, a client steps on
its own ĝ through its local epochs and uploads W − W_local, as FedAvg does: 4n bytes up, no loss difference leaves it.

A client runs forward passes only. How the server gets the sum alone is not part of this file
(`fedarena.contracts.secure_sum`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Broadcast, Cohort, Defense, Direction, State
from fedarena.contracts.observation import Disclosure, Reading
from fedarena.contracts.secure_sum import SecureSum
from fedarena.contracts.shared_directions import SharedDirections
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.options import to_text
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, flatten, rows, shaped, stack
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle import stein_law
from fedarena.defenses.baffle.card import Options
from fedarena.defenses.baffle.check_options import FORMATS, check
from fedarena.defenses.baffle.directions import CHUNK_BYTES, directions
from fedarena.defenses.baffle.memory_fit import rows_that_fit
from fedarena.defenses.baffle.readings import readings, rebuilt
from fedarena.defenses.baffle.vanished import VANISHED, mark, share
from fedarena.defenses.baffle.wire import COUNT, DIFFERENCES, SEED, BaffleWire, Estimate
from fedarena.problem.task import Batch, Task

AVERAGE = "average."
"""Prefix of W̄ in the server's state."""

Differences = Callable[[Tensors, Tensor, Tensor, int, int], Tensor]
"""(params, x [b, ...], y, seed, K) → ΔL_1 … ΔL_K."""


class Baffle(Defense, SharedDirections):
    """The protocol; see the module's docstring and `fedarena.defenses.baffle.card.Options`."""

    options: Options
    undisclosed = "round at the option precision, which readings do not replay"
    no_momentum = "loss differences belong to other directions in each round and cannot be added up"
    sums = True

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        self.wire = BaffleWire.of(options, task)
        check(options, task, rule)
        self.rows = rows_that_fit(options, task)
        """Samples at a time in a client's forward passes; None: as many as are fast."""

    def in_round(self, t: int) -> Self:
        protocol = super().in_round(t)
        if protocol is not self:
            protocol.wire = replace(self.wire, schedule=protocol.task.schedule)
        return protocol

    def secured(self, secure: SecureSum | None) -> Self:
        o, fedsgd = self.options, self.task.schedule.fedsgd
        needs = {"law": not o.law, "perturbations": not self.wire.own_seeds, "min_directions": o.min_directions is None}
        for name, holds in needs.items():
            if secure is not None and fedsgd and not holds:
                raise UserError(
                    f"defense baffle: option '{name}' is {to_text(getattr(o, name))}, but secure aggregation sums the "
                    "clients' K loss differences along shared directions: leave one of them out"
                )
        return super().secured(secure)

    # -- the wire ----------------------------------------------------------------------------------

    def broadcast(self, state: State, rng: Rng) -> Broadcast:
        seed = {SEED: _seed(rng)}
        if DIFFERENCES in state.extra:
            return Broadcast({**seed, DIFFERENCES: state.extra[DIFFERENCES]})
        return Broadcast({**seed, **state.params})

    def chosen_broadcast(self, state: State, params: Tensors, rng: Rng) -> Broadcast:
        """As inherited; with downlink=scalars W is sent, as after a failed round."""
        return self.broadcast(replace(self.skipped(state), params=params), rng)

    def takes(self, down: Tensors, honest: Tensors) -> bool:
        """As inherited; with downlink=scalars also W in the place of the aggregated differences."""
        if self.options.downlink == "scalars" and DIFFERENCES not in down:
            honest = {SEED: honest[SEED], **self.wire.like}
        return super().takes(down, honest)

    def draw(self, rng: Rng) -> Tensors:
        """A client's own seed, and how many differences it evaluates, if the options let the client choose them."""
        o, drawn = self.options, {}
        if self.wire.own_seeds:
            drawn[SEED] = _seed(rng.child("perturbations"))
        if o.min_directions is not None:
            spread = o.directions - o.min_directions + 1
            count = o.min_directions + rng.child("count").integer() % spread
            drawn[COUNT] = torch.tensor([count], dtype=torch.int16)
        return drawn

    def sent_bytes(self, ups: Tensors) -> int:
        """The bytes of the tensors. If a client evaluated fewer than K differences, the padding is not counted.

        With law=true, the bytes that a real client would have sent: 4 for each difference, and 4 for an own seed.
        """
        if self.task.schedule.fedsgd and self.options.law:
            return (4 * self.options.directions + 4 * self.wire.own_seeds) * len(next(iter(ups.values())))
        filled = 4 * int((self.options.directions - ups[COUNT]).sum()) if COUNT in ups else 0
        return super().sent_bytes(ups) - filled

    # -- a client ----------------------------------------------------------------------------------

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        return self._client(down, batch, memory, noise, self.differences, CHUNK_BYTES)

    def client_low_memory(
        self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors
    ) -> tuple[Tensors, Tensors]:
        """As inherited, one direction at a time: several would be faster, but would take more memory."""
        return self._client(down, batch, memory, noise, self._sparing, 0)

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        if not self.task.schedule.fedsgd or self.wire.own_seeds or self.options.law or COUNT in noises[0]:
            chunk = CHUNK_BYTES if self.rows is None else 0
            given = zip(batches, memories, noises, strict=True)
            done = [self._client(down, b, m, noise, self._fast, chunk) for b, m, noise in given]
            return stack([up for up, _ in done]), [memory for _, memory in done]
        params, memory = self.opened(down, memories[0])
        differences = self._evaluate(params, batches, int(down[SEED]), self.options.directions, self.rows)
        ups = [self._upload(d, noise) for d, noise in zip(differences, noises, strict=True)]
        return stack(ups), [dict(memory) for _ in batches]

    def opened(self, down: Tensors, memory: Tensors) -> tuple[Tensors, Tensors]:
        """W_t, and the memory that rebuilding it in the next round needs; see `BaffleWire.open`."""
        return self.wire.open(self.step, down, memory)

    def _client(
        self,
        down: Tensors,
        batch: Batch,
        memory: Tensors,
        noise: Tensors,
        evaluate: Differences,
        chunk: int,
    ) -> tuple[Tensors, Tensors]:
        seed, k = self._drawn(down, noise)
        if not self.task.schedule.fedsgd:
            return self.wire.local(down, batch, memory, self._estimator(evaluate, seed, k, chunk, noise))
        params, memory = self.opened(down, memory)
        x, y = batch.x[0], batch.y[0]
        if self.options.law:
            return self._gradient(params, x, y), memory
        return self._upload(evaluate(params, x, y, seed, k), noise), memory

    def _drawn(self, down: Tensors, noise: Tensors) -> tuple[int, int]:
        """The seed of a client's perturbations, and how many of them it takes."""
        seed = int(noise[SEED] if self.wire.own_seeds and SEED in noise else down[SEED])
        return seed, int(noise[COUNT]) if COUNT in noise else self.options.directions

    def _upload(self, differences: Tensor, noise: Tensors) -> Tensors:
        """The upload of one client: its differences, padded with zeros to [K], so that uploads can be stacked."""
        up = {name: noise[name] for name in (SEED, COUNT) if name in noise and (name == COUNT or self.wire.own_seeds)}
        return {DIFFERENCES: F.pad(differences.float(), (0, self.options.directions - len(differences))), **up}

    def _estimator(self, evaluate: Differences, seed: int, k: int, chunk: int, noise: Tensors) -> Estimate:
        """ĝ of one local step: from K loss differences, or a draw from its distribution."""

        def real(params: Tensors, x: Tensor, y: Tensor, t: int) -> Tensors:
            at = self.wire.seed_of_step(seed, t)
            return self.wire.estimate(at, evaluate(params, x, y, at, k), chunk)

        def simulated(params: Tensors, x: Tensor, y: Tensor, t: int) -> Tensors:
            generator = torch.Generator().manual_seed(self.wire.seed_of_step(int(noise[SEED]), t))
            g = stein_law.estimate(flatten(self._gradient(params, x, y)), k, generator)
            return self.wire.clipped(shaped(g, self.wire.like))

        return simulated if self.options.law else real

    def _gradient(self, params: Tensors, x: Tensor, y: Tensor) -> Tensors:
        """∂L/∂W by backpropagation, for law=true; a third faster than `torch.func.grad`."""
        leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
        gradients = torch.autograd.grad(self.task.loss(leaves, x, y), list(leaves.values()))
        return dict(zip(leaves, gradients, strict=True))

    # -- loss differences --------------------------------------------------------------------------

    def differences(self, params: Tensors, x: Tensor, y: Tensor, seed: int, k: int) -> Tensor:
        """ΔL_1 … ΔL_K of one batch [K], written plainly."""
        o, dtype = self.options, FORMATS[self.options.precision]
        w, x = {name: p.to(dtype) for name, p in params.items()}, x.to(dtype)
        y = y.to(dtype) if y.is_floating_point() else y
        here = self.task.loss(w, x, y) if o.scheme == "forward" else None
        differences = []
        for _, z in zip(range(k), directions(seed, self.wire.n), strict=False):
            delta = shaped((o.sigma * z).to(x), self.wire.like)
            there = self.task.loss(combine(1.0, w, 1.0, delta), x, y)
            differences.append(there - (self.task.loss(combine(1.0, w, -1.0, delta), x, y) if here is None else here))
        return torch.stack(differences)

    def _fast(self, params: Tensors, x: Tensor, y: Tensor, seed: int, k: int) -> Tensor:
        return self._evaluate(params, [Batch(x[None], y[None])], seed, k, self.rows)[0]

    def _sparing(self, params: Tensors, x: Tensor, y: Tensor, seed: int, k: int) -> Tensor:
        """`_fast`, but one direction at a time for every model."""
        return self._evaluate(params, [Batch(x[None], y[None])], seed, k, self.rows or len(y))[0]

    def _evaluate(self, params: Tensors, batches: Sequence[Batch], seed: int, k: int, rows: int | None) -> Tensor:
        """`differences` of many clients at the same parameters [clients, K], of at most so many samples at a time."""
        o, z = self.options, directions(seed, self.wire.n)
        how = forwards.Differencing(o.sigma, o.scheme, FORMATS[o.precision])
        return forwards.differences(self.task, params, batches, z, k, how, rows)

    # -- the server --------------------------------------------------------------------------------

    def direction(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        bare = replace(state, extra={n: t for n, t in state.extra.items() if not n.startswith(AVERAGE)})
        if not self.task.schedule.fedsgd:
            return self.combine(bare, sent, ups, cohort, rng)
        if self.options.law:
            return self._simulated(bare, sent, ups, cohort, rng)
        direction = self._combined(bare, sent, ups, cohort, rng)
        if self.secure is not None:
            return direction  # the server does not see single differences; `diagnostics` does
        return replace(direction, verdict={**direction.verdict, VANISHED: share(ups[DIFFERENCES], self._counts(ups))})

    def _combined(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """ĝ of the combined differences, or the combined ĝ if clients have own seeds."""
        if self._combines_estimates:
            k = self._counts(ups).flatten().tolist()
            each = zip(ups[SEED].flatten().tolist(), ups[DIFFERENCES], k, strict=True)
            estimates = [self.wire.estimate(int(seed) % 2**32, d[: int(count)]) for seed, d, count in each]
            return self.combine(state, sent, stack(estimates), cohort, rng)
        if COUNT in ups:
            has = torch.arange(self.options.directions, device=ups[COUNT].device) < ups[COUNT]
            weight = cohort.weights[:, None] * has
            used = weight.sum(0) > 0
            mean = ((weight * ups[DIFFERENCES]).sum(0) / weight.sum(0).clamp(min=1e-30))[used]
            return Direction(self.wire.estimate(int(sent.down[SEED]), mean), verdict={"used": cohort.weights})
        combined = self.combine(state, sent, ups, cohort, rng)
        mean = combined.step[DIFFERENCES]
        extra = {**combined.extra, DIFFERENCES: mean} if self.options.downlink == "scalars" else combined.extra
        return replace(combined, step=self.wire.estimate(int(sent.down[SEED]), mean), extra=extra)

    @property
    def _combines_estimates(self) -> bool:
        """Whether each client's differences become an estimate of their own before they are combined."""
        return self.wire.own_seeds and self.task.schedule.fedsgd and not self.options.law

    def _counts(self, ups: Tensors) -> Tensor:
        """How many differences each client evaluated [clients, 1]."""
        if COUNT in ups:
            return ups[COUNT]
        return torch.full((len(ups[DIFFERENCES]), 1), self.options.directions, device=ups[DIFFERENCES].device)

    def _simulated(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> Direction:
        """Draw the estimate for law=true: once for the mean gradient, or once for each client with an own seed."""
        if not self.wire.own_seeds:
            combined = self.combine(state, sent, ups, cohort, rng)
            g = stein_law.estimate(flatten(combined.step), self.options.directions, rng.child("law").torch())
            return replace(combined, step=self.wire.clipped(shaped(g, self.wire.like)))
        drawn = [
            stein_law.estimate(g, self.options.directions, rng.child("law", i).torch()) for i, g in enumerate(rows(ups))
        ]
        estimates = stack([self.wire.clipped(shaped(g, self.wire.like)) for g in drawn])
        return self.combine(state, sent, estimates, cohort, rng)

    def aggregate(self, state: State, sent: Broadcast, ups: Tensors, cohort: Cohort, rng: Rng) -> State:
        """As inherited; also W̄ ← d·W̄ + (1 − d)·W with d the decay, W̄ = W at first."""
        after = super().aggregate(state, sent, ups, cohort, rng)
        if self.options.ema is None:
            return after
        decay = self._decay(state.steps, cohort)
        average = combine(decay, self.deployed(state), 1 - decay, after.params)
        return replace(after, extra={**after.extra, **{AVERAGE + name: t for name, t in average.items()}})

    def _decay(self, t: int, cohort: Cohort) -> float:
        """The decay after t averaged rounds: of one average, or of as many as a client takes steps in the round."""
        o, decay = self.options, 1.0
        schedule, sizes = self.task.schedule, self.task.sizes
        steps = max(schedule.steps(sizes[c]) for c in cohort.clients) if o.ema_per == "step" else 1
        assert o.ema is not None
        for i in range(t * steps, (t + 1) * steps):
            decay *= min(o.ema, (2 + i) / (11 + i)) if o.ema_warmup else o.ema
        return decay

    def skipped(self, state: State) -> State:
        """As inherited; with downlink=scalars W is sent again, because clients hold the seed of the failed round."""
        after = super().skipped(state)
        return replace(after, extra={name: t for name, t in state.extra.items() if name != DIFFERENCES})

    def deployed(self, state: State) -> Tensors:
        """W̄, or W before the first average and without one."""
        return {name: state.extra.get(AVERAGE + name, w) for name, w in state.params.items()}

    def diagnostics(self, sent: Broadcast, batch: Batch, noise: Tensors, ups: Tensors) -> Tensors:
        """The share of differences that are 0, if the server does not see them.

        With a secure sum all differences count. At the epoch level with `precision=float16`, those of one client's
        first local step count.
        """
        if self.options.law:
            return {}
        if self.task.schedule.fedsgd:
            return {} if self.secure is None else {VANISHED: share(ups[DIFFERENCES], self._counts(ups))}
        if self.options.precision != "float16":
            return {}
        start = {name: sent.down[name] for name in self.wire.like}
        differences = self._fast(start, batch.x[0], batch.y[0], *self._drawn(sent.down, noise))
        return {VANISHED: (differences == 0).float().mean().reshape(1)}

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        if self.options.law:
            return (
                "simulated in law: gradient estimates are draws from their exact law, not loss differences; a client's "
                "time and memory are the simulation's",
            )
        return mark(verdicts, self.options.precision, whole=self.task.schedule.fedsgd)

    def _reference(self, state: State, sent: Broadcast) -> Tensor:
        """As inherited; ĝ if clients have own seeds, because the rule then gets estimates."""
        reference = super()._reference(state, sent)
        return flatten(self.wire.estimate(int(sent.down[SEED]), reference)) if self._combines_estimates else reference

    # -- directions that all clients share --------------------------------------------------------

    def why_not_shared(self) -> str:
        if not self.task.schedule.fedsgd:
            return "with local epochs no loss difference is uploaded"
        if self.options.law:
            return "the run is simulated in law: there are no loss differences to write"
        if self.wire.own_seeds:
            return "clients perturb with seeds of their own, so that no direction is shared"
        if self.options.downlink == "scalars":
            return "with downlink=scalars this attack, which keeps no model, is not sent one"
        return ""

    def shared_directions(self, down: Tensors) -> Iterator[Tensor]:
        return self.wire.directions(int(down[SEED]))

    @property
    def spacing(self) -> float:
        return self.wire.spacing

    def upload_of(self, differences: Tensor) -> Tensors:
        return {DIFFERENCES: differences}

    # -- what parties observe ----------------------------------------------------------------------

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, self.wire, threat, seen, victims)

    def disclosure(self, threat: Threat, now: Seen) -> Disclosure | NotApplicable:
        """The broadcast without the seed, where it is W."""
        return super().disclosure(threat, replace(now, down={n: t for n, t in now.down.items() if n != SEED}))

    def disclosures(
        self, threat: Threat, seen: Mapping[int, Seen], rounds: Sequence[int]
    ) -> Sequence[Disclosure] | NotApplicable:
        """As inherited; with downlink=scalars W as a party rebuilds it that saw all earlier broadcasts."""
        if self.options.downlink == "model" or threat.party == "server":
            return super().disclosures(threat, seen, rounds)
        return rebuilt(self, self.wire, seen, rounds)


def _seed(rng: Rng) -> Tensor:
    return torch.tensor([rng.child("seed").integer(31)], dtype=torch.int32)
