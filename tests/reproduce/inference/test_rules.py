"""What broadcasts of rules leak: its rules, what a row says, and its picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedarena.core import registry
from fedarena.federation import compose
from fedarena.reproduce.inference import rules
from fedarena.reproduce.inference.rules import MEASURED, RULES, compact, draw, measure
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


def test_several_seeds_are_printed_with_their_intervals() -> None:
    row = dict.fromkeys(MEASURED, 0.5) | {"outsider: tpr .1 %": None}
    seeds = (("mean", 11.0, 0.6), ("mean", 11.0, 0.8), ("krum", 1.0, 0.5), ("krum", 1.0, 0.5))
    lines, _ = compact([row | {"rule": r, "in the broadcast": n, "outsider: auc": auc} for r, n, auc in seeds])
    assert [(line["rule"], line["seeds"], line["in the broadcast"]) for line in lines] == [
        ("krum", 2, "1.0 ± 0.0"),
        ("mean", 2, "11.0 ± 0.0"),
    ]
    assert lines[1]["outsider: auc"] == "0.70 (0.00 to 1.00)"  # Student's t with one degree of freedom: 12.7 · 0.1
    assert lines[1]["outsider: tpr .1 %"] is None
