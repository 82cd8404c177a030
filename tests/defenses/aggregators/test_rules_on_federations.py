"""What rules stop on a real federation, and what they do not: the figures behind their cards.

Twenty clients train a small network on digits for 60 rounds (100 where said) of FedSGD.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedarena.cli import main
from fedarena.records.schema import Record

pytestmark = pytest.mark.usefixtures("briefly_alone", "undrawn")

PROBLEM = "--dataset=digits --model=mlp --set=model.widths=32 --clients=20 --rounds=60 --seeds=0"
SCHEDULE = "--set=training.batch_size=16 --set=training.lr=0.4"

Metrics = dict[str, float]


class Federation:
    """`bench run`, and what it prints with --json."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def attacked(self, defense: str, attack: str, corrupted: int, *words: str) -> tuple[Metrics, Metrics]:
        """Metrics of the defense under the attack, and of FedAvg; `clean` is the accuracy without an attack."""
        command = ["run", *PROBLEM.split(), *SCHEDULE.split(), f"--defense={defense}", f"--attack={attack}"]
        command += [f"--corrupted={corrupted}", *words, "--jobs=1", "--json", "--quiet", f"--out={self.folder}"]
        code = main(command)
        done = self.capsys.readouterr()
        assert code == 0, done.err
        found = {r["defense"]: r for r in json.loads(done.out)["records"] if r["attacker_knowledge"]}
        one, other = (found[name] for name in (defense, "fedavg"))
        return metrics(one), metrics(other)


def metrics(record: Record) -> Metrics:
    """A record's metrics, and the accuracy without an attack as `clean`."""
    return {**record["metrics"], "clean": record["utility"]["clean_accuracy"]}


@pytest.fixture
def federation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Federation:
    return Federation(tmp_path, capsys)


def test_foolsgold_stops_sybils_with_one_trigger_and_keeps_the_honest(federation: Federation) -> None:
    found, fedavg = federation.attacked("foolsgold", "pixel-trigger", 4, "--knows=own")
    assert fedavg["attack_success_rate"] > 0.9
    assert found["attack_success_rate"] < 0.05
    assert found["corrupted_rejected"] > 0.95
    assert found["honest_rejected"] < 0.1
    assert found["clean"] > fedavg["clean"] - 0.02


def test_foolsgold_serves_a_single_attacker_among_honest_clients_alike(federation: Federation) -> None:
    """Nobody is like the one who differs: with iid data it is the honest who lose their weight."""
    found, fedavg = federation.attacked("foolsgold", "label-flip", 1, "--knows=own")
    assert found["honest_rejected"] > 0.4
    assert found["corrupted_rejected"] == 0.0
    assert found["corrupted_weight"] > 3 * fedavg["corrupted_weight"]
    assert found["accuracy"] < fedavg["accuracy"] - 0.1


def test_foolsgold_punishes_honest_clients_that_hold_the_same_class(federation: Federation) -> None:
    """Sorted by class, clients come in pairs: most of the honest are rejected, and nobody learns much."""
    found, fedavg = federation.attacked("foolsgold", "label-flip", 4, "--knows=own", "--partition=sorted")
    assert fedavg["clean"] > 0.85
    assert found["clean"] < 0.7
    assert found["honest_rejected"] > 0.6


def test_foolsgold_knows_sybils_of_whom_half_take_part(federation: Federation) -> None:
    words = ("--knows=own", "--participation=0.5")
    found, fedavg = federation.attacked("foolsgold", "pixel-trigger", 4, *words)
    assert fedavg["attack_success_rate"] > 0.9
    assert found["attack_success_rate"] < 0.05
    assert found["corrupted_rejected"] > 0.9
    assert found["clean"] > fedavg["clean"] - 0.02


def test_flame_lowers_a_trigger_and_rejects_a_third_of_the_honest(federation: Federation) -> None:
    found, fedavg = federation.attacked("flame", "pixel-trigger", 4, "--knows=own")
    assert fedavg["attack_success_rate"] > 0.9
    assert found["attack_success_rate"] < 0.35
    assert 0.2 < found["honest_rejected"] < found["corrupted_rejected"]
    assert found["clean"] > fedavg["clean"] - 0.05


def test_flame_with_noise_as_long_as_an_upload_learns_nothing(federation: Federation) -> None:
    loud, _ = federation.attacked("flame", "pixel-trigger", 4, "--knows=own", "--set=flame.noise=1.0")
    assert loud["clean"] < 0.6


def test_rlr_stops_a_trigger_of_a_tenth_of_the_clients_and_costs_accuracy(federation: Federation) -> None:
    found, fedavg = federation.attacked("rlr+mean", "pixel-trigger", 2, "--knows=own")
    assert fedavg["attack_success_rate"] > 0.6
    assert found["attack_success_rate"] < 0.05
    assert 0.02 < fedavg["accuracy"] - found["accuracy"] < 0.15


def test_caf_filters_the_clients_with_a_trigger(federation: Federation) -> None:
    found, _ = federation.attacked("caf", "pixel-trigger", 4, "--knows=own")
    assert found["attack_success_rate"] < 0.05
    assert found["corrupted_weight"] < 0.05
    assert found["clean"] > 0.88


def test_lasa_halves_a_trigger_and_no_more(federation: Federation) -> None:
    found, fedavg = federation.attacked("lasa", "pixel-trigger", 4, "--knows=own")
    assert 0.2 < found["attack_success_rate"] < 0.7 < fedavg["attack_success_rate"]


def test_fldetector_finds_a_scaled_trigger_that_the_inner_rule_lets_in(federation: Federation) -> None:
    """From round 20 on, in which two windows are full, all corrupted clients are left out: 80 of 100 rounds."""
    words = ("--knows=own", "--set=attack.scale=5", "--rounds=100")
    found, _ = federation.attacked("fldetector+geometric-median", "pixel-trigger", 4, *words)
    bare, _ = federation.attacked("geometric-median", "pixel-trigger", 4, *words)
    assert bare["attack_success_rate"] > 0.7
    assert found["attack_success_rate"] < 0.1
    assert found["corrupted_rejected"] == pytest.approx(0.8)
    assert found["honest_rejected"] < 0.02


def test_fldetector_leaves_out_the_honest_where_colluders_agree(federation: Federation) -> None:
    """Colluders that all send the same vector contradict themselves less than small batches do."""
    words = ("--knows=omniscient", "--rounds=100")
    found, _ = federation.attacked("fldetector+geometric-median", "min-max", 4, *words)
    bare, _ = federation.attacked("geometric-median", "min-max", 4, *words)
    assert bare["accuracy"] > 0.85
    assert found["accuracy"] < 0.3
    assert found["honest_rejected"] > 0.5
    assert found["corrupted_rejected"] == 0.0


def test_foundationfl_saves_the_median_from_hidden_shifts(federation: Federation) -> None:
    for attack in ("alie", "min-sum"):
        found, _ = federation.attacked("foundationfl+median", attack, 8, "--knows=omniscient")
        bare, _ = federation.attacked("median", attack, 8, "--knows=omniscient")
        assert found["accuracy"] > 0.85
        assert found["window_accuracy"] > bare["window_accuracy"] + 0.1


def test_foundationfl_costs_the_median_its_guard_against_a_flipped_sign(federation: Federation) -> None:
    """Long flipped uploads are as far from the extremes as honest ones, and are copied."""
    words = ("--knows=own", "--set=attack.scale=10")
    found, _ = federation.attacked("foundationfl+median", "sign-flip", 4, *words)
    bare, _ = federation.attacked("median", "sign-flip", 4, *words)
    assert bare["accuracy"] > 0.85
    assert found["accuracy"] < 0.6


def test_arc_and_clipping_shorten_what_a_mean_would_swallow(federation: Federation) -> None:
    words = ("--knows=own", "--set=attack.scale=10")
    for wrapper in ("arc", "clipping"):
        found, fedavg = federation.attacked(f"{wrapper}+mean", "sign-flip", 4, *words)
        assert fedavg["accuracy"] < 0.3
        assert found["accuracy"] > fedavg["accuracy"] + 0.3
