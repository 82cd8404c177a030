"""Whom an attack that tells members is asked about, and that the answer does not cross."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from fedarena.contracts.observation import Candidates, Observation
from fedarena.contracts.view import View, seal
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.population import halves
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.candidates import Question, draw_questions
from fedarena.goals.prepared import CompleteRecord, OpenRecord, PreparedRecord
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs.trial import prepare


def problem(partition: str = "iid", clients: int = 2, **options: str) -> Problem:
    laws = registry.find("partition", partition).parse(options)
    model = registry.find("model", "mlp").parse({"widths": "8"})
    return build(
        ProblemSpec(
            "digits", model="mlp", partition=partition, clients=clients, model_options=model, partition_options=laws
        ),
        0,
    )


def batch(made: Problem, client: int, n: int) -> tuple[Tensor, Tensor]:
    index = made.shards[client][:n]
    return made.inputs(index), made.y[index]


def row_key(row: Tensor) -> bytes:
    return row.numpy().tobytes()


def rows(x: Tensor) -> set[bytes]:
    return set(map(row_key, x))


def drawn(
    made: Problem, *truths: tuple[Tensor, Tensor], client: int = 0, seed: int = 0, outsiders: Tensor | None = None
) -> list[Question]:
    everyone = torch.arange(len(made.y_test))
    held = {client: (made.inputs(made.shards[client]), made.y[made.shards[client]])}
    behind = [((client,), truth) for truth in truths]
    return draw_questions(made, held, everyone if outsiders is None else outsiders, behind, Rng(seed))


def test_half_are_the_very_samples_and_half_are_held_out() -> None:
    made = problem()
    x, y = batch(made, 0, 8)
    (asked,) = drawn(made, (x, y))
    assert len(asked.members) == 16
    inside, outside = asked.candidates.x[asked.members], asked.candidates.x[~asked.members]
    assert rows(inside) == rows(x)
    assert rows(outside) <= rows(made.x_test.float() / made.scale)
    assert len(rows(outside)) == 8
    assert sorted(asked.candidates.y[asked.members].tolist()) == sorted(y.tolist())
    held = {x.numpy().tobytes(): int(y) for x, y in zip(made.x_test.float() / made.scale, made.y_test, strict=True)}
    for one, label in zip(outside, asked.candidates.y[~asked.members], strict=True):
        assert held[one.numpy().tobytes()] == int(label)


def test_the_place_says_nothing() -> None:
    made = problem()
    truth = batch(made, 0, 4)
    places = torch.stack([drawn(made, truth, seed=seed)[0].members for seed in range(200)]).double().mean(0)
    assert bool(((places > 0.35) & (places < 0.65)).all())


def test_the_same_stream_asks_the_same_and_another_asks_others() -> None:
    made = problem()
    truth = batch(made, 0, 4)
    (first,), (again,), (other,) = (drawn(made, truth, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.candidates.x, again.candidates.x)
    assert torch.equal(first.members, again.members)
    assert not torch.equal(first.candidates.x, other.candidates.x)


@pytest.mark.parametrize("partition", ["iid", "dirichlet"])
def test_no_sample_is_a_candidate_twice(partition: str) -> None:
    """Clients come back to their samples, of which there are more than outsiders."""
    made, rng = problem(partition, 4), Rng(5)
    questions = drawn(made, *[made.batches([(0, rng.child(t))])[0].images() for t in range(300)])
    times = Counter(key for q in questions for key in map(row_key, q.candidates.x))
    assert set(times.values()) == {1}
    assert sum(len(q.members) for q in questions) > 100


@pytest.mark.parametrize("alpha", ["0.1", "1"])
def test_neither_the_class_nor_the_round_of_a_class_tells_a_member(alpha: str) -> None:
    """Clients with few classes, of which one runs out of outsiders long before the others."""
    inside, outside = torch.zeros(2, 10), torch.zeros(2, 10)
    for seed in range(60):
        made, rng = problem("dirichlet", 10, alpha=alpha), Rng(seed)
        questions = drawn(
            made, *[made.batches([(3, rng.child(t))])[0].images() for t in range(60)], client=3, seed=seed
        )
        for t, q in enumerate(questions):
            inside[t // 30] += q.candidates.y[q.members].bincount(minlength=10)
            outside[t // 30] += q.candidates.y[~q.members].bincount(minlength=10)
    assert torch.equal(inside.sum(1), outside.sum(1))
    assert float(inside.sum()) > 500
    for found, other in zip(inside, outside, strict=True):
        spread = (found + other).sqrt().clamp(min=1)
        assert float(((found - other) / spread).abs().max()) < 4


def test_counterparts_are_shared_out_among_the_observations() -> None:
    made = problem()
    few = replace(made, x_test=made.x_test[:60], y_test=made.y_test[:60])
    index = made.shards[0][:600].split(60)
    sizes = [len(q.members) // 2 for q in drawn(few, *[(made.inputs(part), made.y[part]) for part in index])]
    assert 40 < sum(sizes) <= 60
    assert max(sizes) <= 12
    assert min(sizes[:5]) >= 5


def test_an_attackers_own_samples_are_no_candidates() -> None:
    made = problem()
    mine, others = halves(made, 3)
    (asked,) = drawn(made, batch(made, 0, 40), outsiders=others)
    assert not rows(asked.candidates.x) & rows(made.x_test[mine].float() / made.scale)


def test_an_empty_batch_has_no_candidates() -> None:
    made = problem()
    (asked,) = drawn(made, batch(made, 0, 0))
    assert asked.candidates.x.shape == (0, *made.task.input_shape)
    assert asked.members.shape == (0,)


def test_images_that_clients_change_would_give_members_away() -> None:
    spec = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=3,
        model_options=registry.find("model", "mlp").parse({"widths": "8"}),
        schedule=Schedule(rounds=3, batch_size=4, augment=("flip",)),
    )
    attack = compose.parse_attack("joint-membership")
    threats = (Threat("server", "paper"),)
    (cell,) = prepare(GroupSpec(spec, defense=compose.parse_defense("fedavg"), attack=attack, threats=threats, seed=0))
    assert isinstance(cell, CompleteRecord)
    assert cell.record["status"] == "n/a"
    assert "training.augment" in cell.record["reason"]


# -- what crosses --------------------------------------------------------------------------------------


def cells(attack: str, parties: tuple[Threat, ...], defense: str = "fedavg") -> list[PreparedRecord]:
    model = registry.find("model", "mlp").parse({"widths": "8"})
    spec = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=3,
        model_options=model,
        schedule=Schedule(rounds=6, batch_size=4),
    )
    return prepare(
        GroupSpec(
            spec, defense=compose.parse_defense(defense), attack=compose.parse_attack(attack), threats=parties, seed=0
        )
    )


def test_only_an_attack_on_membership_is_given_candidates() -> None:
    server = (Threat("server", "adaptive"),)
    for attack, given in (("joint-membership", True), ("last-layer-label", False), ("dlg", False)):
        (cell,) = cells(attack, server)
        assert isinstance(cell, OpenRecord)
        assert all((o.candidates is not None) == given for o in cell.challenge.view.observations)


def test_the_view_holds_the_candidates_and_not_the_answer() -> None:
    assert {f.name for f in fields(Candidates)} == {"x", "y", "clients"}  # whom they are asked about
    (cell,) = cells("joint-membership", (Threat("server", "adaptive"),))
    assert isinstance(cell, OpenRecord)
    built = build(cell.spec.problem, 0)
    trained_on = rows(built.x.float() / built.scale)
    for o, members in zip(cell.challenge.view.observations, cell.challenge.answers, strict=True):
        assert o.candidates is not None
        assert rows(o.candidates.x[members]) <= trained_on
        assert not rows(o.candidates.x[~members]) & trained_on


def test_every_party_is_asked_about_the_same_candidates_of_the_same_victim() -> None:
    server, eavesdropper = cells("joint-membership", (Threat("server", "adaptive"), Threat("eavesdropper", "paper")))
    views = [cell.challenge.view for cell in (server, eavesdropper) if isinstance(cell, OpenRecord)]
    assert views[0] is not None
    assert views[1] is not None
    for a, b in zip(views[0].observations, views[1].observations, strict=True):
        assert a.candidates is not None
        assert b.candidates is not None
        assert torch.equal(a.candidates.x, b.candidates.x)


def test_the_base_of_a_slice_stays_behind_the_seal() -> None:
    whole = torch.randn(1000, 10, generator=Rng(0).torch())
    seen = Observation(0, clients=(1,), images=1, target={"w": whole[1]}, simulate=_nothing)
    view = View(Threat("client", "paper"), reading="upload", input_shape=(10,), n_classes=2, observations=(seen,))
    assert len(pickle.dumps(view)) > 30_000  # so that the next line can fail
    copy = seal(view).observations[0].target["w"]
    assert torch.equal(copy, whole[1])
    assert copy.untyped_storage().nbytes() == 40


def _nothing(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    return {}


def test_nobody_to_ask_about_is_not_applicable() -> None:
    """Poisson batches of a client may all be empty."""
    model = registry.find("model", "mlp").parse({"widths": "8"})
    schedule = Schedule(rounds=2, batch_size=1)
    spec = ProblemSpec("digits", model="mlp", partition="iid", clients=2, model_options=model, schedule=schedule)
    attack = MethodSpec("joint-membership", registry.find("attack", "joint-membership").parse({"rounds": "1"}))
    outcomes = set()
    for seed in range(12):
        (cell,) = prepare(
            GroupSpec(
                spec,
                defense=compose.parse_defense("dp-sgd"),
                attack=attack,
                threats=(Threat("server", "adaptive"),),
                seed=seed,
            )
        )
        empty = isinstance(cell, CompleteRecord)
        assert empty == (cell.record["status"] == "n/a")
        if empty:
            assert "no batch attacked held a sample" in cell.record["reason"]
        outcomes.add(empty)
    assert outcomes == {True, False}


@pytest.mark.parametrize("attack", ["joint-membership", "marginal-membership", "last-layer-label"])
def test_the_first_rounds_are_attacked_and_one_more_is_written_down(attack: str) -> None:
    made = compose.parse_attack(attack, {"rounds": "4"})
    one = registry.find("attack", attack).load()(made.options)
    for rounds, last, victims in ((10, 4, (0, 1, 2, 3)), (5, 4, (0, 1, 2, 3)), (3, 2, (0, 1)), (1, 0, (0,))):
        watch = one.watch(Schedule(rounds=rounds))
        assert (watch.first, watch.last, watch.victims) == (0, last, victims)
