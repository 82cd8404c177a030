"""`bench run` and `explain` with corrupted clients, and bad input to them, as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedarena.attacks.poisoning.helpers.alie_strength import z_max
from fedarena.cli import main
from fedarena.core.text.numbers import mean, percent
from fedarena.records.schema import SCHEMA

pytestmark = pytest.mark.usefixtures("briefly_alone", "undrawn")

SMALL = ("--rounds=6", "--clients=8", "--corrupted=2", "--jobs=1", "--quiet", "--set", "training.eval_every=2")


def bench(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = main(args)
    except SystemExit as stop:  # argparse
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def records_in(folder: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """(defense, attack, knows) → record."""
    read = [json.loads(p.read_text()) for p in (folder / "records").glob("*.json")]
    return {(r["defense"], r["attack"], r["attacker_knowledge"]): r for r in read}


@pytest.mark.usefixtures("drawn")
def test_a_run_prints_table_and_verdict_and_writes_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--defense=krum", "--attack=sign-flip", f"--out={tmp_path}")
    code, out, err = bench("run", *args, *SMALL, capsys=capsys)
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    for text in (
        "krum against sign-flip on digits, model mlp, 8 clients, 2 corrupted (the server expects 2)",
        "no defense (fedavg)",
        "(clean run)",
        "weight of corrupted",
        "With sign-flip, corrupted clients that know only their own data take krum from",
        f"Records: {tmp_path / 'records'} (4 files)",
        f"Picture: {tmp_path / 'krum-sign-flip-digits.png'}",
    ):
        assert text in words
    assert (tmp_path / "krum-sign-flip-digits.png").read_bytes().startswith(b"\x89PNG")
    found = records_in(tmp_path)
    assert set(found) == {
        (defense, attack, knows)
        for defense in ("fedavg", "krum")
        for attack, knows in (("none", ""), ("sign-flip", "own"))
    }
    judged = ("accuracy", "window_accuracy") if "accuracy in the worst rounds and FedAvg" in words else ("accuracy",)
    for defense in ("fedavg", "krum"):
        attacked, clean = found[defense, "sign-flip", "own"], found[defense, "none", ""]
        left = min(attacked["metrics"][name] for name in judged)
        shown = [f"{100 * share:.0f} %" for share in (clean["utility"]["clean_accuracy"], left)]
        name = "FedAvg" if defense == "fedavg" else defense
        assert f"{name} from {shown[0]} to {shown[1]}" in words
        assert [point[0] for point in attacked["attacked"]["curve"]] == [2, 4, 6]
    # Krum takes one upload of eight, and not one of the two reversed ones.
    assert found["krum", "sign-flip", "own"]["metrics"]["corrupted_weight"] == 0
    assert found["krum", "sign-flip", "own"]["metrics"]["honest_rejected"] == pytest.approx(5 / 6)


def test_json_is_all_there_is_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--defense=bucketing+median", "--attack=delayed+min-max", "--knows=omniscient", "--seeds=0,3", "--belief=1")
    sets = ("--set", "bucketing.s=3", "--set", "min-max.perturbation=std", "--corrupted-data=resampled", "--json")
    code, out, _ = bench("run", *args, *sets, f"--out={tmp_path}", *SMALL, capsys=capsys)
    assert code == 0
    records = json.loads(out)["records"]
    assert len(records) == 8
    poisoned = [r for r in records if r["attacker_knowledge"]]
    assert {(r["defense"], r["attack"], r["attacker_knowledge"], r["seed"]) for r in poisoned} == {
        (defense, "delayed+min-max", "omniscient", seed)
        for defense in ("fedavg", "bucketing+median")
        for seed in (0, 3)
    }
    mine = next(r for r in poisoned if r["defense"] == "bucketing+median")
    assert mine["schema"] == SCHEMA
    assert (mine["problem"]["corrupted"], mine["problem"]["assumed_corrupted"]) == (2, 1)
    assert '"s": 3' in json.dumps(mine["options"])
    assert '"perturbation": "std"' in json.dumps(mine["options"])
    saved = records_in(tmp_path)
    assert all(saved[r["defense"], r["attack"], r["attacker_knowledge"]]["schema"] == SCHEMA for r in records)
    assert len(list((tmp_path / "records").iterdir())) == 8


def test_every_knowledge_that_an_attack_has_gets_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--defense=trimmed-mean", "--attack=min-max", f"--out={tmp_path}")
    code, out, _ = bench("run", *args, *SMALL, capsys=capsys)
    assert code == 0
    assert {knows for _, attack, knows in records_in(tmp_path) if attack == "min-max"} == {"own", "omniscient"}
    words = " ".join(out.split())
    assert "With min-max, corrupted clients that know only their own data" in words
    assert "With min-max, corrupted clients that know all honest uploads" in words


def test_a_strength_that_a_formula_gives_is_in_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--defense=median", "--attack=alie", "--knows=omniscient", f"--out={tmp_path}")
    tuned = ("--set", "attack.tune=1", "--set", "attack.tune_rounds=3")
    code, out, _ = bench("run", *args, *tuned, *SMALL, "--corrupted=3", capsys=capsys)
    assert code == 0
    record = records_in(tmp_path)["median", "alie", "omniscient"]
    z = record["attacked"]["strengths"]["z"]
    assert z == z_max(8, 3)
    assert record["tuned"]["chosen"] == [None]
    assert f"kept z of its formula, {z:.4g}" in " ".join(out.split())


def test_when_to_begin_may_be_chosen_where_the_options_would_wait_too_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--defense=fedavg", "--attack=bank", "--knows=own", f"--out={tmp_path}")
    options = ("--set", "attack.tune=3", "--set", "attack.strike=ascent")
    code, _, _ = bench("run", *args, *options, *SMALL, capsys=capsys)
    assert code == 0
    record = records_in(tmp_path)["fedavg", "bank", "own"]
    assert record["status"] == "ok", record["reason"]
    assert record["tuned"]["ran_with"]["attack"]["turn"] < 0.9
    assert record["attacked"]["begins"] < record["options"]["training"]["rounds"]


def test_explain_says_if_honest_clients_hold_the_attackers_samples(capsys: pytest.CaptureFixture[str]) -> None:
    for how, said in (("shard", False), ("resampled", True)):
        line = ("explain", "median", "ipm", "--clients=8", "--corrupted=2", "--rounds=6", f"--corrupted-data={how}")
        code, out, _ = bench(*line, "--json", capsys=capsys)
        assert code == 0
        assert ("of which honest clients hold, too" in out) == said


def test_a_tuned_attack_says_what_it_chose_and_what_it_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned = ("--set", "attack.tune=2", "--set", "attack.tune_rounds=3")
    args = ("--defense=median", "--attack=sign-flip", f"--out={tmp_path}")
    code, out, _ = bench("run", *args, *tuned, *SMALL, capsys=capsys)
    assert code == 0
    for (defense, attack, _), record in records_in(tmp_path).items():
        if attack == "none":
            assert not record["tuned"]
            continue
        assert record["tuned"]["options"] == ["scale"]
        tried = {values[0]: harm for values, harm in record["tuned"]["tried"]}
        assert len(tried) == 2
        (chosen,) = record["tuned"]["chosen"]
        assert tried[chosen] == max(tried.values())
        assert record["options"]["attack"]["scale"] == 4.0  # what was given
        assert record["tuned"]["ran_with"] == {"attack": {"tune": 2, "tune_rounds": 3, "scale": chosen}}
        what = "kept scale=4" if chosen == 4.0 else f"chose scale={chosen:g} in place of scale=4"
        said = f"{defense}, own, seed 0: the attacker {what} after 2 simulated runs"
        assert said in " ".join(out.split())


def test_what_does_not_apply_is_said_and_not_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--defense=krum", "--attack=rank-map+sign-flip", f"--out={tmp_path}")
    code, out, _ = bench("run", *args, *SMALL, capsys=capsys)
    assert code == 0
    poisoned = [r for (_, attack, _), r in records_in(tmp_path).items() if attack != "none"]
    assert {r["status"] for r in poisoned} == {"n/a"}
    (reason,) = {r["reason"] for r in poisoned}
    assert "n/a (1)" in out
    assert reason in " ".join(out.split())
    assert "rank-map+sign-flip gave no result; the reasons stand below the table." in " ".join(out.split())


def test_the_reason_for_no_selection_is_a_rule_that_selects_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "a coordinate-wise rule selects no uploads"
    for defense, given in (("nnm+median", True), ("trimmed-mean", True), ("krum", False)):
        args = (f"--defense={defense}", "--attack=sign-flip", f"--out={tmp_path}")
        _, out, _ = bench("run", *args, *SMALL, capsys=capsys)
        assert (reason in " ".join(out.split())) == given, defense


def test_several_seeds_give_the_verdict_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--defense=krum", "--attack=sign-flip", "--seeds=0,1,2", f"--out={tmp_path}")
    _, out, _ = bench("run", *args, *SMALL, capsys=capsys)
    records = [json.loads(p.read_text()) for p in (tmp_path / "records").glob("*.json")]
    plain = [r for r in records if r["defense"] == "fedavg"]
    clean = percent(mean([r["utility"]["clean_accuracy"] for r in plain if not r["attacker_knowledge"]]))
    attacked = percent(mean([r["metrics"]["accuracy"] for r in plain if r["attacker_knowledge"]]))
    words = " ".join(out.split())
    assert f"and FedAvg from {clean} to {attacked}." in words
    assert "Intervals: 95 % confidence over seeds." in words


def test_a_private_protocol_states_what_it_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--defense=dp-sgd+median", "--attack=gaussian", f"--out={tmp_path}", "--set", "dp-sgd.epsilon=1")
    code, out, _ = bench("run", *args, *SMALL, capsys=capsys)
    assert code == 0
    promised = records_in(tmp_path)["dp-sgd+median", "none", ""]["guarantees"]
    assert promised["epsilon_add_remove_tight"] == pytest.approx(1, abs=0.01)
    assert 0 < promised["delta"] < 1e-2
    assert "ε for one sample exchanged" in out
    words = " ".join(out.split())
    assert f"dp-sgd+median promises: over 6 rounds of Poisson batches (rate q = {promised['q']:.4g})" in words
    assert f"σ = {promised['sigma']:.4g} is the smallest that reaches ε = 1 for one sample more or less" in words
    assert "by privacy loss distributions (PLD)" in words
    assert records_in(tmp_path)["fedavg", "none", ""]["guarantees"] == {}


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_a_private_protocol_states_it_beside_inference_too(
    sampling: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("--defense=dp-sgd", "--attack=gradient-estimate", "--party=server", "--form=paper", f"--out={tmp_path}")
    more = ("--set", f"dp-sgd.sampling={sampling}", "--set", "dp-sgd.delta=0.5", "--model=mlp", "--rounds=3")
    code, out, _ = bench("run", *args, *more, "--jobs=1", "--quiet", capsys=capsys)
    assert code == 0
    (record,) = [r for r in map(json.loads, records_texts(tmp_path)) if r["defense"] == "dp-sgd"]
    exchanged = record["guarantees"]["epsilon_replace_one" + ("_fixed" if sampling == "fixed" else "")]
    words = " ".join(out.split())
    assert f"dp-sgd promises: over 3 rounds of {'batches of fixed size' if sampling == 'fixed' else 'Poisson'}" in words
    assert f"(replace-one) is {exchanged:.4g}" in words
    assert "at δ = 0.5. " in words
    assert "The noise multiplier σ = " in words
    assert out.count("promises") == 1
    (warning,) = record["warnings"]
    assert "δ = 0.5 is 1/" in warning
    assert f"Marked (dp-sgd): {warning}." in words


def test_explain_says_what_corrupted_clients_know_and_the_server_expects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ("explain", "two-stage", "min-max", "--clients=8", "--corrupted=2", "--rounds=6")
    code, out, _ = bench(*line, "--json", capsys=capsys)
    assert code == 0
    told = json.loads(out)
    sees = {row["form"]: row["sees"] for row in told["parties"]}
    assert set(sees) == {"own", "omniscient"}
    assert "honest upload" in sees["omniscient"]
    assert "honest upload" not in sees["own"]
    assert told["guarantees"]["epsilon_add_remove"] == pytest.approx(2, abs=0.01)
    code, out, _ = bench(*line, capsys=capsys)
    assert code == 0
    assert f"the server: {told['server']}" in " ".join(out.split())


KRUM = ("--defense=krum", "--attack=sign-flip")


def records_texts(out: Path) -> list[str]:
    return [path.read_text() for path in (out / "records").glob("*.json")]


def against(defense: str, *more: str, attack: str = "sign-flip") -> tuple[str, ...]:
    return (f"--defense={defense}", f"--attack={attack}", *more)


BAD = {
    # composition of defenses
    "unknown rule": (against("krun"), "unknown defense 'krun'; did you mean krum"),
    "unknown rule of a protocol": (against("dp-sgd+krun"), "unknown aggregator 'krun'; did you mean krum?"),
    "nothing after the plus": (against("krum+"), "option 'defense' is 'krum+', which is not NAME or NAME+NAME"),
    "wrapper alone": (against("nnm"), "aggregator nnm wraps a rule: add one, such as nnm+krum"),
    "wrapper last": (against("krum+nnm"), "aggregator nnm wraps a rule: add one, such as nnm+krum"),
    "rule after rule": (against("krum+median"), "aggregator krum is a rule, which takes nothing after it"),
    "rule twice": (against("krum+krum"), "'krum+krum', which names a part twice"),
    "protocol after rule": (against("krum+dp-sgd"), "dp-sgd is a protocol: a protocol comes first"),
    "a rule for two-stage": (against("two-stage+krum"), "defense two-stage takes no aggregation rule"),
    # composition of attacks
    "unknown attack": (
        against("krum", attack="sign-flop"),
        "unknown attack 'sign-flop'; did you mean sign-flip or ",
    ),
    "attack's wrapper alone": (against("krum", attack="delayed"), "attack delayed wraps another attack: add one"),
    "attack around attack": (
        against("krum", attack="sign-flip+label-flip"),
        "attack sign-flip wraps no other attack: put it last, or leave it out",
    ),
    "a wrapped reader": (against("krum", attack="delayed+dlg"), "dlg does not poison, so delayed cannot wrap it"),
    # who attacks, and with which eyes
    "party": ((*KRUM, "--party=server"), "option 'party' is given, but sign-flip acts as corrupted clients"),
    "form": ((*KRUM, "--form=paper"), "option 'form' is given, but sign-flip acts as corrupted clients"),
    "knowledge of a reader": (against("krum", "--knows=own", attack="dlg"), "dlg reads and poisons nothing"),
    "knowledge not supported": (
        against("krum", "--knows=omniscient", attack="label-flip"),
        "option 'knows' is 'omniscient', allowed for label-flip: own",
    ),
    "no such knowledge": ((*KRUM, "--knows=all"), "option 'knows' is 'all', allowed: none, own, omniscient"),
    "no knowledge": ((*KRUM, "--knows="), "option 'knows' is '', allowed: none, own, omniscient"),
    # numbers of clients
    "nobody corrupted": ((*KRUM, "--corrupted=0"), "option 'corrupted' is 0, but sign-flip needs corrupted clients"),
    "everybody corrupted": ((*KRUM, "--corrupted=8"), "option 'corrupted' is 8, allowed: 0 to 7"),
    "more than everybody": ((*KRUM, "--corrupted=9"), "option 'corrupted' is 9, allowed: 0 to 7"),
    "corrupted below zero": ((*KRUM, "--corrupted=-1"), "option 'corrupted' is -1, allowed: 0 or more"),
    "corrupted in words": ((*KRUM, "--corrupted=two"), "option 'corrupted' is 'two', allowed: an integer, 0 or more"),
    "assumed too large": ((*KRUM, "--assumed-corrupted=8"), "option 'assumed-corrupted' is 8, allowed: 0 to 7"),
    "the option's old name": ((*KRUM, "--belief=8"), "option 'assumed-corrupted' is 8, allowed: 0 to 7"),
    "assumed beyond the rule": ((*KRUM, "--assumed-corrupted=3"), "krum: 8 uploads a round of which 3 are assumed"),
    "too few clients": ((*KRUM, "--clients=6"), "krum: 6 uploads a round of which 2 are assumed"),
    "too few participants": ((*KRUM, "--participation=0.5"), "krum: 4 uploads a round of which 1 are assumed"),
    "too few buckets": (against("bucketing+krum"), "8 uploads in buckets of 2: aggregator krum: 4 uploads a round"),
    "too few for bulyan": (against("bulyan"), "allowed: 4f + 3 uploads or more"),
    "law of data": ((*KRUM, "--corrupted-data=fresh"), "'corrupted-data' is 'fresh', allowed: shard, resampled"),
    # options of parts
    "part without options": ((*KRUM, "--set", "krum.x=1"), "aggregator krum has no option 'x'; it has none"),
    "option that a part lacks": (
        against("bucketing+median", "--set", "bucketing.z=2"),
        "aggregator bucketing has no option 'z'; it knows: s",
    ),
    "option of another part": (
        against("dp-sgd+bucketing+median", "--set", "dp-sgd.s=2"),
        "defense dp-sgd has no option 's'",
    ),
    "option that no part has": (
        against("bucketing+median", "--set", "defense.z=2"),
        "no part of bucketing+median has an option 'z'",
    ),
    "attack's option in the defense's group": (
        against("bucketing+median", "--set", "defense.scale=2"),
        "no part of bucketing+median has an option 'scale'",
    ),
    "defense's option in the attack's group": (
        against("bucketing+median", "--set", "attack.s=2"),
        "attack sign-flip has no option 's'",
    ),
    "part that is not there": ((*KRUM, "--set", "median.x=1"), "option 'set' names the group 'median'"),
    "kind for a group": ((*KRUM, "--set", "aggregator.x=1"), "option 'set' names the group 'aggregator'"),
    "part without an option": ((*KRUM, "--set", "krum=1"), "'krum=1', which is not GROUP.OPTION=VALUE"),
    "out of range": ((*KRUM, "--set", "attack.scale=0"), "option 'scale' is 0.0, allowed: number in (0, inf)"),
    "more than there are": (
        against("multi-krum", "--set", "defense.m=9"),
        "allowed: m + f uploads or more, option m is 9",
    ),
    # protocols
    "local epochs with dp-sgd": (
        against("dp-sgd", "--local-epochs=1"),
        "option 'local-epochs' is 1, allowed with dp-sgd: 0",
    ),
    "an edge of a node with itself": (
        against("d-sgd", "--set", "defense.graph=edges", "--set", "defense.edges=0-1,1-2,2-3,3-03"),
        "option 'edges' has '3-03', allowed: two different nodes from 0 to 7 without leading zeros, such as 0-1",
    ),
    "edges beside a graph that is drawn": (
        against("d-sgd", "--set", "defense.edges=0-1"),
        "option 'edges' is 0-1, allowed with graph=random-regular: no value, because it does nothing there",
    ),
    "unknown data of the server": (
        against("two-stage", "--set", "defense.aux_dataset=mnits"),
        "unknown dataset 'mnits'; did you mean mnist",
    ),
    "too many samples for the server": (
        against("fltrust", "--set", "fltrust.root=1000"),
        "option 'root' is 1000, samples of each class that the server is to hold, allowed with digits: 1 to 139",
    ),
    "an ε in words": (
        against("dp-sgd", "--set", "defense.epsilon=little"),
        "option 'epsilon' is 'little', allowed: number or none in (0, 1e+06]",
    ),
    "noise that no accountant counts": (
        against("dp-sgd", "--set", "defense.epsilon=none", "--set", "defense.noise=1e155"),
        "option 'noise' is 1e+155, allowed: number or none in [1e-09, 1e+06]",
    ),
    "twice": (
        against("dp-sgd", "--set", "defense.epsilon=2", "--set", "defense.epsilon=3"),
        "option 'set' gives defense.epsilon as 2 and as 3, allowed: once",
    ),
    "a stage that is off": (
        against("two-stage", "--set", "defense.second_stage=false", "--set", "defense.aux_per_class=5"),
        "option 'aux_per_class' is 5, allowed where second_stage is off: 2",
    ),
    "secure sums of what is needed one by one": (
        against("two-stage+pairwise-masks"),
        "this protocol needs every upload; allowed with it: a protocol that needs their mean",
    ),
    "stage one without noise": (
        against("two-stage", "--set", "two-stage.epsilon=none"),
        "option 'epsilon' is none, allowed: a number, unless first_stage=false",
    ),
    # tuning
    "tuned less than never": ((*KRUM, "--set", "attack.tune=-1"), "option 'tune' is -1, allowed: integer in [0, inf)"),
    "tuned in words": ((*KRUM, "--set", "attack.tune=yes"), "option 'tune' is 'yes', allowed: integer in [0, inf)"),
    "tuning a length that a wrapper fixes": (
        against("dp-sgd", "--set", "ipm.tune=2", attack="delayed+rank-map+ipm"),
        "option 'tune' is 2, allowed for ipm inside rank-map: 0, because epsilon only changes the length of uploads",
    ),
    "a later seed whose shards are too small": (
        against("krum", "--seeds=2,3,0", "--partition=dirichlet", "--batch-size=70"),
        "seed 0: option 'batch-size' is 70, but client 4 holds only 55 samples",
    ),
    "tuning an attack that cannot": (
        against("krum", "--set", "attack.tune=2", attack="mimic"),
        "attack mimic has no option 'tune'",
    ),
}


def test_a_reader_meets_corrupted_clients_as_honest_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ("run", "--defense=median", "--attack=gradient-estimate", "--party=server", "--form=adaptive", "--model=mlp")
    code, out, _ = bench(*line, *SMALL, f"--out={tmp_path}", capsys=capsys)
    assert code == 0
    assert "8 clients, 2 corrupted, honest here (the server expects 2), FedSGD" in " ".join(out.split())


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args, said = BAD[case]
    usual = ("--rounds=6", "--jobs=1", "--quiet", f"--out={tmp_path}")
    code, out, err = bench("run", "--clients=8", "--corrupted=2", *usual, *args, capsys=capsys)  # the last one counts
    assert code == 2
    assert said in err
    assert err.startswith("bench: ")
    assert err.count("\n") == 1
    assert out == ""
    assert not list(tmp_path.iterdir())
