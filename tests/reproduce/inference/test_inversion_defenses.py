"""The matrix of defenses against gradient inversion: its pieces, what a row says, how it is printed and drawn."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fedarena.cli import main
from fedarena.core import registry
from fedarena.core.threat import FORMS
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.inference import inversion_defenses
from fedarena.reproduce.inference.inversion_defenses import (
    ATTACKS,
    DEFENSES,
    MODELS,
    PIECES,
    ROUNDS,
    STAGES,
    VICTIMS,
    compact,
    draw,
    measure,
    settings,
    worst,
)
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.tables import TABLES


def test_it_has_fifteen_defenses_four_attacks_and_eighteen_settings() -> None:
    assert len(DEFENSES) == 16  # one is none
    assert (len(ATTACKS), len(STAGES), len(VICTIMS), len(MODELS)) == (4, 3, 3, 2)
    assert len(PIECES) == 16 * 4 * 3 * 3 * 2
    assert TABLES["inversion/defenses"] == inversion_defenses.__name__


def test_an_unknown_part_is_answered_by_how_the_parts_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "inversion/defenses", "--only=green"]) == 2
    begin = "; ".join(f"{model}, batch {batch}" for model in MODELS for batch in VICTIMS)
    assert capsys.readouterr().err == f"bench: option 'only' is 'green', allowed: how one of these begins: {begin}\n"


@pytest.mark.parametrize("name", [name for name in PIECES if name.endswith("fedavg")])
def test_what_is_attacked_lies_at_its_stage(name: str) -> None:
    model, batch, stage, attack, _ = PIECES[name]
    given = settings(PIECES[name])
    card = registry.find("attack", attack)
    problem = usual_problem({"dataset": "digits", **given["problem"]}, given, (card,))
    watch = card.load()(card.parse(dict(given["attack"]))).watch(problem.schedule)
    assert (problem.model, problem.schedule.batch_size, problem.clients) == (model, batch, 4)
    assert STAGES[stage] <= min(watch.victims) <= max(watch.victims) < min(STAGES[stage] + 12, ROUNDS)


@pytest.mark.parametrize("defense", DEFENSES)
def test_the_options_of_a_defense_are_its_own(defense: str) -> None:
    fields = {f.name for f in dataclasses.fields(registry.find("defense", defense).options)}
    assert set(DEFENSES[defense]) <= fields


def brief(*piece: Any) -> list[dict[str, Any]]:
    given = {name: dict(some) for name, some in settings(piece).items()}
    given["training"] |= {"rounds": "4"}
    given["attack"] |= {"start": "0", "window": "3", "victims": "2"}
    return [{"seed": 0} | row for row in measure(piece, Machine(), 0, lambda share, text: None, given)]


def test_a_pairing_has_a_row_for_each_form_and_is_printed_and_drawn(tmp_path: Path) -> None:
    rows = [row for defense in ("fedavg", "pruning") for row in brief("mlp", 1, "untrained", "analytic", defense)]
    assert [(r["defense"], r["form"]) for r in rows] == [(d, f) for d in ("fedavg", "pruning") for f in FORMS]
    assert all(r["identified"] == 1.0 and r["low"] < 1.0 and r["note"] == "" for r in rows)
    lines, _ = compact(rows)
    assert [line["defense"] for line in lines] == ["fedavg", "pruning"]
    assert lines[1]["mlp, 1\nadaptive"] == "100* / - / -"
    draw(rows, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_what_does_not_apply_has_its_reason_and_no_number() -> None:
    rows = brief("cnn", 1, "untrained", "analytic", "fedavg")
    assert all(r["identified"] is None and r["note"].startswith("n/a: the first layer is convolutional") for r in rows)


def test_the_best_attack_is_the_best_over_seeds() -> None:
    """An attack that is lucky on one seed is not taken for the best on each."""
    row = {"model": "mlp", "batch": 1, "stage": "half", "defense": "dbcl", "form": "paper"}
    shares = {"analytic": (0.0, 0.5), "dlg": (0.4, 0.2), "spear": (None, None)}
    rows = [row | {"attack": name, "identified": share} for name, some in shares.items() for share in some]
    assert worst(rows) == {("mlp", 1, "half", "dbcl", "paper"): pytest.approx(0.3)}


def test_what_was_not_measured_is_told_from_what_does_not_apply() -> None:
    row = {"model": "mlp", "batch": 8, "form": "adaptive", "accuracy": 0.9}
    shares: dict[tuple[str, str, str], tuple[float | None, float | None]] = {
        **{("fedavg", "untrained", attack): (None, None) for attack in ATTACKS},
        ("fedavg", "trained", "spear"): (None, None),
        ("precode", "untrained", "spear"): (0.5, 0.25),
        ("precode", "untrained", "dlg"): (0.75, 0.0),
    }
    rows = [
        row | {"defense": defense, "stage": stage, "attack": attack, "identified": identified, "recovered": recovered}
        for (defense, stage, attack), (identified, recovered) in shares.items()
    ]
    (none, precode), notes = compact([*rows, rows[0] | {"model": "cnn", "defense": "fedavg"}])
    assert none["mlp, 8\nadaptive"] == none["mlp, 8\nadaptive, recovered"] == "n/a / - / n/a*"
    assert precode["mlp, 8\nadaptive"] == "75* / - / -"
    assert precode["mlp, 8\nadaptive, recovered"] == "25* / - / -"
    assert precode["cnn, 8\nadaptive"] == "- / - / -"  # each line has all columns
    for sign, words in {"n/a": "no attack applies", "-": "nothing was measured", "*": "a part of the attacks"}.items():
        assert f"{sign}: {words}" in notes[1]
