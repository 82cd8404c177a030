"""Single nodes on boards: a table of defenses without a server in every form, and nothing where all have one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from helpers.board import make_board, make_cell, make_clean_run, make_problem
from helpers.paths import REPORTS
from helpers.suite import POISON, measure

from fedarena.board.board import Board
from fedarena.board.frame import to_csv
from fedarena.board.leaderboard import render
from fedarena.board.load import load_board
from fedarena.board.markdown import ranking
from fedarena.board.node_lines import HEADS, INTRODUCTION, node_lines
from fedarena.board.page.html import page
from fedarena.board.page.outcome import outcome
from fedarena.board.published import from_json, to_json
from fedarena.board.report.attack_tables import metrics
from fedarena.board.threat_filter import ThreatFilter
from fedarena.cli.output.leaderboard import plain
from fedarena.core.errors import UserError

NODES = {
    "node_worst": {0: 0.25, 1: 0.25},
    "mean_model": {0: 0.5, 1: 0.7},
    "consensus": {0: 0.125, 1: 0.125},
    "edge_bytes": {0: 3210.0, 1: 3210.0},
}
LINE = ("gossip", "digits", "80 ± 0 %", "25 ± 0 %", "60 % (0 to 100 %)", "0.125 ± 0", "3.2 kB")


def peers() -> Board:
    accuracy = {0: 0.8, 1: 0.8}
    runs = (make_clean_run(seeds=(0, 1)), make_clean_run("gossip", seeds=(0, 1), accuracy=accuracy, nodes=NODES))
    return make_board((), runs, seeds=(0, 1))


def test_a_line_has_every_figure_with_its_interval() -> None:
    assert node_lines(peers(), ThreatFilter()) == [LINE]
    assert node_lines(peers(), ThreatFilter(problems=("other",))) == []
    assert node_lines(make_board(), ThreatFilter()) == []


def test_what_was_not_finite_has_a_dash_and_numbers_no_percent() -> None:
    run = make_clean_run("gossip", accuracy={0: 0.25}, nodes={"mean_model": {0: 0.125}})
    board = make_board((), (run,), problems=(make_problem(measure="R2"),))
    assert node_lines(board, ThreatFilter()) == [("gossip", "digits", "0.25", "–", "0.12", "–", "–")]


def test_a_published_board_keeps_them_and_an_old_one_has_none() -> None:
    board = peers()
    assert from_json(to_json(board), Path("board.json")) == board
    assert '"nodes"' not in to_json(make_board())
    old = json.loads(to_json(board))
    for run in old["honest"]:
        run.pop("nodes", None)
    assert all(run.nodes == {} for run in from_json(json.dumps(old), Path("board.json")).clean_runs)
    baseline = (REPORTS / "baseline" / "board.json").read_text(encoding="utf-8")
    assert to_json(from_json(baseline, Path("board.json"))) == baseline


def test_a_figure_that_is_no_number_is_refused() -> None:
    damaged = to_json(peers()).replace('"edge_bytes":{"0":3210.0', '"edge_bytes":{"0":"many"')
    with pytest.raises(UserError, match=r"clean run 2 \(digits · gossip\): nodes"):
        from_json(damaged, Path("board.json"))


def test_every_printer_shows_the_line_only_where_there_is_one() -> None:
    for shown in (ranking(render(peers())), plain(render(peers()), [])):
        words = " ".join(shown.split())
        assert INTRODUCTION in words
        assert all(text in words for text in (*HEADS, *LINE))
    for shown in (ranking(render(make_board())), plain(render(make_board()), [])):
        assert HEADS[2] not in shown
    assert '<section id="nodes" aria-labelledby="nodes-title">' in page(peers())
    assert '<th scope="row">gossip</th><td>digits</td><td>80 ± 0 %</td>' in page(peers())
    assert '<section id="nodes" aria-labelledby="nodes-title" hidden>' in page(make_board())


def test_csv_has_their_means_in_the_rows_of_clean_runs() -> None:
    fedavg, gossip = [r for r in csv.DictReader(io.StringIO(to_csv(peers()), newline="")) if r["status"] == "ok"]
    names = ("mean_model", "node_worst", "consensus", "edge_bytes")
    assert [float(gossip[f"metric {name}"]) for name in names] == [0.6, 0.25, 0.125, 3210.0]
    assert {fedavg[f"metric {name}"] for name in names} == {""}


def test_under_attack_the_worst_node_and_the_mean_model_stand_beside() -> None:
    measured = {"accuracy": {0: 0.1, 1: 0.1}, **NODES}
    cell = make_cell("gossip", "split", 0.5, (0, 1), axis="integrity", metrics=measured)
    assert metrics(cell) == "accuracy 0.10 ± 0.00, worst node 0.25 ± 0.00, mean model 0.60 ± 1.27"
    assert outcome(cell, peers()) == (
        "Under split honest nodes end with accuracy 10 ± 0 % on average (without poisoning: 80 ± 0 %), worst 25 ± 0 %, "
        "mean model 60 % (0 to 100 %), consensus distance 0.125 ± 0."
    )


@pytest.mark.usefixtures("briefly_alone")
def test_a_suite_s_board_has_the_figures_of_its_runs(tmp_path: Path) -> None:
    matrix = '[[matrix]]\nproblem = "poison"\ndefenses = ["d-sgd"]\nattacks = ["dissensus"]\nknows = ["own"]\n'
    measure(f'title = "Peers"\nseeds = [0]\n{POISON}\n{matrix}', tmp_path)
    board = load_board(tmp_path / "out")
    (fedavg, gossip), (cell,) = board.clean_runs, board.cells
    assert fedavg.nodes == {}
    assert set(gossip.nodes) == set(NODES)
    assert 0 <= gossip.nodes["node_worst"][0] <= gossip.accuracy[0] <= 1
    assert 0 <= gossip.nodes["mean_model"][0] <= 1
    assert gossip.nodes["edge_bytes"] == cell.metrics["edge_bytes"] == {0: 2 * 4 * (64 * 8 + 8 + 8 * 10 + 10)}
    assert gossip.nodes["consensus"] != cell.metrics["consensus"]
    assert [line[0] for line in node_lines(board, ThreatFilter())] == ["d-sgd"]
