"""Methods made of parts."""

from __future__ import annotations

import pytest

from fedarena.attacks.poisoning.label_flip import LabelFlip
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.defenses.aggregators.krum import Krum
from fedarena.defenses.aggregators.nnm import NNM
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

SPEC = ProblemSpec(
    "digits",
    model="mlp",
    partition="iid",
    clients=10,
    model_options=find("model", "mlp").parse({}),
    schedule=Schedule(),
    corrupted=2,
)


def test_a_rule_alone_aggregates_fedavg() -> None:
    spec = compose.parse_defense("krum")
    assert (spec.name, spec.label) == ("fedavg", "krum")
    made = compose.make_defense(spec, build(SPEC, 0).task)
    assert type(made) is FedAvg
    assert isinstance(made.rule, Krum)
    assert compose.parse_defense("fedavg+krum") == spec


def test_a_protocol_takes_wrappers_and_a_rule() -> None:
    spec = compose.parse_defense("dbcl+nnm+krum", {"ratio": "0.25"})
    assert spec.label == "dbcl+nnm+krum"
    assert spec.options.ratio == 0.25
    made = compose.make_defense(spec, build(SPEC, 0).task)
    assert isinstance(made, DBCL)
    assert isinstance(made.rule, NNM)
    assert isinstance(made.rule.inner, Krum)


def test_an_option_reaches_every_part_that_has_it_and_a_part_by_name_wins() -> None:
    cards = compose.attack_cards("delayed+label-flip")
    spec = compose.parse(cards, {"start": "0.25", "labels": "random"}, {"delayed": {"start": "0.75"}})
    assert spec.options.start == 0.75
    assert spec.rest[0].options.labels == "random"
    assert compose.attack_class(spec) is LabelFlip


def test_the_server_holds_samples_where_a_rule_needs_them() -> None:
    assert compose.auxiliary(compose.parse_defense("krum")) is None
    held = compose.auxiliary(compose.parse_defense("nnm+fltrust", {"root": "3"}))
    assert held is not None
    assert (held.per_class, held.dataset) == (3, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("krumm", "unknown defense 'krumm'; did you mean krum"),
        ("dbcl+dbcl", "names a part twice"),
        ("dbcl+", "not NAME or NAME"),
        ("krum+median", "aggregator krum is a rule, which takes nothing after it"),
        ("nnm", "aggregator nnm wraps a rule"),
        ("dbcl+fedavg", "fedavg is a protocol: a protocol comes first"),
    ],
)
def test_chains_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        compose.make_rule(compose.parse_defense(text).rest)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("delayed", "attack delayed wraps another attack: add one"),
        ("label-flip+delayed", "attack label-flip wraps no other attack"),
        ("delayed+dlg", "dlg does not poison, so delayed cannot wrap it"),
    ],
)
def test_attacks_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        compose.attack_class(compose.parse_attack(text))


@pytest.mark.parametrize(
    ("text", "options", "refused"),
    [
        ("rank-map+sign-flip", {"tune": "3"}, True),
        ("rank-map+delayed+pixel-trigger", {"tune": "3"}, True),
        ("rank-map+sign-flip", {}, False),
        ("rank-map+alie", {"tune": "3"}, False),  # z turns the upload too
        ("delayed+sign-flip", {"tune": "3"}, False),
        ("sign-flip", {"tune": "3"}, False),
    ],
)
def test_tuning_nothing_but_a_length_that_a_wrapper_fixes_is_refused(
    text: str, options: dict[str, str], refused: bool
) -> None:
    spec = compose.parse_attack(text, options)
    if not refused:
        compose.attack_class(spec)
        return
    with pytest.raises(UserError, match=r"option 'tune' is 3, allowed for .* inside rank-map: 0"):
        compose.attack_class(spec)


def test_unknown_options_name_what_there_is() -> None:
    with pytest.raises(UserError, match=r"no part of nnm\+krum has an option 'ff'"):
        compose.parse_defense("nnm+krum", {"ff": "1"})
    with pytest.raises(UserError, match="defense dbcl has no option 'ratioo'; did you mean ratio"):
        compose.parse_defense("dbcl", {"ratioo": "1"})


def test_a_rule_that_the_numbers_do_not_allow_is_refused_before_the_run() -> None:
    task = build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=4, model_options=find("model", "mlp").parse({}), corrupted=2
        ),
        0,
    ).task
    with pytest.raises(UserError, match="4 uploads a round of which 2 are assumed to be corrupted"):
        compose.make_defense(compose.parse_defense("krum"), task)


def test_a_shared_option_goes_to_all_parts_or_to_the_one_named() -> None:
    """dp-sgd and norm-bounding both have a `bound`, of different kinds."""
    spec = compose.parse_defense("dp-sgd+norm-bounding", {"dp-sgd.bound": "normalise", "momentum": "0.1"})
    assert (spec.options.bound, spec.options.momentum) == ("normalise", 0.1)
    assert spec.rest[0].options.bound is None
    with pytest.raises(UserError, match=r"'bound' is 'normalise'.*dp-sgd\.bound to dp-sgd alone"):
        compose.parse_defense("dp-sgd+norm-bounding", {"bound": "normalise"})
    with pytest.raises(UserError, match=r"'krum\.bound' is of 'krum', which is none of dp-sgd, norm-bounding"):
        compose.parse_defense("dp-sgd+norm-bounding", {"krum.bound": "1"})
    with pytest.raises(UserError, match="norm-bounding has no option 'bond'"):
        compose.parse_defense("dp-sgd+norm-bounding", {"norm-bounding.bond": "1"})
