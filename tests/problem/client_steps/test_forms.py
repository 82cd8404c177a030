"""Every fast form against `fedarena.problem.local_training.upload`, one client alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedarena.contracts.defense import State
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import row, stack
from fedarena.defenses.dbcl.card import Options as DBCLOptions
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.problem import client_steps as forms
from fedarena.problem.client_steps import choose, loop, one_pass, side_by_side, stacked, vmapped
from fedarena.problem.client_steps.chain import chain_of
from fedarena.problem.local_training import upload
from fedarena.problem.loss import LOSSES, Criterion
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

WORK = [
    Schedule(batch_size=4, local_epochs=0),
    Schedule(batch_size=4, local_epochs=1, lr=0.1),
    Schedule(batch_size=4, local_epochs=2, lr=0.1, client_optimizer="momentum"),
    Schedule(batch_size=4, local_epochs=1, lr=0.01, client_optimizer="adam"),
]
NAMES = ["fedsgd", "sgd", "momentum", "adam"]


def federation(schedule, sizes, model="mlp", shape=(1, 6, 6), classes=5, dtype=torch.float64, seed=0, **options):
    """A task, initial parameters and one batch a client."""
    card = find("model", model)
    architecture = card.load()(card.parse(options))
    module = architecture.module(shape, Criterion(schedule.loss, classes).outputs)
    start = {n: p.to(dtype) for n, p in architecture.init(module, Rng(seed).torch()).items()}
    task = Task(module, input_shape=shape, n_classes=classes, sizes=tuple(sizes), schedule=schedule)
    b, g = schedule.batch_size, Rng(seed).child("data").torch()

    def batch(size):
        steps = schedule.steps(size)
        x = torch.rand(steps, b, *shape, generator=g, dtype=dtype)
        return Batch(x, torch.randint(0, classes, (steps, b), generator=g))

    return task, start, [batch(size) for size in sizes]


def distance(got, truth):
    """Largest relative error of a client's whole upload."""
    assert list(got) == list(truth)

    def norms(tensors):
        return torch.cat([t.flatten(1) for t in tensors.values()], 1).norm(dim=1)

    assert all(got[n].shape == truth[n].shape and got[n].dtype == truth[n].dtype for n in truth)
    return float((norms({n: got[n] - truth[n] for n in truth}) / norms(truth)).max())


def alone(task, loss, start, batches, metric=None):
    return stack([upload(loss, start, batch, task.schedule, metric) for batch in batches])


@pytest.fixture
def used(monkeypatch):
    """Names of the forms that ran, in order."""
    ran = []
    for form in (stacked, one_pass, side_by_side, loop):

        def spy(*args, form=form, run=form.train, **options):
            ran.append(form.__name__.rsplit(".", 1)[-1])
            return run(*args, **options)

        monkeypatch.setattr(form, "train", spy)
    return ran


@settings(max_examples=60, deadline=None)
@given(
    widths=st.lists(st.integers(1, 12), max_size=3),
    activation=st.sampled_from(["relu", "sigmoid", "tanh", "elu"]),
    schedule=st.sampled_from(WORK),
    sizes=st.lists(st.integers(4, 30), min_size=1, max_size=12),
    seed=st.integers(0, 10_000),
)
def test_stacked_equals_one_client_alone(widths, activation, schedule, sizes, seed):
    task, start, batches = federation(
        schedule, sizes, widths=",".join(map(str, widths)), activation=activation, seed=seed
    )
    assert chain_of(task.model, 3) is not None
    got = forms.uploads(task, task.loss, start, batches)
    assert distance(got, alone(task, task.loss, start, batches)) < 1e-9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", ["mlp", "lenet-dlg"])
@pytest.mark.parametrize("schedule", WORK, ids=NAMES)
def test_every_loss(loss, model, schedule):
    task, start, batches = federation(replace(schedule, loss=loss), [9, 12], model)
    assert distance(forms.uploads(task, task.loss, start, batches), alone(task, task.loss, start, batches)) < 1e-9


@settings(max_examples=40, deadline=None)
@given(
    widths=st.lists(st.integers(2, 12), min_size=1, max_size=3),
    law=st.sampled_from(["countsketch", "balanced"]),
    ratio=st.sampled_from([0.3, 0.5, 1.0]),
    schedule=st.sampled_from(WORK),
    sizes=st.lists(st.integers(4, 30), min_size=1, max_size=7),
    seed=st.integers(0, 10_000),
)
def test_stacked_equals_one_sketched_client_alone(widths, law, ratio, schedule, sizes, seed):
    task, start, batches = federation(schedule, sizes, widths=",".join(map(str, widths)), activation="tanh", seed=seed)
    defense = DBCL(DBCLOptions(hash=law, ratio=ratio), task)
    down = defense.broadcast(State(start), Rng(seed)).down
    nothing = [{}] * len(batches)
    got, _ = defense.clients(down, batches, nothing, nothing)
    truth = stack([defense.client(down, batch, {}, {})[0] for batch in batches])
    assert distance(got, truth) < 1e-9


@pytest.mark.parametrize("schedule", WORK, ids=NAMES)
@pytest.mark.parametrize("model", ["mlp", "lenet-dlg"])
@pytest.mark.parametrize("law", [None, "countsketch", "balanced"])
def test_single_precision_agrees_to_1e5_after_a_round(schedule, model, law, used):
    task, start, batches = federation(schedule, (40, 40, 24, 40, 7, 40, 40), model, dtype=torch.float32, seed=2)
    if law is None:
        got, truth = forms.uploads(task, task.loss, start, batches), alone(task, task.loss, start, batches)
    else:
        defense = DBCL(DBCLOptions(hash=law), task)
        down = defense.broadcast(State(start), Rng(0)).down
        nothing = [{}] * len(batches)
        got, _ = defense.clients(down, batches, nothing, nothing)
        truth = stack([defense.client(down, batch, {}, {})[0] for batch in batches])
    # Adam divides by the gradient's size: entries that are rounding noise move as far as any other.
    assert distance(got, truth) < (1e-4 if schedule.client_optimizer == "adam" else 1e-5)
    convolutional = {"loop"} if law else {"one_pass"} if schedule.fedsgd else {"side_by_side", "loop"}
    assert set(used) == ({"stacked"} if model == "mlp" else convolutional)


@pytest.mark.parametrize("schedule", WORK, ids=NAMES)
@pytest.mark.parametrize("model", ["cnn-mnist", "cnn-two-stage", "lenet-dlg"])
def test_convolutions_equal_one_client_alone(schedule, model, used):
    task, start, batches = federation(schedule, (8, 4), model, (1, 16, 16))
    truth = alone(task, task.loss, start, batches)
    assert distance(forms.uploads(task, task.loss, start, batches), truth) < 1e-9
    assert set(used) == {"one_pass" if schedule.fedsgd else "loop"}
    assert not any(p.any() for p in task.model.parameters())


@pytest.mark.parametrize("schedule", WORK, ids=NAMES)
def test_transformers_equal_one_client_alone(schedule, used):
    task, start, batches = federation(schedule, (8, 4), "vit", width="8", heads="2", layers="1")
    truth = alone(task, task.loss, start, batches)
    assert distance(forms.uploads(task, task.loss, start, batches), truth) < 1e-9
    assert set(used) == {"loop"}


DECAYED = [*WORK, replace(WORK[1], weight_decay=0.1)]


@pytest.mark.parametrize("schedule", DECAYED[1:], ids=[*NAMES[1:], "decay"])
@pytest.mark.parametrize("together", [1, 4, 9])
def test_small_networks_side_by_side(schedule, together, used, monkeypatch):
    task, start, batches = federation(schedule, [8, 12, *[8] * 8], "cnn", channels="2,3", widths="4")
    monkeypatch.setattr(side_by_side, "TOGETHER", together * sum(p.numel() for p in start.values()))
    got = forms.uploads(task, task.loss, start, batches)
    assert distance(got, alone(task, task.loss, start, batches)) < 1e-9
    assert used.count("side_by_side") == 1
    assert used.count("loop") == 1 + -(-9 // together)  # the client with twelve samples is alone


@pytest.mark.parametrize("schedule", DECAYED, ids=[*NAMES, "decay"])
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_clients_at_parameters_of_their_own(schedule, model, used):
    small = {"channels": "2,3", "widths": "4"} if model == "cnn" else {"widths": "7,5"}
    task, one, batches = federation(schedule, [8, 12, *[8] * 8], model, **small)
    g = Rng(5).torch()
    starts = {n: p + 0.3 * torch.randn(10, *p.shape, generator=g, dtype=p.dtype) for n, p in one.items()}
    seen = []

    def halve(some, ups):
        seen.append(len(next(iter(some.values()))))
        for name, up in ups.items():
            torch.sub(some[name], up, alpha=0.5, out=up)

    truth = stack([upload(task.loss, row(starts, i), b, schedule) for i, b in enumerate(batches)])
    assert distance(forms.uploads_apart(task, starts, batches), truth) < 1e-9
    got = forms.uploads_apart(task, starts, batches, then=halve)
    assert distance(got, {n: starts[n] - 0.5 * truth[n] for n in truth}) < 1e-9
    assert sum(seen) == 10
    decays = schedule.weight_decay and not schedule.fedsgd  # the lazy steps of the stacked form cannot decay weights
    assert ("side_by_side" in used) == (model == "cnn" or bool(decays))


@pytest.mark.parametrize("size", [1, 30, 100])
def test_one_pass_in_several_chunks(size, used):
    task, start, batches = federation(Schedule(batch_size=size), [size] * 7, "cnn", (3, 9, 8), mean="0.3")
    assert one_pass.CHUNK // 30 < 7
    got = forms.uploads(task, task.loss, start, batches)
    assert distance(got, alone(task, task.loss, start, batches)) < 1e-9
    assert used == ["one_pass"]


@pytest.mark.parametrize("schedule", WORK, ids=NAMES)
def test_loop_takes_any_loss_and_any_metric(schedule, used):
    task, start, batches = federation(schedule, (12, 20), widths="6")
    start["unused"] = torch.ones(2, dtype=torch.float64)
    metric = {"fc1.weight": torch.full((6, 1), 0.5, dtype=torch.float64), "out.bias": torch.tensor(2.0)}

    def loss(params, x, y):
        own = {n: p for n, p in params.items() if n != "unused"}
        return task.loss(own, x, y) + sum(p.square().sum() for p in own.values())

    got = forms.uploads(task, loss, start, batches, metric)
    truth = alone(task, loss, start, batches, metric)
    assert distance(got, truth) < 1e-9
    assert not got["unused"].any()
    assert set(used) == {"loop"}


def test_many_steps_span_several_blocks_of_the_first_layer():
    schedule = Schedule(batch_size=2, local_epochs=1, lr=0.2)
    task, start, batches = federation(schedule, [75] * 6, widths="12,5", activation="sigmoid")
    assert 37 > 3 * (12 // (2 * 2))
    assert distance(forms.uploads(task, task.loss, start, batches), alone(task, task.loss, start, batches)) < 1e-9


def test_soft_labels_take_the_fast_form_and_metrics_by_row_the_loop(used):
    task, start, batches = federation(WORK[1], (8, 8), widths="4")
    soft = [Batch(b.x, nn.functional.one_hot(b.y, 5).double()) for b in batches]
    assert distance(forms.uploads(task, task.loss, start, soft), alone(task, task.loss, start, batches)) < 1e-9
    by_row = {"fc1.weight": torch.rand(4, 36, dtype=torch.float64)}
    got = forms.uploads(task, task.loss, start, batches, by_row)
    assert distance(got, alone(task, task.loss, start, batches, by_row)) < 1e-9
    assert used == ["stacked", "loop"]


def test_one_client_is_the_same_alone_and_in_company():
    task, start, batches = federation(WORK[1], (20, 8, 20, 8, 20, 20, 20, 20), widths="7", dtype=torch.float32)
    together = forms.uploads(task, task.loss, start, batches)
    for i, batch in enumerate(batches):
        one = forms.uploads(task, task.loss, start, [batch])
        assert distance(one, {n: t[i : i + 1] for n, t in together.items()}) < 1e-6


class Twice(nn.Sequential):
    """A chain to look at, but not to run."""

    def forward(self, x):
        return super().forward(x) * 2


@pytest.mark.parametrize(
    ("model", "dims", "dense"),
    [
        (nn.Sequential(nn.Linear(3, 2)), 1, 1),
        (
            nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(3, 2), nn.ELU(0.3)), nn.Identity(), nn.Linear(2, 2)),
            3,
            2,
        ),
        (nn.Sequential(nn.Linear(3, 2)), 2, None),  # a dense layer on the last axis of many
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.ReLU()), 3, None),  # logits are not an activation's output
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.ReLU(), nn.Tanh(), nn.Linear(2, 2)), 3, None),
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.Dropout(), nn.Linear(2, 2)), 3, None),
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.LayerNorm(2), nn.Linear(2, 2)), 3, None),
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 2), nn.ELU(-1.0), nn.Linear(2, 2)), 3, None),
        (nn.Sequential(nn.Flatten(), *[nn.Linear(2, 2)] * 2), 3, None),  # one layer, twice
        (Twice(nn.Flatten(), nn.Linear(3, 2)), 3, None),
        (nn.Sequential(nn.Conv2d(1, 1, 1), nn.Flatten(), nn.Linear(3, 2)), 3, None),
        (nn.Sequential(nn.Flatten()), 1, None),
    ],
)
def test_what_counts_as_a_chain(model, dims, dense):
    chain = chain_of(model, dims)
    assert (len(chain) if chain else None) == dense


def test_a_chain_of_foreign_make_is_trained_by_its_structure(used):
    model = nn.Sequential(
        nn.Flatten(), nn.Sequential(nn.Linear(6, 4, bias=False), nn.ELU(0.3)), nn.Identity(), nn.Linear(4, 3)
    )
    g = Rng(0).torch()
    start = {n: torch.randn(p.shape, generator=g, dtype=torch.float64) for n, p in model.named_parameters()}
    task = Task(model, input_shape=(2, 3), n_classes=3, sizes=(20,), schedule=WORK[1])
    batch = Batch(torch.randn(5, 4, 2, 3, generator=g, dtype=torch.float64), torch.randint(0, 3, (5, 4), generator=g))
    got = forms.uploads(task, task.loss, start, [batch])
    assert distance(got, alone(task, task.loss, start, [batch])) < 1e-9
    assert used == ["stacked"]


# -- the general form ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["mlp", "lenet-dlg", "vit"])
@pytest.mark.parametrize("schedule", WORK, ids=NAMES)
def test_general_form_equals_one_client_alone(model, schedule, monkeypatch):
    sizes = (12, 20, 12, 12, 20, 12, 12, 12)
    small = {"width": "8", "layers": "1"} if model == "vit" else {}
    task, start, batches = federation(schedule, sizes, model, **small)
    chunks = []
    run = vmapped.run
    monkeypatch.setattr(vmapped, "run", lambda *args: chunks.append(len(args[2])) or run(*args))

    def client(down, batch, memory, noise):
        up = upload(task.loss, down, batch, schedule)
        seen = memory.get("seen", torch.zeros((), dtype=torch.float64)) + noise["n"].sum()
        return {n: t + noise["n"].mean() for n, t in up.items()}, {"seen": seen}

    g = Rng(1).torch()
    noises = [{"n": torch.randn(3, generator=g, dtype=torch.float64)} for _ in sizes]
    # A client that was never sampled before has no memory yet.
    memories = [{} if i % 3 else {"seen": torch.tensor(float(i), dtype=torch.float64)} for i in range(len(sizes))]
    ups, kept = forms.run_general(client, task, start, batches, memories, noises)
    done = [client(start, *one) for one in zip(batches, memories, noises, strict=True)]
    assert distance(ups, stack([up for up, _ in done])) < 1e-9
    assert [float(m["seen"]) for m in kept] == pytest.approx([float(m["seen"]) for _, m in done])
    groups = 2 if schedule.fedsgd else 3  # memory or none; for local training also the number of steps
    assert len(chunks) == (0 if model == "lenet-dlg" else groups)


def test_general_form_refuses_hidden_randomness():
    task, start, batches = federation(WORK[0], (4, 4), widths="3")

    def client(down, batch, memory, noise):
        return {n: t + torch.randn(t.shape) for n, t in down.items()}, memory

    with pytest.raises(RuntimeError, match="random"):
        forms.run_general(client, task, start, batches, [{}, {}], [{}, {}])


def test_groups_keep_the_order_of_first_appearance():
    assert choose._groups(["b", "a", "b", "c", "a"]) == [[0, 2], [1, 4], [3]]
