"""`bench compare`: exit codes, files and bad input, as a user meets them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from helpers.board import consistent, make_board
from helpers.gate import change_cells, wide_board

from fedarena import cli
from fedarena.board.board import Board, BoardCell
from fedarena.board.published import to_json
from fedarena.cli import compare
from fedarena.core.errors import UserError

Compare = Callable[..., tuple[int, str]]


@pytest.fixture
def gate(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Run `bench compare …` in an empty folder; boards are published there first. Gives the exit code and stdout."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str | Board) -> tuple[int, str]:
        given = []
        for i, word in enumerate(words):
            if isinstance(word, Board):
                Path(f"{i}.json").write_text(to_json(consistent(word)))
            given.append(f"{i}.json" if isinstance(word, Board) else word)
        parser = argparse.ArgumentParser()
        compare.add_parser(parser.add_subparsers(required=True))
        args = parser.parse_args(["compare", *given])
        code: int = args.run(args)
        return code, capsys.readouterr().out

    return call


BASE = wide_board()


def weaker(c: BoardCell) -> BoardCell:
    """A defense that has become useless."""
    return replace(c, scores=dict.fromkeys(c.scores, 0.0)) if c.defense == "defense2" else c


WORSE = change_cells(BASE, weaker)


def test_a_board_passes_against_itself(gate: Compare) -> None:
    code, out = gate(BASE, BASE)
    assert code == 0
    assert out.startswith("Passed: all 78 scores are identical.")


def test_a_weaker_defense_fails_and_is_named(gate: Compare) -> None:
    code, out = gate(BASE, WORSE)
    assert code == 1
    assert out.startswith("Failed: 13 scores fell.")
    assert "digits · defense2 · attack4 · server, adaptive" in out
    assert "weaker defense, or stronger attack" in out
    assert "defense1" not in out


def test_files_hold_the_same_findings(gate: Compare) -> None:
    code, _ = gate(BASE, WORSE, "--markdown", "deep/pull.md", "--junit", "deep/gate.xml")
    assert code == 1
    assert Path("deep/pull.md").read_text().startswith("**Failed: 13 scores fell.**")
    top = ElementTree.parse("deep/gate.xml").getroot()
    assert top.get("failures") == "13"


def test_json_has_everything(gate: Compare) -> None:
    code, out = gate(BASE, WORSE, "--json", "--false-alarm", "0.01", "--effect", "privacy=0.2, mean=0.05")
    told = json.loads(out)
    assert code == 1
    assert told["passed"] is False
    assert (told["false_alarm"], told["losses_only"]) == (0.01, False)
    assert told["effects"] == {"privacy": 0.2, "integrity": 0.1, "utility": 0.05, "mean": 0.05}
    assert len(told["items"]) == 78 + 1
    assert {row["outcome"] for row in told["findings"]} == {"loss"}
    row = next(r for r in told["findings"] if r["group"] == "cell")
    assert row["seeds"] == [0, 1, 2]
    assert row["new"] == [0, 0, 0]
    assert row["difference"] == pytest.approx(-sum(row["base"]) / 3)


def test_losses_only_passes_better_scores(gate: Compare) -> None:
    assert gate(WORSE, BASE)[0] == 1
    assert gate(WORSE, BASE, "--losses-only")[0] == 0
    assert gate(BASE, WORSE, "--losses-only")[0] == 1


def test_exact_fails_for_any_change(gate: Compare) -> None:
    moved = change_cells(BASE, lambda c: replace(c, scores={s: v + 1e-9 for s, v in c.scores.items()}))
    assert gate(BASE, moved)[0] == 0
    code, out = gate(BASE, moved, "--exact")
    assert code == 1
    assert out.startswith("Failed: 72 scores changed within noise.")
    assert gate(BASE, BASE, "--exact")[0] == 0
    assert json.loads(gate(BASE, BASE, "--exact", "--json")[1])["exact"] is True


def test_a_board_whose_scores_were_edited_is_refused(gate: Compare) -> None:
    gate(BASE, BASE)
    edited = json.loads(Path("1.json").read_text())
    for one in edited["cells"][:2]:
        one["scores"]["0"] = 0.99
    Path("1.json").write_text(json.dumps(edited))
    with pytest.raises(UserError, match=r"^1\.json is damaged: .*score of seed 0 is 0\.99, .* and 1 more like it$"):
        gate("0.json", "1.json")


def test_boards_without_cells_fail_with_a_reason(gate: Compare) -> None:
    empty = make_board([], [])
    code, out = gate(empty, empty)
    assert code == 1
    assert "the base board has no cells" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--exact", "--losses-only"), "'--exact' is given with '--losses-only', allowed: one of them"),
        (("--false-alarm", "0"), "'--false-alarm' is '0', allowed: a rate between 0 and 1"),
        (("--false-alarm", "1"), "'--false-alarm' is '1'"),
        (("--false-alarm", "often"), "'--false-alarm' is 'often'"),
        (("--false-alarm", "nan"), "'--false-alarm' is 'nan'"),
        (("--effect", "0.1"), "'--effect' is '0.1', allowed: NAME=SIZE, NAME one of privacy, integrity, utility, mean"),
        (("--effect", "privacy=0"), "'--effect' is 'privacy=0'"),
        (("--effect", "privacy=2"), "SIZE above 0, at most 1"),
        (("--effect", "cost=0.1"), "'--effect' is 'cost=0.1'"),
        (("--effect", ""), "'--effect' is ''"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(gate: Compare, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        gate("nowhere", "nowhere", *words)


def test_other_files_are_refused(gate: Compare) -> None:
    Path("text.json").write_text("[]")
    with pytest.raises(UserError, match=r"text\.json is not a board"):
        gate(BASE, "text.json")
    with pytest.raises(UserError, match="nowhere"):
        gate(BASE, "nowhere")


def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["compare", "nowhere", "nowhere", "--false-alarm", "2"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("bench: option '--false-alarm' is '2'")
    assert error.count("\n") == 1


def test_a_file_that_cannot_be_written_is_reported(gate: Compare) -> None:
    Path("blocked").write_text("a file, where a folder is needed")
    with pytest.raises(UserError, match=r"cannot write blocked/pull\.md"):
        gate(BASE, BASE, "--markdown", "blocked/pull.md")
