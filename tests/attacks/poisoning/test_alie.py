"""ALIE on numbers, and where its z is defined."""

from __future__ import annotations

import pytest
import torch
from helpers.poisoning import knowledge, make, round_view, sent

from fedarena.attacks.poisoning.helpers.alie_strength import z_max


def test_z_of_the_paper() -> None:
    """50 workers, 24 corrupted: s = 26 − 24 = 2 supporters, Φ(z) = 24/26 = 0.923, z = 1.43 (Section 3.2)."""
    assert z_max(50, 24) == pytest.approx(1.43, abs=0.005)


def test_z_for_odd_numbers() -> None:
    """51, 12: s = ⌊26.5⌋ − 12 = 14, Φ(z) = (51 − 12 − 14)/39 = 25/39; Φ(0.3609) = 0.6409 by a table."""
    assert z_max(51, 12) == pytest.approx(0.361, abs=0.001)


@pytest.mark.parametrize(
    ("n", "m", "z", "reason"),
    [
        (20, 11, None, "not defined"),
        (20, 2, None, "no harm"),
        (20, 1, None, "no harm"),
        (2, 1, None, "not defined"),
        (20, 11, 1.5, ""),
        (20, 2, 0.5, ""),
        (20, 4, None, ""),
    ],
)
def test_where_the_formula_gives_nothing_the_attack_says_so(n: int, m: int, z: float | None, reason: str) -> None:
    found = make("alie", knowledge("omniscient", n, m), z=z).applies()
    assert (found is None) == (not reason)
    assert found is None or reason in found.reason


def test_the_spread_of_one_own_upload_is_unknown() -> None:
    assert make("alie", knowledge("own", 20, 1), z=1.0).applies() is not None
    assert make("alie", knowledge("omniscient", 20, 1), z=1.0).applies() is None


def test_all_send_the_mean_less_z_standard_deviations() -> None:
    own, honest = [[1.0, 5.0], [3.0, 5.0]], [[0.0, 1.0], [4.0, 1.0], [8.0, 4.0]]
    blind = sent(make("alie", knowledge(), z=2.0), round_view(own))
    torch.testing.assert_close(blind[:, :2], torch.tensor([[0.0, 5.0]] * 2))  # 2 − 2·1, 5 − 2·0
    seen = sent(make("alie", knowledge("omniscient"), z=1.0), round_view(own, honest))
    expected = [4 - (32 / 3) ** 0.5, 2 - 2**0.5]
    torch.testing.assert_close(seen[:, :2], torch.tensor([expected] * 2))


def test_the_default_is_the_formula_for_the_federation() -> None:
    own = [[-1.0], [1.0]]  # mean 0, standard deviation 1
    out = sent(make("alie", knowledge("own", 20, 4)), round_view(own))
    z = z_max(20, 4)
    assert z is not None
    torch.testing.assert_close(out[:, 0], torch.full((2,), -z))


@pytest.mark.parametrize(("n", "m"), [(20, 12), (12, 2)], ids=["undefined", "zero"])
def test_where_the_formula_gives_nothing_a_z_is_set_or_tuned(n: int, m: int) -> None:
    on, own = knowledge("own", n, m), [[-1.0], [1.0]]
    refused = make("alie", on).applies()
    assert refused is not None
    assert refused.reason.endswith("set z, or tune=2 or more")
    assert make("alie", on, tune=1).applies() is not None  # the one run goes to the z that is given
    tuned = make("alie", on, tune=2)
    assert tuned.applies() is None
    torch.testing.assert_close(sent(tuned, round_view(own))[:, 0], torch.zeros(2))  # the first that is tried: the mean
