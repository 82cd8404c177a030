"""Property inference: what classifiers are shown, what they are trained on, and which one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from fedarena.attacks.property.helpers.own_batches import OwnBatches
from fedarena.attacks.property.helpers.round_ridge import STRENGTHS, ridge_scores
from fedarena.attacks.property.helpers.update_features import Slopes, features
from fedarena.attacks.property.property_inference import PropertyInference
from fedarena.contracts.inference import PropertyScores
from fedarena.contracts.observation import Observation
from fedarena.contracts.view import Population, View
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Form, NotApplicable, Party, Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec, threats
from fedarena.goals.property import property_metrics
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.runs import trial

pytestmark = pytest.mark.usefixtures("few_trees")

# -- features -------------------------------------------------------------------------------------------


def test_slopes_by_hand() -> None:
    """x̂ of the gradient of one sample is that sample, whatever the errors; own ones are (1, 0, 1) and (3, 0, 1)."""

    def update(x: list[float], errors: list[float]) -> dict[str, Tensor]:
        e = torch.tensor(errors)
        return {"fc.weight": torch.outer(e, torch.tensor(x)), "fc.bias": e, "alone": torch.tensor([[3.0, 4.0]])}

    read = Slopes([update([1.0, 0.0, 1.0], [-2.0, 0.5]), update([3.0, 0.0, 1.0], [1.0, 1.0])])  # m = (2, 0, 1)
    assert read(update([4.0, 7.0, 2.0], [0.1, -9.0])).tolist() == pytest.approx([2.0, 1.0])
    assert read(update([-1.0, 0.0, 2.0], [1.0, 0.0])).tolist() == pytest.approx([0.0, 1.0])
    assert read({**update([2.0, 0.0, 1.0], [1.0, 0.0]), "alone": torch.zeros(1, 2)}).tolist() == [1.0, 0.0]


def test_slopes_stand_through_a_map_that_own_updates_went_through_as_well() -> None:
    """Expanded sketches keep ratios, where magnitudes of entries are noise."""
    generator = torch.Generator().manual_seed(0)
    x, errors = torch.rand(30, generator=generator), torch.randn(5, generator=generator)
    through = torch.randn(30, 30, generator=generator)
    seen = [{"fc.weight": torch.outer(errors, a * x) @ through, "fc.bias": errors} for a in (1.0, 1.0, 1.3)]
    assert float(Slopes(seen[:2])(seen[2])) == pytest.approx(1.3, rel=1e-5)


def test_slopes_use_mean_kernels_and_stay_finite_where_a_bias_is_zero() -> None:
    kernel = torch.arange(8.0).reshape(1, 2, 2, 2)
    own = {"c.weight": kernel, "c.bias": torch.ones(1)}
    assert Slopes([own])({"c.weight": 3 * kernel, "c.bias": torch.ones(1)}).tolist() == pytest.approx([3.0])
    dark = {"c.weight": kernel, "c.bias": torch.zeros(1)}
    assert torch.isfinite(Slopes([own])(dark)).all()
    assert torch.isfinite(Slopes([dark])(own)).all()


def test_margins_by_hand() -> None:
    update = {"fc.weight": torch.tensor([[1.0, -3.0, 0.0], [2.0, 2.0, -4.0]]), "fc.bias": torch.tensor([-2.0, 0.5])}
    by_output, by_input = [4 / 3, 8 / 3], [1.5, 2.5, 2.0]
    ratios, shares = [4 / 6, 16 / 3], [0.75, 1.25, 1.0]
    found = features(update, "margins")
    assert found.tolist() == pytest.approx([*by_output, *by_input, *shares, *ratios, 2.0, 0.5])


def test_margins_use_mean_kernels_and_stay_finite_where_a_bias_is_zero() -> None:
    kernel = torch.arange(8.0).reshape(1, 2, 2, 2)
    found = features({"c.weight": kernel, "c.bias": torch.zeros(1)}, "margins")
    assert found[:3].tolist() == pytest.approx([3.5, 1.5, 5.5])
    assert torch.isfinite(found).all()


def test_plain_features_are_the_entries() -> None:
    update = {"a": torch.tensor([[1.0, -2.0]]), "b": torch.tensor([3.0])}
    assert features(update, "plain").tolist() == [1, -2, 3]


def test_the_code_s_features() -> None:
    large = torch.zeros(60, 100)
    large[3, 7], large[4, 7], large[5, 9] = -5.0, 2.0, 1.0
    kernel = torch.zeros(1, 2, 3, 3)
    kernel[0, 0, 1, 1], kernel[0, 1, 2, 2] = -12.0, 0.5
    update = {
        "conv.weight": kernel,
        "many.weight": torch.ones(72, 72, 1, 1),
        "large.weight": large,
        "small.weight": torch.tensor([[-2.0, 1.0]]),
        "small.bias": torch.ones(1),
    }
    found = features(update, "code")
    assert len(found) == 2 + 100 + 2
    assert float(found.norm()) == pytest.approx(1)
    assert found[0] / found[1] == pytest.approx(24)
    assert found[2 + 7] / found[2 + 9] == pytest.approx(5)
    assert found[-2] / found[-1] == pytest.approx(2)
    assert features({"bias": torch.ones(3)}, "code").numel() == 0


# -- the ridge ------------------------------------------------------------------------------------------


def shifted(n: int, d: int, shift: float, seed: int) -> tuple[Tensor, Tensor]:
    """Samples of two classes whose first coordinate is apart."""
    y = torch.arange(n) % 2 == 0
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    x[:, 0] += shift * y
    return x, y


def test_the_ridge_finds_what_sets_classes_apart() -> None:
    (x, y), (asked, truth) = shifted(64, 200, 6.0, 0), shifted(100, 200, 6.0, 1)
    for scores in ridge_scores(x, y, asked):
        assert property_metrics(PropertyScores(scores, None, True), truth)["auc"] > 0.85


def test_the_strongest_ridge_is_the_difference_of_means() -> None:
    (x, y), (asked, _) = shifted(40, 30, 2.0, 0), shifted(20, 30, 2.0, 1)
    within = torch.cat([x[k] - x[k].mean(0) for k in (y, ~y)]).square().sum(0) / 38
    means = (asked - x.mean(0)) @ ((x[y].mean(0) - x[~y].mean(0)) / within)
    scores = ridge_scores(x, y, asked)[-1]
    assert float(torch.corrcoef(torch.stack([scores.float(), means]))[0, 1]) > 0.999


def test_the_ridge_is_the_closed_form() -> None:
    """Against w = (X_cᵀ X_c + penalty·I)⁻¹ X_cᵀ y_c in the primal."""
    (x, y), (asked, _) = shifted(20, 6, 1.0, 0), shifted(5, 6, 1.0, 1)
    noise = 0.5
    scale = (torch.cat([x[k] - x[k].mean(0) for k in (y, ~y)]).square().sum(0) / 18 + noise**2).sqrt()
    c = ((x - x.mean(0)) / scale).double()
    signs = y.double() * 2 - 1
    for strength, scores in zip(STRENGTHS, ridge_scores(x, y, asked, noise), strict=True):
        penalty = strength * c.square().sum(1).mean() + 20 * (noise / scale).square().mean()
        w = torch.linalg.solve(c.T @ c + penalty * torch.eye(6), c.T @ (signs - signs.mean()))
        torch.testing.assert_close(scores, ((asked - x.mean(0)) / scale).double() @ w)


def test_noise_that_is_reckoned_with_costs_less() -> None:
    """One coordinate tells little and hardly varies, another tells much: noise drowns the former."""
    x, y = shifted(64, 2, 2.0, 0)
    x[:, 1] = 0.01 * x[:, 1] + 0.05 * y
    asked, truth = shifted(400, 2, 2.0, 1)
    asked[:, 1] = 0.01 * asked[:, 1] + 0.05 * truth
    asked += torch.randn(400, 2, generator=torch.Generator().manual_seed(2))
    blind, aware = (
        property_metrics(PropertyScores(ridge_scores(x, y, asked, std)[1], None, True), truth)["auc"]
        for std in (0.0, 1.0)
    )
    assert aware > blind + 0.1


def test_constant_coordinates_and_equal_classes_tell_nothing() -> None:
    x, y = torch.ones(8, 3), torch.arange(8) % 2 == 0
    for scores in ridge_scores(x, y, torch.full((2, 3), 5.0)):
        assert scores.tolist() == [0, 0]


# -- own batches ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Echo:
    """Simulator: the mean image of each client, and the batch itself."""

    clients: int = 1

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return {"x": x.flatten(1), "y": y, "mean": torch.stack([part.mean() for part in x.chunk(self.clients)])}


def view(
    n: int = 40, form: Form = "adaptive", clients: int = 1, images: int = 4, target: Mapping[str, Tensor] | None = None
) -> View:
    """Sample i is the number i, of class i // 4 mod 2; every fourth of class 0 has the property, all of class 1."""
    number = torch.arange(n)
    y = number // 4 % 2
    has = ((y == 1) | (number % 4 == 0)).to(torch.int8)
    population = Population(number.float().reshape(n, 1), y, {"odd": has})
    shown = dict(target or {"x": torch.zeros(images, 1)})
    seen = Observation(0, clients=tuple(range(1, clients + 1)), images=images, target=shown, simulate=Echo(clients))
    return View(
        Threat("server", form),
        reading="upload",
        input_shape=(1,),
        n_classes=2,
        observations=(seen,),
        population=population,
    )


def own(match: bool = False, back: bool = True, n: int = 40) -> OwnBatches:
    return OwnBatches.of(view(n), match, back, Rng(0))


def test_a_quarter_is_held_back_and_nothing_is_on_both_sides() -> None:
    pools = own().pools
    for kind in (True, False):
        train, check = set(pools["train", kind].tolist()), set(pools["check", kind].tolist())
        assert not train & check
        assert len(check) == (len(train) + len(check)) // 4 > 0
    every = own(back=False).pools
    assert len(every["train", True]) + len(every["train", False]) == 40


@pytest.mark.parametrize("use", ["train", "check"])
def test_batches_have_the_property_or_lack_it(use: Any) -> None:
    batches, shown = own(), view()
    assert shown.population is not None
    has = shown.population.attributes["odd"]
    lesson = batches.lesson(shown.observations[0], use, 3, 5, Rng(1))
    assert lesson.has.tolist() == [True] * 3 + [False] * 5
    for update, kind in zip(lesson.updates, lesson.has.tolist(), strict=True):
        drawn = update["x"].flatten().long()
        assert has[drawn].eq(int(kind)).all()
        assert set(drawn.tolist()) <= set(batches.pools[use, kind].tolist())


def test_matched_classes_have_equal_shares_with_the_property_and_without() -> None:
    def share(match: bool, having: bool, n: int = 4000) -> float:
        batches = own(match, back=False, n=n)
        pool = batches.pools["train", having]
        weights = batches.weights[pool]
        return float(weights[batches.y[pool, 1] == 1].sum() / weights.sum())

    assert share(True, True) == pytest.approx(0.5)
    assert share(False, True) == pytest.approx(0.8)
    # No sample of class 1 lacks the property, so that there is nothing to draw the class from.
    assert share(True, False) == share(False, False) == 0


def test_of_several_clients_one_has_the_property() -> None:
    shown = view(clients=3, images=6, target={"x": torch.zeros(6, 1)})
    batches = OwnBatches.of(shown, False, False, Rng(0))
    assert shown.population is not None
    has, first = shown.population.attributes["odd"], set()
    for update in batches.lesson(shown.observations[0], "train", 30, 0, Rng(1)).updates:
        of_clients = has[update["x"].flatten().long()].reshape(3, 2)
        assert sorted(of_clients.sum(1).tolist()) == [0, 0, 2]
        first.add(int(of_clients.sum(1).argmax()))
    assert first == {0, 1, 2}


def test_a_batch_larger_than_the_pool_repeats_samples() -> None:
    lesson = own().lesson(view(images=100).observations[0], "check", 1, 1, Rng(0))
    assert all(len(u["x"]) == 100 for u in lesson.updates)


# -- the attack -----------------------------------------------------------------------------------------


def attack(**options: str) -> MethodSpec:
    return MethodSpec("property-inference", registry.find("attack", "property-inference").parse(options))


def cells(
    defense: str,
    form: Form,
    defense_options: Mapping[str, str] | None = None,
    party: Party = "server",
    clients: int = 2,
    **options: str,
) -> list[Any]:
    model = registry.find("model", "mlp").parse({"widths": "64"})
    schedule = Schedule(rounds=32, batch_size=64, lr=0.1)
    problem = ProblemSpec(
        "digits",
        model="mlp",
        partition="iid",
        clients=clients,
        model_options=model,
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=schedule,
    )
    few = {} if options.get("classifier") == "forest" else {"round_batches": "8"}
    method = attack(**{"rounds": "30", "every": "2", **few, **options})
    made = compose.parse_defense(defense, defense_options or {})
    return trial.prepare(GroupSpec(problem, defense=made, attack=method, threats=threats((party,), (form,)), seed=0))


def auc_of(cell: Any) -> dict[str, float]:
    record = trial.attack(cell)[0]
    assert record["status"] == "ok", record["reason"]
    metrics: dict[str, float] = record["metrics"]
    return metrics


def test_the_paper_form_is_one_forest_and_tells_batches_apart() -> None:
    (cell,) = cells("fedavg", "paper")
    found = auc_of(cell)
    assert found["auc"] > 0.95
    assert found["by_round"] == 0
    assert "own_auc" not in found


@pytest.mark.parametrize("classifier", ["forest", "round-forest", "ridge"])
def test_each_classifier_tells_undefended_batches_apart(classifier: str) -> None:
    (cell,) = cells("fedavg", "adaptive", classifier=classifier)
    found = auc_of(cell)
    assert found["auc_low"] > 0.5
    assert found["by_round"] == (classifier != "forest")


def test_the_best_of_them_is_what_does_best_on_samples_held_back() -> None:
    names = ("forest", "round-forest", "ridge")
    each = {name: auc_of(cells("dbcl", "adaptive", classifier=name, rounds="7")[0]) for name in names}
    best = auc_of(cells("dbcl", "adaptive", rounds="7")[0])
    assert best["own_auc"] == max(found["own_auc"] for found in each.values())
    assert best["auc"] == max(each.values(), key=lambda found: found["own_auc"])["auc"]


def test_the_adaptive_form_takes_the_features_best_on_held_back_samples() -> None:
    """In the paper form nothing is held back, and they are the margins."""
    kinds = ("margins", "slopes")
    few = {"classifier": "forest", "rounds": "12"}
    each = {kind: auc_of(cells("dbcl", "adaptive", features=kind, **few)[0]) for kind in kinds}
    found = auc_of(cells("dbcl", "adaptive", **few)[0])
    best = max(kinds, key=lambda kind: each[kind]["own_auc"])
    assert each["margins"]["own_auc"] != each["slopes"]["own_auc"]
    assert (found["auc"], found["own_auc"]) == (each[best]["auc"], each[best]["own_auc"])
    assert found["by_slopes"] == (best == "slopes")
    assert [each[kind]["by_slopes"] for kind in kinds] == [0, 1]
    paper = {kind: auc_of(cells("dbcl", "paper", features=kind, rounds="12")[0]) for kind in (*kinds, "best")}
    assert paper["best"] == paper["margins"] != paper["slopes"]
    assert [paper[kind]["by_slopes"] for kind in kinds] == [0, 1]


def test_nothing_tells_strangers_apart_where_the_truth_is_shuffled() -> None:
    """The truth is shuffled, so that what was seen says nothing of it."""
    (cell,) = cells("fedavg", "paper")
    method = compose.make_inference(cell.spec.attack)
    answer = method(cell.challenge.view, Rng(0))
    assert isinstance(answer, PropertyScores)
    truth, found = cell.challenge.answers, []
    for seed in range(50):
        order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(seed))
        found.append(property_metrics(answer, truth[order])["auc"])
    assert abs(sum(found) / 50 - 0.5) < 0.06


def test_updates_that_vary_in_size_are_told_by_round_or_not_at_all() -> None:
    assert auc_of(cells("dbcl", "adaptive", {"vary": "0.3"}, rounds="6")[0])["by_round"] == 1
    record = trial.attack(cells("dbcl", "adaptive", {"vary": "0.3"}, features="plain", classifier="forest")[0])[0]
    assert record["status"] == "n/a"
    assert "another size in each round" in record["reason"]


def test_features_of_the_code_need_weights() -> None:
    shown = view(form="paper", target={"mean": torch.zeros(1)})
    made = PropertyInference(attack(features="code").options)
    answer = made(shown, Rng(0))
    assert isinstance(answer, NotApplicable)
    assert "no weights" in answer.reason


def test_the_noise_of_the_protocol_is_public_and_smaller_in_a_mean() -> None:
    noise = {"noise": "2", "epsilon": "none", "clip": "0.5"}
    (cell,) = cells("dp-sgd", "adaptive", noise)
    assert {o.noise_std for o in cell.challenge.view.observations} == {2 * 0.5 / 64}
    (cell,) = cells("dp-sgd", "adaptive", noise, party="client", clients=3)
    assert all(o.noise_std == pytest.approx(2 * 0.5 / 64 / 2**0.5, rel=1e-3) for o in cell.challenge.view.observations)
    (none,) = cells("fedavg", "adaptive")
    assert {o.noise_std for o in none.challenge.view.observations} == {0.0}


def test_rounds_that_are_not_there_are_refused() -> None:
    made = PropertyInference(attack(start="5", stride="4", rounds="100").options)
    assert made.watch(Schedule(rounds=20)).victims == (5, 9, 13, 17)
    assert made.watch(Schedule(rounds=20)).last == 19
    with pytest.raises(UserError, match="option 'start' is 5"):
        made.watch(Schedule(rounds=10))
    at_once = PropertyInference(attack().options)
    assert at_once.watch(Schedule(rounds=3)).victims == (0, 1)
    with pytest.raises(UserError, match="option 'rounds' is 2, allowed: 3 or more"):
        at_once.watch(Schedule(rounds=2))
