"""Trials: one configuration, one record, whatever the number of workers."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from fedarena.attacks.reconstruction.cards.dlg import Options as DLGOptions
from fedarena.contracts.inference import Inference
from fedarena.core import registry
from fedarena.core.files import canonical
from fedarena.core.threat import FORMS, PARTIES
from fedarena.defenses.dbcl.card import Options as DBCLOptions
from fedarena.federation.spec import GroupSpec, MethodSpec, threats
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.results import GroupResult
from fedarena.records.schema import VOLATILE, Record
from fedarena.records.store import read_record, save
from fedarena.records.trial_key import key_of
from fedarena.runs.engine import run_groups

QUICK = DLGOptions(iterations=30, restarts=1, victims=2, window=4)
SHORT = replace(QUICK, iterations=5)
"""Where nothing needs to be recovered."""


def group(defense: str = "dbcl", seed: int = 0, attack: DLGOptions = QUICK, **schedule: Any) -> GroupSpec:
    model = registry.find("model", "lenet-dlg").parse({})
    problem = ProblemSpec(
        "digits",
        model="lenet-dlg",
        partition="iid",
        clients=2,
        model_options=model,
        schedule=Schedule(**{"rounds": 6, **schedule}),
    )
    options = DBCLOptions() if defense == "dbcl" else registry.find("defense", defense).parse({})
    return GroupSpec(
        problem,
        defense=MethodSpec(defense, options),
        attack=MethodSpec("dlg", attack),
        threats=threats(PARTIES, FORMS),
        seed=seed,
    )


@cache
def undisturbed() -> dict[str, list[Record]]:
    """The records of DBCL and of FedAvg by defense, once for all tests that only look at them."""
    names = ("dbcl", "fedavg")
    results = run_groups([group(name) for name in names], 1)
    return {name: result.records for name, result in zip(names, results, strict=True)}


def run_group(spec: GroupSpec) -> GroupResult:
    """One group, beside the plain run that it needs."""
    plain = replace(spec, defense=MethodSpec("fedavg"), threats=spec.threats[:1])
    return run_groups([spec] if spec.defense.name == "fedavg" else [spec, plain], 1)[0]


def stable(records: list[dict[str, Any]]) -> str:
    """Records without what may differ between two runs."""
    kept = copy.deepcopy(records)
    for record in kept:
        for path in VOLATILE:
            *parents, last = path.split(".")
            node = record
            for name in parents:
                node = node[name]
            node.pop(last, None)
    return canonical(kept)


def test_twice_and_with_two_workers_the_same_records(tmp_path: Path) -> None:
    brief = replace(SHORT, victims=1, iterations=3)
    asked = threats(("client",), FORMS)
    groups = [replace(group(name, seed, brief), threats=asked) for seed in (0, 1) for name in ("dbcl", "fedavg")]
    results = [run_groups(groups, jobs) for jobs in (1, 1, 2)]
    texts = [stable([r for result in run for r in result.records]) for run in results]
    assert texts[0] == texts[1]
    assert texts[0] == texts[2]
    assert len({r["key"] for result in results[0] for r in result.records}) == sum(len(r.records) for r in results[0])


def test_a_record_says_everything() -> None:
    records = undisturbed()["dbcl"]
    cells = {(r["party"], r["form"], r["reading"]) for r in records}
    assert len(cells) == len(records) == 7  # three parties in two forms, and two options of the client's paper form
    for r in records:
        assert set(r) == set(get_type_hints(Record)) - {"control", "secret", "other_rounds", "by_client"}
        assert r["status"] == "ok"
        for name in ("mse", "psnr", "ssim", "label_accuracy", "recovered", "cosine", "relative_l2"):
            assert name in r["metrics"]
        assert r["cost"]["peak_bytes"] > 0
        assert r["options"]["defense"] == {"ratio": 0.5, "vary": 0.0, "hash": "balanced"}
        assert r["options"]["training"]["rounds"] == 6
        assert json.loads(json.dumps(r, allow_nan=False)) == r


def test_the_key_is_the_configuration() -> None:
    a = undisturbed()["dbcl"]
    b = run_group(group(attack=SHORT)).records
    assert {r["key"] for r in a}.isdisjoint(r["key"] for r in b)
    changed = {**a[0], "cost": {}, "environment": {}, "metrics": {}, "utility": {}}
    assert key_of(changed) == a[0]["key"]
    assert key_of({**a[0], "seed": 1}) != a[0]["key"]


def test_divergence_is_a_record_with_its_reason() -> None:
    records = run_group(group("fedavg", lr=1e38, rounds=6)).records
    assert {r["status"] for r in records} == {"diverged"}
    assert all("a parameter was not finite" in r["reason"] for r in records)


def test_an_attack_that_cannot_start_is_not_applicable_with_a_reason() -> None:
    records = run_group(group("fedavg", batch_size=16)).records
    assert {r["status"] for r in records} == {"n/a"}
    assert all("16 samples" in r["reason"] for r in records)
    records = run_group(group("dbcl", attack=SHORT, server_optimizer="adam", lr=0.01)).records
    assert {r["party"] for r in records if r["status"] == "n/a"} == {"client"}


def test_an_attack_that_breaks_is_a_failed_record(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedarena.attacks.reconstruction.dlg import DLG

    def broken(self: Inference, view: Any, rng: Any, progress: Any) -> Any:
        raise RuntimeError("out of luck\nand of lines")

    monkeypatch.setattr(DLG, "run", broken)
    records = run_group(group("fedavg")).records
    assert {r["status"] for r in records} == {"failed"}
    assert all(r["reason"].startswith("RuntimeError: out of luck and of lines (in broken") for r in records)
    assert all(r["scores"] == {} for r in records)


def test_given_labels_reach_only_an_attack_that_declares_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedarena.attacks.reconstruction.dlg import DLG

    seen: list[bool] = []
    original = DLG.run

    def spy(self: DLG, view: Any, rng: Any, progress: Any) -> Any:
        seen.append(view.observations[0].labels is not None)
        return original(self, view, rng, progress)

    monkeypatch.setattr(DLG, "run", spy)
    run_group(group("fedavg", attack=SHORT))
    assert seen
    assert not any(seen)
    seen.clear()
    records = run_group(group("fedavg", attack=replace(SHORT, labels="given"))).records
    assert all(seen)
    assert all(r["metrics"]["label_accuracy"] == 1.0 for r in records)


def test_reference_and_scores() -> None:
    records = [r for some in undisturbed().values() for r in some]
    accuracy = {r["defense"]: r["utility"]["clean_accuracy"] for r in records}
    for r in records:
        assert r["utility"]["fedavg_accuracy"] == accuracy["fedavg"]
        assert r["utility"]["references"] == {}  # which are measured with runs that are judged by their model
        m = r["metrics"]
        leak = (m["identified"] - m["identified_chance"]) / (1 - m["identified_chance"])
        assert r["scores"]["privacy"] == pytest.approx(1 - max(0.0, leak))
    assert {r["metrics"]["recovered"] for r in records} >= {0, 1}


def test_records_are_written_whole(tmp_path: Path) -> None:
    records = undisturbed()["fedavg"]
    paths = [save(record, tmp_path / "records") for record in records]
    assert sorted(p.name for p in (tmp_path / "records").iterdir()) == sorted(p.name for p in paths)
    assert [read_record(p.read_bytes(), p.stem) for p in paths] == records
    changed = {**json.loads(paths[0].read_text()), "reason": "mine"}
    with pytest.raises(ValueError, match="changed after it was written"):
        read_record(json.dumps(changed).encode(), paths[0].stem)
