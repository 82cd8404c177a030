"""Secure sums that cannot work are refused before anything is trained, by playing their first round."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from fedarena.cli import main
from fedarena.contracts.defense import Defense
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.secure.cards.pairwise_masks import Options
from fedarena.defenses.secure.pairwise import PairwiseMasks
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs import engine
from fedarena.runs.pairing import require_summable

WIDE = {"pairwise-masks.bits": "32", "pairwise-masks.bound": "1e12"}
"""With which a step is 2,048 for four clients."""


def made(defense: str, seed: int = 0, **options: str) -> tuple[Defense, Problem]:
    loss = "mse" if defense.startswith("pbpfl") else "cross-entropy"
    model = registry.find("model", "mlp").parse({"widths": "16"})
    spec = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=4,
        model_options=model,
        schedule=Schedule(rounds=50, batch_size=8, lr=0.1, loss=loss),
    )
    problem = build(spec, seed)
    return compose.make_defense(compose.parse_defense(defense, options), problem.task), problem


@pytest.mark.parametrize(
    ("defense", "options", "said"),
    [
        ("zero-sum", {"repeat": "3"}, "option 'repeat' is 3, allowed: a divisor of 1210, an upload's size"),
        ("baffle+zero-sum", {"repeat": "7"}, "option 'repeat' is 7, allowed: a divisor of 100, an upload's size"),
        ("pbpfl+zero-sum", {"repeat": "9"}, "option 'repeat' is 9, allowed: a divisor of 3630, an upload's size"),
        ("pbpfl+pairwise-masks", {"bound": "0.5"}, r"option 'bound' is 0.5, allowed: at least the largest \|value\|"),
        ("pairwise-masks", WIDE, r"option 'bound' is 1e\+12, with which 32 bits hold .*allowed: below .*, or 64 bits"),
    ],
)
def test_uploads_that_cannot_be_summed_are_refused(defense: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        require_summable(*made(defense, **options), 0)


@pytest.mark.parametrize(
    ("defense", "options"),
    [
        ("zero-sum", {"repeat": "5"}),
        ("pbpfl+zero-sum", {"repeat": "3"}),
        ("pbpfl+zero-sum", {"repeat": "6"}),
        ("pbpfl+pairwise-masks", {"bound": "1e6"}),
        ("baffle+pairwise-masks", {}),
        ("pairwise-masks", {"dropout": "0.9", "threshold": "1"}),  # a round that gives nothing
    ],
)
def test_uploads_that_can_be_summed_are_not_refused(defense: str, options: dict[str, str]) -> None:
    require_summable(*made(defense, **options), 0)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_round_checked_is_the_first_of_the_run(seed: int) -> None:
    """Each seed's batches have a largest value of their own, which the refusal names."""
    defense, problem = made("pbpfl+pairwise-masks", seed, bound="0.5")
    with pytest.raises(UserError) as early:
        require_summable(defense, problem, seed)
    with pytest.raises(UserError) as late:
        federation.run(defense, problem, Rng(seed).child("federation"))
    assert str(early.value) == str(late.value)


def plays(monkeypatch: pytest.MonkeyPatch) -> list[Defense]:
    """The defenses that are played from now on. Each of them makes a mistake."""
    played: list[Defense] = []

    def mistaken(defense: Defense, *args: Any, **kwargs: Any) -> NoReturn:
        played.append(defense)
        raise ValueError("a method's own mistake")

    monkeypatch.setattr(federation, "run", mistaken)
    return played


@pytest.mark.parametrize("defense", ["fedavg", "pbpfl", "zero-sum"])
def test_nothing_is_played_where_there_is_nothing_to_refuse(defense: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was played is listed, because `require_summable` passes over a method's errors."""
    played = plays(monkeypatch)
    require_summable(*made(defense), 0)
    assert played == []


def test_a_method_s_own_mistake_is_left_to_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    played = plays(monkeypatch)
    require_summable(*made("pairwise-masks"), 0)
    assert len(played) == 1


@pytest.mark.parametrize("bits", [32, 64])
def test_a_bound_that_is_allowed_keeps_the_largest_value(bits: int) -> None:
    """Where the refusal draws the line, something is kept; a step further all that was sent is summed as 0."""
    vectors = torch.tensor([[0.01, -0.04], [0.0, 0.02]], dtype=torch.float64)
    allowed = 0.04 * 2.0 ** (bits - 1) / 2
    for factor, kept in ((0.99, True), (2.01, False)):
        secure = PairwiseMasks(Options(bits=bits, bound=factor * allowed))
        assert bool(secure(vectors, Rng(0)).total.any()) == kept
        if kept:
            secure.require_room(vectors)
        else:
            with pytest.raises(UserError, match=re.escape(f"allowed: below {allowed:.3g}")):
                secure.require_room(vectors)
    PairwiseMasks(Options(bound=1e12, bits=32)).require_room(0 * vectors)  # nothing was there to be kept


@pytest.mark.parametrize("repeat", ["2", "4", "5"])
def test_pbpfl_s_uploads_share_a_mask_all_three_or_none(repeat: str) -> None:
    with pytest.raises(UserError, match=f"'repeat' of its secure sum is {repeat}, allowed: 1, or 3 and multiples"):
        made("pbpfl+zero-sum", repeat=repeat)


def untimely(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError("something was trained")


@pytest.mark.parametrize("setting", ["zero-sum.repeat=2", "zero-sum.repeat=9"])
def test_a_run_is_refused_before_anything_is_trained(
    setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "run_groups", untimely)
    more = (f"--set={setting}", "--set=model.widths=16", "--rounds=50", f"--out={tmp_path / 'out'}")
    code = main(["run", "--defense=pbpfl+zero-sum", "--attack=dlg", *more])
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert said.err.startswith("bench: ")
    assert "allowed: " in said.err
    assert not (tmp_path / "out").exists()
