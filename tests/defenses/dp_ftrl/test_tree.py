"""The tree's noise against a tree that is written out, and how far a client moves its nodes."""

from __future__ import annotations

import itertools

import pytest
import torch

from fedarena.defenses.dp_ftrl.tree import closed, grown, prefix_variance, sensitivity, step_variance

ROUNDS = 13
NODES = [(h, i) for h in range(ROUNDS.bit_length()) for i in range(ROUNDS >> h)]
"""(height, place from the left) of the nodes that are complete after all rounds."""


def estimated(height: int, place: int) -> torch.Tensor:
    """Honaker's estimate as weights on the nodes' own noises, by least variance at each node."""
    own = torch.zeros(len(NODES), dtype=torch.float64)
    own[NODES.index((height, place))] = 1
    if not height:
        return own
    halves = estimated(height - 1, 2 * place) + estimated(height - 1, 2 * place + 1)
    spread = halves.square().sum()
    return (spread * own + halves) / (spread + 1)


def naive_prefix(leaves: int) -> torch.Tensor:
    """The noise of a prefix sum as weights on all nodes' own noises."""
    total, begin = torch.zeros(len(NODES), dtype=torch.float64), 0
    for h in reversed(range(leaves.bit_length())):
        if leaves >> h & 1:
            total += estimated(h, begin >> h)
            begin += 1 << h
    return total


def test_prefix_sums_have_the_noise_of_a_tree_that_is_written_out() -> None:
    noise = torch.eye(len(NODES), dtype=torch.float64)
    kept = torch.zeros(ROUNDS.bit_length(), len(NODES), dtype=torch.float64)
    for leaf in range(ROUNDS):
        before = kept.sum(0)
        own = [noise[NODES.index((h, leaf >> h))] for h in range(closed(leaf) + 1)]
        kept = grown(kept, leaf, torch.stack(own))
        assert torch.allclose(kept.sum(0), naive_prefix(leaf + 1), atol=1e-12)
        assert float(kept.sum(0).square().sum()) == pytest.approx(prefix_variance(leaf + 1))
        assert float((kept.sum(0) - before).square().sum()) == pytest.approx(step_variance(leaf))


def test_the_estimate_halves_the_noise_of_large_subtrees() -> None:
    assert prefix_variance(1) == 1
    assert prefix_variance(1024) == pytest.approx(0.5, rel=1e-3)
    assert prefix_variance(1023) < 0.6 * (1023).bit_count()


def test_a_client_moves_nodes_most_by_taking_part_first() -> None:
    for rounds in range(1, 10):
        nodes = [range(i << h, i + 1 << h) for h in range(rounds.bit_length()) for i in range(rounds >> h)]
        for k in range(1, rounds + 1):
            worst = max(
                sum(len(set(chosen) & set(node)) ** 2 for node in nodes)
                for chosen in itertools.combinations(range(rounds), k)
            )
            assert sensitivity(k, rounds) == worst
