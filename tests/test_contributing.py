"""CONTRIBUTING.md's example is the plug-in of tests/plugin, and that one is built, installed and run here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from helpers.paths import ROOT

from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.threat import PARTIES

pytestmark = pytest.mark.usefixtures("briefly_alone", "undrawn")

PLUGIN = ROOT / "tests" / "plugin"
BLOCK = re.compile(r"^`(?P<path>\S+)`\n\n```\w+\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_page_shows_the_plugin_to_the_letter() -> None:
    shown = {match["path"]: match["code"] for match in BLOCK.finditer(PAGE)}
    files = [p for p in PLUGIN.rglob("*") if p.suffix in (".py", ".toml") and p.name != "__init__.py"]
    assert shown == {str(p.relative_to(PLUGIN)): p.read_text(encoding="utf-8") for p in files}
    assert len(shown) == 8


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:bench|attacks|defenses|datasets|tests|benchmarks)/[\w/]+(?:\.\w+)?/?)`", PAGE))
    assert len(named) > 8
    assert [path for path in sorted(named) if not re.search(r"[A-Z]", path) and not (ROOT / path).exists()] == []


READS, POISONS, TELLS = (line.split() for line in re.findall(r"^    bench (run .*)$", PAGE, re.MULTILINE))
"""The page's three `bench run` lines."""
REPEATED = ("--secret", "0123456789abcdef" * 2)
"""Without it every run with an attack of another package draws a secret of its own."""


def test_the_page_s_command_runs_the_plugin_end_to_end(bench, plugin: Path) -> None:
    done = bench(*READS, *REPEATED, "--rounds", "3", "--jobs", "1", "--json", "--quiet", path=plugin)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {(r["defense"], r["attack"], r["problem"]["dataset"]) for r in records} == {
        ("noisy", "mean-image", "stripes"),
        ("fedavg", "mean-image", "stripes"),
    }
    assert {r["status"] for r in records} == {"ok"}
    assert {r["party"] for r in records} == {"server", "client", "eavesdropper"}
    noisy = [r for r in records if r["defense"] == "noisy"]
    assert {r["options"]["defense"]["sigma"] for r in noisy} == {0.1}
    server = {r["defense"]: r for r in records if (r["party"], r["form"]) == ("server", "adaptive")}
    assert server["fedavg"]["metrics"]["cosine"] > 0.999
    assert server["noisy"]["metrics"]["cosine"] < 0.9  # the noise is really on the wire
    assert all(0 <= r["metrics"]["mse"] < 0.5 for r in records)


def test_the_page_s_command_runs_the_plugin_s_rule(bench_with_plugin) -> None:
    done = bench_with_plugin(*POISONS, *REPEATED, "--rounds", "20", "--jobs", "1", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    records = {(r["defense"], r["attack"]): r for r in json.loads(done.stdout)["records"]}
    assert set(records) == {(d, a) for d in ("fedavg", "shortest") for a in ("none", "same-value")}
    assert {r["status"] for r in records.values()} == {"ok"}
    problem = records["shortest", "same-value"]["problem"]
    assert (problem["dataset"], problem["clients"], problem["corrupted"]) == ("stripes", 10, 2)  # the card's `usual`
    attacked = {d: records[d, "same-value"] for d in ("fedavg", "shortest")}
    assert attacked["fedavg"]["metrics"]["accuracy"] < 0.5 < 0.9 < attacked["shortest"]["metrics"]["accuracy"]
    assert attacked["fedavg"]["metrics"]["corrupted_weight"] == pytest.approx(0.2, abs=0.01)  # by numbers of samples
    assert attacked["shortest"]["metrics"]["corrupted_weight"] == 0
    assert attacked["shortest"]["metrics"]["honest_rejected"] == 0
    # A voice low enough is not told from an honest one: the rule leaves out an honest upload instead.
    quiet = ("--rounds", "5", "--set", "attack.value=0.0001", "--jobs", "1", "--json", "--quiet")
    done = bench_with_plugin(*POISONS, *REPEATED, *quiet)
    assert done.returncode == 0, done.stderr
    (low,) = [
        r for r in json.loads(done.stdout)["records"] if (r["defense"], r["attacker_knowledge"]) == ("shortest", "own")
    ]
    assert low["options"]["attack"]["value"] == 0.0001
    assert low["metrics"]["corrupted_weight"] == pytest.approx(0.25)
    assert low["metrics"]["corrupted_rejected"] == 0


def test_the_page_s_command_runs_the_plugin_s_secure_sum(bench_with_plugin) -> None:
    line = "--rounds 10 --model mlp --set model.widths=32 --form adaptive --jobs 1 --json --quiet"
    done = bench_with_plugin(*TELLS, *REPEATED, *line.split())
    assert done.returncode == 0, done.stderr
    records = {(r["defense"], r["party"]): r for r in json.loads(done.stdout)["records"]}
    assert set(records) == {(d, p) for d in ("fedavg", "two-servers") for p in PARTIES}
    assert {(r["attack"], r["status"]) for r in records.values()} == {("taking-away", "ok")}
    one, summed = records["fedavg", "server"], records["two-servers", "server"]
    assert one["options"]["training"]["batch_size"] == 4  # the card's `usual`
    assert 60 < one["metrics"]["candidates"] <= 9 * 2 * 4  # no sample is asked about twice
    assert 200 < summed["metrics"]["candidates"] <= 9 * 2 * 16  # who is in the batch of any of four clients?
    assert one["metrics"]["auc_low"] > 0.6
    assert summed["metrics"]["auc_low"] > 0.5
    assert summed["metrics"]["auc"] < one["metrics"]["auc"] - 0.1
    # Whoever reads all messages learns the sum and no more; a client takes its own upload off the mean anyway.
    assert records["two-servers", "eavesdropper"]["metrics"]["auc"] == summed["metrics"]["auc"]
    clients = [records[d, "client"]["metrics"]["auc"] for d in ("fedavg", "two-servers")]
    assert clients[1] == pytest.approx(clients[0], abs=0.02)
    plain, secured = one["cost"], summed["cost"]
    assert secured["bytes_up"] == 4 * plain["bytes_up"]  # two integers of 8 bytes for a float of 4
    assert summed["utility"]["clean_accuracy"] == pytest.approx(one["utility"]["clean_accuracy"], abs=0.02)


@pytest.mark.usefixtures("bench_with_plugin")
def test_the_plugin_s_sum_hides_uploads_and_rounds_as_its_option_says() -> None:
    from arena_toys.secure import Options, TwoServers

    v = torch.randn(4, 2000, generator=Rng(1).torch())
    done = {bits: TwoServers(Options(bits))(v, Rng(2)) for bits in (32, 4)}
    error = {bits: float((d.total - v.sum(0)).abs().max()) for bits, d in done.items()}
    assert error[32] < 1e-6 < 1e-3 < error[4] < 4 / 32  # four roundings to multiples of 1/16
    wire = done[32].wire.double()
    assert abs(float(torch.corrcoef(torch.stack([wire[0], v[0].double()]))[0, 1])) < 0.1
    assert 0.45 < float((wire < 0).double().mean()) < 0.55  # uniform over all of int64
    with pytest.raises(UserError, match=r"^secure two-servers: an upload has values beyond ±65536"):
        TwoServers(Options())(v * torch.inf, Rng(2))


@pytest.mark.parametrize(
    ("defense", "because"),
    [("fedavg+two-servers+shortest", "from which shortest cannot choose"), ("two-stage+two-servers", "every upload")],
)
def test_the_plugin_s_secure_sum_is_refused_where_uploads_are_needed(
    bench_with_plugin, defense: str, because: str
) -> None:
    done = bench_with_plugin("run", "--defense", defense, "--attack", "taking-away", "--clients", "4")
    assert done.returncode == 2
    assert done.stderr.startswith("bench: ")
    assert because in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("defense", "attack"), [("noisy+nnm+shortest", "delayed+same-value"), ("dp-sgd+shortest", "rank-map+same-value")]
)
def test_the_plugin_s_rule_and_poisoning_compose_with_built_in_parts(
    bench_with_plugin, defense: str, attack: str
) -> None:
    line = f"run --defense {defense} --attack {attack} --dataset stripes --clients 10 --corrupted 2 --batch-size 8"
    done = bench_with_plugin(*line.split(), "--rounds=3", "--jobs=1", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {(r["defense"], r["attack"]) for r in records if r["attacker_knowledge"]} >= {(defense, attack)}
    assert {r["status"] for r in records if r["defense"] == defense} == {"ok"}


def test_the_plugin_s_rule_refuses_more_liars_than_it_can_bear(bench_with_plugin) -> None:
    done = bench_with_plugin(*POISONS, "--assumed-corrupted", "5")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "bench: aggregator shortest: 10 uploads a round of which 5 are assumed to be corrupted"
    )
    assert done.stderr.count("\n") == 1


def test_the_plugin_s_methods_work_on_built_in_ones(bench_with_plugin) -> None:
    line = "run --defense dbcl --attack mean-image --dataset digits --rounds 2 --jobs 1 --json --quiet"
    done = bench_with_plugin(*line.split())
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {r["defense"] for r in records} == {"dbcl", "fedavg"}
    assert "ok" in {r["status"] for r in records}


def test_the_tree_on_the_page_is_the_tree() -> None:
    named = re.findall(r"^    (\w+)/ +→ (\S+)", PAGE, re.MULTILINE)
    assert {package for _, package in named} == {
        "fedarena",
        "fedarena.attacks",
        "fedarena.defenses",
        "fedarena.datasets",
    }
    assert all((ROOT / folder / "__init__.py").exists() for folder, _ in named)
