"""`bench reproduce dbcl/property`, in small."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from helpers.paths import DATA

from fedarena import goals
from fedarena.core import registry
from fedarena.core.options import check_acting
from fedarena.core.threat import FORMS
from fedarena.federation import compose
from fedarena.federation.compose import parse_defense
from fedarena.federation.spec import MethodSpec
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.dbcl.property import CASES, DEFENSES, PARTIES, TABLE, Case, measure
from fedarena.reproduce.machine import Machine

pytestmark = pytest.mark.usefixtures("few_trees")

SMALL = replace(
    CASES[0],
    options=(("widths", "16"),),
    attack=(("rounds", "5"), ("round_batches", "3")),
    schedule=Schedule(rounds=7, batch_size=16, lr=0.1),
    parties=(*PARTIES, "eavesdropper"),
)


def test_each_reading_form_and_kind_of_features_has_one_row() -> None:
    rows = measure(SMALL, "dbcl", Machine(), 0, lambda share, text: None)
    readings = [(r["attacker"], r["reading"], r["features"], r["paper"]) for r in rows if r["form"] == "paper"]
    parts = {"server": ["expanded"], "client": ["option-I", "option-II"], "eavesdropper": ["expanded"]}
    paper = {"server": 0.726, "client": 0.5}  # which has no eavesdropper
    assert readings == [
        (party, name + clear, kind, None if clear else paper.get(party))
        for party, names in parts.items()
        for name in names
        for clear in ("", ", in clear")
        for kind in ("code", "margins", "slopes")
    ]
    adaptive = [(r["attacker"], r["reading"]) for r in rows if r["form"] == "adaptive"]
    assert adaptive == [
        *(("server", name) for name in ("upload", "upload, in clear")),
        *(("client", name) for name in ("smoother", "smoother, in clear")),
        *(("eavesdropper", name) for name in ("upload", "upload, in clear")),
    ]
    assert {r["features"] for r in rows if r["form"] == "adaptive"} <= {"best: slopes", "best: others"}
    for row in rows:
        assert 0 <= float(str(row["low"])) <= float(str(row["auc"])) <= float(str(row["high"])) <= 1
    by_kind = [
        [r["auc"] for r in rows if r["features"] == kind and r["form"] == "paper"]
        for kind in ("code", "margins", "slopes")
    ]
    assert all(a != b for a, b in itertools.combinations(by_kind, 2))


def test_forms_that_are_not_measured_are_said() -> None:
    small = replace(SMALL, forms=("paper",), left_out="because")
    *rows, last = measure(small, "fedavg", Machine(), 0, lambda share, text: None)
    assert {r["form"] for r in rows} == {"paper"}
    assert (last["form"], last["reading"], last["auc"]) == ("adaptive", "because", None)


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_options_of_a_federation_act_in_the_forms_that_are_measured(case: Case) -> None:
    method = registry.find("attack", "property-inference")
    options = method.parse(dict(case.attack))
    check_acting(options, case.title, case.parties, case.forms)
    assert bool(case.left_out) == (set(case.forms) != set(FORMS))
    watch = method.load()(options).watch(case.schedule)
    assert len(watch.victims) == options.rounds
    assert watch.last < case.schedule.rounds


@pytest.mark.parametrize("case", [c for c in CASES if c.dataset == "utkface"], ids=lambda case: case.title)
def test_faces_in_colour_can_be_set_up(case: Case) -> None:
    folder = DATA
    if not (folder / "utkface_32.npz").is_file():
        pytest.skip(f"no utkface_32.npz in {folder}: set FEDARENA_DATA")
    model, method = registry.find("model", case.model), registry.find("attack", "property-inference")
    problem = ProblemSpec(
        case.dataset,
        model=case.model,
        partition="iid",
        clients=2,
        model_options=model.parse(dict(case.options)),
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=case.schedule,
    )
    built = build(problem, 0, folder)
    spec = MethodSpec(method.name, method.parse(dict(case.attack)))
    for name in DEFENSES:
        protocol = compose.make_defense(parse_defense(name, {}), built.task)
        goals.of_attack(spec).require_runnable(problem, built, protocol, spec)
    inputs = built.init["fc1.weight"].shape[1]
    assert inputs == {"UTKFace, narrow": 512, "UTKFace, the paper's network": 2048}[case.title]
    having = [int((known == 1).sum()) for known in built.attributes["black"]]
    assert having == [307, 93]


@pytest.mark.parametrize("case", CASES)
def test_every_federation_is_measured_with_sketches_and_without(case: Case) -> None:
    assert {f"{case.title}: fedavg", f"{case.title}: dbcl"} <= set(TABLE.pieces)
