"""Colluders who train a backdoor on their own: the replaced model, the mask, the disguises."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.poisoning import knowledge, make, problem
from torch.nn.functional import cosine_similarity

from fedarena.attacks.poisoning.model_replacement import decorrelated, held_to, typical_cosine
from fedarena.attacks.poisoning.neurotoxin import outside_largest
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView, Samples
from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose

LOCAL = {"fedsgd": {"lr": 0.2, "server_lr": 1.5}, "local epochs": {"local_epochs": 2, "server_lr": 0.5}}
"""Schedules with steps of the server of .3 and .5."""


def on_schedule(**schedule: Any) -> AttackerKnowledge:
    """Three colluders with 30 samples, all of which each of them trains on."""
    on = knowledge()
    task = replace(on.task, schedule=replace(on.task.schedule, **schedule), sizes=(30,) * 10)
    data = Samples(on.data.x[:30], on.data.y[:30], on.data.scale)
    return replace(on, task=task, defense=FedAvg(NoOptions(), task), data=data)


def attack(text: str, on: AttackerKnowledge, **options: str) -> Poisoning:
    given = {"epochs": "3", "lr": "0.1", "batch_size": "30", "share": "1"}
    return compose.make_poisoning(compose.parse_attack(text, given | options), on)


def view(on: AttackerKnowledge, t: int = 0, moved: float = 0.0) -> RoundView:
    """Three of ten participants collude; the model has moved by this much in each coordinate's own direction."""
    down = {name: x + moved * torch.arange(x.numel()).reshape(x.shape) for name, x in on.init.items()}
    x, y = on.data.inputs(torch.arange(30)), on.data.y
    own = [on.defense.expected_upload(down, x[10 * i : 10 * i + 10], y[10 * i : 10 * i + 10]) for i in range(3)]
    stacked = {name: torch.stack([up[name] for up in own]) for name in down}
    clients = problem().corrupted
    return RoundView(round=t, participants=10, size=3, down=down, own=stacked, honest={}, clients=clients)


def trained_by_a_loop(on: AttackerKnowledge, alpha: float) -> Tensors:
    """Three steps on all samples, each with the trigger, from the initial parameters; loss and pull by autograd."""
    inside = make("pixel-trigger", on, share=1.0)
    triggered = inside.trigger(on.data.inputs(torch.arange(30)))
    assert triggered is not None
    x, y = triggered[0], torch.zeros(30, dtype=torch.int64)
    params = {name: p.clone().requires_grad_() for name, p in on.init.items()}
    for _ in range(3):
        away = sum(((params[name] - on.init[name]) ** 2).sum() for name in params)
        loss = alpha * on.task.loss(params, x, y) + (1 - alpha) * away
        gradients = torch.autograd.grad(loss, list(params.values()))
        params = {
            n: (p - 0.1 * g).detach().requires_grad_() for (n, p), g in zip(params.items(), gradients, strict=True)
        }
    return {name: p.detach() for name, p in params.items()}


@pytest.mark.parametrize("schedule", LOCAL)
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_the_server_arrives_at_the_trained_model(schedule: str, alpha: float) -> None:
    """Honest uploads of zero, so that the mean is the colluders' part alone."""
    on = on_schedule(**LOCAL[schedule])
    v = view(on)
    sent, _ = attack("model-replacement+pixel-trigger", on, alpha=str(alpha)).craft(v, {}, Rng(0))
    mean = rows(sent).sum(0) / 10
    reached = flatten(v.down) - on.defense.step_size * mean
    torch.testing.assert_close(reached, flatten(trained_by_a_loop(on, alpha)), atol=1e-5, rtol=1e-4)


def test_the_factor_can_be_set_and_is_that_of_participants_over_colluders() -> None:
    on = on_schedule()
    usual, one, three = (
        rows(attack("model-replacement+pixel-trigger", on, **given).craft(view(on), {}, Rng(0))[0])
        for given in ({}, {"model-replacement.scale": "1"}, {"model-replacement.scale": "3"})
    )
    torch.testing.assert_close(usual, one * 10 / 3)
    torch.testing.assert_close(three, one * 3)


def test_a_stronger_pull_stays_nearer_to_the_broadcast() -> None:
    on = on_schedule()
    lengths = [
        float(rows(attack("model-replacement+dba", on, alpha=a).craft(view(on), {}, Rng(0))[0]).norm())
        for a in ("1", "0.5", "0.1")
    ]
    assert lengths[0] > lengths[1] > lengths[2] > 0


def test_each_colluder_trains_on_its_own_part() -> None:
    sent = rows(attack("model-replacement+dba", on_schedule()).craft(view(on_schedule()), {}, Rng(0))[0])
    assert not torch.allclose(sent[0], sent[1])


def test_the_mask_leaves_out_the_largest() -> None:
    assert outside_largest(torch.tensor([3.0, -5.0, 0.5, 1.0]), 0.5).tolist() == [0, 0, 1, 1]
    assert outside_largest(torch.tensor([3.0, -5.0, 0.5, 1.0]), 0.49).tolist() == [1, 0, 1, 1]
    assert outside_largest(torch.tensor([3.0, -5.0]), 0.0).tolist() == [1, 1]


def test_a_ball_is_projected_onto_after_each_epoch() -> None:
    """By hand: two epochs of one step each on all samples, of which each ends within .05 of the broadcast."""
    on = on_schedule()
    x, y = on.data.inputs(torch.arange(30)), torch.zeros(30, dtype=torch.int64)
    triggered = make("pixel-trigger", on, share=1.0).trigger(x)
    assert triggered is not None
    start = flatten(on.init)
    params, length = {name: p.clone() for name, p in on.init.items()}, 0.0
    for _ in range(2):
        leaves = {name: p.requires_grad_() for name, p in params.items()}
        gradients = torch.autograd.grad(on.task.loss(leaves, triggered[0], y), list(leaves.values()))
        stepped = {n: (p - 0.1 * g).detach() for (n, p), g in zip(leaves.items(), gradients, strict=True)}
        length = float((flatten(stepped) - start).norm())
        params = {n: on.init[n] + (p - on.init[n]) * min(1.0, 0.05 / length) for n, p in stepped.items()}
    assert length > 0.05
    given = {"alpha": "1", "epochs": "2", "scale": "1", "ball": "0.05"}
    sent, _ = attack("model-replacement+pixel-trigger", on, **given).craft(view(on), {}, Rng(0))
    reached = -on.defense.step_size * rows(sent)[0]
    torch.testing.assert_close(reached, flatten(params) - start, atol=1e-6, rtol=1e-4)
    assert float(reached.norm()) == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("schedule", LOCAL)
def test_neurotoxin_sends_nothing_where_the_model_moved_most(schedule: str) -> None:
    on = on_schedule(**LOCAL[schedule])
    made = attack("neurotoxin+dba", on, masked="0.2", reference="movement")
    first, second = view(on), view(on, 1, moved=1e-4)
    sent, memory = made.craft(first, {}, Rng(0))
    kept = outside_largest(rows(first.own).mean(0), 0.2).bool()
    assert not rows(sent)[:, ~kept].any()
    assert bool(rows(sent)[:, kept].any(0).float().mean() > 0.3)
    sent, _ = made.craft(second, memory, Rng(1))
    moved = flatten(second.down) - flatten(first.down)
    largest = moved.abs().topk(int(0.2 * len(moved))).indices
    assert not rows(sent)[:, largest].any()


def test_neurotoxin_sends_nothing_where_honest_uploads_are_largest() -> None:
    on = on_schedule()
    made, memory = attack("neurotoxin+dba", on, masked="0.2"), {}
    for t in range(2):
        seen = view(on, t, moved=t * 1e-4)
        sent, memory = made.craft(seen, memory, Rng(t))
        kept = outside_largest(rows(seen.own).mean(0), 0.2).bool()
        assert not rows(sent)[:, ~kept].any()
        assert bool(rows(sent)[:, kept].any(0).float().mean() > 0.3)


def test_without_a_mask_neurotoxin_is_plain_training_of_the_same_weight() -> None:
    on = on_schedule()
    plain = attack("model-replacement+dba", on, alpha="1", scale="1").craft(view(on), {}, Rng(0))[0]
    torch.testing.assert_close(attack("neurotoxin+dba", on, masked="0").craft(view(on), {}, Rng(0))[0], plain)


def test_what_is_inside_must_change_samples_and_be_no_wrapper() -> None:
    for text, said in (
        ("neurotoxin+sign-flip", "changes none, allowed inside: an attack on samples"),
        ("model-replacement+ipm", "changes none"),
        ("model-replacement+neurotoxin+dba", "inside it is a wrapper, allowed inside: an attack on samples"),
        ("neurotoxin+window+dba", "other wrappers stand before it"),
    ):
        with pytest.raises(UserError, match=said):
            compose.make_poisoning(compose.parse_attack(text), knowledge())


def test_batches_stay_honest_so_that_the_protocol_s_uploads_are() -> None:
    batch = problem().batch(0, Rng(0))
    assert attack("model-replacement+dba", knowledge()).batch(batch, 0, 0, Rng(0)) is batch


# -- disguises -----------------------------------------------------------------------------------------


def like_honest(n: int, seed: int = 0) -> torch.Tensor:
    """Uploads [n, 4000] with pairwise cosines of about .2 and a length of about 3."""
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(n, 4000, generator=g) / 4000**0.5
    common = torch.zeros(4000)
    common[0] = 1
    return 3 * (0.2**0.5 * common + 0.8**0.5 * noise)


def test_a_disguised_upload_has_the_cosine_and_the_length_of_honest_ones() -> None:
    everyone = like_honest(30)
    own, others = everyone[:6], everyone[6:]
    backdoor = torch.zeros(4000)
    backdoor[7] = 40.0
    sent = held_to(backdoor + like_honest(6, 5) * 0.1, own)
    torch.testing.assert_close(sent.norm(dim=1), own.norm(dim=1).median().expand(6))
    honest = cosine_similarity(own[:, None], others[None], dim=2)
    found = cosine_similarity(sent[:, None], others[None], dim=2)
    assert float(found.mean()) == pytest.approx(float(honest.mean()), abs=0.04)
    assert float(cosine_similarity(sent, backdoor.expand_as(sent), dim=1).min()) > 0.5


@pytest.mark.parametrize("f", [2, 3, 6])
def test_decorrelated_colluders_differ_as_honest_clients_do(f: int) -> None:
    own = like_honest(f)
    backdoor = torch.zeros(f, 4000)
    backdoor[:, 7] = 40.0
    sent = decorrelated(backdoor, own, torch.randn(f, 4000, generator=torch.Generator().manual_seed(1)))
    torch.testing.assert_close(sent.norm(dim=1), own.norm(dim=1).median().expand(f))
    pairs = [float(cosine_similarity(sent[i], sent[j], dim=0)) for i, j in itertools.combinations(range(f), 2)]
    assert pairs == pytest.approx([typical_cosine(own)] * len(pairs), abs=0.05)
    assert float(cosine_similarity(sent.sum(0), backdoor[0], dim=0)) > 0.99


def test_the_part_of_a_colluder_is_the_same_in_all_rounds() -> None:
    on = on_schedule()
    made = attack("model-replacement+dba", on, disguise="decorrelated")
    first, memory = made.craft(view(on), {}, Rng(0))
    again, after = made.craft(view(on), memory, Rng(0))
    torch.testing.assert_close(rows(first), rows(again))
    assert torch.equal(after["sybils"], memory["sybils"])


def test_one_colluder_cannot_compare() -> None:
    for disguise in ("cosine", "decorrelated"):
        made = attack("model-replacement+dba", knowledge(corrupted=1), disguise=disguise)
        found = made.applies()
        assert found is not None
        assert "needs 2" in found.reason
    assert attack("model-replacement+dba", knowledge(corrupted=1)).applies() is None
