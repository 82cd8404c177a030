"""Cells that others measured: a stronger attack from a plug-in lowers a listed defense, and says who found it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Bench
from helpers.board import make_board

from fedarena.board.board import Board, BoardCell
from fedarena.board.load import load_board
from fedarena.board.merge import merge
from fedarena.board.ranking import rank_defenses
from fedarena.board.threat_filter import ThreatFilter
from fedarena.cli import main
from fedarena.core.errors import UserError

PROBLEM = """
seeds = [0, 1]
[problems.poison]
dataset = "digits"
model = "mlp"
clients = 10
corrupted = 3
partition = "few"
partition_options = { samples = 24 }
model_options = { widths = [16] }
training = { rounds = ROUNDS, batch_size = 16, lr = 0.4 }
"""
BASE = '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg", "median"]\nattacks = ["label-flip"]\nknows = ["own"]\n'
OTHER = '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg"]\nattacks = ["ATTACK"]\nknows = ["own"]\n'


def suite(folder: Path, name: str, matrix: str, rounds: int = 30) -> str:
    path = folder / f"{name}.toml"
    path.write_text(PROBLEM.replace("ROUNDS", str(rounds)) + matrix)
    return str(path)


def test_a_plug_in_s_attack_joins_the_board_and_the_lowest_score_counts(
    bench_with_plugin: Bench, tmp_path: Path
) -> None:
    attack = OTHER.replace("ATTACK", "same-value").replace('["fedavg"]', '["median"]')
    for name, matrix in (("base", BASE.replace('"median"', '"median", "krum"')), ("broken", attack)):
        done = bench_with_plugin(
            "suite", "run", suite(tmp_path, name, matrix), "--jobs", "1", "--secret", "none", "--quiet"
        )
        assert done.returncode == 0, done.stderr
    done = bench_with_plugin("leaderboard", "base", "--with", "runs/broken", "--format", "json")
    assert done.returncode == 0, done.stderr
    cells: list[dict[str, Any]] = json.loads(done.stdout)["cells"]
    (joined,) = [c for c in cells if c["attack"] == "same-value"]
    assert joined["found_by"].startswith("same-value: arena-toys")
    assert "broken" in joined["found_by"]
    boards = [load_board(tmp_path / "runs" / name) for name in ("base", "broken")]
    board = merge(boards[0], boards[1:])
    before, after = (
        {row.defense: row for row in rank_defenses(b, ThreatFilter(parties=(), knows=("own",)))}
        for b in (boards[0], board)
    )
    # What nobody has tried on Krum is not asked of it.
    assert before["krum"].integrity == after["krum"].integrity
    assert before["krum"].rank
    assert after["krum"].rank
    lowest = min(c.scores[0] + c.scores[1] for c in board.cells if c.defense == "median") / 2
    assert after["median"].integrity.value is not None
    assert after["median"].integrity.value.value == pytest.approx(lowest)
    assert any("broken" in note for note in board.notes)


def test_a_listed_attack_with_other_options_joins_under_the_suite_s_name() -> None:
    base, other = (_defended(make_board(suite=name), "same options") for name in ("base", "tuned"))
    cells = [c for c in merge(base, [other]).cells if c.found_by]
    assert cells
    assert all(c.attack.endswith("[tuned]") and c.defense != "fedavg" for c in cells)
    assert len({c.place for c in merge(base, [other]).cells}) == len(merge(base, [other]).cells)


def test_a_board_s_own_cells_do_not_join_again() -> None:
    base = _defended(make_board(suite="base"), "same options")
    board = merge(base, [base])
    assert board.cells == base.cells
    assert "0 cells are from suite 'base'" in board.notes[-1]


@pytest.mark.parametrize("attack", ["dlg", "flip-hard"])  # one that the board has, one that it has not
def test_a_board_that_is_given_twice_joins_once(attack: str) -> None:
    base, mine = (_defended(make_board(suite=name), "same options") for name in ("base", "mine"))
    mine = replace(mine, cells=tuple(replace(c, attack=attack) for c in mine.cells if c.attack == "dlg"))
    once, twice = merge(base, [mine]), merge(base, [mine, replace(mine, suite="copy")])
    assert len(once.cells) > len(base.cells)
    assert twice.cells == once.cells
    assert "0 cells are from suite 'copy'" in twice.notes[-1]


def test_the_same_records_on_further_seeds_are_the_board_s_own() -> None:
    base = _defended(make_board(suite="base"), "same options")
    more = replace(
        base,
        cells=tuple(
            replace(c, statuses={**c.statuses, 9: "ok"}, scores={**c.scores, 9: 0.5}, keys={**c.keys, 9: "more"})
            for c in base.cells
        ),
    )
    assert merge(base, [more]).cells == base.cells


def test_the_note_on_one_cell_is_in_the_singular() -> None:
    base, mine = (_defended(make_board(suite=name), "same options") for name in ("base", "mine"))
    one = next(c for c in mine.cells if c.attack == "dlg" and c.defense == "dbcl")
    board = merge(base, [replace(mine, cells=(one,))])
    assert "1 cell is from suite 'mine' (attack: dlg [mine]); where it is lower, it counts" in board.notes
    board = merge(base, [replace(mine, cells=(replace(one, statuses={0: "ok"}),))])
    assert "; 1 cell is left out, since it was not measured on every seed of the board" in board.notes[-1]


def test_cells_need_every_seed_of_the_board_and_lose_further_ones() -> None:
    """One lucky seed is no weakness, and means over other seeds cannot be compared."""
    base = _defended(make_board(suite="base"), "same options")
    one, more = (
        replace(
            base,
            suite=name,
            cells=tuple(
                replace(
                    c,
                    statuses=dict.fromkeys(seeds, "ok"),
                    scores=dict.fromkeys(seeds, 0.01),
                    keys={s: f"{name}{i}-{s}" for s in seeds},
                    metrics={},
                )
                for i, c in enumerate(base.cells)
            ),
        )
        for name, seeds in (("one", (0,)), ("more", (0, 1, 2, 3)))
    )
    board = merge(base, [one])
    assert board.cells == base.cells
    assert "not measured on every seed of the board" in board.notes[-1]
    assert "lacks seeds 1, 2" in board.notes[-1]
    joined = [c for c in merge(base, [more]).cells if c.found_by]
    assert joined
    assert all(set(c.scores) == set(c.statuses) == set(c.keys) == {0, 1, 2} for c in joined)


def test_a_defense_with_other_options_does_not_join() -> None:
    base, other = _defended(make_board(suite="base"), "epsilon 2"), _defended(make_board(suite="weak"), "epsilon 1000")
    board = merge(base, [other])
    assert board.cells == base.cells
    assert "other options there than on the board" in board.notes[-1]


def test_cells_of_defenses_and_problems_that_the_board_lacks_are_named() -> None:
    base, mine = (_defended(make_board(suite=name), "same options") for name in ("base", "mine"))
    cell = next(c for c in mine.cells if c.attack == "dlg" and c.defense == "dbcl")
    cells = (cell, replace(cell, defense="krum"), replace(cell, problem="elsewhere"))
    note = merge(base, [replace(mine, cells=cells)]).notes[-1]
    assert "left out are cells of krum (the board has no such defense)" in note
    assert "left out are cells of elsewhere (the board has no such problem)" in note
    assert "left out" not in merge(base, [replace(mine, cells=(cell,))]).notes[-1]


def _defended(board: Board, digest: str) -> Board:
    def keys(c: BoardCell) -> dict[int, str]:
        return {seed: f"{board.suite}-{key}" for seed, key in c.keys.items()}

    return replace(board, cells=tuple(replace(c, defense_settings=digest, keys=keys(c)) for c in board.cells))


def test_another_problem_does_not_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rounds in (("base", 30), ("longer", 31)):
        matrix = BASE if name == "base" else OTHER.replace("ATTACK", "sign-flip")
        words = ["suite", "run", suite(tmp_path, name, matrix, rounds), "--jobs", "1", "--quiet", "--seeds", "0"]
        assert main(words) == 0, capsys.readouterr().err
    assert main(["leaderboard", "base", "--with", "longer"]) == 2
    assert "cannot join 'base'" in capsys.readouterr().err
    with pytest.raises(UserError, match="cannot join"):
        merge(load_board(tmp_path / "runs" / "base"), [load_board(tmp_path / "runs" / "longer")])
