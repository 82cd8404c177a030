"""DP-SGD with local noise (Abadi et al. 2016; Xiang et al. 2023, Algorithm 1): each client noises its own uploads.

server → client   W
client → server   g = (1/b)(Σ_j a_j φ_j + N(0, (σC)² I)),   φ_j = (1 − β) ∇f_j + β g⁻
server            W ← W − η Σ_c (N_c/N) g_c, or any aggregation rule on the g_c

Σ runs over the samples that the client drew, a_j bounds each term's length by C
(`fedarena.problem.client_steps.per_sample`), b is the nominal batch size and g⁻ the client's own last upload (zero at
first). Algorithm 1 keeps a list of b momentum slots and sets every one of them to g after each upload, so one vector is
the whole list. That momentum reads nothing but earlier uploads, so it costs no privacy. With Poisson batches, whose
sizes differ, there are as many slots as samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.observation import Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_sgd import accountant
from fedarena.defenses.dp_sgd.card import LARGE_DELTA, Options
from fedarena.defenses.dp_sgd.readings import readings
from fedarena.defenses.dp_sgd.wire import NOISE, PREVIOUS
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.client_steps.per_sample import Bound, many_clients, one_client
from fedarena.problem.task import Batch, Task


class DPSGD(FedAvg):
    """The protocol; see the module's docstring and `fedarena.defenses.dp_sgd.card.Options`."""

    options: Options
    no_momentum = "it has a momentum of its own, option momentum of the defense"
    dropout = False

    def __init__(self, options: Options, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        schedule = task.schedule
        if not schedule.fedsgd:
            raise UserError(
                f"option 'local-epochs' is {schedule.local_epochs}, allowed with {self.name}: 0 (a round is one "
                "noisy batch)"
            )
        smallest = min(task.sizes)
        self.rate = schedule.batch_size / smallest
        """q, of the client with the fewest samples: all others are protected better."""
        self.entries = sum(p.numel() for p in task.model.parameters())
        """d, the entries of an upload."""
        self.delta = options.delta if options.delta is not None else smallest**-1.1
        if options.noise is not None and options.epsilon is not None:
            raise UserError(
                f"defense {self.name}: option 'noise' is {options.noise:g} and option 'epsilon' is "
                f"{options.epsilon:g}, allowed: one of them (epsilon=none leaves the noise as given)"
            )
        searches = options.epsilon is not None or (options.noise is not None and options.base_epsilon is not None)
        if options.search != "exact" and not searches:
            raise UserError(
                f"defense {self.name}: option 'search' is {options.search}, allowed where no σ is searched for (epsilon"
                "=none, without noise and base_epsilon): exact"
            )
        usual = type(options)().accounting
        if options.accounting != usual and not (searches and options.search == "exact"):
            raise UserError(
                f"defense {self.name}: option 'accounting' is {options.accounting}, allowed where no σ is searched for "
                f"with search=exact: {usual}"
            )
        self.sigma = self._sigma(options.epsilon) if options.noise is None else options.noise
        if not self.sigma and options.base_epsilon not in (None, type(options)().base_epsilon):
            raise UserError(
                f"defense {self.name}: option 'base_epsilon' is {options.base_epsilon:g}, allowed without noise "
                "(epsilon=none): none"
            )
        self.bound = Bound(options.clip, options.bound == "normalise", options.offset)

    name = "dp-sgd"

    def _sigma(self, epsilon: float | None) -> float:
        """σ for a target; 0 without one."""
        if epsilon is None:
            return 0.0
        exact = accountant.noise_tight if self.options.accounting == "tight" else accountant.noise
        find = accountant.searched if self.options.search == "code" else exact
        return find(epsilon, self.delta, self.rate, self.task.schedule.rounds)

    @property
    def sampling(self) -> Literal["fixed", "poisson"]:
        """The option `sampling`."""
        return "poisson" if self.options.sampling == "poisson" else "fixed"

    @property
    def noise_std(self) -> float:
        return self.sigma * self.options.clip / self.task.schedule.batch_size

    @property
    def step_size(self) -> float:
        """The schedule's step size. If `base_epsilon` is set, times σ_b/σ, so that η σ is the same as at the base."""
        usual = self.task.schedule.step_size
        if self.options.base_epsilon is None or not self.sigma:
            return usual
        return usual * self._sigma(self.options.base_epsilon) / self.sigma

    def guarantees(self) -> dict[str, float]:
        """σ, δ, q, T, and the resulting ε of a client that takes part in every round.

        `epsilon_add_remove` counts one sample more or less by Rényi accounting (the paper's code), a bound.
        `epsilon_add_remove_tight` counts the same and `epsilon_replace_one` one sample exchanged, by that or by privacy
        loss distributions, whichever is smaller. `epsilon_sensitivity_2` bounds the latter as the paper's proof has it.
        Batches of fixed size have a public number of samples: for them only the exchange is defined,
        `epsilon_replace_one_fixed`, by Rényi accounting. `target_by_…` is the ε that σ was searched for, and its name
        says by what.
        """
        if not self.sigma:
            return {"sigma": 0.0}
        rounds, b, n = self.task.schedule.rounds, self.task.schedule.batch_size, min(self.task.sizes)
        given = (self.sigma, self.delta, self.rate, rounds)
        parameters = {"sigma": self.sigma, "delta": self.delta, "q": self.rate, "rounds": float(rounds)}
        if self.options.epsilon is not None:
            parameters[f"target_by_{self._accounted(*given)}"] = self.options.epsilon
        if self.sampling == "fixed":
            return {
                **parameters,
                "epsilon_replace_one_fixed": accountant.replace_one_fixed(self.sigma, self.delta, b, n, rounds),
            }
        return {
            **parameters,
            "epsilon_add_remove": accountant.epsilon(*given),
            "epsilon_add_remove_tight": accountant.add_remove(*given),
            "epsilon_replace_one": accountant.replace_one(*given),
            "epsilon_sensitivity_2": accountant.epsilon(*given, 2.0),
        }

    def _accounted(self, sigma: float, delta: float, rate: float, rounds: int) -> str:
        """By which bound σ reaches the target."""
        if self.options.search == "code":
            return "papers_code"
        bounds = accountant.epsilon(sigma, delta, rate, rounds), accountant.add_remove(sigma, delta, rate, rounds)
        return "pld" if self.options.accounting == "tight" and bounds[1] < bounds[0] else "renyi"

    def warnings(self, verdicts: Sequence[Tensors]) -> tuple[str, ...]:
        """As inherited, and that δ is too large to protect a sample."""
        inherited, smallest = super().warnings(verdicts), min(self.task.sizes)
        if not self.sigma or self.delta * smallest < 1:
            return inherited
        return (*inherited, LARGE_DELTA.format(delta=self.delta, smallest=smallest))

    # -- clients -----------------------------------------------------------------------------------

    def draw(self, rng: Rng) -> Tensors:
        """N(0, (σC)² I), one vector [d] in the order of the parameters."""
        if not self.sigma:
            return {}
        return {NOISE: torch.randn(self.entries, generator=rng.torch()).mul_(self.sigma * self.options.clip)}

    def client(self, down: Tensors, batch: Batch, memory: Tensors, noise: Tensors) -> tuple[Tensors, Tensors]:
        total = one_client(self.task, down, batch, memory.get(PREVIOUS), self.options.momentum, self.bound)
        if NOISE in noise:
            total = total + noise[NOISE]
        up = total / self.task.schedule.batch_size
        return shaped(up, down), self._memory_after(up)

    def clients(
        self, down: Tensors, batches: Sequence[Batch], memories: Sequence[Tensors], noises: Sequence[Tensors]
    ) -> tuple[Tensors, list[Tensors]]:
        momenta: Tensor | None = None
        if any(PREVIOUS in m for m in memories):
            zero = torch.zeros_like(flatten(down))
            momenta = torch.stack([m.get(PREVIOUS, zero) for m in memories])
        ups = many_clients(self.task, down, batches, momenta, self.options.momentum, self.bound)
        for up, noise in zip(ups, noises, strict=True):
            if NOISE in noise:
                up += noise[NOISE]
        ups /= self.task.schedule.batch_size
        return shaped(ups, down), [self._memory_after(up) for up in ups]

    def expected_upload(self, down: Tensors, x: Tensor, y: Tensor) -> Tensors:
        """As inherited, scaled to a batch of the nominal size."""
        total = many_clients(self.task, down, [Batch(x[None], y[None])], None, self.options.momentum, self.bound)
        return shaped(total[0] / len(y), down)

    def _memory_after(self, up: Tensor) -> Tensors:
        return {PREVIOUS: up} if self.options.momentum else {}

    # -- what parties observe ----------------------------------------------------------------------

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        return readings(self, self.options.momentum > 0, threat, seen, victims)
