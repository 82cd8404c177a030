"""The exact interval of a share that was counted, such as the images recovered of all images."""

from __future__ import annotations

TAIL = 0.025
"""What a 95 % interval leaves out on either side."""

TOGETHER = "_together"
"""Ends the name of an interval's end that holds for all of a party's readings at once."""


def binomial_interval(found: float, among: float, tail: float = TAIL) -> tuple[float, float]:
    """The interval of a share if `found` of `among` were found, by Clopper and Pearson (Biometrika 26, 1934).

    At the usual `tail` it is the 95 % interval. It holds the truth in at least 95 % of cases, even for few trials and
    near 0 and 1, if the trials are independent.

    Args:
        found, among: counts. They need not be whole, so that correlated trials can count as fewer.
        tail: the probability left out on either side.

    Raises:
        ValueError: there was no trial, or more was found than there was.
    """
    from scipy.special import betaincinv

    if not 0 <= found <= among or among <= 0:
        raise ValueError(f"{found} found among {among}")
    low = float(betaincinv(found, among - found + 1, tail)) if found > 0 else 0.0
    high = float(betaincinv(found + 1, among - found, 1 - tail)) if found < among else 1.0
    return low, high


def share_ends(name: str, share: float, among: int, readings: int = 1) -> dict[str, float]:
    """The 95 % interval (`binomial_interval`) of a share of `among` trials: `name_low` and `name_high`.

    Empty where there was no trial.

    Args:
        readings: how many shares are judged, of which the largest is shown. For several, the ends of an interval that
            holds for all of them at once stand beside (`kinds_of_interval`).
    """
    ends: dict[str, float] = {}
    for kind, together in kinds_of_interval(readings) if among else ():
        low, high = binomial_interval(min(share * among, among), among, TAIL / together)
        ends |= {f"{name}_low{kind}": low, f"{name}_high{kind}": high}
    return ends


def kinds_of_interval(readings: int) -> list[tuple[str, int]]:
    """Suffix of the names of an interval's ends → the number of readings for which the interval holds at once."""
    return [("", 1)] if readings == 1 else [("", 1), (TOGETHER, readings)]
