"""What poison gains for corrupted clients that read: the pieces, and what a row says."""

from __future__ import annotations

from fedarena.reproduce.inference import spotlight
from fedarena.reproduce.inference.spotlight import BATCHES, KNOWS, MEASURED, PIECES, RULES, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES


def test_every_rule_meets_attackers_of_every_knowledge() -> None:
    assert set(PIECES.values()) == {(rule, knows, batch) for rule in RULES for knows in KNOWS for batch in BATCHES}
    assert TABLES["inference/spotlight"] == spotlight.__name__


def test_krum_gives_more_away_to_those_who_steer_it() -> None:
    (row,) = measure(("krum", "omniscient", 1), Machine(), 0, lambda share, text: None, victims=6)
    assert set(MEASURED) <= set(row)
    assert row["note"] == ""
    assert row["identified"] > row["without"]
    assert row["nearness"] > 0.99


def test_a_mean_gives_no_more_away() -> None:
    (row,) = measure(("mean", "own", 1), Machine(), 0, lambda share, text: None, victims=2)
    assert row["identified"] == row["without"]
