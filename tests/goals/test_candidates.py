"""Whom an attack that tells members is asked about, and that the answer does not cross."""

from __future__ import annotations

import pickle
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
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals.candidates import Question, draw_question, how_many
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


def rows(x: Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in x}


def test_half_are_the_very_samples_and_half_are_held_out() -> None:
    made = problem()
    x, y = batch(made, 0, 8)
    asked = draw_question(made, (0,), (x, y), Rng(0))
    assert len(asked.members) == how_many(made, (0,), 8) == 16
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
    places = torch.stack([draw_question(made, (0,), truth, Rng(seed)).members for seed in range(200)]).double().mean(0)
    assert bool(((places > 0.35) & (places < 0.65)).all())


def test_the_same_stream_asks_the_same_and_another_asks_others() -> None:
    made = problem()
    truth = batch(made, 0, 4)

    def drawn(seed: int) -> Question:
        return draw_question(made, (0,), truth, Rng(seed))

    assert torch.equal(drawn(1).candidates.x, drawn(1).candidates.x)
    assert torch.equal(drawn(1).members, drawn(1).members)
    assert not torch.equal(drawn(1).candidates.x, drawn(2).candidates.x)


def test_outsiders_have_the_classes_of_the_clients() -> None:
    """Where clients hold few classes, the class alone must not give outsiders away."""
    made = problem("dirichlet", 10, alpha="0.1")
    for clients in ((0,), (3, 4)):
        shares = torch.stack(
            [made.y[made.shards[c]].bincount(minlength=10).double() / len(made.shards[c]) for c in clients]
        ).mean(0)
        drawn = [draw_question(made, clients, batch(made, clients[0], 4), Rng(seed)) for seed in range(300)]
        outside = torch.cat([q.candidates.y[~q.members] for q in drawn]).bincount(minlength=10).double()
        assert float((outside / outside.sum() - shares).abs().max()) < 0.06


def test_fewer_held_out_samples_than_members() -> None:
    made = problem()
    few = replace(made, x_test=made.x_test[:3], y_test=made.y_test[:3])
    asked = draw_question(few, (0,), batch(few, 0, 20), Rng(0))
    assert len(asked.members) == how_many(few, (0,), 20) == 6
    assert int(asked.members.sum()) == 3
    assert rows(asked.candidates.x[asked.members]) <= rows(batch(few, 0, 20)[0])


def test_an_empty_batch_has_no_candidates() -> None:
    made = problem()
    asked = draw_question(made, (0,), batch(made, 0, 0), Rng(0))
    assert asked.candidates.x.shape == (0, *made.task.input_shape)
    assert asked.members.shape == (0,)


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
    assert {f.name for f in fields(Candidates)} == {"x", "y"}
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
