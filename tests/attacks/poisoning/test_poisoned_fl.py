"""PoisonedFL: what it sends by hand, its test, and that it is given no data."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, problem
from torch import Tensor
from torch.nn.functional import normalize

from fedarena.attacks.poisoning.poisoned_fl import magnified, moves_along
from fedarena.contracts.defense import Cohort
from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows, shaped
from fedarena.federation import compose
from fedarena.federation.adversary import Adversary, knowledge_of, why_not


def view(t: int, params: Tensor) -> RoundView:
    """A round as two fake clients see it."""
    return RoundView(
        round=t, participants=10, size=2, down=shaped(params, problem().init), own={}, honest={}, clients=(0, 1)
    )


def play(steps: list[Tensor], **options: float) -> tuple[list[Tensor], Tensors]:
    """Uploads of rounds between which the server stepped against `steps`, and the memory after the last one."""
    attack, memory, sent = make("poisoned-fl", knowledge("none"), **options), {}, []
    rate, params = attack.knowledge.defense.step_size, flatten(problem().init)
    for t in range(len(steps) + 1):
        out, memory = attack.craft(view(t, params), memory, Rng(0).child(t))
        assert torch.equal(rows(out)[0], rows(out)[1])
        sent.append(rows(out)[0])
        if t < len(steps):
            params = params - rate * steps[t]
    return sent, memory


def directions(n: int) -> list[Tensor]:
    d = flatten(problem().init).numel()
    return [torch.randn(d, generator=torch.Generator().manual_seed(t)) for t in range(n)]


def test_an_upload_is_c_times_as_long_as_the_step_before_and_has_the_signs() -> None:
    steps = directions(2)
    (first, second, third), memory = play(steps)
    assert not first.any()
    signs = memory["signs"]
    torch.testing.assert_close(
        second, 8 * steps[0].norm() * normalize(steps[0].abs(), dim=0) * signs, rtol=1e-3, atol=1e-3
    )
    own = second * steps[1].norm() / second.norm()
    expected = 8 * steps[1].norm() * normalize((steps[1] - own).abs(), dim=0) * signs
    torch.testing.assert_close(third, expected, rtol=1e-3, atol=1e-3)


def test_it_adds_nothing_to_what_it_has_moved_itself() -> None:
    last = torch.tensor([1.0, -2.0, 2.0])
    assert float(magnified(3 * last, last, last.sign(), 8.0).norm()) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(("d", "threshold"), [(139_960, 70_415), (1_204_682, 603_618), (145_212, 73_049)])
def test_the_binomial_threshold_is_that_of_the_released_code(d: int, threshold: int) -> None:
    signs, moved = torch.ones(d), -torch.ones(d)
    moved[:threshold] = 1
    assert not moves_along(moved, signs)
    moved[: threshold + 2] = 1
    assert moves_along(moved, signs)


def test_c_shrinks_to_half_while_the_model_moves_another_way() -> None:
    _, memory = play(directions(20), window=1)
    scale, expected = float(memory["scale"]), 8.0
    while expected * 0.7 >= 0.5:
        expected *= 0.7
    assert scale == pytest.approx(expected)


def test_c_stays_where_the_model_moves_its_way() -> None:
    signs = play([])[1]["signs"]
    _, memory = play([signs] * 6, window=2)
    assert float(memory["scale"]) == 8.0
    assert int(memory["since"]) == 0


def test_fake_clients_get_no_data_and_no_uploads() -> None:
    p = problem()
    defense = compose.make_defense(compose.parse_defense("median"), p.task)
    on = knowledge_of(p, defense, "none")
    assert len(on.data.y) == len(on.data.x) == 0
    adversary = Adversary(make("poisoned-fl", on), frozenset(p.corrupted), Rng(0))
    clients = list(range(10))
    computing = [c for c in clients if adversary.computes(c)]
    assert not set(computing) & set(p.corrupted)
    batches = [p.batch(c, Rng(c)) for c in computing]
    ups, _ = defense.clients(p.init, batches, [{}] * len(computing), [{}] * len(computing))
    cohort = Cohort(tuple(clients), torch.ones(10))
    seen = adversary._view(0, cohort, dict(p.init), ups)
    assert seen.own == seen.honest == {}
    assert {n: len(x) for n, x in adversary.uploads(0, cohort, dict(p.init), ups).items()} == dict.fromkeys(p.init, 10)


def test_an_attack_that_follows_the_protocol_at_times_needs_data() -> None:
    card, on = compose.attack_cards("delayed")[0], knowledge("none")
    delayed = card.load()(card.parse({}), on, make("poisoned-fl", on))
    reason = why_not(delayed)
    assert reason is not None
    assert "nothing to train on" in reason.reason
