"""Delayed attacks: honest before their time, the attack inside after it."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, problem, round_view

from fedarena.attacks.poisoning.delayed import Delayed
from fedarena.contracts.poisoning import AttackerKnowledge
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.federation import compose, tuning
from fedarena.federation.adversary import why_not
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import Problem

HONEST = torch.arange(1.0, 6.0)[:, None].repeat(1, 8)


def delayed(on: AttackerKnowledge, inner: str = "sign-flip", start: str = "0.5") -> Delayed:
    """By name, as on the command line; the schedule has 20 rounds."""
    spec = compose.parse(compose.attack_cards(f"delayed+{inner}"), {"start": start}, {})
    made = compose.make_poisoning(spec, on)
    assert isinstance(made, Delayed)
    return made


@pytest.mark.parametrize(("start", "first"), [("0", 0), ("0.5", 10), ("0.51", 11), ("1", 20)])
def test_the_first_round_of_attack(start: str, first: int) -> None:
    attack = delayed(knowledge(), start=start)
    assert [t for t in range(20) if attack.waits(t)] == list(range(first))
    assert attack.begins == first
    told = why_not(attack)
    assert (told is None) == (first < 20)
    assert told is None or told.reason == "it behaves or watches for 20 rounds, and the run has 20"


@pytest.mark.parametrize(("inner", "start", "first"), [("mimic", "0.5", 15), ("bank", "0.5", 18), ("bank", "0.95", 19)])
def test_the_attack_inside_may_wait_as_well(inner: str, start: str, first: int) -> None:
    """Mimic watches 5 rounds from when it is let begin; bank strikes from round 18, whatever it saw before."""
    options = {"mimic": {"warmup": "5"}, "bank": {"turn": "0.9", "disguise": "plain"}}
    spec = compose.parse(compose.attack_cards(f"delayed+{inner}"), {"start": start}, {inner: options[inner]})
    assert compose.make_poisoning(spec, knowledge("omniscient")).begins == first


def test_with_own_knowledge_it_follows_the_protocol_until_then() -> None:
    attack, own = delayed(knowledge()), [[1.0, 2.0], [3.0, 4.0]]
    for t, factor in ((9, 1.0), (10, -4.0)):
        s = round_view(own, round=t)
        torch.testing.assert_close(rows(attack.craft(s, {}, Rng(0))[0]), factor * rows(s.own))


def test_when_omniscient_it_copies_random_honest_uploads_until_then() -> None:
    attack, copied = delayed(knowledge("omniscient")), []
    for t in range(10):
        s = round_view([[9.0]] * 3, HONEST, t)
        out = rows(attack.craft(s, {}, Rng(0).child(t))[0])
        copied += [row.tolist() for row in out]
    assert all(row in HONEST.tolist() for row in copied)
    assert len({row[0] for row in copied}) == 5  # 30 draws of 5 clients
    after = rows(attack.craft(round_view([[9.0]] * 3, HONEST, 10), {}, Rng(0))[0])
    torch.testing.assert_close(after[:, 0], torch.full((3,), -36.0))


def test_batches_are_honest_until_then() -> None:
    attack, batch = delayed(knowledge(), "label-flip"), problem().batch(0, Rng(0))
    assert torch.equal(attack.batch(batch, 9, 0, Rng(0)).y, batch.y)
    assert torch.equal(attack.batch(batch, 10, 0, Rng(0)).y, 9 - batch.y)
    s = round_view([[1.0], [2.0]], round=10)
    assert torch.equal(rows(attack.craft(s, {}, Rng(0))[0]), rows(s.own))  # label flipping sends the protocol's upload


def test_the_attack_inside_decides_where_it_applies_and_has_the_trigger() -> None:
    inside = delayed(knowledge("own", 20, 11), "alie").applies()
    assert inside is not None
    assert "not defined" in inside.reason
    x = torch.zeros(1, 1, 8, 8)
    found, expected = delayed(knowledge(), "pixel-trigger").trigger(x), make("pixel-trigger", knowledge()).trigger(x)
    assert found is not None
    assert expected is not None
    assert torch.equal(found[0], expected[0])


def test_the_memory_is_the_attack_s_own() -> None:
    attack = delayed(knowledge("omniscient"), "mimic")
    _, before = attack.craft(round_view([[9.0]], HONEST, 9), {}, Rng(0))
    assert before == {}
    _, after = attack.craft(round_view([[9.0]], HONEST, 10), before, Rng(0))
    assert int(after["rounds"]) == 1


def test_runs_of_another_length_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strength is tried for 4 rounds and the time for 6, so that what was given is tried for both."""
    spec = compose.parse(
        compose.attack_cards("delayed+ipm"),
        {"tune": "2"},
        {"ipm": {"tune_rounds": "4"}, "delayed": {"tune_rounds": "6"}},
    )
    lengths: list[int] = []

    def harm(method: MethodSpec, on: AttackerKnowledge, simulated: Problem, rng: Rng) -> float:
        lengths.append(simulated.task.schedule.rounds)
        return 1.0 / len(lengths)  # whoever is tried later does less harm

    monkeypatch.setattr(tuning, "harm", harm)
    chosen, told = tuning.tune(spec, knowledge(), Rng(0))
    assert lengths == [4, 4, 6, 6]
    assert len(told["tried"]) == 4
    assert told["chosen"] == [10.0, 0.2]
    assert chosen == spec
