"""`import fedarena as fa`: what it gives is what the commands give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest
import torch
from helpers.board import make_board, make_cell
from helpers.paths import REPORTS, ROOT
from helpers.plugin_files import forgotten
from helpers.repeatable import repeatable

import fedarena as fa
from fedarena.board.gate.wording import verdict
from fedarena.cli import main
from fedarena.cli.output.pairing import WIDTH
from fedarena.contracts.aggregator import Aggregate, Aggregator, Call
from fedarena.contracts.inference import Reconstruction
from fedarena.datasets.digits import load as load_digits

BRIEFLY = pytest.mark.usefixtures("briefly_alone")


def half_frozen() -> torch.nn.Module:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))
    model[1].requires_grad_(False)
    return model


SHORT = {"rounds": 12, "attack.victims": 1, "attack.restarts": 1, "attack.iterations": 15}
"""A run of `dlg` of a second."""
WORDS = [f"--set={name}={value}" if "." in name else f"--{name}={value}" for name, value in SHORT.items()]


@pytest.fixture(scope="module")
def results() -> fa.Results:
    return fa.run("dbcl", "dlg", seeds=[0, 3], jobs=1, **SHORT)


def test_the_import_and_the_list_of_methods_load_no_torch() -> None:
    told = "print('torch' in sys.modules, 'pandas' in sys.modules)"
    code = f"import fedarena as fa, sys; fa.run; {told}; fa.methods('attack'); {told}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False", "True"]


def test_every_public_name_is_there_and_documented() -> None:
    assert all(getattr(fa, name).__doc__ for name in fa.__all__)
    assert set(fa.__all__) <= set(dir(fa))
    assert len(dir(fa)) == len(set(dir(fa)))
    with pytest.raises(AttributeError, match="no attribute 'ran'"):
        fa.ran  # noqa: B018


def test_a_run_gives_the_records_of_the_command(results: fa.Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--defense=dbcl", "--attack=dlg", "--seeds=0,3", "--jobs=1", "--quiet", "--json", *WORDS]) == 0
    assert repeatable(results) == repeatable(json.loads(capsys.readouterr().out)["records"])


def test_the_table_is_the_command_s(
    results: fa.Results, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    results.table()
    ours = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, ours)) == WIDTH
    main(["run", "--defense=dbcl", "--attack=dlg", "--seeds=0,3", "--jobs=1", "--quiet", f"--out={tmp_path}", *WORDS])
    theirs = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    timed = "training time"
    assert [x for x in ours if timed not in x] == [x for x in theirs[:-2] if timed not in x]
    assert theirs[-2].startswith("Records: ")
    words = " ".join(" ".join(ours).split())
    assert f"Verdict. {results.verdict} " in words
    assert results.remarks
    assert words.endswith(" ".join(results.remarks))


def test_the_table_is_as_wide_as_columns_says_and_its_words_are_whole(
    results: fa.Results, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {}
    for columns in (40, 80, 400):
        monkeypatch.setenv("COLUMNS", str(columns))
        results.table()
        printed[columns] = capsys.readouterr().out
        assert columns // 2 < max(map(len, printed[columns].splitlines())) <= columns
    wide, *narrow = ({word.strip(":─") for word in printed[columns].split()} for columns in (400, 80, 40))
    assert all(words <= wide for words in narrow)


def test_a_frame_has_a_row_for_each_record(results: fa.Results) -> None:
    frame = results.to_frame()
    assert list(frame["key"]) == [record["key"] for record in results]
    assert list(frame["score privacy"]) == [record["scores"]["privacy"] for record in results]
    assert list(frame["metric ssim"]) == [record["metrics"]["ssim"] for record in results]
    assert set(frame["seed"]) == {0, 3}
    assert set(frame["party"]) == {"server", "client", "eavesdropper"}


def test_what_a_notebook_shows(results: fa.Results) -> None:
    figure = results.plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert "dlg" in figure.texts[0].get_text()
    page = results._repr_html_()
    assert "<pre>" in page
    assert "Verdict." in page
    assert "<table" in fa.Records(results.records)._repr_html_()
    assert repr(results) == f"<Results: dlg against dbcl, {len(results)} records>"
    assert not results.failed
    assert list(results[:2]) == list(results)[:2]


@BRIEFLY
def test_poisoning_has_curves_and_none_means_not_given() -> None:
    made = fa.run("krum", "sign-flip", clients=6, corrupted=1, rounds=4, seeds=2, jobs=1, party=None, knows="own")
    figure = made.plot()
    assert figure is not None
    assert len(figure.axes[0].lines) == 4
    assert {record["seed"] for record in made} == {2}


@BRIEFLY
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_names_the_run_and_ends_at_one(jobs: int) -> None:
    heard: list[tuple[str, float, str]] = []
    fa.run("krum", "sign-flip", progress=lambda *news: heard.append(news), clients=6, corrupted=1, rounds=4, jobs=jobs)
    assert {name for name, _, _ in heard} >= {"krum, seed 0", "krum under sign-flip (own), seed 0", "fedavg, seed 0"}
    ends = {name: share for name, share, _ in heard}
    assert all(share == pytest.approx(1.0) for share in ends.values())


@BRIEFLY
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("error", "share"), [(ValueError, 0), (KeyboardInterrupt, 1)])
def test_what_progress_raises_ends_the_run(
    jobs: int, error: type[BaseException], share: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also at its last call."""
    raised = []

    def broken(name: str, done: float, text: str) -> None:
        if done >= share - 1e-9:
            raised.append(name)
            raise error("mine")

    with pytest.raises(error, match=r"^mine$"):
        fa.run("fedavg", "dlg", party="server", progress=broken, jobs=jobs, **SHORT)
    assert len(raised) == 1
    assert "Traceback" not in capfd.readouterr().err


@BRIEFLY
def test_a_folder_keeps_the_records(tmp_path: Path) -> None:
    made = fa.run("fedavg", "sign-flip", out=tmp_path, clients=6, corrupted=1, rounds=4, jobs=1)
    read = fa.read_records(tmp_path)
    assert {record["key"] for record in read} == {record["key"] for record in made}
    with pytest.raises(fa.UserError, match="no folder"):
        fa.read_records(tmp_path / "none")
    with pytest.raises(fa.UserError, match=f"is part of a folder of records, allowed: that folder, {tmp_path}$"):
        fa.read_records(tmp_path / "records")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seedz": 3}, "option 'seedz' is unknown; did you mean seeds"),
        ({"assumed_corruptd": 3}, "option 'assumed_corruptd' is unknown; did you mean assumed_corrupted"),
        ({"lr": 0.1}, r"option 'lr' is unknown; it is training.lr$"),
        ({"rounds": True}, "option 'rounds' is True, allowed: a value"),
        ({"rounds": -1}, "option 'rounds' is -1"),
        ({"attack.victim": 1}, "did you mean victims"),
        ({"training.lr": None}, "none"),
        ({"party": ["server", "nobody"]}, "option 'party' is 'nobody'"),
        ({"out": 3}, "option 'out' is an int, allowed: a path"),
        ({"save_transcript": 3}, "option 'save_transcript' is an int, allowed: a path"),
        ({"out": ""}, "option 'out' is '', allowed: a path"),
        ({"with_truth": True}, "option 'with_truth' does nothing without option 'save_transcript': give that one, too"),
        ({"training-lr.x": 1}, "^a dotted option names the group 'training-lr'"),
        ({"rounds": 10**20}, "option 'rounds' is '1000.*', allowed: integers up to 9007199254740991"),
        ({"rounds": 1e20}, "option 'rounds' is '1e\\+20', allowed: integer"),
        ({"jobs": 10**9}, "option 'jobs' is 1000000000, allowed: 1 to 10000"),
        ({"clients": 10**9}, "option 'clients' is 1000000000, allowed: 1 to 1000000"),
        ({"seeds": "-1"}, "option 'seeds' is -1"),
        ({"help": True}, "option 'help' is of commands"),
    ],
)
def test_bad_input_raises_the_command_s_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(fa.UserError, match=said):
        fa.run("dbcl", "dlg", **options)


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ({"dataset": (1, 2)}, r"inputs and classes have the shapes \[\] and \[\]"),
        ({"model": half_frozen()}, r"parameters without a gradient \(1.weight, 1.bias\)"),
    ],
)
def test_objects_that_cannot_be_used_raise_one_line(objects: dict[str, Any], said: str) -> None:
    with pytest.raises(fa.UserError, match=said):
        fa.run("median", "sign-flip", rounds=2, **objects)


@BRIEFLY
def test_tables_of_pandas_are_a_data_set() -> None:
    x, y = np.random.default_rng(0).random((300, 4)), np.arange(300) % 3
    given = {"model": "mlp", "rounds": 2, "clients": 5, "corrupted": 1, "batch_size": 4, "jobs": 1}
    tables, arrays = (
        fa.run("median", "sign-flip", dataset=dataset, **given) for dataset in ((pd.DataFrame(x), pd.Series(y)), (x, y))
    )
    assert repeatable(tables) == repeatable(arrays)


@BRIEFLY
def test_double_precision_as_the_session_s_own_changes_nothing() -> None:
    made = [fa.run("fedavg", "dlg", party="server", jobs=1, **SHORT)]
    torch.set_default_dtype(torch.float64)
    try:
        made.append(fa.run("fedavg", "dlg", party="server", jobs=1, **SHORT))
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert repeatable(made[0]) == repeatable(made[1])


def test_a_suite_is_measured_and_returned(tmp_path: Path) -> None:
    heard: list[tuple[float, str]] = []
    made = fa.run_suite(tiny_suite(tmp_path), out=tmp_path / "out", jobs=1, progress=lambda *news: heard.append(news))
    assert {(r["defense"], r["attack"]) for r in made} >= {("median", "last-layer-label"), ("fedavg", "none")}
    frame = fa.load_board(tmp_path / "out").to_frame()
    assert set(frame["defense"]) >= {"fedavg", "median"}
    assert [heard[0], heard[-1][0]] == [(0, "starting"), 1]
    assert [share for share, _ in heard] == sorted({share for share, _ in heard})
    assert any("last-layer-label on median" in text for _, text in heard)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("share", [0, 1])
def test_what_progress_raises_ends_the_suite(
    jobs: int, share: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    raised = []

    def broken(done: float, text: str) -> None:
        if done >= share:
            raised.append(text)
            raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        fa.run_suite(tiny_suite(tmp_path), out=tmp_path / "out", jobs=jobs, progress=broken)
    assert len(raised) == 1
    assert capfd.readouterr().err == ""


@BRIEFLY
@pytest.mark.parametrize("given", [True, False, None])
def test_bars_are_shown_where_progress_is_true(
    given: bool | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
    gradient = [torch.rand_like(p) for p in model.parameters()]
    fa.run("median", "sign-flip", model="mlp", clients=4, corrupted=1, rounds=2, jobs=1, progress=given)
    shown = [capfd.readouterr().err]
    fa.run_suite(tiny_suite(tmp_path), out=tmp_path / "out", jobs=1, progress=given)
    shown += [capfd.readouterr().err]
    fa.invert(model, gradient, input_shape=(1, 8, 8), n_classes=10, iterations=5, restarts=1, progress=given)
    shown += [capfd.readouterr().err]
    assert [bool(text) for text in shown] == [given is True] * 3


@pytest.mark.parametrize("progress", [3, "yes"])
def test_progress_that_is_no_function_is_refused(progress: Any, tmp_path: Path) -> None:
    said = "option 'progress' is an? (int|str), allowed: True, False, or a function"
    with pytest.raises(fa.UserError, match=said):
        fa.run("median", "sign-flip", progress=progress)
    with pytest.raises(fa.UserError, match=said):
        fa.run_suite(tiny_suite(tmp_path), progress=progress)
    with pytest.raises(fa.UserError, match=said):
        fa.invert(torch.nn.Linear(64, 10), [], input_shape=(64,), n_classes=10, progress=progress)


def tiny_suite(folder: Path) -> Path:
    suite = folder / "tiny.toml"
    suite.write_text(
        'title = "Tiny"\nseeds = [0]\n[problems.p]\ndataset = "digits"\nmodel = "mlp"\nclients = 2\n'
        'utility = false\ntraining = { rounds = 8, batch_size = 4, lr = 0.1 }\n[[matrix]]\nproblem = "p"\n'
        'defenses = ["fedavg", "median"]\nattacks = ["last-layer-label"]\n'
    )
    return suite


def test_what_is_explained_is_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "dbcl", "dlg", "--json", "--rounds=3"]) == 0
    assert json.loads(json.dumps(fa.explain("dbcl", "dlg", rounds=3))) == json.loads(capsys.readouterr().out)


def test_methods_are_those_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "aggregator", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["aggregator"]
    assert list(fa.methods("aggregator")["name"]) == [row["name"] for row in listed]
    assert set(fa.methods()["kind"]) == {"defense", "aggregator", "secure", "attack", "dataset", "model", "partition"}
    with pytest.raises(fa.UserError, match="kind"):
        fa.methods("rule")


@BRIEFLY
def test_an_object_of_the_session_goes_by_its_name_as_well() -> None:
    """Its run has one process, since others do not know it."""
    few = {"model": "mlp", "clients": 4, "corrupted": 1, "rounds": 2}
    with forgotten():
        fa.run(Halves, "sign-flip", **few)
        assert {r["status"] for r in fa.run("nnm+halves", "sign-flip", seeds=[0, 1], **few)} == {"ok"}
        with pytest.raises(fa.UserError, match="option 'jobs' is 2, allowed with objects of your own: 1"):
            fa.run("halves", "sign-flip", jobs=2, **few)


class Halves(Aggregator):
    """Half of the mean."""

    def __call__(self, x: torch.Tensor, call: Call) -> Aggregate:
        return Aggregate(x.mean(0) / 2, used=None)


def test_methods_of_a_file_are_listed_too() -> None:
    with forgotten():
        assert "short-middle" in set(fa.methods("aggregator", plugin=ROOT / "examples/short_rule.py")["name"])
    with pytest.raises(fa.UserError, match="option 'plugin' is an int, allowed: a path"):
        fa.methods(plugin=3)  # type: ignore[arg-type]


# -- boards --------------------------------------------------------------------------------------------


def board_with(*scores: float) -> fa.Leaderboard:
    return fa.Leaderboard(make_board([make_cell("dbcl", "dlg", score) for score in scores]))


def test_a_board_is_a_frame_and_a_ranking() -> None:
    board = board_with(0.4)
    frame = board.to_frame()
    (cell,) = frame[frame["attack"] == "dlg"].to_dict("records")
    assert cell["score"] == pytest.approx(0.4)
    ranking = board.ranking()
    scores = ["lowest", "utility", "integrity", "privacy", "overall"]
    ends = [f"{name}{end}" for name in scores for end in ("", "_low", "_high")]
    assert list(ranking.columns) == ["rank", "defense", "unranked", *ends]
    assert ranking.set_index("defense").loc["dbcl", "privacy"] == pytest.approx(0.4)
    assert "<table" in board._repr_html_()


def test_a_published_board_is_ranked_as_the_command_ranks_it(capsys: pytest.CaptureFixture[str]) -> None:
    where = REPORTS / "digits"
    assert main(["leaderboard", str(where), "--format=md"]) == 0
    out = capsys.readouterr().out
    ranking = fa.load_board(where).ranking()
    first = ranking.iloc[0]
    assert f"| {first['rank']} | {first['defense']} |" in out
    assert len(ranking) == 15


def test_a_ranking_takes_the_command_s_threats_and_has_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    board = fa.load_board(REPORTS / "digits")
    assert main(["leaderboard", str(REPORTS / "digits"), "--threats=own,server", "--format=md"]) == 0
    out, ranking = capsys.readouterr().out, board.ranking(threats=["own", "server"])
    first, whole = ranking.iloc[0], board.ranking().iloc[0]
    assert f"{first['integrity']:.2f} ({first['integrity_low']:.2f} to {first['integrity_high']:.2f})" in out
    assert first["integrity_high"] != whole["integrity_high"]
    weighted = board.ranking(weights="utility=1,privacy=1")
    assert weighted["weighted"].notna().any()
    assert board.ranking(weights={"utility": 1, "privacy": 1}).equals(weighted)
    for options in ({"threats": "sever"}, {"problem": "faces"}, {"threat": "own"}):
        with pytest.raises(fa.UserError, match=r"sever|faces|option 'threat' is unknown; did you mean threats"):
            board.ranking(**options)


def test_what_holds_much_shows_itself_in_a_line(results: fa.Results) -> None:
    board = board_with(0.4)
    gate, guess = fa.compare(board, board), Reconstruction(torch.zeros(1, 3, 32, 32), torch.zeros(1).long(), 0.1, 3)
    for one in (board, board.board, gate, gate.comparison, guess, fa.Records(results.records), load_digits()):
        assert type(one).__name__ in repr(one)
        assert "\n" not in repr(one)
        assert len(repr(one)) < 400
    assert "images=float32 [1, 3, 32, 32]" in repr(guess)


def test_boards_are_compared_as_the_gate_does() -> None:
    base, new = board_with(0.9), board_with(0.2)
    same, worse = fa.compare(base, base), fa.compare(base, new)
    assert same.passed
    assert same.verdict == verdict(same.comparison)
    assert not worse.passed
    frame = worse.to_frame()
    assert "cell" in set(frame.loc[frame["outcome"] == "loss", "group"])
    assert worse.verdict in worse._repr_html_()
    assert fa.compare(new, base, losses_only=True).passed
    with pytest.raises(fa.UserError, match="option 'false_alarm' is '3'"):
        fa.compare(base, new, false_alarm=3)


def test_rules_are_functions() -> None:
    x = np.random.default_rng(0).normal(size=(9, 4))
    np.testing.assert_allclose(fa.aggregate("median", x, 2), np.median(x, 0))
