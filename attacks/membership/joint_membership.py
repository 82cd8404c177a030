"""Joint membership: does what was seen point in the direction of what the candidate would have given?

    score(x) = ⟨a(x), v⟩/(‖a(x)‖·‖v‖)

v is what was seen of a batch, and a(x) what a batch of nothing but x would have given, both as one vector. The mean
over a batch holds 1/b of each member's own vector, so v points towards members. Whatever the protocol projects the
gradient on, it projects both alike. For plain gradients the score is the cosine of two gradients. For BAFFLE's K loss
differences it uses what their histogram lacks: which difference belongs to which perturbation.
"""

from __future__ import annotations

from torch import Tensor

from fedarena.attacks.membership.cards.joint_membership import Options
from fedarena.attacks.membership.helpers.candidate_scores import Compare
from fedarena.core.rng import Rng


class JointMembership(Compare):
    """The attack; see the module's docstring."""

    options: Options

    def alike(self, a: Tensor, target: Tensor, rng: Rng) -> float:
        return cosine(a, target)


def cosine(a: Tensor, b: Tensor) -> float:
    """⟨a, b⟩/(‖a‖·‖b‖); 0, no evidence, where either is zero."""
    a, b = a.double(), b.double()
    lengths = float(a.norm() * b.norm())
    return float(a @ b) / lengths if lengths else 0.0
