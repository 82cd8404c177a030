"""What broadcasts of rules leak: its rules, what a row says, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.core import registry
from fedarena.federation import compose
from fedarena.reproduce.inference import rules
from fedarena.reproduce.inference.rules import MEASURED, RULES, draw, measure
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES


def test_every_rule_is_in_it() -> None:
    """Each alone or, where it stands before another one, with that."""
    parts = {part.name for rule in RULES for part in compose.parse_defense(rule).rest}
    assert set(registry.registries()["aggregator"].names()) <= parts
    assert TABLES["inference/rules"] == rules.__name__


@pytest.fixture(scope="module")
def rows() -> list[rules.Row]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(rules.SPEAR, "draws", "50")
        return [measure(rule, Machine(), 0, lambda share, text: None, 4, "digits") for rule in ("mean", "krum")]


def test_krum_gives_one_client_away_and_a_mean_a_part_of_all(rows: list[rules.Row]) -> None:
    mean, krum = rows
    for name in ("in a number", "in the broadcast"):
        assert krum[name] == pytest.approx(1)
        assert mean[name] == pytest.approx(rules.CLIENTS)
    for party in rules.PARTIES:
        assert krum[f"{party}: exposed"] >= 0.5
        assert mean[f"{party}: exposed"] <= 0.25
        assert krum[f"{party}: everybody"] <= 1 / (rules.CLIENTS - 1)
    assert mean["outsider: auc"] > krum["outsider: auc"]


def test_rows_have_all_columns_and_are_drawn(rows: list[rules.Row], tmp_path: Path) -> None:
    found = [{"outsider: tpr .1 %": 0.0} | {k: v for k, v in row.items() if v is not None} for row in rows]
    assert all(set(MEASURED) <= set(row) for row in rows)
    draw(found, tmp_path / "rules.png")
    assert (tmp_path / "rules.png").stat().st_size > 1000
