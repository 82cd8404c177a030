"""Several local epochs in unknown orders: what is played, how epochs are tied and matched, and that it helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest
import torch
import torch.nn.functional as F
from helpers.digit_views import digits
from torch import Tensor

from fedarena.attacks.reconstruction.cards.inverting_gradients import Options as InvertingOptions
from fedarena.attacks.reconstruction.cards.multi_step import Options
from fedarena.attacks.reconstruction.helpers.local_epochs import EveryVisit, every_visit
from fedarena.attacks.reconstruction.inverting_gradients import InvertingGradients
from fedarena.attacks.reconstruction.multi_step import MultiStep, apart, averaged, features
from fedarena.contracts.inference import Guess, Inference
from fedarena.contracts.kept_entries import KeptEntries
from fedarena.contracts.observation import Observation
from fedarena.contracts.plain_readings import per_step
from fedarena.contracts.simulators import LocalUpdate, PlainGradient, ThroughProtocol
from fedarena.contracts.view import View
from fedarena.core.options import NoOptions
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.models.cards.mlp import Options as MlpOptions
from fedarena.models.mlp import MLP
from fedarena.problem.schedule import Schedule
from fedarena.problem.task import Batch, Task

CLASSES, SAMPLES, SIZE, EPOCHS = 10, 4, 2, 4
SCHEDULE = Schedule(batch_size=SIZE, local_epochs=EPOCHS, local_samples=SAMPLES, lr=0.5)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def federation(schedule: Schedule = SCHEDULE) -> tuple[FedAvg, Tensors]:
    architecture = MLP(MlpOptions(widths=(40,)))
    model = architecture.module((1, 8, 8), CLASSES)
    task = Task(model, input_shape=(1, 8, 8), n_classes=CLASSES, sizes=(SAMPLES,), schedule=schedule)
    return FedAvg(NoOptions(), task), architecture.init(model, Rng(0).torch())


def visits(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Samples, labels, and the order of all epochs."""
    x, y = digits()
    g = Rng(seed).torch()
    chosen = torch.randperm(len(x), generator=g)[:SAMPLES]
    return x[chosen], y[chosen], torch.cat([torch.randperm(SAMPLES, generator=g) for _ in range(EPOCHS)])


def observed(seed: int, form: str) -> tuple[Observation, Tensor, Tensor]:
    """An update of a client that visits its samples in another order in every epoch."""
    defense, params = federation()
    x, y, order = visits(seed)
    soft = F.one_hot(y, CLASSES).float()
    up, _ = defense.client(params, in_steps(x[order], soft[order]), {}, {})
    paper = form == "paper"
    seen = Observation(
        round=0,
        clients=(0,),
        images=SAMPLES,
        target=per_step(defense, up, (0,)) if paper else up,
        simulate=PlainGradient(defense.task, params, (0,)) if paper else ThroughProtocol(defense, params, (0,)),
        output_bias=defense.task.output_bias,
        labels=y,
    )
    return seen, x, soft[order]


def in_steps(x: Tensor, y: Tensor) -> Batch:
    return Batch(x.reshape(-1, SIZE, *x.shape[1:]), y.reshape(-1, SIZE, CLASSES))


# -- what is played ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_playing_the_true_visits_gives_what_was_seen(form: str) -> None:
    seen, x, soft = observed(0, form)
    every = every_visit(seen)
    assert every is not None
    assert every.epochs == EPOCHS
    _, _, order = visits(0)
    played = every(x[order], soft)
    for name, t in seen.target.items():
        torch.testing.assert_close(played[name], t, rtol=1e-4, atol=1e-6)


def test_the_same_order_in_all_epochs_is_the_usual_simulator() -> None:
    defense, params = federation()
    x, y, _ = visits(0)
    soft = F.one_hot(y, CLASSES).float()
    for once in (ThroughProtocol(defense, params, (0,)), LocalUpdate(defense.task, params)):
        played = EveryVisit(once, EPOCHS)(x.repeat(EPOCHS, 1, 1, 1), soft.repeat(EPOCHS, 1))
        for name, t in once(x, soft).items():
            torch.testing.assert_close(played[name], t)


@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_entries_left_out_are_left_out_of_every_visit(form: str) -> None:
    whole, x, soft = observed(0, form)
    generator = Rng(7).torch()
    kept = {name: (torch.rand(t.shape, generator=generator) < 0.5).float() for name, t in whole.target.items()}
    target = {name: t * kept[name] for name, t in whole.target.items()}
    seen = replace(whole, target=target, simulate=KeptEntries(whole.simulate, kept))
    every = every_visit(seen)
    assert every is not None
    for name, t in every(x[visits(0)[2]], soft).items():
        assert torch.allclose(t, target[name], atol=1e-6)
    view = View(
        Threat("server", "adaptive"), reading="", input_shape=(1, 8, 8), n_classes=CLASSES, observations=(seen,)
    )
    found = MultiStep(Options(iterations=2, labels="given"))(view, Rng(0))
    other = InvertingGradients(InvertingOptions(iterations=2, labels="given"))(view, Rng(0))
    assert not torch.equal(found[0].images, other[0].images)  # type: ignore[index]


@pytest.mark.parametrize(
    "changed", [{"local_epochs": 0, "local_samples": None}, {"local_epochs": 1}, {"batch_size": SAMPLES}]
)
def test_where_no_order_matters_it_is_inverting_gradients(changed: dict[str, int | None]) -> None:
    seen, _, _ = observed(0, "adaptive")
    defense, params = federation(replace(SCHEDULE, **changed))  # type: ignore[arg-type]
    n = SAMPLES if defense.task.schedule.local_epochs else defense.task.schedule.batch_size
    assert seen.labels is not None
    once = replace(seen, simulate=ThroughProtocol(defense, params, (0,)), images=n, labels=seen.labels[:n])
    assert every_visit(once) is None
    ours, theirs = (guess(kind, once, 3) for kind in (MultiStep, InvertingGradients))
    assert ours[0].images.shape == theirs[0].images.shape == (once.images, 1, 8, 8)


def test_several_clients_are_not_played_visit_by_visit() -> None:
    seen, _, _ = observed(0, "adaptive")
    assert every_visit(replace(seen, clients=(0, 1))) is None


# -- how epochs are tied and matched -----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 6, 5), (7,)])
def test_the_prior_does_not_depend_on_the_order_within_an_epoch(shape: tuple[int, ...]) -> None:
    g = Rng(0).torch()
    x = torch.rand((3, 4, *shape), generator=g)
    weight = torch.randn((5, 2, 3, 3) if len(shape) == 3 else (5, 7), generator=g)

    def prior(x: Tensor) -> float:
        return float(apart(features(x.flatten(0, 1), weight), 3))

    same = torch.stack([x[0, torch.randperm(4, generator=g)] for _ in range(3)])
    assert prior(same) == pytest.approx(0, abs=1e-12)
    shuffled = torch.stack([one[torch.randperm(4, generator=g)] for one in x])
    assert prior(shuffled) == pytest.approx(prior(x), rel=1e-5)
    assert prior(x) > 1e-4


def test_epochs_are_matched_as_trying_all_orders_would() -> None:
    g = Rng(1).torch()
    x, y = torch.rand((3, 4, 1, 2, 2), generator=g), torch.tensor([0, 0, 1, 0]).expand(3, 4)
    found, labels = averaged(x, y)

    def best(reference: int, epoch: int) -> tuple[float, Tensor]:
        orders = [torch.tensor(order) for order in permutations(range(4)) if order[2] == 2]
        return min(((float((x[reference] - x[epoch][o]).square().sum()), o) for o in orders), key=lambda pair: pair[0])

    totals = [sum(best(reference, epoch)[0] for epoch in range(3)) for reference in range(3)]
    reference = totals.index(min(totals))
    expected = torch.stack([x[epoch][best(reference, epoch)[1]] for epoch in range(3)]).mean(0)
    torch.testing.assert_close(found, expected)
    assert labels.tolist() == [0, 0, 1, 0]


def test_shuffled_copies_are_averaged_to_the_samples() -> None:
    g = Rng(2).torch()
    x, y = torch.rand((5, 1, 3, 3), generator=g), torch.arange(5)
    orders = [torch.randperm(5, generator=g) for _ in range(4)]
    noise = 0.01 * torch.randn((4, 5, 1, 3, 3), generator=g)
    found, labels = averaged(torch.stack([x[o] for o in orders]) + noise, torch.stack([y[o] for o in orders]))
    torch.testing.assert_close(found, x[labels], rtol=0, atol=0.03)


# -- that it helps -----------------------------------------------------------------------------------


def guess(kind: Callable[[InvertingOptions], Inference], seen: Observation, iterations: int) -> Guess:
    options = Options if kind is MultiStep else InvertingOptions
    view = View(
        Threat("server", "adaptive"),
        reading="upload",
        input_shape=(1, 8, 8),
        n_classes=CLASSES,
        observations=(seen,),
        output_layer="out",
    )
    found = kind(options(iterations=iterations, labels="given"))(view, Rng(0))
    assert not isinstance(found, NotApplicable), found.reason
    return found  # type: ignore[return-value]


def error(found: Guess, x: Tensor) -> float:
    """The mean squared error of the best assignment."""
    images = found[0].images.clamp(0, 1)
    return min(float((images[list(order)] - x).square().mean()) for order in permutations(range(SAMPLES)))


def test_it_comes_closer_than_the_sum_of_gradients() -> None:
    """Paired, over three clients; what the paper claims, at small size."""
    ours, by_sum = [], []
    for seed in range(3):
        (seen, x, _), (summed, _, _) = observed(seed, "adaptive"), observed(seed, "paper")
        ours.append(error(guess(MultiStep, seen, 60), x))
        by_sum.append(error(guess(InvertingGradients, summed, 60), x))
    assert all(a < b for a, b in zip(ours, by_sum, strict=True)), (ours, by_sum)
    assert sum(ours) < 0.95 * sum(by_sum)
