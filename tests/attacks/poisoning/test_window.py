"""A window: honest before it and after it, the attack inside within."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, problem, round_view

from fedarena.contracts.poisoning import Poisoning
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.federation import compose


def window(start: float, end: float, inner: str = "window+label-flip", **options: str) -> Poisoning:
    """The schedule has 20 rounds."""
    given = {"window.start": str(start), "window.end": str(end), **options}
    return compose.make_poisoning(compose.parse_attack(inner, given), knowledge())


@pytest.mark.parametrize(
    ("start", "end", "rounds"),
    [(0.0, 0.25, range(5)), (0.2, 0.6, range(4, 12)), (0.21, 0.29, range(5, 6)), (0.5, 1.0, range(10, 20))],
)
def test_it_acts_within_its_rounds_and_follows_the_protocol_in_others(start: float, end: float, rounds: range) -> None:
    flip, turn = window(start, end), window(start, end, "window+sign-flip")
    batch = problem().batch(0, Rng(0))
    for t in range(20):
        assert torch.equal(flip.batch(batch, t, 0, Rng(0)).y, 9 - batch.y if t in rounds else batch.y)
        s = round_view([[1.0, 2.0]], round=t)
        torch.testing.assert_close(rows(turn.craft(s, {}, Rng(0))[0]), (-4.0 if t in rounds else 1.0) * rows(s.own))
        assert flip.culminates(t) == (t == rounds.stop - 1)
    assert flip.begins == rounds.start
    assert flip.ends == (None if rounds.stop == 20 else rounds.stop)


def test_other_wrappers_pass_on_when_it_ends_and_the_earlier_end_counts() -> None:
    assert make("sign-flip", knowledge()).ends is None
    assert window(0.2, 0.6, "delayed+window+sign-flip").ends == 12
    assert window(0.2, 0.6, "window+delayed+sign-flip").ends == 12
    assert window(0.2, 0.6, "window+model-replacement+dba").ends == 12


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (0.6, 0.6, "option 'start' is 0.6, allowed: less than option 'end', which is 0.6"),
        (0.7, 0.1, "option 'start' is 0.7, allowed: less than"),
        (0.51, 0.54, "no round of 20 is between, allowed: a wider window"),
    ],
)
def test_a_window_without_a_round_is_refused(start: float, end: float, said: str) -> None:
    with pytest.raises(UserError, match=said):
        window(start, end)


def test_a_window_outside_the_run_is_refused() -> None:
    for option, value in (("start", "1"), ("start", "-0.1"), ("end", "1.2"), ("end", "0")):
        with pytest.raises(UserError, match=f"option '{option}'"):
            compose.parse_attack("window+dba", {f"window.{option}": value})
