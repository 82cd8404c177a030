"""Optimised local model poisoning: uploads that undo the honest step where a given rule still lets them pass.

against=eq10, the form of Xiang et al. (SIGMOD 2023, Eq. 8-10) against their first stage, M colluders, B honest:

    every colluder sends −(1 + λ)/M Σ_B g_B,  λ = M/√B − 1,  which is −(1/√B) Σ_B g_B

    so that the sum of all uploads is −λ Σ_B g_B; λ > 0 needs M > √B. When noise drowns the signal, the upload has
    the norm and the distribution of one honest upload. Another λ can be given, or tuned.

against=krum and against=trimmed-mean: Fang et al. (USENIX Security 2020), see `helpers/fang.py`.
"""

from __future__ import annotations

import math
from typing import Any

from fedarena.attacks.poisoning.cards.optimized import Options
from fedarena.attacks.poisoning.helpers import fang
from fedarena.attacks.poisoning.helpers.honest_estimate import all_rows, honest_rows, needs_two, same
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, row, shaped
from fedarena.core.threat import NotApplicable


class Optimized(Poisoning):
    """The attack; see the module's docstring and `fedarena.attacks.poisoning.cards.optimized.Options`."""

    options: Options
    knowledge_levels = ("omniscient", "own")
    tunes = {"lam": (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0)}  # noqa: RUF012  (a ClassVar of the base)

    def __init__(self, options: Any, knowledge: AttackerKnowledge) -> None:
        super().__init__(options, knowledge)
        if self.options.against != "eq10" and self.options.tune:
            raise UserError(
                f"attack optimized: option 'tune' is {self.options.tune}, allowed with against="
                f"{self.options.against}: 0; it is λ that is tuned, of against=eq10"
            )

    @property
    def untuned(self) -> tuple[str, ...]:
        return super().untuned if self.options.against == "eq10" else ()

    @property
    def strengths(self) -> dict[str, float]:
        """λ = M/√B − 1 if all clients take part; in rounds with fewer, `craft` uses the numbers of the round."""
        if self.options.against != "eq10" or self.options.lam is not None:
            return {}
        corrupted = self.knowledge.corrupted
        return {"lam": corrupted / math.sqrt(self.knowledge.clients - corrupted) - 1}

    def applies(self) -> NotApplicable | None:
        against, knowledge = self.options.against, self.knowledge
        if against == "trimmed-mean":
            return needs_two(knowledge, "the standard deviation")
        if knowledge.knows == "own":
            return NotApplicable(f"against={against} needs the honest uploads: knows=omniscient, not own")
        if against == "eq10":
            honest = knowledge.clients - knowledge.corrupted
            chosen = self.options.lam is not None or self.options.tune > 1
            if knowledge.corrupted <= math.sqrt(honest) and not chosen:
                return NotApplicable(
                    f"Eq. 10 needs more colluders than √(honest clients): {knowledge.corrupted} ≤ √{honest} = "
                    f"{math.sqrt(honest):.2f}: set lam, or tune=2 or more"
                )
            return None
        n, f = knowledge.task.participants, knowledge.task.assumed_corrupted_per_round
        if n < 2 * f + 3:
            return NotApplicable(f"Krum is not defined for {n} uploads of which {f} are expected to be corrupted")
        if knowledge.clients < 2 * knowledge.corrupted + 2:
            return NotApplicable(
                f"the bound on λ needs m ≥ 2c + 2: {knowledge.clients} clients of which "
                f"{knowledge.corrupted} are corrupted"
            )
        return None

    def craft(self, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        known, generator = honest_rows(self.knowledge, view), rng.torch()
        if self.options.against == "eq10":
            colluders, lam = view.size, self.options.lam
            factor = 1 / math.sqrt(len(known)) if lam is None else (1 + lam) / colluders
            return same(-factor * known.sum(0), view), memory
        if self.options.against == "krum":
            upload = fang.against_krum(
                known, all_rows(view), view.size, self.knowledge.task.assumed_corrupted_per_round
            )
            return view.own if upload is None else same(upload, view), memory
        if self.knowledge.knows == "own":
            sent = fang.against_trimmed_mean_partial(known, view.size, generator)
        else:
            sent = fang.against_trimmed_mean(known, all_rows(view), view.size, generator)
        return shaped(sent, row(view.own, 0)), memory
