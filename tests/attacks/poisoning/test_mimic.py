"""Mimic: whom it chooses, and what it sends."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view

from fedarena.attacks.poisoning.mimic import Mimic
from fedarena.contracts.poisoning import Poisoning
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, rows
from fedarena.federation.adversary import why_not

ODD = 5
"""The client that lies farthest along the direction in which clients differ most."""
CLIENTS = (0, 2, 3, 5, 6, 9)


def heterogeneous(t: int) -> torch.Tensor:
    """Six clients that differ along axis 1, the odd one most; small noise elsewhere."""
    x = 0.1 * torch.randn(6, 8, generator=torch.Generator().manual_seed(t))
    x[:, 1] += torch.tensor([1.0, -1.0, 0.5, -4.0, 1.5, 0.0])
    return x


def learned(attack: Poisoning, rounds: int) -> Tensors:
    memory: Tensors = {}
    for t in range(rounds):
        s = round_view([[7.0], [8.0]], heterogeneous(t), t, CLIENTS)
        out, memory = attack.craft(s, memory, Rng(0).child(t))
        torch.testing.assert_close(rows(out), rows(s.own))  # it behaves while it learns
    return memory


@pytest.mark.parametrize(("warmup", "starts"), [(19, True), (20, False)])
def test_a_run_no_longer_than_its_warm_up_is_not_attacked(warmup: int, starts: bool) -> None:
    assert (why_not(make("mimic", knowledge("omniscient"), warmup=warmup)) is None) == starts


def test_the_warm_up_finds_the_direction_of_largest_variance() -> None:
    memory = learned(make("mimic", knowledge("omniscient"), warmup=20), 20)
    assert abs(float(memory["direction"][1])) > 0.98
    assert CLIENTS[int(memory["score"][list(CLIENTS)].abs().argmax())] == ODD
    torch.testing.assert_close(memory["mean"][1], torch.tensor(-1 / 3), atol=0.05, rtol=0)


def test_then_all_copy_the_client_chosen_whatever_its_place() -> None:
    attack = make("mimic", knowledge("omniscient"), warmup=20)
    memory = learned(attack, 20)
    for order in ([0, 1, 2, 3, 4, 5], [3, 5, 0, 1, 4, 2]):
        x, who = heterogeneous(99)[order], tuple(CLIENTS[i] for i in order)
        out, after = attack.craft(round_view([[7.0], [8.0]], x, 20, who), memory, Rng(0))
        torch.testing.assert_close(rows(out), x[who.index(ODD)].repeat(2, 1))
        assert after is memory


def test_when_it_is_absent_the_next_best_is_copied() -> None:
    attack = make("mimic", knowledge("omniscient"), warmup=20)
    memory = learned(attack, 20)
    x = heterogeneous(99)
    out, _ = attack.craft(round_view([[7.0]], x[[1, 0, 5, 4]], 20, (2, 0, 9, 6)), memory, Rng(0))
    torch.testing.assert_close(rows(out), x[[4]])  # client 6, at 1.5


def test_uploads_of_another_length_start_the_warm_up_anew() -> None:
    attack = make("mimic", knowledge("omniscient"), warmup=1)
    _, memory = attack.craft(round_view([[7.0]], heterogeneous(0), 0, CLIENTS), {}, Rng(0))
    s = round_view([[7.0]], heterogeneous(1), 1, CLIENTS)
    shorter = type(s)(
        1, s.participants, 1, s.down, {"w": s.own["w"]}, {"w": s.honest["w"]}, CLIENTS
    )  # fmt: skip
    out, after = attack.craft(shorter, memory, Rng(0))
    torch.testing.assert_close(rows(out), rows(shorter.own))
    assert len(after["mean"]) == 6


def test_it_needs_to_see_who_sends_what() -> None:
    assert Mimic.knowledge_levels == ("omniscient",)
