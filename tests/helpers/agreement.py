"""Two defenses that should train alike, held to each other on the same runs."""

from __future__ import annotations

from typing import Any

import pytest

import fedarena as fa
from fedarena.records.schema import Record

FEDERATION = {"clients": 9, "corrupted": 2, "rounds": 12, "training.eval_every": 3, "jobs": 1}


def poisoned(defense: str, **options: Any) -> dict[str, Record]:
    """The records of a small federation with the defense: the clean run, and two clients that flip their uploads."""
    records = fa.run(defense, "sign-flip", **{**FEDERATION, **options})
    found = {record["attack"]: record for record in records if record["defense"] == defense}
    assert [record["status"] for record in found.values()] == ["ok", "ok"], found
    return found


def assert_train_alike(one: dict[str, Record], other: dict[str, Record]) -> None:
    """Both have the same curves, up to float tolerance, which may turn three of the 359 test samples."""
    for attack in ("none", "sign-flip"):
        assert_same_curve(one[attack]["utility"]["clean_curve"], other[attack]["utility"]["clean_curve"])
    assert_same_curve(one["sign-flip"]["attacked"]["curve"], other["sign-flip"]["attacked"]["curve"])


def assert_same_curve(one: Any, other: Any) -> None:
    """Points are (round, accuracy, loss)."""
    assert len(one) == len(other) > 3
    for (t, accuracy, loss), (round, their_accuracy, their_loss) in zip(one, other, strict=True):
        assert t == round
        assert accuracy == pytest.approx(their_accuracy, abs=3 / 359)
        assert loss == pytest.approx(their_loss, rel=1e-4)
