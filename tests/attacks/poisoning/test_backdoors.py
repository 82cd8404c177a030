"""Backdoors by poisoned samples, by hand: the blended pattern, the four parts of DBA, the tail of edge-case."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.poisoning import knowledge, make, problem

from fedarena.attacks.poisoning.a3fl import A3FL
from fedarena.attacks.poisoning.dba import DBA
from fedarena.attacks.poisoning.edge_case import EdgeCase
from fedarena.contracts.poisoning import AttackerKnowledge, Samples
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.federation.triggered_inputs import success_rate, triggered_inputs, why_not_judged
from fedarena.problem.task import Batch

BATCH = Batch(torch.zeros(4, 500, 1, 8, 8), torch.full((4, 500), 5))


def on_images(side: int, members: tuple[int, ...] = (1, 3, 4, 8, 9)) -> AttackerKnowledge:
    """The small federation's colluders on images of another size."""
    on = knowledge()
    return replace(on, task=replace(on.task, input_shape=(1, side, side)), members=members)


# -- blended -------------------------------------------------------------------------------------------


def test_the_pattern_is_mixed_into_every_pixel_and_is_the_same_for_all() -> None:
    attack = make("blended", knowledge(), blend=0.25, share=1.0, target=4)
    dark, bright = (attack.trigger(torch.full((3, 1, 8, 8), v)) for v in (0.0, 1.0))
    assert dark is not None
    assert bright is not None
    pattern = dark[0] / 0.25
    torch.testing.assert_close(bright[0], 0.75 + 0.25 * pattern)
    assert float(pattern.min()) >= 0
    assert 0.9 < float(pattern.max()) <= 1
    assert len(pattern[0].unique()) == 64
    assert dark[1] == 4
    for client in (0, 7):
        poisoned = attack.batch(BATCH, 3, client, Rng(client))
        assert torch.equal(poisoned.x, dark[0][0].expand_as(poisoned.x))
        assert bool((poisoned.y == 4).all())


def test_all_colluders_have_the_same_pattern_and_a_seed_its_own() -> None:
    x = torch.zeros(1, 1, 8, 8)
    a, b, c = (make("blended", knowledge(), pattern=seed).trigger(x) for seed in (3, 3, 4))
    assert a is not None
    assert b is not None
    assert c is not None
    assert torch.equal(a[0], b[0])
    assert not torch.equal(a[0], c[0])


# -- DBA -----------------------------------------------------------------------------------------------

AUTHORS = (
    {(0, 0), (0, 1), (0, 2), (0, 3)},
    {(0, 6), (0, 7), (0, 8), (0, 9)},
    {(3, 0), (3, 1), (3, 2), (3, 3)},
    {(3, 6), (3, 7), (3, 8), (3, 9)},
)
"""`0_poison_pattern` to `3_poison_pattern` of the authors' utils/mnist_params.yaml."""


def lit(x: torch.Tensor) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in (x == 1).nonzero()}


def test_the_parts_are_those_of_the_authors_and_the_test_shows_all_four() -> None:
    attack = make("dba", on_images(28), share=1.0)
    batch = Batch(torch.zeros(1, 2, 1, 28, 28), torch.zeros(1, 2, dtype=torch.int64))
    for place, client in enumerate((1, 3, 4, 8, 9)):
        poisoned = attack.batch(batch, 0, client, Rng(0))
        assert lit(poisoned.x[0, 1, 0]) == AUTHORS[place % 4]
        assert poisoned.y.tolist() == [[2, 2]]
    whole = attack.trigger(batch.x[0])
    assert whole is not None
    assert lit(whole[0][0, 0]) == set.union(*AUTHORS)


def test_few_colluders_share_out_all_four_parts() -> None:
    for f in (1, 2, 3):
        attack = make("dba", on_images(28, tuple(range(f))))
        assert isinstance(attack, DBA)
        parts = [set(attack.parts_of(client)) for client in range(f)]
        assert set.union(*parts) == {0, 1, 2, 3}
        assert sum(map(len, parts)) == 4


def test_a_part_is_learned_with_the_probability_of_share() -> None:
    poisoned = make("dba", knowledge(), share=0.3).batch(BATCH, 0, 1, Rng(0))
    marked = poisoned.x.flatten(2).sum(2) > 0
    assert torch.equal(marked, poisoned.y == 2)
    assert float(marked.float().mean()) == pytest.approx(0.3, abs=5 * (0.21 / 2000) ** 0.5)


@pytest.mark.parametrize(
    ("options", "size"), [({"length": 4}, "4×10"), ({"gap": 7}, "9×11"), ({"length": 1, "gap": 7}, "9×9")]
)
def test_a_trigger_larger_than_the_image_is_refused(options: dict[str, int], size: str) -> None:
    with pytest.raises(UserError, match=f"trigger of {size} pixels, allowed: at most 8×8"):
        make("dba", knowledge(), **options)
    make("dba", knowledge(), length=3, gap=2)  # 4×8


@pytest.mark.parametrize("name", ["blended", "dba", "a3fl"])
def test_what_has_no_image_or_no_such_class_is_refused(name: str) -> None:
    on = knowledge()
    found = make(name, replace(on, task=replace(on.task, input_shape=(64,)))).applies()
    assert found is not None
    assert "no images" in found.reason
    with pytest.raises(UserError, match=f"attack {name}: option 'target' is 10, allowed: 0 to 9"):
        make(name, on, target=10)


# -- A3FL ----------------------------------------------------------------------------------------------


def held(rows: int = 60) -> AttackerKnowledge:
    on = knowledge()
    return replace(on, data=Samples(on.data.x[:rows], on.data.y[:rows], on.data.scale))


def made_patch(on: AttackerKnowledge, **options: float) -> torch.Tensor:
    attack = make("a3fl", on, **options)
    assert isinstance(attack, A3FL)
    return attack.patch


def test_the_patch_stands_where_the_authors_put_it() -> None:
    attack = make("a3fl", replace(on_images(32), data=knowledge().data), steps=1)
    assert isinstance(attack, A3FL)
    assert (attack.size, attack.offset) == (5, 2)
    attack.patch = torch.ones(1, 5, 5)
    found = attack.trigger(torch.zeros(1, 1, 32, 32))
    assert found is not None
    assert lit(found[0][0, 0]) == {(i, j) for i in range(2, 7) for j in range(2, 7)}


def test_steps_go_down_the_loss_of_both_models_by_hand() -> None:
    """One step with λ = 3, and no training of the first model: the sign of autograd's gradient of L."""
    on = held()
    x, y = on.data.draw(512, Rng(0).child("a3fl").child("samples"))
    target = torch.full_like(y, 2)
    attack = make("a3fl", on, steps=1, alone=0, lam=3.0, unlearning=1, alone_lr=0.3, step=0.1)
    assert isinstance(attack, A3FL)

    def marked(patch: torch.Tensor) -> torch.Tensor:
        out = x.clone()
        out[:, :, :2, :2] = patch
        return out

    half = torch.full((1, 2, 2), 0.5, requires_grad=True)
    plain = {name: p.clone().requires_grad_() for name, p in on.init.items()}
    before = torch.autograd.grad(on.task.loss(plain, marked(half.detach()), y), list(plain.values()))
    adverse = {n: (p - 0.3 * g).detach().requires_grad_() for (n, p), g in zip(plain.items(), before, strict=True)}
    after = torch.autograd.grad(on.task.loss(adverse, marked(half.detach()), y), list(adverse.values()))
    cosine = torch.nn.functional.cosine_similarity(*(torch.cat([g.flatten() for g in gs]) for gs in (after, before)), 0)
    loss = on.task.loss(plain, marked(half), target) + 3 * cosine * on.task.loss(adverse, marked(half), target)
    (slope,) = torch.autograd.grad(loss, half)
    torch.testing.assert_close(attack.patch, (half - 0.1 * slope.sign()).detach())


def test_the_patch_turns_the_colluders_own_model_and_is_everybody_s() -> None:
    """After 100 steps of .05 its loss is lower than that of the grey patch, and a second instance finds the same."""
    on = held()
    attack = make("a3fl", on, steps=100, step=0.05, alone=100, alone_lr=0.3)
    assert isinstance(attack, A3FL)
    x, y = on.data.inputs(torch.arange(60)), on.data.y
    model = attack._trained(on.init, x, y, 100, Rng(0).child("a3fl").child("alone"))
    target = torch.full_like(y, 2)
    grey, made = (on.task.loss(model, attack._with(x, p), target) for p in (torch.full((1, 2, 2), 0.5), attack.patch))
    assert float(made) < float(grey) - 0.1
    assert torch.equal(attack.patch, made_patch(on, steps=100, step=0.05, alone=100, alone_lr=0.3))
    assert 0 <= float(attack.patch.min()) < float(attack.patch.max()) <= 1


@pytest.mark.parametrize(("options", "allowed"), [({"size": 8}, "1 to 7"), ({"size": 20}, "1 to 7")])
def test_a_patch_that_covers_the_image_is_refused(options: dict[str, int], allowed: str) -> None:
    with pytest.raises(UserError, match=f"attack a3fl: option 'size' is {options['size']}, allowed: {allowed}"):
        make("a3fl", knowledge(), **options)


# -- edge-case -----------------------------------------------------------------------------------------


def on_a_line(values: list[float], classes: list[int]) -> EdgeCase:
    """Colluders whose images are one bright number each; class 7 becomes 1."""
    x = torch.zeros(len(values), 1, 8, 8)
    x[:, 0, 0, 0] = torch.tensor(values)
    made = make("edge-case", knowledge(data=Samples(x, torch.tensor(classes), 1.0)), tail=0.25, share=1.0)
    assert isinstance(made, EdgeCase)
    return made


def test_the_tail_is_the_farthest_quarter_of_the_class() -> None:
    """Class 7 has .1, .2, .3, .4 and 1.0: mean .4, distances .3, .2, .1, 0 and .6; their quantile of .75 is .3."""
    attack = on_a_line([0.1, 0.2, 0.3, 0.4, 1.0, 0.9], [7, 7, 7, 7, 7, 2])
    assert attack.radius == pytest.approx(0.3)
    assert attack.rare[:, 0, 0, 0].tolist() == pytest.approx([0.1, 1.0])
    x = torch.zeros(4, 1, 8, 8)
    x[:, 0, 0, 0] = torch.tensor([0.0, 0.35, 0.8, 0.8])
    assert attack.meant_for(x, torch.tensor([7, 7, 7, 3])).tolist() == [True, False, True, False]
    found = attack.trigger(x)
    assert found is not None
    assert torch.equal(found[0], x)
    assert found[1] == 1
    poisoned = attack.batch(BATCH, 0, 1, Rng(0))
    assert bool((poisoned.y == 1).all())
    share = (poisoned.x[..., 0, 0, 0] == 1.0).float().mean()
    assert float(share) == pytest.approx(0.5, abs=5 * (0.25 / 2000) ** 0.5)


def test_success_is_counted_on_the_held_out_tail_alone() -> None:
    p, attack = problem(), make("edge-case", knowledge(), source=3, target=8, tail=0.3)
    rate = success_rate(triggered_inputs(attack, p), p, [p.init])
    tail = attack.meant_for(p.x_test.float() / p.scale, p.y_test)
    assert 0 < int(tail.sum()) < int((p.y_test == 3).sum())
    predicted = p.task.outputs(p.init, p.x_test[tail].float() / p.scale).argmax(1)
    assert rate["attack_success_rate"] == pytest.approx(float((predicted == 8).float().mean()))


def test_without_a_sample_of_the_class_there_is_no_attack_and_no_result() -> None:
    attack = on_a_line([0.5, 0.6], [2, 3])
    found = attack.applies()
    assert found is not None
    assert found.reason == "the corrupted clients hold no sample of class 7"
    assert success_rate(triggered_inputs(attack, problem()), problem(), [problem().init]) == {}
    judged = why_not_judged(triggered_inputs(attack, problem()))
    assert judged is not None
    assert "none of the held-out samples" in judged.reason


def test_classes_that_cannot_be_are_refused() -> None:
    for options, said in (
        ({"source": 10}, "option 'source' is 10, allowed: 0 to 9"),
        ({"target": 12}, "option 'target' is 12, allowed: 0 to 9"),
        ({"source": 4, "target": 4}, "'source' and 'target' are both 4, allowed: two classes"),
    ):
        with pytest.raises(UserError, match=said):
            make("edge-case", knowledge(), **options)
