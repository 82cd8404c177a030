"""Which rounds and which clients are attacked: a protocol may protect some and not others."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from helpers.degenerate import CLASSES
from helpers.repeatable import repeatable

import fedarena as fa
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation.rounds import run
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.records.command import command_of
from fedarena.records.reading_names import PARTS

pytestmark = pytest.mark.usefixtures("briefly_alone")

SHORT: dict[str, Any] = {
    "jobs": 1,
    "model": "mlp",
    "model.widths": 16,
    "clients": 3,
    "rounds": 60,
    "attack.window": 12,
    "attack.victims": 6,
    "party": "server",
    "form": "adaptive",
    "seeds": [0, 1],
}


def leaks(defense: str, **options: Any) -> dict[str, float]:
    """Reading → the share of victims identified, the mean over seeds; −1 where there was nothing to attack."""
    found = fa.run(CLASSES[defense], "analytic", **(SHORT | options))
    own = [r for r in found if r["defense"] == defense]
    by_reading = {r["reading"]: [s for s in own if s["reading"] == r["reading"]] for r in own}
    return {name: sum(r["metrics"].get("identified", -1.0) for r in some) / 2 for name, some in by_reading.items()}


def test_noise_that_ends_is_found_in_the_last_rounds() -> None:
    found = leaks("early-noise", other_rounds=True)
    assert [*found] == ["upload", "upload, last rounds", "upload, other rounds"]
    assert found["upload"] < 0.3
    assert found["upload, last rounds"] == 1.0
    assert leaks("early-noise") == {"upload": found["upload"]}


def test_the_client_that_is_attacked_is_drawn_in_each_round() -> None:
    """Else a protocol could protect the one that is attacked, and no others."""
    problem = build(usual_problem({"clients": "4", "model": "mlp"}, {"training": {"rounds": "90"}}), 0)
    victims = [played.victim for played in run(FedAvg(None, problem.task), problem, Rng(0), watch=range(90)).rounds]
    assert {*victims} == {1, 2, 3}  # client 0 may be the curious one
    assert all(15 < victims.count(client) < 45 for client in (1, 2, 3))
    found = leaks("favourite", **{"clients": 4, "attack.window": 60, "attack.victims": 40})
    assert 0.5 < found["upload"] < 0.85  # two clients of three


def test_the_curious_client_is_attacked_where_it_is_alone() -> None:
    problem = build(usual_problem({"clients": "1", "model": "mlp"}, {"training": {"rounds": "2"}}), 0)
    assert [r.victim for r in run(FedAvg(None, problem.task), problem, Rng(0), watch=range(2)).rounds] == [0, 0]


def test_the_rounds_that_it_chose_are_read_as_without_the_others() -> None:
    alone, beside = (fa.run("dbcl", "analytic", **SHORT, other_rounds=wanted) for wanted in (False, True))
    chosen = [r for r in repeatable(beside) if not r["reading"].endswith(PARTS)]
    point = ("mse", "identified", "label_accuracy", "ssim")  # intervals hold for all readings at once
    assert [[r["metrics"][name] for name in point] for r in chosen] == [
        [r["metrics"][name] for name in point] for r in repeatable(alone)
    ]
    assert {r["trial"]["records"] for r in beside} == {3}
    assert {r["key"] for r in alone}.isdisjoint(r["key"] for r in beside)
    assert not any("other_rounds" in r for r in alone)


@pytest.mark.parametrize("wanted", [False, True])
def test_a_record_s_command_says_which_rounds_were_read(wanted: bool) -> None:
    for record in fa.run("fedavg", "analytic", **SHORT, other_rounds=wanted):
        assert ("--other-rounds" in shlex.split(command_of(record))) == wanted


@pytest.mark.parametrize("attack", ["sign-flip", "membership-inference", "property-inference"])
def test_an_attack_on_no_single_uploads_refuses_it(attack: str) -> None:
    with pytest.raises(UserError, match=f"option 'other_rounds' is given, but {attack} attacks no single uploads"):
        fa.run("median", attack, other_rounds=True, rounds=2)
