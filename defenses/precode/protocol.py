"""PRECODE (Scheliga, Mäder & Seeland 2022): FedAvg of a model with a variational bottleneck, and what is read of it.

The model is `fedarena.models.bottleneck`'s: code = μ(h) + σ(h)·ε of the representation h, with ε from the client's own
randomness, and D code + d enters the output layer. What the noise makes random is δ = ∂L/∂z of each layer. It does not
hide the layers' inputs before it. Two adaptive readings follow.

    before the bottleneck   the gradients of the layers before the encoder are matched, at ε = 0, and no others. This is
                            the attack of PPP (Scheliga et al. 2022, arXiv 2208.04767, Section 4).
    code                    of one gradient of one sample. The decoder's is ∂L/∂D = δ codeᵀ, ∂L/∂d = δ, so that
                            code = (∂L/∂D)ᵀ δ/‖δ‖². A candidate x with ε(x) = (code − μ(x))/σ(x) has the same code, and
                            the true sample gives the upload exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fedarena.contracts import plain_readings
from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Defense
from fedarena.contracts.kept_entries import KeptEntries
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.transcript import Seen
from fedarena.core.errors import UserError
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.models.bottleneck import BOTTLENECK, DECODER, ENCODER, Bottleneck, moments
from fedarena.problem.task import Batch, Task

CODE, BEFORE = "code", "before the bottleneck"
"""The names of the adaptive readings."""
WEIGHT, BIAS = f"{DECODER}.weight", f"{DECODER}.bias"


class Precode(FedAvg):
    """The protocol; see the module's docstring. Its client step is FedAvg's."""

    no_momentum = "what attackers read off the decoder is of one gradient, and not of a sum over rounds"

    def __init__(self, options: Any, task: Task, rule: Aggregator | None = None) -> None:
        super().__init__(options, task, rule)
        if task.bottlenecks != (BOTTLENECK,):
            raise UserError(
                "option 'model' has no variational bottleneck, allowed with precode: a model with it, such as "
                "--model mlp --set model.bottleneck=256"
            )
        names = [name for name, _ in task.layers]
        self.before = frozenset(names[: names.index(ENCODER)])
        """The layers that come before the bottleneck."""

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """Those of FedAvg in paper form. See the module's docstring for the adaptive form."""
        of_fedavg = plain_readings.readings(self, threat, seen, victims)
        if threat.form == "paper" or isinstance(of_fedavg, NotApplicable):
            return of_fedavg
        given = [o for reading in of_fedavg for o in reading.observations]
        found = [Reading(BEFORE, tuple(map(self._before, given)))]
        if all(self._shows_code(o) for o in given):
            found.insert(0, Reading(CODE, tuple(self._at_code(o, seen[o.round]) for o in given)))
        return found

    def _before(self, o: Observation) -> Observation:
        """The layers before the bottleneck alone; the output bias stays for the labels that it shows."""
        kept = {name: torch.full_like(t, float(name.rpartition(".")[0] in self.before)) for name, t in o.target.items()}
        target = {name: t if name == o.output_bias else t * kept[name] for name, t in o.target.items()}
        return replace(o, target=target, simulate=KeptEntries(o.simulate, kept))

    def _at_code(self, o: Observation, now: Seen) -> Observation:
        return replace(o, simulate=AtCode(self.in_round(o.round), now.down, code(o)))

    def _shows_code(self, o: Observation) -> bool:
        """Whether the code is read off: one gradient of one sample, which reached the decoder."""
        alone = o.images == 1 and self.task.schedule.fedsgd
        return alone and BIAS in o.target and bool(o.target[BIAS].any())


def code(o: Observation) -> Tensor:
    """(∂L/∂D)ᵀ δ/‖δ‖² [k], δ = ∂L/∂d."""
    delta = o.target[BIAS].double()
    found: Tensor = delta @ o.target[WEIGHT].double() / delta.square().sum()
    return found.to(o.target[WEIGHT])


@dataclass(frozen=True)
class AtCode:
    """Simulator: the gradient that a candidate sample gives where the noise makes its code a given one.

    Attributes:
        defense: the protocol. down: W. code: [k].
    """

    defense: Defense
    down: Tensors
    code: Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        mean, std = moments(self.defense.task.entering(BOTTLENECK, self.down, x))
        noise = {f"{BOTTLENECK}.{Bottleneck.drawn}": ((self.code - mean) / std)[None]}
        return self.defense.client(self.down, Batch(x[None], y[None], noise), {}, {})[0]
