"""The noise of a prefix sum, from a binary tree over the rounds (Kairouz et al. 2021).

A leaf is a round. A node that stands on 2^h leaves has noise of its own, of variance 1 here, as soon as its last leaf
is there. The noise of a prefix sum is that of the subtrees that make it up, one for each 1 among the digits of t.
A subtree's sum is known in two ways: by its root, and as the sum of its halves. Honaker's estimate from below takes the
mean of both that has the least variance, at each node:

    e_0 = own noise,   e_h = v_h·own + (1 − v_h)(e of the left half + e of the right half),   v_h = 1/(2 − 2^−h)

v_h is also the variance of e_h. Everything is linear, so the noise is kept apart from the sums.
"""

from __future__ import annotations

from torch import Tensor


def variance(height: int) -> float:
    """v_h."""
    return 1 / (2 - 2.0**-height)


def closed(leaf: int) -> int:
    """How many nodes above a leaf, counted from 0, are complete with it: the trailing ones of its number."""
    return (~leaf & (leaf + 1)).bit_length() - 1


def grown(kept: Tensor, leaf: int, own: Tensor) -> Tensor:
    """The e_h of the subtrees that make up a prefix, after one more leaf.

    Args:
        kept: row h [levels, d] is e_h of the subtree of 2^h leaves in the prefix, or 0 if there is none.
        leaf: its number, from 0. own: noise [closed(leaf) + 1, d] of the leaf and of the nodes complete with it.
    """
    after, carried, top = kept.clone(), own[0], closed(leaf)
    for h in range(top):
        v = variance(h + 1)
        carried = v * own[h + 1] + (1 - v) * (kept[h] + carried)
        after[h] = 0
    after[top] = carried
    return after


def prefix_variance(leaves: int) -> float:
    """The variance of the noise of a prefix sum: Σ v_h over the ones among its binary digits."""
    return sum(variance(h) for h in range(leaves.bit_length()) if leaves >> h & 1)


def step_variance(leaf: int) -> float:
    """The variance of the difference between the noises of the prefix sums after and before a leaf."""
    fresh, shares = 1.0, list[float]()
    for h in range(closed(leaf)):
        v = variance(h + 1)
        fresh = v**2 + (1 - v) ** 2 * fresh
        shares = [(1 - v) * share for share in (*shares, 1.0)]
    return fresh + sum((1 - share) ** 2 * variance(h) for h, share in enumerate(shares))


def sensitivity(participations: int, leaves: int) -> int:
    """The most that Σ c² over all complete nodes can be, c the leaves below a node in which one client took part.

    It is so where these are the first leaves: the largest subtrees of the forest stand there, and counts add up most.
    """
    total = 0
    for h in range(leaves.bit_length()):
        whole, rest = divmod(participations, 2**h)
        total += whole * 4**h + (rest**2 if (whole + 1) * 2**h <= leaves else 0)
    return total
