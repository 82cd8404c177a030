"""How long a backdoor outlives the attack that planted it."""

from __future__ import annotations

from collections.abc import Sequence

DEAD = 0.5
"""A backdoor is dead once its success is below this share of what it was when the attack stopped."""


def lifespan(success: Sequence[Sequence[float]], ends: int | None) -> dict[str, float]:
    """Rounds from the attack's end to the first evaluation at which the backdoor is dead.

        lifespan = min{t : s_t < s_e/2} − e,  over the evaluations t > e

    Args:
        success: [t, s_t] of each evaluation, s_t the trigger's success after t rounds.
        ends: e, how many rounds were over when the attack stopped; None: it did not.

    Returns:
        lifespan: where the backdoor does not die, the rounds from e to the last evaluation. 0 where s_e is 0.
        lifespan_is_bound: 1 where it does not die, so that its lifespan is this or longer; else 0.

        Empty where the attack did not stop, or the model was not evaluated when it did and later.
    """
    at_end = next((s for t, s in success if t == ends), None)
    later = [] if ends is None else [(t, s) for t, s in success if t > ends]
    if ends is None or at_end is None or not later:
        return {}
    if at_end == 0:
        return {"lifespan": 0.0, "lifespan_is_bound": 0.0}
    dead = next((t for t, s in later if s < DEAD * at_end), None)
    until = later[-1][0] if dead is None else dead
    return {"lifespan": float(until - ends), "lifespan_is_bound": float(dead is None)}
