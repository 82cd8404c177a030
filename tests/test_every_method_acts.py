"""The law that every registered method acts, third-party ones included. `test_every_option_acts.py` has it for options.

Inference attacks lower the undefended score, poisoning attacks that of the rule that they were made against. What
`fedarena.testing` asks of any method is in `test_laws.py`; here it is more.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import pytest
import torch
from helpers.attacked import attacked
from helpers.poisoning import left

from fedarena.contracts.inference import GoalName
from fedarena.contracts.poisoning import Around, Poisoning
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.core.threat import Knowledge, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.spec import GroupSpec, MethodSpec, Training
from fedarena.problem.problem import build
from fedarena.problem.spec import ProblemSpec, usual_problem
from fedarena.records.schema import Record
from fedarena.runs import trial
from fedarena.runs.engine import Events, run, run_groups
from fedarena.runs.executors import executor
from fedarena.runs.trial import given_by
from fedarena.testing.defense_laws import accuracy_kept
from fedarena.testing.federations import plainly_trained, trained, twenty
from fedarena.testing.law import Method
from fedarena.testing.secure_laws import uploads_are_hidden

pytestmark = pytest.mark.usefixtures("briefly_alone")

NAMES = {
    kind: registry.registries()[kind].names()
    for kind in ("defense", "aggregator", "secure", "attack", "model", "partition")
}
WRAPPERS = [n for n in NAMES["attack"] if issubclass(registry.find("attack", n).load(), Around)]
POISONING = [n for n in NAMES["attack"] if issubclass(registry.find("attack", n).load(), Poisoning)]


def poisoned_problem(corrupted: int, partition: str = "iid") -> ProblemSpec:
    return replace(
        twenty(corrupted), partition=partition, partition_options=registry.find("partition", partition).parse({})
    )


PRIVATE = ("dp-peers", "dp-sgd", "two-stage", "two-stage-hardened", "sign-dp")
COSTS: dict[str, float] = {
    **dict.fromkeys(PRIVATE, 0.35),
    **{"ats": 0.45, "dp-ftrl": 0.35, "fetchsgd": 0.15, "precode": 0.6, "soteria": 0.2},
}
"""What privacy costs in accuracy at ε = 2, for clients with 72 samples each; digits moved by half a side; a tree's
noise where few clients take part in all rounds; a sketch of half a gradient's size; a bottleneck's noise in so few
rounds (tests/defenses/precode has more); and an output layer of which each round sees a fifth."""
LEARNS_NOTHING = ("censor",)
"""A defense whose uploads are orthogonal to the gradient."""


AT = {"dp-fedavg": {"epsilon": "100"}, "dp-ftrl": {"epsilon": "100"}}
"""Options where the usual ones ask for a larger federation: twenty clients lose most by a promise to whole clients."""


@pytest.mark.parametrize("name", LEARNS_NOTHING)
def test_a_defense_that_hides_the_gradient_s_direction_does_not_train(name: str) -> None:
    """What its card says; where it trains one day, it has to keep the law below."""
    assert trained(Method.of(registry.find("defense", name))).accuracy < 0.3


@pytest.mark.parametrize("name", [n for n in NAMES["defense"] if n not in ("fedavg", *LEARNS_NOTHING)])
def test_a_defense_keeps_more_of_the_accuracy_than_the_law_asks(name: str) -> None:
    """Sketching a narrow network costs more than the wide ones of its paper, and so do long steps."""
    card = registry.find("defense", name)
    defended = trained(Method(card, card.parse(AT.get(name, {}))), wide=name == "dbcl")
    plain = plainly_trained()
    assert plain.accuracy > 0.9
    accuracy_kept(defended, plain, COSTS.get(name, 0.1))


@pytest.mark.parametrize("name", NAMES["secure"])
def test_a_secure_sum_hides_every_upload_and_keeps_the_model(name: str) -> None:
    problem = build(twenty(), 0)
    made = compose.make_defense(compose.parse_defense(f"fedavg+{name}"), problem.task)
    summed = federation.run(made, problem, Rng(0).child("federation"), watch=(0,))
    first = summed.rounds[0]
    assert first.wire is not None
    uploads_are_hidden(first.wire, rows(first.ups))
    assert abs(summed.accuracy - plainly_trained().accuracy) < 0.02


MADE_AGAINST: dict[str, tuple[str, str, str, Knowledge, int]] = {
    # rule: (the rule in a defense, the same defense without it, attack, knowledge, corrupted clients)
    "foolsgold": ("foolsgold", "fedavg", "pixel-trigger", "own", 4),
    "foundationfl": ("foundationfl+median", "median", "min-sum", "omniscient", 8),
    "rlr": ("rlr+mean", "mean", "pixel-trigger", "own", 2),
}
"""Rules that a flipped sign passes, so that they break the law `withstands-the-flipped`;
tests/defenses/aggregators/test_rules_on_federations.py says why."""


@pytest.mark.parametrize("name", MADE_AGAINST)
def test_a_rule_of_one_purpose_withstands_what_it_was_made_against(name: str) -> None:
    defense, without, text, knows, corrupted = MADE_AGAINST[name]
    attack = compose.parse_attack(text)
    withstood = poisoned(defense, attack, knows, corrupted)
    assert withstood["utility"]["clean_accuracy"] > withstood["utility"]["fedavg_accuracy"] - 0.1
    assert integrity(without, attack, knows, corrupted) < 0.4
    assert left(withstood) > 0.8


def test_the_mean_rule_ignores_the_numbers_of_samples_and_defends_nothing() -> None:
    assert integrity("mean", compose.parse_attack("sign-flip", {"scale": "10"}), "own", 4) < 0.2


UNATTACKED: dict[Training, Record] = {}
"""Runs without an attack that were trained already: many attacks are measured against the same one."""


@cache
def poisoned(defense: str, attack: MethodSpec, knows: Knowledge, corrupted: int, partition: str = "iid") -> Record:
    """The record of a run under attack."""
    problem, made = poisoned_problem(corrupted, partition), compose.parse_defense(defense)
    references = [
        GroupSpec(problem, defense=m, attack=None, threats=(), seed=0, probe=attack)
        for m in {made, MethodSpec("fedavg")}
    ]
    groups = [g for g in references if not UNATTACKED.keys() >= set(given_by(g))]
    groups.append(
        GroupSpec(problem, defense=made, attack=attack, threats=(Threat("client", "paper", knows=knows),), seed=0)
    )
    found: dict[int, Record] = {}
    with executor("local", 1) as place:
        run(groups, place, Events(finished=lambda i, k, records, _: found.update({i: records[0]})), UNATTACKED)
    UNATTACKED.update({training: found[i] for i, g in enumerate(groups) for training in given_by(g)})
    record = found[len(groups) - 1]
    assert record["status"] == "ok", record["reason"]
    return record


def integrity(defense: str, attack: MethodSpec, knows: Knowledge, corrupted: int, partition: str = "iid") -> float:
    """What is left in the end of the accuracy above chance, or of what a trigger missed.

    The score begins at what can be had without a federation, which is most of it with clients that hold so much.
    """
    return left(poisoned(defense, attack, knows, corrupted, partition))


VICTIMS: dict[str, tuple[str, str, int, str]] = {
    # attack: (what it was made against, whole name, corrupted clients, partition); others: FedAvg
    "alie": ("median", "alie", 8, "iid"),
    "bank": ("two-stage", "bank", 4, "iid"),
    "delayed": ("fedavg", "delayed+sign-flip", 8, "iid"),
    "mimic": ("krum", "mimic", 6, "dirichlet"),
    "model-replacement": ("fedavg", "model-replacement+pixel-trigger", 4, "iid"),
    "neurotoxin": ("fedavg", "neurotoxin+pixel-trigger", 8, "iid"),
    "min-sum": ("median", "min-sum", 8, "iid"),
    "agr-tailored": ("median", "agr-tailored", 8, "iid"),
    "opt-alie": ("median", "opt-alie", 8, "iid"),
    "opt-ipm": ("median", "opt-ipm", 8, "iid"),
    "rop": ("centered-clipping", "rop", 8, "iid"),
    "signguard-tailored": ("signguard", "signguard-tailored", 8, "iid"),
    "steer": ("baffle", "steer", 4, "iid"),
    "rank-map": ("dp-sgd", "rank-map+sign-flip", 8, "iid"),
    "window": ("fedavg", "window+sign-flip", 8, "iid"),
}


STRONGER = {
    "a3fl": {"steps": "40", "step": "0.05", "alone": "30"},
    "blended": {"blend": "0.3"},
    "rop": {"z": "3"},
    "window": {"end": "1"},
}
"""ROP's usual strength needs clients with momentum, a faint pattern more rounds; after a window the model recovers. Few
long steps of A3FL are made in less time."""


@pytest.mark.parametrize("name", POISONING)
def test_a_poisoning_attack_breaks_what_it_was_made_against(name: str) -> None:
    defense, whole, corrupted, partition = VICTIMS.get(name, ("fedavg", name, 8, "iid"))
    attack = compose.parse_attack(whole, STRONGER.get(name))
    knows: Knowledge = compose.knowledge_levels(attack)[0]
    if "omniscient" in compose.knowledge_levels(attack):
        knows = "omniscient"
    assert integrity(defense, attack, knows, corrupted, partition) < 0.9


@pytest.mark.parametrize("against", ["eq10", "krum", "trimmed-mean"])
def test_each_form_of_optimized_breaks_the_rule_that_it_is_made_for(against: str) -> None:
    defense, corrupted = {"eq10": ("fedavg", 8), "krum": ("krum", 4), "trimmed-mean": ("trimmed-mean", 8)}[against]
    assert integrity(defense, compose.parse_attack("optimized", {"against": against}), "omniscient", corrupted) < 0.9


def test_every_form_of_optimized_is_tried() -> None:
    fields = dataclasses.fields(registry.find("attack", "optimized").options)
    (against,) = (field for field in fields if field.name == "against")
    assert tuple(against.metadata["choices"]) == ("eq10", "krum", "trimmed-mean")


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_is_more_than_the_attack_inside(name: str) -> None:
    """On the defense that it was made against the same attack goes another way with it."""
    defense, whole, corrupted, partition = VICTIMS.get(name, ("fedavg", f"{name}+sign-flip", 8, "iid"))
    bare = whole.removeprefix(f"{name}+")
    curves = [
        poisoned(defense, compose.parse_attack(attack), "own", corrupted, partition)["attacked"]["curve"]
        for attack in (whole, bare)
    ]
    assert curves[0] != curves[1]


def test_rank_map_carries_past_the_first_stage_what_it_rejects() -> None:
    rejected = {
        name: poisoned("two-stage", compose.parse_attack(name), "own", 8)["metrics"]["corrupted_first_stage"]
        for name in ("rank-map+sign-flip", "sign-flip")
    }
    assert rejected == {"rank-map+sign-flip": 0.0, "sign-flip": 1.0}


def test_delayed_is_an_honest_run_until_its_time() -> None:
    record = poisoned("fedavg", compose.parse_attack("delayed+sign-flip", {"start": "0.5"}), "own", 8)
    attacked, clean = record["attacked"]["curve"], record["utility"]["clean_curve"]
    rounds = [point[0] for point in clean]
    assert rounds == [15, 30, 45, 60]
    assert attacked[:2] == clean[:2]
    assert attacked[-1][1] < 0.5 * clean[-1][1]


def test_mimic_copies_one_honest_client_and_no_other() -> None:
    warmup, rounds = 20, 30
    problem = poisoned_problem(6, "dirichlet")
    problem = replace(problem, schedule=replace(problem.schedule, rounds=rounds, eval_every=0))
    built, attack = build(problem, 0), compose.parse_attack("mimic", {"warmup": str(warmup)})
    defense = compose.make_defense(MethodSpec("fedavg"), built.task)
    adversary = Adversary(
        compose.make_poisoning(attack, knowledge_of(built, defense, "omniscient")), frozenset(built.corrupted), Rng(1)
    )
    run = federation.run(defense, built, Rng(0).child("federation"), watch=range(rounds), adversary=adversary)
    copied = []
    for r in run.rounds:
        sent = dict(zip(r.participants, rows(r.ups), strict=True))
        honest = {c: up for c, up in sent.items() if c not in built.corrupted}
        copied.append({c for c, up in honest.items() for bad in built.corrupted if torch.equal(sent[bad], up)})
        assert r.index < warmup or all(torch.equal(sent[bad], sent[built.corrupted[0]]) for bad in built.corrupted)
    assert not any(copied[:warmup])
    (victim,) = copied[warmup]
    assert copied[warmup:] == [{victim}] * (rounds - warmup)


USUAL = {n: dict(registry.find("attack", n).usual) for n in NAMES["attack"]}
READING = [n for n in NAMES["attack"] if n not in POISONING]
BY_GOAL = {goal: [n for n in READING if registry.find("attack", n).load().goal == goal] for goal in get_args(GoalName)}


BRIEF = {
    "affine-model": {"victims": "3"},
    "dager": {"victims": "1"},
    "chosen-features": {"victims": "3"},
    "dlg": {"victims": "1"},
    "fedmia": {"rounds": "10"},
    "fishing": {"victims": "4", "iterations": "80"},
    "idlg": {"victims": "1"},
    "inverting-gradients": {"victims": "1", "iterations": "150"},
    "membership-inference": {"shadows": "4"},
    "model-inversion": {"iterations": "60"},
    "multi-step": {"victims": "1", "iterations": "150"},
    "property-inference": {"classifier": "forest", "rounds": "30"},
    "tag": {"victims": "1", "iterations": "200", "lr": "0.3"},
    "source-inference": {"rounds": "10"},
    "upload-regression": {"rounds": "5"},
}
"""Options of attacks that would take longer."""


SERVER, CLIENT = Threat("server", "adaptive"), Threat("client", "adaptive")


def read(name: str, problem: ProblemSpec, threats: tuple[Threat, ...] = (SERVER, CLIENT)) -> list[Any]:
    """Records of an undefended run."""
    card = registry.find("attack", name)
    spec = GroupSpec(
        problem,
        defense=MethodSpec("fedavg"),
        attack=MethodSpec(name, card.parse(BRIEF.get(name, {}))),
        threats=threats,
        seed=0,
    )
    records = run_groups([spec], 1)[0].records
    for record in records:
        assert record["status"] == "ok", record["reason"]
    return records


DENSE = {"analytic": "mlp", "april": "vit", "spear": "mlp"}
"""Models of reconstructions that read a dense first layer, or the embeddings of a transformer."""


OF_TEXTS = {name for name, usual in USUAL.items() if usual.get("model") == "transformer"}
"""Reconstructions that read a transformer."""


@pytest.mark.parametrize("name", sorted(OF_TEXTS))
def test_an_attack_reads_the_texts_of_an_undefended_upload(name: str) -> None:
    card = registry.find("attack", name)
    problem = usual_problem({}, {"training": {"rounds": "3", "batch_size": "1"}}, [card])
    for record in read(name, problem):
        assert record["scores"]["privacy"] < 0.5
        assert record["metrics"]["token_accuracy"] > record["metrics"]["prior_mean_token_accuracy"] + 0.3


@pytest.mark.parametrize("name", sorted(set(BY_GOAL["reconstruction"]) - OF_TEXTS))
def test_an_attack_lowers_the_undefended_score(name: str) -> None:
    for record in read(name, attacked(DENSE.get(name, "lenet-dlg"), rounds=40)):
        assert record["scores"]["privacy"] < 0.5
        assert record["metrics"]["ssim"] > record["metrics"]["prior_mean_ssim"]


MALICIOUS = (Threat("malicious-server", "paper"), Threat("malicious-server", "adaptive"))


OF_SINGLE_SAMPLES = ("affine-model", "chosen-features")


@pytest.mark.parametrize("name", [n for n in BY_GOAL["active-reconstruction"] if n != "inconsistent-masks"])
def test_a_malicious_server_reads_an_undefended_upload(name: str) -> None:
    """Of batches of four, or of single samples. `fishing` reads one of each batch. What the crafted model adds, and
    what is sent besides or to a masked protocol, is in their own tests."""
    problem = attacked("mlp", rounds=40, batch_size=4)
    if name == "fishing":
        problem = attacked("mlp", NARROW, rounds=40, batch_size=1)
    if name in OF_SINGLE_SAMPLES:  # plays the protocol on every pixel, which takes as long as the network is wide
        narrow = registry.find("model", "mlp").parse({"widths": "32"})
        problem = replace(attacked("mlp", rounds=40, batch_size=1), model_options=narrow)
    if name == "loki":  # whose kernels pass pixels on
        problem = attacked("cnn", rounds=40, batch_size=4)
    for record in read(name, problem, MALICIOUS):
        assert record["scores"]["privacy"] < 0.5
        assert record["metrics"]["identified_low"] > record["metrics"]["identified_chance"]


@pytest.mark.parametrize("name", BY_GOAL["curious-poisoning"])
def test_poison_makes_krum_give_its_victim_away(name: str) -> None:
    """Of corrupted clients that know all uploads; how far others come is in their own tests."""
    card = registry.find("attack", name)
    spec = GroupSpec(
        replace(attacked("mlp", rounds=10), clients=7, corrupted=2),
        defense=compose.parse_defense("krum"),
        attack=MethodSpec(name, card.parse({"victims": "6", "knows": "omniscient"})),
        threats=(Threat("corrupted-clients", "adaptive"),),
        seed=0,
    )
    (prepared,) = trial.prepare(spec)
    record, _ = trial.attack(prepared)
    assert record["status"] == "ok", record["reason"]
    assert record["metrics"]["identified"] > record["metrics"]["identified_without_poison"] + 0.4


NARROW = registry.find("model", "mlp").parse({"widths": "64"})
"""A dense network that shows as much as the usual one of what single uploads hold, in less time."""
BATCHES = {"marginal-membership": 1}
"""Samples behind an upload where four hide what the attack looks at."""


@pytest.mark.parametrize("name", BY_GOAL["membership"])
def test_an_attack_tells_members_of_an_undefended_batch(name: str) -> None:
    for record in read(name, attacked("mlp", rounds=40, batch_size=BATCHES.get(name, 4))):
        assert record["metrics"]["auc_low"] > 0.5
        assert record["scores"]["privacy"] == pytest.approx(1 - record["metrics"]["advantage"])
        assert record["scores"]["privacy"] < 0.9


@pytest.mark.parametrize("name", BY_GOAL["training-membership"])
def test_an_attack_tells_whom_an_overfit_model_was_trained_on(name: str) -> None:
    few = registry.find("partition", "few").parse({"samples": "20"})
    problem = replace(attacked("mlp", rounds=200, batch_size=16), partition="few", clients=4, partition_options=few)
    for record in read(name, problem):
        assert record["metrics"]["auc_low"] > 0.5
        assert record["scores"]["privacy"] < 0.8


@pytest.mark.parametrize("name", BY_GOAL["client-membership"])
def test_an_attack_tells_what_a_client_holds(name: str) -> None:
    few = registry.find("partition", "few").parse({"samples": "10"})
    whole = attacked("mlp", NARROW, rounds=60, batch_size=10, local_epochs=5)
    (record,) = read(name, replace(whole, partition="few", clients=8, partition_options=few), (SERVER,))
    assert record["metrics"]["auc_low"] > 0.5
    assert record["scores"]["privacy"] < 0.8


@pytest.mark.parametrize("name", BY_GOAL["source"])
def test_an_attack_names_who_holds_a_sample(name: str) -> None:
    few = registry.find("partition", "few").parse({"samples": "20"})
    whole = attacked("mlp", NARROW, rounds=40, batch_size=10, local_epochs=5, lr=0.2)
    (record,) = read(name, replace(whole, partition="few", clients=5, partition_options=few), (SERVER,))
    assert record["metrics"]["source_accuracy_low"] > record["metrics"]["prior_source_accuracy"]
    assert record["scores"]["privacy"] < 0.9


@pytest.mark.parametrize("name", BY_GOAL["labels"])
def test_an_attack_reads_the_labels_of_an_undefended_batch(name: str) -> None:
    for record in read(name, attacked("mlp", rounds=40, batch_size=4)):
        assert record["metrics"]["label_accuracy"] > record["metrics"]["prior_label_accuracy"] + 0.2
        assert record["scores"]["privacy"] < 0.5


@pytest.mark.parametrize("name", BY_GOAL["inversion"])
@pytest.mark.usefixtures("quick_judge")
def test_an_attack_shows_the_classes_of_an_undefended_model(name: str) -> None:
    """To whoever has it in clear: the published form, as there is nothing to adapt to."""
    card, threats = registry.find("attack", name), (Threat("client", "paper"),)
    attack = MethodSpec(name, card.parse(BRIEF.get(name, {})))
    spec = GroupSpec(
        attacked("mlp", rounds=200, batch_size=32), defense=MethodSpec("fedavg"), attack=attack, threats=threats, seed=0
    )
    (record,) = run_groups([spec], 1)[0].records
    assert record["metrics"]["top1"] > record["metrics"]["prior_top1"] + 0.4
    assert record["scores"]["privacy"] < 0.6


@pytest.mark.parametrize("name", BY_GOAL["extraction"])
def test_an_attack_takes_an_undefended_model(name: str) -> None:
    """From a client; the server holds its own."""
    card = registry.find("attack", name)
    attack, threats = MethodSpec(name, card.parse({})), (Threat("client", "adaptive"), Threat("server", "adaptive"))
    spec = GroupSpec(
        attacked("mlp", rounds=40, batch_size=4), defense=MethodSpec("fedavg"), attack=attack, threats=threats, seed=0
    )
    client, server = run_groups([spec], 1)[0].records
    assert client["metrics"]["agreement"] > client["metrics"]["prior_agreement"] + 0.2
    assert client["scores"]["privacy"] < 0.5
    assert server["status"] == "n/a"


@pytest.mark.parametrize("name", BY_GOAL["estimate"])
def test_an_attack_finds_the_gradient_of_an_undefended_batch(name: str) -> None:
    for record in read(name, attacked("mlp", rounds=40, batch_size=4)):
        assert record["metrics"]["cosine"] > record["metrics"]["control_cosine"] + 0.2
        assert record["scores"]["privacy"] < 0.1


@pytest.mark.parametrize("name", BY_GOAL["property"])
def test_an_attack_tells_undefended_batches_with_a_property(name: str) -> None:
    for record in read(name, attacked("mlp", rounds=60, batch_size=64, lr=0.1)):
        assert record["metrics"]["auc_low"] > 0.5
        assert record["scores"]["privacy"] < 0.5
