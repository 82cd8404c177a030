"""What inference leaves against ε: the lines, their numbers and intervals, the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedarena.contracts.inference import Inference
from fedarena.core import registry
from fedarena.reproduce.inference import epsilon as inference_epsilon
from fedarena.reproduce.inference.epsilon import CASES, EPSILONS, Case, compact, draw, measure, over_seeds, row
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES

FEW = Case("membership", "joint-membership", {"attack": {"rounds": "30"}, "training": {"rounds": "31"}})


def expect_progress(share: float, text: str) -> None:
    assert 0 <= share <= 1
    assert text


def test_every_line_has_every_epsilon_and_an_attack_that_reads() -> None:
    assert TABLES["inference/epsilon"] == inference_epsilon.__name__
    assert len(set(inference_epsilon.TABLE.pieces)) == len(inference_epsilon.TABLE.pieces) == len(CASES) * 4
    assert list(EPSILONS) == ["∞", "8", "2", "0.5"]
    for case in CASES:
        assert issubclass(registry.find("attack", case.attack).load(), Inference)


def test_noise_hides_members_and_costs_accuracy() -> None:
    clipped, noised = (measure(FEW, shown, Machine(), 0, expect_progress) for shown in ("∞", "0.5"))
    assert (clipped["epsilon"], clipped["sigma"]) == ("∞", 0.0)
    assert noised["sigma"] > 0.5
    assert clipped["auc"] > noised["auc"] + 0.1
    for found in (clipped, noised):
        assert (found["status"], found["reason"]) == ("ok", "")
        assert found["recovered"] is None
        assert 0 < found["accuracy"] < 1


# -- in print ------------------------------------------------------------------------------------------


def one(title: str, shown: str, seed: int, **changes: Any) -> dict[str, Any]:
    record = {
        "goal": "membership",
        "status": "ok",
        "reason": "",
        "reading": "upload",
        "seed": seed,
        "key": "k",
        "metrics": {"auc": 0.5 + 0.1 * seed},
        "utility": {"clean_accuracy": 0.9},
        "guarantees": {"sigma": 1.0},
    }
    return {"seed": seed, **row(Case(title, "joint-membership"), shown, [record], 2.0), **changes}


def test_means_over_seeds_have_their_interval() -> None:
    rows = [one("who", "8", seed) for seed in range(3)]
    found = over_seeds(rows, "auc")
    assert found is not None
    assert found.value == pytest.approx(0.6)
    assert found.half == pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-4)
    assert over_seeds(rows, "ssim") is None


def test_a_line_is_an_attack_and_an_epsilon_and_what_failed_is_said() -> None:
    gone = {"auc": None, "status": "n/a", "reason": "why"}
    lines, notes = compact([one("who", "8", 0), one("who", "8", 1), one("who", "2", 0, **gone)])
    assert [(line["inference"], line["ε"], line["seeds"]) for line in lines] == [("who", "8", 2), ("who", "2", 1)]
    assert lines[0]["auc"] == "0.55 ± 0.64"
    assert (lines[1]["auc"], lines[0]["ssim"]) == ("-", "-")
    assert notes == ["who, ε = 2, seed 0: n/a, why"]


def test_the_picture_holds_what_was_measured(tmp_path: Path) -> None:
    membership = [one("who", shown, seed) for shown in EPSILONS for seed in range(3)]
    images = {"auc": None, "recovered": 0.5, "ssim": 0.6, "prior_mean_ssim": 0.3, "psnr": 20.0, "prior_mean_psnr": 9.0}
    both = [*membership, *(one("what", shown, 0, **images) for shown in EPSILONS)]
    for name, rows in (("members", membership), ("both", both)):
        draw(rows, tmp_path / f"{name}.png")
    pictures = [(tmp_path / f"{name}.png").read_bytes() for name in ("members", "both")]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]
