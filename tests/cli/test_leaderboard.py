"""`bench leaderboard` as a user meets it."""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.board import (
    consistent,
    make_board,
    make_cell,
    make_clean_run,
    make_problem,
    with_references,
    without_references,
)
from helpers.paths import REPORTS
from rich.console import Console

from fedarena.board.leaderboard import render
from fedarena.board.load import load_board
from fedarena.board.published import from_json, to_json
from fedarena.board.threat_filter import read_threat_filter, within
from fedarena.cli import leaderboard, main
from fedarena.cli.output import leaderboard as leaderboard_output
from fedarena.core.errors import UserError

Bench = Callable[..., str]
DIGITS = REPORTS / "digits"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """In a folder with a long name, which no line may break."""
    path = tmp_path / "here" / ("a-long-name-" * 8) / "board.json"
    path.parent.mkdir(parents=True)
    path.write_text(to_json(consistent(make_board())), encoding="utf-8")
    return path


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Run `bench leaderboard …` in an empty folder; gives stdout."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str | Path) -> str:
        parser = argparse.ArgumentParser()
        leaderboard.add_parser(parser.add_subparsers(required=True))
        args = parser.parse_args(["leaderboard", *map(str, words)])
        assert args.run(args) == 0
        return capsys.readouterr().out

    return call


def test_gradients_lost_to_rounding_are_a_warning_in_every_form(bench: Bench, tmp_path: Path) -> None:
    """PBPFL with a γ of thousands in single precision: from its run to the row that ranks it, and the note on it."""
    run = ["run", "--defense=pbpfl", "--attack=last-layer-label", "--rounds=2", "--batch-size=4", "--jobs=1", "--quiet"]
    run += ["--set=model.widths=16", "--set=pbpfl.gamma_scale=1e4", "--set=attack.rounds=2"]
    run.append(f"--out={tmp_path / 'runs'}")
    assert main(run) == 0
    for form, row in (("md", "| pbpfl † |"), ("table", " pbpfl † "), ("html", 'scope="row">pbpfl †')):
        text = bench(tmp_path / "runs", "--format", form)
        assert row in text
        assert "† pbpfl: recovered gradients lost" in text
        assert "fedavg †" not in text
    rows = list(csv.DictReader(io.StringIO(bench(tmp_path / "runs", "--format", "csv"), newline="")))
    marked = {(r["defense"], r["axis"]) for r in rows if "gradients lost" in r["marks"]}
    assert marked == {("pbpfl", "utility")}


def test_the_table_has_ranks_advice_and_the_next_commands(bench: Bench, published: Path) -> None:
    out = bench(published, "--threats", "server,own")
    lines = [line.split() for line in out.splitlines()]
    assert [line[1] for line in lines if line and line[0] in ("1", "2", "–")][:3] == ["two-stage", "dbcl", "fedavg"]
    for words in (
        "Threats: curious server; corrupted clients (own).",
        "take two-stage",
        "sign-flip: corrupted clients",
        "dlg: server, paper",
        "3 seeds (0, 1, 2); intervals are 95 % over seeds",
    ):
        assert words in " ".join(out.split()), words
    assert (
        f"\nbench leaderboard {published} --threats server,own --format html --out board.html\n" in out
    )  # in one line


def test_the_board_s_threats_count_by_default(bench: Bench, published: Path) -> None:
    assert "take two-stage" in bench(published)
    published.write_text(
        to_json(consistent(make_board([make_cell("fedavg"), make_cell("dbcl", status="n/a")]))), encoding="utf-8"
    )
    out = " ".join(bench(published).split())
    assert "Threats: any curious party; no corrupted clients." in out
    assert "take dbcl" in out
    assert "corrupted clients (own) or corrupted clients (omniscient): no attack that counts poses this threat" in out
    assert ": no integrity score" in bench(published, "--threats", "server,own")


@pytest.mark.parametrize("width", [80, 160])
def test_every_column_is_shown_and_names_stay_whole(width: int) -> None:
    """On the widest of the published boards."""
    board = load_board(DIGITS)
    out = io.StringIO()
    leaderboard_output.show(render(board), [], Console(file=out, width=width))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    heads = " ".join(line for line in lines if line.lstrip().startswith("#"))
    assert {"lowest", "utility", "integrity", "privacy", "mean", "bytes", "time"} <= set(heads.split())
    first = [words[1] for words in map(str.split, lines) if len(words) > 1 and re.fullmatch(r"\d+(–\d+)?|–", words[0])]
    names = {d for d in board.defenses if len(d) <= leaderboard_output.NAME}
    assert "two-stage-hardened" in names
    assert names <= set(first)


def test_markdown_and_page_come_with_their_commands(bench: Bench, published: Path) -> None:
    text = bench(published, "--format", "md", "--threats", "server")
    assert text.startswith("# Results made by hand\n")
    assert f"- `bench leaderboard {published} --threats server`" in text
    page = bench(published, "--format", "html")
    assert page.startswith("<!doctype html>")
    assert f"<code>bench leaderboard {published}</code>" in page


@pytest.mark.parametrize("form", ["table", "md", "html"])
def test_weights_rank_in_every_form(bench: Bench, published: Path, form: str) -> None:
    """Utility alone puts first the defense that the lowest score puts second."""
    out = bench(published, "--format", form, "--weights", "utility=2,integrity=0")
    assert "Ranked by the weighted mean of utility (weight 2). The mean of all breaks ties." in " ".join(out.split())
    assert "no defense here scores above plain fedavg, which is none; dbcl comes next" in " ".join(out.split())
    assert "--weights utility=2,integrity=0" in out
    assert re.search(r'<td class="rank">1</td><th scope="row">dbcl<|\| 1 \| dbcl \||\n +1 +dbcl +0.96', out)
    plain = bench(published, "--format", form)
    assert "Ranked by the lowest of utility, integrity and privacy. Among equals the next lowest decides." in " ".join(
        plain.split()
    )


@pytest.mark.parametrize("form", ["table", "md", "html", "csv"])
def test_references_stand_in_every_form(bench: Bench, published: Path, form: str) -> None:
    told = "each client trains alone"
    published.write_text(to_json(consistent(without_references(make_board()))), encoding="utf-8")
    assert told not in bench(published, "--format", form).split("</table>")[0]
    board = with_references(make_board(), 0.625, {"two-stage": 0.75})
    published.write_text(to_json(consistent(board)), encoding="utf-8")
    out = bench(published, "--format", form)
    for title, accuracy in (
        ("always the most frequent class", "10 %" if form != "csv" else ",0.1,"),
        (told, "62 ± 0 %" if form != "csv" else ",0.625,"),
        ("a server trains on its own samples alone", "75 ± 0 %" if form != "csv" else ",0.75,"),
    ):
        (line,) = [line for line in re.split(r"\n|</tr>", out) if title in line and "{" not in line]
        assert accuracy in line


def test_json_is_the_published_form_of_the_filtered_board(bench: Bench, published: Path) -> None:
    assert from_json(bench(published, "--format", "json"), published) == consistent(make_board())
    threats = bench(published, "--format", "json", "--threats", "server")
    assert from_json(threats, published) == within(consistent(make_board()), read_threat_filter("server"))
    assert {c["axis"] for c in json.loads(threats)["cells"]} == {"privacy"}


def test_csv_has_a_row_for_each_cell(bench: Bench, published: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(bench(published, "--format", "csv", "--threats", "own"), newline="")))
    assert [(r["axis"], r["defense"]) for r in rows if r["axis"] == "integrity"] == [
        ("integrity", name) for name in ("fedavg", "dbcl", "two-stage")
    ]


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("b.md", "# "),
        ("b.html", "<!doctype html>"),
        ("b.csv", "problem,"),
        ("b.json", "{"),
        ("b.txt", "Results made by hand"),
    ],
)
def test_the_ending_of_the_file_determines_the_format(
    bench: Bench, published: Path, tmp_path: Path, name: str, begins: str
) -> None:
    out = bench(published, "--out", tmp_path / name)
    assert out == f"3 defenses, 9 cells: {tmp_path / name}\n"
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


def test_the_format_option_overrides_the_ending(bench: Bench, published: Path, tmp_path: Path) -> None:
    bench(published, "--format", "csv", "--out", tmp_path / "b.html")
    assert (tmp_path / "b.html").read_text(encoding="utf-8").startswith("problem,")


def test_folders_and_suites_are_found(bench: Bench, published: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs" / "mine"
    runs.mkdir(parents=True)
    (runs / "board.json").write_bytes(published.read_bytes())
    assert "two-stage" in bench("mine")
    assert "two-stage" in bench(published.parent)
    with pytest.raises(UserError, match="there are no records in runs:"):  # without a name: the folder runs
        bench()


def test_problems_are_chosen_by_name(bench: Bench, published: Path) -> None:
    assert "problems digits" in bench(published, "--problem", "digits")
    with pytest.raises(UserError, match="option 'problem' is 'fashion', allowed: digits"):
        bench(published, "--problem", "fashion")


def test_bad_input_is_one_line_and_exit_code_two(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.json").write_text("[1, 2]", encoding="utf-8")
    (tmp_path / "threats.json").write_text(published.read_text(encoding="utf-8")[:500], encoding="utf-8")
    for words, told in (
        ([str(published), "--threats", "sever"], "option 'threats' is 'sever', allowed: server, client"),
        ([str(published), "--weights", "speed=1"], "option 'weights' is 'speed=1', allowed: AXIS=NUMBER,..."),
        ([str(published), "--weights", "utility=-1"], "where utility is '-1', allowed: a number from 0 on"),
        ([str(published), "--weights", "utility=nan"], "where utility is 'nan', allowed: a number from 0 on"),
        ([str(published), "--weights", "utility=much"], "where utility is 'much', allowed: a number from 0 on"),
        ([str(published), "--weights", "utility=0,privacy=0"], "allowed: at least one weight above 0"),
        ([str(published), "--weights", "utility=1,utility=1"], "which gives utility twice"),
        ([str(published), "--weights", ""], "option 'weights' is '', allowed: AXIS=NUMBER,..."),
        ([str(published), "--weights", "privacy=1", "--threats", "own"], "a weight on utility, integrity"),
        ([str(published), "--weights", "utility=1", "--format", "csv"], "does nothing with the format csv"),
        ([str(published), "--format", "xml"], "invalid choice: 'xml'"),
        (["nowhere"], "there are no records in runs/nowhere"),
        (["odd.json"], "odd.json is not a board"),
        (["threats.json"], "threats.json is damaged"),
        ([str(published), "--out", "odd.json/x.md"], "cannot write odd.json/x.md"),
    ):
        assert main(["leaderboard", *words]) == 2
        streams = capsys.readouterr()
        assert streams.out == ""
        assert streams.err.startswith("bench: ")
        assert told in streams.err
        assert streams.err.count("\n") == 1


def test_a_board_whose_scores_were_raised_is_refused(bench: Bench, published: Path) -> None:
    """Whoever reads it: the table, and who joins it to another board."""
    edited = json.loads(published.read_text())
    edited["cells"][0]["scores"]["1"] = 1.0
    other = published.with_name("edited.json")
    other.write_text(json.dumps(edited))
    why = "score of seed 1 is 1, and its metrics give "
    with pytest.raises(UserError, match=why):
        bench(other)
    with pytest.raises(UserError, match=why):
        bench(published, "--with", other)


def test_a_page_is_not_printed_in_a_terminal(bench: Bench, published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(UserError, match="option 'out' is not given"):
        bench(published, "--format", "html")


def test_one_seed_and_failures_are_stated(bench: Bench, published: Path) -> None:
    problem = make_problem(reference_accuracy={0: 0.9}, local_only={0: 0.5})
    one = make_board([make_cell(seeds=(0,))], [make_clean_run(seeds=(0,))], seeds=(0,), problems=(problem,))
    published.write_text(to_json(consistent(one)), encoding="utf-8")
    out = bench(published, "--threats", "server")
    assert "one seed (0): no interval" in out
    assert "±" not in out.split("How the scores")[0]
    failed = [make_cell(d, status="failed") for d in ("fedavg", "dbcl")]
    published.write_text(to_json(consistent(make_board(failed))), encoding="utf-8")
    out = bench(published, "--threats", "server")
    assert "none of the 2 cells gave a result" in " ".join(out.split())
    assert "1 failed" in out
