"""The command that stands beside a record makes that record, when it is really run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from helpers.suite import POISON, READ, measure, records_in, stable

from fedarena.cli import main
from fedarena.core.text import figures
from fedarena.records.command import command_of
from fedarena.records.schema import Record

TEXT = f"""
title = "One of each kind of record"
seeds = [1]
{READ}
[problems.local]
dataset = "digits"
model = "cnn-two-stage"
partition = "dirichlet"
clients = 3
partition_options = {{ alpha = 5.0 }}
training = {{ rounds = 2, local_epochs = 2, batch_size = 16, lr = 0.05, eval_every = 1 }}
utility = false
{POISON}
[problems.odd]
dataset = "digits"
model = "mlp"
clients = 6
corrupted = 2
corrupted_data = "resampled"
assumed_corrupted = 1
model_options = {{ widths = [6, 5] }}
training = {{ rounds = 3, batch_size = 8, lr = 0.1 }}
utility = false

[training.pbpfl]
loss = "mse"

[methods.dbcl]
ratio = 0.25

[methods.bucketing]
s = 3

[methods.dlg]
victims = 1
restarts = 1
iterations = 3

[methods.delayed]
start = 1

[methods.property-inference]
rounds = 2
round_batches = 3

[methods.model-inversion]
iterations = 2
directions = 3

[[matrix]]
problem = "read"
defenses = ["fedavg", "dbcl", "pbpfl", "zero-sum", "dbcl+nnm+median"]
attacks = ["dlg"]
parties = ["server"]

[[matrix]]
problem = "read"
defenses = ["dbcl"]
attacks = ["property-inference"]
parties = ["server"]

[[matrix]]
problem = "read"
defenses = ["fedavg"]
attacks = ["model-inversion"]
parties = ["client", "outsider"]

[[matrix]]
problem = "local"
defenses = ["fedavg", "pairwise-masks"]
attacks = ["gradient-estimate"]
parties = ["client"]
forms = ["adaptive"]

[[matrix]]
problem = "odd"
defenses = ["bucketing+krum", "fedavg"]
attacks = ["delayed+sign-flip", "alie"]
counts = false

[[matrix]]
problem = "odd"
defenses = ["krum"]
attacks = ["last-layer-label"]
parties = ["client"]
forms = ["adaptive"]
counts = false

[[matrix]]
problem = "poison"
defenses = ["d-sgd"]
attacks = ["last-layer-label"]
parties = ["client"]

[[matrix]]
problem = "poison"
defenses = ["two-stage"]
attacks = ["pixel-trigger"]
"""


@pytest.mark.usefixtures("quick_judge", "few_trees", "briefly_alone")
def test_every_record_of_a_mixed_suite_is_made_by_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attacks that only read meet clients that are corrupted where others poison, too.

    `bench run` has no attack `none`: of an honest run where nobody can be corrupted, or that a trigger was tried on,
    the same run is made, and stands in the records of its readers."""
    assert measure(TEXT, tmp_path).lost == {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "save_png", lambda figure, path: None)
    made: dict[str, dict[str, Record]] = {}
    records = records_in(tmp_path / "out")
    assert {r["attack"] for r in records.values()} >= {"none", "dlg", "delayed+sign-flip", "alie", "pixel-trigger"}
    exact = 0
    for name, record in records.items():
        command = command_of(record)
        if command not in made:
            words, out = shlex.split(command), str(len(made))
            assert words[0] == "bench"
            assert main([*words[1:], "--jobs=1", "--quiet", f"--out={out}"]) == 0, command + capsys.readouterr().err
            made[command] = records_in(tmp_path / out)
        if record["attack"] == "none" and (not record["problem"]["corrupted"] or "probe" in record["options"]):
            own = [
                r for r in made[command].values() if r["defense"] == record["defense"] and not r["attacker_knowledge"]
            ]
            assert own
            for r in own:
                assert r["problem"] == record["problem"]
                for measured in ("clean_accuracy", "clean_curve"):
                    assert r["utility"][measured] == record["utility"][measured], command
        else:
            assert name in made[command], f"{command}\n{record['attack']} on {record['defense']}"
            assert stable(made[command][name]) == stable(record)
            exact += 1
    assert exact >= 20
    told = {(r["attack"], r["party"], r["form"]): command_of(r) for r in records.values() if r["defense"] != "fedavg"}
    # A classifier of one round acts in the adaptive form alone: without that form its batches would be refused.
    assert "--form paper,adaptive" in told["property-inference", "server", "paper"]
    assert "--form adaptive" in told["property-inference", "server", "adaptive"]
    (inverted,) = [r for r in records.values() if (r["attack"], r["party"]) == ("model-inversion", "client")]
    assert "--party client,outsider" in command_of(inverted)


def test_other_seeds_take_the_place_of_its_own(tmp_path: Path) -> None:
    measure(f'seeds = [4]\n{READ}\n[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]', tmp_path)
    (record,) = records_in(tmp_path / "out").values()
    assert command_of(record).endswith("--seeds 4")
    assert command_of(record, "0,1,2").endswith("--seeds 0,1,2")
