"""Dropout by masks from outside, and the bucketing paper's network, against PyTorch's own layers."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, row
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.one_round import with_masks
from fedarena.models.drawn import draw_masks, has_drawn
from fedarena.models.dropout import Dropout
from fedarena.models.module_check import require_pure
from fedarena.problem.problem import Problem, build
from fedarena.problem.spec import usual_problem
from fedarena.problem.task import Batch

MODEL = "cnn-bucketing"


def module(shape: tuple[int, ...] = (1, 28, 28), **options: str) -> nn.Module:
    card = registry.find("model", MODEL)
    made: nn.Module = card.load()(card.parse(options)).module(shape, 10)
    return made


def problem(corrupted: int = 0, model: dict[str, str] | None = None, **training: Any) -> Problem:
    given = {"model": MODEL, "clients": "3", "corrupted": str(corrupted)}
    usual = {"rounds": "2", "batch_size": "4", "lr": "0.1", **{k: str(v) for k, v in training.items()}}
    return build(usual_problem(given, {"training": usual, "model": model or {}}), 0)


def play(p: Problem, seed: int = 0, defense: str = "fedavg", **kwargs: Any) -> federation.Run:
    made = compose.make_defense(compose.parse_defense(defense), p.task)
    return federation.run(made, p, Rng(seed).child("federation"), watch=range(9), **kwargs)


def by_hand(params: Tensors, x: Tensor, masks: Tensors) -> Tensor:
    """The network of the code, with products in place of dropout."""
    h = F.conv2d((x - 0.1307) / 0.3081, params["conv1.weight"], params["conv1.bias"]).relu()
    h = F.max_pool2d(F.conv2d(h, params["conv2.weight"], params["conv2.bias"]), 2)
    h = (h * masks["drop1.mask"]).flatten(1)
    h = F.linear(h, params["fc1.weight"], params["fc1.bias"]).relu() * masks["drop2.mask"]
    return F.linear(h, params["out.weight"], params["out.bias"])


def upload_by_hand(p: Problem, params: Tensors, batch: Batch) -> Tensor:
    """FedSGD's gradient, or start − end of plain steps, with the batch's masks."""
    start = {name: t.double() for name, t in params.items()}
    now, fedsgd = dict(start), p.task.schedule.fedsgd
    for t in range(len(batch.x)):
        leaves = {name: w.clone().requires_grad_() for name, w in now.items()}
        masks = {name: m.double() for name, m in batch.masks_of(t).items()}
        loss = F.cross_entropy(by_hand(leaves, batch.x[t].double(), masks), batch.y[t])
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        rate = 1.0 if fedsgd else p.task.schedule.lr
        now = {name: w - rate * g for (name, w), g in zip(now.items(), gradients, strict=True)}
    return flatten(start) - flatten(now)


def test_the_count_of_the_card() -> None:
    total = sum(p.numel() for p in module().parameters())
    assert total == 1_199_882
    assert registry.find("model", MODEL).check.startswith(f"{total:,} parameters")


@pytest.mark.parametrize("local_epochs", [0, 1])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
def test_uploads_are_those_of_the_network_by_hand(local_epochs: int, optimizer: str) -> None:
    """The fast form and one client alone, with the masks that the harness drew."""
    p = problem(local_epochs=local_epochs, local_samples=8 if local_epochs else "none", client_optimizer=optimizer)
    defense = FedAvg(compose.parse_defense("fedavg").options, p.task)
    first = play(p).rounds[0]
    for i, batch in enumerate(first.batches):
        assert {name: m.shape for name, m in batch.masks.items()} == {
            "drop1.mask": (*batch.y.shape, 64, 1, 1),
            "drop2.mask": (*batch.y.shape, 128),
        }
        up, alone = flatten(row(first.ups, i)), flatten(defense.client(first.down, batch, {}, {})[0])
        torch.testing.assert_close(up, alone, rtol=1e-4, atol=1e-6)
        if optimizer == "sgd" or not local_epochs:  # a first momentum is the gradient
            torch.testing.assert_close(up.double(), upload_by_hand(p, first.params, batch), rtol=1e-3, atol=1e-6)
        without = flatten(defense.client(first.down, replace(batch, masks={}), {}, {})[0])
        assert (up - without).norm() > 0.1 * up.norm()


def test_clients_and_rounds_have_masks_of_their_own_and_runs_repeat() -> None:
    p = problem()
    one, same, other = (play(p, seed) for seed in (0, 0, 1))
    assert torch.equal(flatten(one.params), flatten(same.params))
    assert not torch.equal(flatten(one.params), flatten(other.params))
    drawn = [flatten(b.masks) for r in one.rounds for b in r.batches]
    assert len({tuple(m.tolist()) for m in drawn}) == len(drawn) == 6


def test_a_prescribed_batch_keeps_its_masks() -> None:
    """The batches are those that clients would draw, so that masks alone differ."""
    p, rng = problem(), Rng(0).child("federation")

    def same_masks(t: int, client: int) -> Batch:
        return with_masks(p, p.batch(client, rng.child("batch", t, client)), Rng(7))

    free, prescribed = play(p), play(p, draw=same_masks)
    pairs = [
        (a, b)
        for r, s in zip(free.rounds, prescribed.rounds, strict=True)
        for a, b in zip(r.batches, s.batches, strict=True)
    ]
    assert all(torch.equal(a.x, b.x) for a, b in pairs)
    expected = flatten(pairs[0][1].masks)
    assert all(torch.equal(flatten(b.masks), expected) for _, b in pairs)
    assert not torch.equal(flatten(free.params), flatten(prescribed.params))


def test_evaluation_drops_nothing() -> None:
    p = problem()
    ones = {"drop1.mask": torch.ones(()), "drop2.mask": torch.ones(())}
    x = p.x_test[:50].float() / p.scale
    torch.testing.assert_close(p.predictions(p.init)[:50], by_hand(p.init, x, ones), rtol=1e-4, atol=1e-5)
    assert torch.equal(p.predictions(p.init), p.predictions(p.init))


@pytest.mark.parametrize(("rate", "units"), [(0.25, (64, 1, 1)), (0.5, (128,)), (0.9, (3,))])
def test_masks_have_torch_s_law(rate: float, units: tuple[int, ...]) -> None:
    """0 with probability `rate`, else 1/(1 − rate): torch's own layers give the same two values as often."""
    masks = Dropout(rate, units).draw((4000,), Rng(0).torch())
    assert masks.shape == (4000, *units)
    assert masks.unique().tolist() == pytest.approx([0.0, 1 / (1 - rate)])
    layer = nn.Dropout2d(rate) if len(units) == 3 else nn.Dropout(rate)
    torch.manual_seed(0)
    theirs = layer(torch.ones(4000, units[0], *(2,) * (len(units) - 1)))
    assert theirs.unique().tolist() == pytest.approx(masks.unique().tolist())
    spread = 5 * (rate * (1 - rate) / masks.numel()) ** 0.5
    assert abs(float((masks == 0).float().mean()) - rate) < spread
    if len(units) == 3:  # a channel is dropped as a whole
        assert (theirs == theirs[..., :1, :1]).all()


def test_the_module_is_pure_and_passes_masks_under_vmap() -> None:
    made = module((1, 8, 8))
    require_pure(made, (1, 8, 8))
    masks = draw_masks(made, (5, 2), Rng(3))
    x = torch.rand(5, 2, 1, 8, 8, generator=Rng(4).torch())
    params = {name: torch.randn(p.shape, generator=Rng(5).torch()) * 0.1 for name, p in made.named_parameters()}
    together = torch.func.vmap(lambda x, m: functional_call(made, {**params, **m}, (x,)))(x, masks)
    apart = [functional_call(made, {**params, **row(masks, i)}, (x[i],)) for i in range(5)]
    torch.testing.assert_close(together, torch.stack(apart), rtol=1e-4, atol=1e-5)


def test_without_rates_there_is_no_layer_of_dropout() -> None:
    plain = module(channel_dropout="0", dropout="0")
    assert not has_drawn(plain)
    assert has_drawn(module(dropout="0"))
    assert not problem(model={"channel_dropout": "0", "dropout": "0"}).task.model.state_dict().keys() & {"drop1.mask"}


def test_dense_networks_with_dropout_train_in_the_general_form() -> None:
    """A network without convolutions goes through vmap where a protocol has no faster form."""
    layers = OrderedDict(flatten=nn.Flatten(), fc1=nn.Linear(64, 6), drop=Dropout(0.5, (6,)), out=nn.Linear(6, 10))
    p = build(usual_problem({"model": "mlp", "clients": "3"}, {"training": {"batch_size": "4"}}), 0)
    task = replace(p.task, model=nn.Sequential(layers))
    params = {name: t.detach().clone() for name, t in task.model.named_parameters()}

    class General(FedAvg):
        clients = FedAvg.__mro__[1].clients  # type: ignore[attr-defined]

    p = replace(p, task=task, init=params)
    batches = [with_masks(p, p.batch(c, Rng(c)), Rng(c)) for c in range(3)]
    general, fast = (kind(compose.parse_defense("fedavg").options, task) for kind in (General, FedAvg))
    nothing: list[Tensors] = [{}] * 3
    ups, _ = general.clients(params, batches, nothing, nothing)
    same, _ = fast.clients(params, batches, nothing, nothing)
    for i, batch in enumerate(batches):
        alone = fast.client(params, batch, {}, {})[0]
        for name, t in alone.items():
            torch.testing.assert_close(ups[name][i], t)
            torch.testing.assert_close(same[name][i], t)


def test_corrupted_clients_that_follow_the_protocol_drop_units_too() -> None:
    p = problem(corrupted=1)
    defense = compose.make_defense(compose.parse_defense("fedavg"), p.task)
    attack = compose.make_poisoning(compose.parse_attack("label-flip"), knowledge_of(p, defense, "own"))
    (bad,) = p.corrupted
    first = play(p, adversary=Adversary(attack, frozenset(p.corrupted), Rng(9))).rounds[0]
    batch = first.batches[first.participants.index(bad)]
    honest = play(p).rounds[0].batches[first.participants.index(bad)]
    assert not torch.equal(batch.y, honest.y)
    assert torch.equal(flatten(batch.masks), flatten(honest.masks))


TAKE_IT = (
    "ats",
    "d-sgd",
    "dbcl-peers",
    "dp-fedavg",
    "dp-ftrl",
    "fedavg",
    "fetchsgd",
    "gradient-noise",
    "pruning",
    "qsgd",
    "sign-sgd",
)


def test_protocols_without_plain_steps_refuse_dropout_in_one_line() -> None:
    p = problem(loss="mse", batch_size=20)
    for name in registry.registries()["defense"].names():
        card = registry.find("defense", name)
        if name in TAKE_IT:
            card.load()(card.parse({}), p.task)
            continue
        if name == "precode":  # it asks for a bottleneck
            continue
        with pytest.raises(
            UserError, match="option 'model' has dropout or a bottleneck, allowed with this defense: a model"
        ) as refused:
            card.load()(card.parse({}), p.task)
        assert "\n" not in str(refused.value)


def test_fetchsgd_sketches_the_gradient_with_masks() -> None:
    p = problem(rounds=1)
    (first,) = play(p, defense="fetchsgd").rounds
    made = compose.make_defense(compose.parse_defense("fetchsgd"), p.task)
    for i, batch in enumerate(first.batches):
        alone = made.client(first.down, batch, {}, {})[0]
        for name, t in alone.items():
            torch.testing.assert_close(first.ups[name][i], t, rtol=1e-4, atol=1e-5)
