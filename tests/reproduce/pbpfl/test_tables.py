"""PBPFL's tables: what their pieces are called, and one small cut of each from end to end."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from fedarena.cli import main
from fedarena.cli.output.reproduce import over_seeds
from fedarena.core.tensors import combine
from fedarena.defenses.pbpfl.protocol import PBPFL
from fedarena.federation.rounds import Point, Run
from fedarena.problem.problem import build
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.pbpfl import common as pbpfl
from fedarena.reproduce.pbpfl import precision as pbpfl_precision
from fedarena.reproduce.pbpfl import table1 as pbpfl_table1
from fedarena.reproduce.pbpfl import table2 as pbpfl_table2
from fedarena.reproduce.pbpfl import table3 as pbpfl_table3
from fedarena.reproduce.pbpfl import unmask as pbpfl_unmask
from fedarena.reproduce.pbpfl.table3 import DOWN, FORWARD, MASKS, SERVER, STEP, UP
from fedarena.reproduce.tables import table_of


def expect_progress(share: float, text: str) -> None:
    assert 0 <= share <= 1
    assert text


@pytest.fixture
def few_samples(monkeypatch):
    """Federations train on the first 150 samples of their data set: a ResNet-20 takes long for each."""
    build = pbpfl.build

    def cut(*args):
        problem = build(*args)
        shards = torch.arange(150).chunk(len(problem.shards))
        return replace(problem, x=problem.x[:150], y=problem.y[:150], shards=shards)

    monkeypatch.setattr(pbpfl, "build", cut)


@pytest.mark.parametrize("name", ["encryption", "table1", "table2", "table3", "precision", "unmask"])
def test_every_piece_has_a_name_of_its_own(name):
    table = table_of(f"pbpfl/{name}")
    assert len(set(table.pieces)) == len(table.pieces) > 3
    assert table.setting


def test_table_1_names_its_federations():
    names = pbpfl_table1.TABLE.pieces
    assert "bank-additional, standardised, MLP-3 (code), k = 1, whole" in names
    assert "bank-additional, standardised, MLP-7 (code), k = 10, copies" in names
    assert "bank-additional, MLP-3 (code), k = 10, copies" in names
    assert not [n for n in names if "k = 1," in n and "copies" in n]
    assert "double precision, bank-marketing, MLP-5, k = 10, copies" in names
    assert len(names) == 3 * 5 + 3 * 3 + 6 * 5
    deepest = pbpfl_table1.BY_NAME["bank-additional, standardised, MLP-7 (code), k = 10, disjoint"]
    assert [deepest.paper(method) for method in ("fedavg", "pbpfl", "trivial")] == [0.113, 0.114, None]
    assert pbpfl_table1.BY_NAME["bank-additional, MLP-3 (code), k = 5, copies"].paper("fedavg") == 0.079


def test_every_number_is_compared_in_the_code_s_form_for_either_scaling():
    """Those on disjoint shards, which the code does not have, are compared beside them and name the cause."""
    published = pbpfl_table1.PUBLISHED
    every = sorted(number for row in pbpfl_table1.PAPER.values() for number in row)
    in_form = [p for p in published if "disjoint" not in p.piece]
    for standardised in (True, False):
        assert sorted(p.paper for p in in_form if ("standardised" in p.piece) == standardised) == every
    assert not [p for p in published if p.apart]
    by_number = {(p.piece, p.row): p for p in published}
    for number in published:
        shown = [by_number[cause.row, number.row] for cause in number.causes]
        assert all(p.paper == number.paper and "disjoint" not in p.piece for p in shown)
        assert len(shown) == (0 if "standardised" not in number.piece else 2 if "disjoint" in number.piece else 1)


def test_columns_are_standardised_by_the_training_part_and_flags_stay():
    problem = build(pbpfl.spec("breast-cancer", "mlp", {}, "whole", 1, pbpfl_table1.Schedule()), 0)
    marked = torch.arange(len(problem.x)) % 2
    x = torch.cat([problem.x, marked[:, None], torch.full((len(problem.x), 1), 0.5)], 1)
    after = pbpfl_table1.standardised(replace(problem, x=4 * x, x_test=4 * x[:7], scale=4.0))
    assert after.scale == 1
    assert after.x.dtype == problem.x.dtype
    assert after.x[:, :-2].mean(0).abs().max() < 1e-5
    assert (after.x[:, :-2].std(0, correction=0) - 1).abs().max() < 1e-5
    assert torch.equal(after.x[:, -2], marked.float())
    assert (after.x[:, -1] == 0.5).all()
    assert torch.equal(after.x_test, after.x[:7])


def test_the_recipe_decays_weights_and_steps_once_in_a_hundred_epochs():
    federation = pbpfl_table1.Federation("MLP-3", k=5, shards="copies", data="breast-cancer", batch=32)
    schedule = pbpfl_table1._problem(federation, Machine(), 0).task.schedule
    per_epoch = schedule.rounds // 100
    rates = {epoch: schedule.in_round(epoch * per_epoch).lr for epoch in range(100)}
    assert schedule.server_decay == 5e-4
    assert {epoch for epoch, rate in rates.items() if rate == 0.001} == set(range(60))
    assert all(rates[epoch] == pytest.approx(1e-4) for epoch in range(60, 100))
    plain = pbpfl_table1._problem(replace(federation, recipe=False), Machine(), 0).task.schedule
    assert (plain.server_decay, plain.in_round(plain.rounds - 1).lr) == (0, 0.001)


def test_an_epoch_is_one_pass_of_a_client_over_its_shard():
    assert [pbpfl.steps_of(36169, k, 512) for k in (1, 5, 10)] == [71, 15, 8]
    assert [pbpfl.steps_of(32950, k, 512) for k in (1, 5, 10)] == [65, 13, 7]


@pytest.mark.parametrize(("model", "layers"), [("MLP-3", 3), ("MLP-3 (code)", 4)])
def test_table_1_in_small(model, layers):
    federation = pbpfl_table1.Federation(model, k=5, shards="disjoint", data="breast-cancer", epochs=3, batch=32)
    found = pbpfl_table1.measure(federation, Machine(), 0, expect_progress)
    plain, masked, nudged, constant = found
    assert [r["method"] for r in found] == ["fedavg", "pbpfl", "fedavg, last bits", "trivial"]
    assert all(list(r) == list(plain) for r in found)
    assert plain["weight_layers"] == layers
    assert plain["rounds"] == 3 * 3  # 455 samples, 91 a client, 3 batches
    assert 0 < masked["apart"] < 1e-5
    assert 0 < nudged["apart"] < 1e-5
    assert abs(masked["mse"] - plain["mse"]) <= masked["apart"]
    assert masked["best"] <= masked["mse"]
    assert masked["digits_lost"] > 0
    assert plain["digits_lost"] is plain["apart"] is None
    assert constant["mse"] == constant["best"] == pytest.approx(0.2335, abs=1e-4)
    assert {r["note"] for r in found} == {""}
    assert set(pbpfl_table1.MEASURED) < set(plain)


def test_a_marked_run_is_marked_in_the_table_and_seeds_stay_one_row():
    federation = pbpfl_table1.Federation("MLP-3", k=5, shards="disjoint", data="breast-cancer", epochs=3, batch=32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PBPFL, "warnings", lambda self, told: ("lost 6 digits",))
        seeds = [
            {"seed": seed} | row
            for seed in (0, 1)
            for row in pbpfl_table1.measure(federation, Machine(), seed, expect_progress)
        ]
    assert {r["note"] for r in seeds if r["method"] == "pbpfl"} == {"lost 6 digits"}
    assert {r["note"] for r in seeds if r["method"] != "pbpfl"} == {""}
    seeds[1]["note"] = "lost 7 digits"
    shown = {row["method"]: row for row in over_seeds(seeds, pbpfl_table1.MEASURED)}
    assert len(shown) == 4
    assert shown["pbpfl"]["note"] == "lost 7 digits; lost 6 digits"
    assert shown["fedavg"] | {"note": ""} == shown["fedavg"]
    plain = [row for row in seeds if row["method"] == "fedavg"]
    assert all("note" not in row for row in over_seeds(plain, pbpfl_table1.MEASURED))


@pytest.mark.parametrize("shards", ["disjoint", "copies"])
def test_in_double_precision_the_training_curves_are_fedavgs(shards):
    federation = pbpfl_table1.Federation("MLP-5", k=5, shards=shards, data="breast-cancer", epochs=60, batch=32)
    masked = pbpfl_table1.measure(replace(federation, epochs=20), Machine(), 0, expect_progress)[1]
    found = pbpfl_table1.measure(replace(federation, double=True), Machine(), 0, expect_progress)
    plain, exact, nudged, constant = found
    assert [r["method"] for r in found] == ["fedavg", "pbpfl", "fedavg, last bits", "trivial"]
    assert plain["precision"] == "double"
    assert plain["rounds"] == 180
    assert exact["apart"] < 1e-12 < 1e-8 < masked["apart"]
    assert 0 < nudged["apart"] < 1e-12
    assert exact["digits_lost"] > 0
    assert plain["mse"] < 0.5 * constant["mse"]


def test_shards_that_are_copies_train_another_model():
    federation = pbpfl_table1.Federation("MLP-3", k=5, shards="disjoint", data="breast-cancer", epochs=2, batch=32)
    one, other = (
        pbpfl_table1.measure(c, Machine(), 0, expect_progress)[0]
        for c in (federation, replace(federation, shards="copies"))
    )
    assert one["mse"] != other["mse"]
    assert one["rounds"] == other["rounds"]


def test_mse_is_not_halved():
    assert pbpfl_table1.mse(Point(1, accuracy=0.9, loss=0.04)) == 0.08
    problem = pbpfl.in_epochs(
        pbpfl.spec("breast-cancer", "mlp", {}, "whole", 1, pbpfl_table1.Schedule(loss="regression")), 1, 0, Machine()
    )
    mean = problem.y.double().mean()
    assert pbpfl_table1.trivial(problem) == pytest.approx(float((problem.y_test.double() - mean).square().mean()))


def test_lesions_in_double_precision_compare_fedavg_with_pbpfl(few_samples, monkeypatch):
    kinds = []
    train = pbpfl.train

    def watched(method, problem, *rest):
        kinds.append({p.dtype for p in problem.init.values()} | {problem.inputs(problem.shards[0][:1]).dtype})
        return train(method, problem, *rest)

    monkeypatch.setattr(pbpfl, "train", watched)
    federation = pbpfl_table2.Federation(5, epochs=1, data="digits", batch=15, rate=1e-3, double=True)
    found = pbpfl_table2.measure(federation, Machine(), 0, expect_progress)
    assert [r["method"] for r in found] == ["FedAvg-MSE", "PBPFL", "FedAvg-MSE, last bits", "trivial"]
    assert {r["precision"] for r in found} == {"double"}
    assert kinds == [{torch.float64}] * 3
    assert found[1]["apart"] == 0
    assert "double precision, ham10000, 5 epochs, k = 1" in pbpfl_table2.TABLE.pieces


def run_of(*curve: Point) -> Run:
    """A run of which its curve alone matters."""
    return Run({}, curve=curve, rounds=(), bytes_up=0, bytes_down=0, seconds=0, peak_bytes=0, diverged_at=None)


def test_curves_are_compared_at_every_evaluation():
    def run(*losses: float) -> Run:
        return run_of(*(Point(t, accuracy=0.0, loss=loss) for t, loss in enumerate(losses)))

    assert pbpfl.apart(run(3.0, 1.0, 1.0), run(3.5, 3.0, 1.0), lambda p: p.loss) == 2.0
    assert pbpfl.digits_lost(run(1.0)) is None


def test_table_2_names_its_federations():
    names = pbpfl_table2.TABLE.pieces
    assert "ham10000, 5 epochs, k = 1" in names
    assert "ham10000, 5 epochs, k = 1, skip=concat" in names
    assert "ham10000, 200 epochs, k = 10" in names


@pytest.mark.parametrize("skip", ["add", "concat"])
def test_table_2_in_small(few_samples, skip):
    federation = pbpfl_table2.Federation(5, epochs=1, skip=skip, data="digits", batch=10, rate=1e-3)
    found = pbpfl_table2.measure(federation, Machine(), 0, expect_progress)
    assert [r["method"] for r in found] == ["FedAvg-CE", "FedAvg-MSE", "PBPFL", "FedAvg-MSE, last bits", "trivial"]
    assert [r["paper"] for r in found] == [0.6493, 0.6168, 0.6174, None, None]
    entropy, plain, masked, nudged, constant = found
    assert plain["rounds"] == 3  # 30 samples a client
    assert masked["apart"] == abs(masked["accuracy"] - plain["accuracy"]) <= 0.02
    assert nudged["apart"] == abs(nudged["accuracy"] - plain["accuracy"]) <= 0.02
    assert entropy["apart"] is plain["apart"] is constant["apart"] is None
    assert entropy["accuracy"] != plain["accuracy"]
    assert 0.1 <= constant["accuracy"] < 0.12
    assert masked["digits_lost"] > 0
    assert all(list(r) == list(entropy) for r in found)
    assert set(pbpfl_table2.MEASURED) < set(entropy)


def test_papers_numbers_of_table_2_stand_at_five_clients_and_depth_20_only(monkeypatch):
    run = run_of(Point(1, accuracy=0.5, loss=0.5))
    monkeypatch.setattr(pbpfl, "train", lambda *federation: run)
    for k, depth, paper in ((5, 20, pbpfl_table2.PAPER), (1, 20, {}), (5, 32, {})):
        federation = pbpfl_table2.Federation(k, epochs=1, data="digits", batch=128, rate=1e-3, depth=depth)
        rows = pbpfl_table2.measure(federation, Machine(), 0, expect_progress)
        assert {r["method"]: r["paper"] for r in rows if r["paper"]} == paper


@pytest.mark.parametrize("model", ["mlp", "resnet"])
def test_table_3_in_small(model):
    federation = next(c for c in pbpfl_table3.NETWORKS if c.model == model)
    federation = replace(federation, shape=(51,) if model == "mlp" else (3, 8, 8), batch=2, repetitions=1)
    told: list[float] = []
    found = {r["what"]: r for r in pbpfl_table3.measure(federation, 0, told.append)}
    assert told == [0.5, 1.0]
    assert found[UP]["ratio"] == 3.0
    assert found[DOWN]["pbpfl"] - found[DOWN]["fedavg"] == 4 * (7 if model == "resnet" else 1)  # r_a
    assert [found[what]["paper_ratio"] for what in (FORWARD, STEP, SERVER, UP)] == [1.005, 2.504, 1.078, 3.0]
    assert found[MASKS]["ratio"] is None
    assert all(r["fedavg"] > 0 and r["pbpfl"] > 0 for r in found.values())


def test_what_table_3_times_computes_the_same():
    federation = replace(pbpfl_table3.NETWORKS[1], shape=(3, 16, 16), batch=8)
    step = pbpfl_table3.Round(federation, 0)
    plain, by_hand = step.client("fedavg"), step.plain()
    assert all(torch.allclose(a[0], b, rtol=1e-3, atol=1e-6) for a, b in zip(plain.values(), by_hand, strict=True))
    assert torch.equal(step.forward("fedavg"), step.task.outputs(step.state.params, step.batch.x[0]))
    assert step.forward("pbpfl").shape == (8, 7)
    steps = {name: combine(1, step.state.params, -1, step.server(name).params) for name in ("fedavg", "pbpfl")}
    assert pbpfl_precision.relative(steps["pbpfl"], steps["fedavg"]) < 0.01


SHORT = (
    pbpfl_precision.Series("r", "decades", (0.0, 12.0), (("gamma_scale", "1e-12"),)),
    pbpfl_precision.Series("gamma", "gamma_scale", (1.0, 10.0, 1e4), ()),
)


def test_precision_in_small():
    found = pbpfl_precision.measure(pbpfl_precision.NETWORKS[0], Machine(), 0, expect_progress, SHORT)
    narrow, wide, usual, larger, huge = found
    assert wide["error"] < 4 * narrow["error"] < 1e-5  # twelve decades of r cost nothing
    assert usual["error"] < larger["error"] / 20  # the digits go with γ²
    for row in (usual, larger):
        assert 0.3 < row["error"] / row["predicted"] < 3
    assert huge["error"] > 1
    assert [r["marked"] for r in (narrow, wide, usual, huge)] == [0, 0, 0, 1]
    assert all(r["plain"] == found[0]["plain"] < 1e-6 for r in found)


def test_wide_masks_of_a_deep_network_are_no_loss():
    """Gradients by masked parameters are then so large that their squares overflow in float32."""
    (wide,) = pbpfl_precision.measure(
        *(pbpfl_precision.NETWORKS[2], Machine(), 0, expect_progress),
        (pbpfl_precision.Series("r", "decades", (12.0,), (("gamma_scale", "1e-12"),)),),
    )
    assert wide["error"] < 1e-6
    assert wide["digits_lost"] < 0.1
    assert wide["marked"] == 0


def test_precision_takes_trained_networks():
    network = replace(pbpfl_precision.NETWORKS[0], rounds=20)
    (fresh,), (trained,) = (
        pbpfl_precision.measure(c, Machine(), 0, expect_progress, (pbpfl_precision.Series("r", "decades", (0.0,), ()),))
        for c in (pbpfl_precision.NETWORKS[0], network)
    )
    assert fresh["plain"] != trained["plain"]


def test_the_error_is_relative_to_the_truth():
    exact = {"a": torch.tensor([3.0, 0.0]).double(), "b": torch.tensor([4.0]).double()}
    found = {"a": torch.tensor([3.0, 0.5]), "b": torch.tensor([4.0])}
    assert pbpfl_precision.relative(found, exact) == pytest.approx(0.1)


def test_the_picture_shows_all_networks(tmp_path):
    rows = [
        {
            "seed": seed,
            "network": net,
            "series": s.title,
            "value": v,
            "error": 1e-7 * v + 1e-8,
            "predicted": v,
        }
        for seed in (0, 1)
        for net in ("a", "b", "c")
        for s in pbpfl_precision.SERIES
        for v in s.values
    ]
    for nets in ("a", "abc"):
        pbpfl_precision.draw([row for row in rows if row["network"] in nets], tmp_path / f"{nets}.png")
    one, three = ((tmp_path / f"{nets}.png").read_bytes() for nets in ("a", "abc"))
    assert one.startswith(b"\x89PNG")
    assert one != three


def test_the_command_writes_rows_and_picture(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pbpfl_precision, "DRAWS", 1)
    assert main(["reproduce", "pbpfl/precision", "--only", "mlp 64-50-50-10, at", "--jobs", "1", "--quiet"]) == 0
    path = tmp_path / "runs" / "pbpfl-precision-mlp-64-50-50-10-at.json"
    rows = json.loads(path.read_text())["rows"]
    assert len(rows) == sum(len(s.values) for s in pbpfl_precision.SERIES + pbpfl_precision.DISTRIBUTIONS)
    assert path.with_suffix(".png").is_file()
    assert f"Drawn to runs/{path.stem}.png" in capsys.readouterr().out


@pytest.mark.parametrize("piece", ["diabetes, mlp", "diabetes, mlp, r constant", "breast-cancer, mlp"])
def test_tables_are_unmasked(monkeypatch, piece):
    monkeypatch.setattr(pbpfl_unmask, "ROUNDS", 102)
    first, later = pbpfl_unmask.TABLE.rows(piece, Machine(), 0, expect_progress)
    assert (first["round"], later["round"]) == (0, 100)
    assert later["federation"] == piece
    assert list(later)[2:] == list(pbpfl_unmask.MEASURED)
    assert later["by broadcasts"] <= 1e-3
    assert later["unmasked agrees"] >= 0.99
    assert later["masked agrees"] < 0.99


def test_under_adam_broadcasts_of_rounds_before_tell_too(monkeypatch):
    monkeypatch.setattr(pbpfl_unmask, "ROUNDS", 102)
    federation = replace(pbpfl_unmask.FEDERATIONS[-1], data="diabetes", batch=32)
    first, later = pbpfl_unmask.measure(federation, Machine(), 0, expect_progress)
    assert first["by broadcasts"] == pytest.approx(first["by columns"], abs=1e-6)  # of two rounds hardly any bound
    assert later["by broadcasts"] < 0.5 * later["by columns"]
