"""γ under steady masks, where two broadcasts by themselves tell little, or of one output no more than a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.pbpfl import make, play, start
from torch import Tensor, nn

from fedarena.contracts.transcript import cut
from fedarena.core.rng import Rng
from fedarena.core.threat import Threat
from fedarena.defenses.pbpfl.card import Options
from fedarena.defenses.pbpfl.gamma import gamma_from_columns, gamma_from_labels, gammas_from_two
from fedarena.defenses.pbpfl.gamma_estimate import estimate_gamma
from fedarena.defenses.pbpfl.gamma_steady import gamma_from_bounds, gammas_from_balance
from fedarena.defenses.pbpfl.masks import coefficient, direction, offset
from fedarena.defenses.pbpfl.wire import GAMMA, Masked
from fedarena.problem.task import Batch

REGRESSION = {"loss": "regression", "lr": 0.05}
ADAM = {"loss": "regression", "server_optimizer": "adam", "lr": 0.0001}


def dense(bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 9, bias), nn.ReLU(), nn.Linear(9, 40, bias), nn.ReLU(), nn.Linear(40, 1, bias))


def convolutional() -> nn.Sequential:
    parts = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 5, 3), nn.ReLU()]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(20, 1))


class Skips(nn.Module):
    """Units that several layers write and read, the output layer among them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.out = nn.Linear(12, 6), nn.Linear(6, 6), nn.Linear(6, 5), nn.Linear(11, 1)

    def forward(self, x: Tensor) -> Tensor:
        below = torch.relu(self.a(x))
        both = below + torch.relu(self.b(below))
        return self.out(torch.cat([both, torch.relu(self.c(both))], 1))


def two_outputs() -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 40), nn.ReLU(), nn.Linear(40, 2))


NETWORKS = [(dense, (12,)), (lambda: dense(False), (12,)), (convolutional, (1, 8, 8)), (Skips, (12,))]


def opened(defense, r):
    return defense.wire.open(r.down)


def own_shard(defense, n=300):
    g = torch.Generator().manual_seed(9)
    x = torch.rand(1, n, *defense.task.input_shape, generator=g, dtype=torch.float64)
    return Batch(x, torch.rand(1, n, generator=g, dtype=torch.float64))


def seen_by(defense, rounds, party):
    return cut(rounds, Threat(party, "adaptive"), own_shard(defense) if party == "client" else None)


@pytest.mark.parametrize(("model", "shape"), NETWORKS)
def test_a_step_of_sgd_tells_both_gammas(model, shape):
    defense = make(model(), shape, classes=0, schedule=REGRESSION, decades=0)
    rounds, _ = play(defense, 2)
    sent, after = (opened(defense, r) for r in rounds)
    truth = [float(r.secret[GAMMA]) for r in rounds]
    assert gammas_from_balance(sent, after, defense.wire.plan) == pytest.approx(truth, abs=1e-7)


@pytest.mark.parametrize("party", ["client", "eavesdropper"])
@pytest.mark.parametrize("options", [{"r": "constant"}, {"decades": 0}])
def test_whoever_reads_two_broadcasts_has_gamma(party, options):
    defense = make(dense(), classes=0, schedule=REGRESSION, **options)
    rounds, _ = play(defense, 4)
    for watched in (rounds, rounds[:2], rounds[1:3]):
        seen = seen_by(defense, watched, party)
        for r in watched:  # the last of them by the one before it
            assert estimate_gamma(defense, defense.wire, seen, r.index) == pytest.approx(
                float(r.secret[GAMMA]), abs=1e-4
            )


@pytest.mark.parametrize("seed", range(5))
def test_several_outputs_even_under_parallel_masks(seed):
    defense = make(two_outputs(), classes=2, decades=0)
    rounds, _ = play(defense, 2, seed)
    sent, after = (opened(defense, r) for r in rounds)
    truth = [float(r.secret[GAMMA]) for r in rounds]
    assert gammas_from_balance(sent, after, defense.wire.plan) == pytest.approx(truth, abs=1e-7)
    r_a = 2 * sent.r_a
    alike = replace(after, params=Masked(after.without(truth[1]), r_a, after.output).without(-truth[1]), r_a=r_a)
    assert gammas_from_balance(sent, alike, defense.wire.plan) == pytest.approx(truth, abs=1e-7)


@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_without_hidden_units_two_broadcasts_tell_as_ever(party):
    """Balance has no equation, and r acts on nothing: the one law of it is as good as the other."""
    off = {}
    for r in ("constant", "log-uniform"):
        defense = make(nn.Sequential(nn.Linear(12, 3)), r=r, schedule={"lr": 0.01})
        rounds, _ = play(defense, 6)
        assert gammas_from_balance(*(opened(defense, one) for one in rounds[:2]), defense.wire.plan) is None
        seen = seen_by(defense, rounds, party)
        told = {one.index: estimate_gamma(defense, defense.wire, seen, one.index) for one in rounds}
        off[r] = [abs(told[one.index] - float(one.secret[GAMMA])) for one in rounds]
    assert sum(off["constant"]) / 6 < 0.06
    assert off["constant"] == pytest.approx(off["log-uniform"], abs=1e-6)


def test_of_several_outputs_balance_is_asked_where_two_broadcasts_err():
    defense = make(two_outputs(), classes=2, r="constant")
    rounds, _ = play(defense, 12)
    truth = {r.index: float(r.secret[GAMMA]) for r in rounds}
    seen = seen_by(defense, rounds, "eavesdropper")
    off = {t: abs(estimate_gamma(defense, defense.wire, seen, t) - gamma) for t, gamma in truth.items()}
    assert max(off.values()) < 1e-4
    pairs = [gammas_from_two(*(opened(defense, r) for r in rounds[t : t + 2]), defense.wire.plan) for t in range(11)]
    assert max(1.0 if p is None else abs(p[0] - truth[t]) for t, p in enumerate(pairs)) > 1e-3


@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_of_adams_steps_all_broadcasts_together_tell_more_than_each(party):
    defense = make(dense(), classes=0, schedule=ADAM, r="constant")
    state = start(defense)
    shifted = {**state.params, "4.weight": state.params["4.weight"] + 0.1}  # by which columns and labels err
    rounds, _ = play(defense, 100, state=replace(state, params=shifted))
    seen = seen_by(defense, rounds, party)
    error = {"all": [], "one": [], "columns": []}
    for r in rounds[::9]:
        truth = float(r.secret[GAMMA])
        # In α: what the error of γ̂ makes of an output does not grow where r_a is small.
        off = {
            "all": estimate_gamma(defense, defense.wire, seen, r.index) - truth,
            "one": estimate_gamma(defense, defense.wire, {r.index: seen[r.index]}, r.index) - truth,
            "columns": gamma_from_columns(opened(defense, r)) - truth,
        }
        for name, value in off.items():
            error[name].append(abs(value) * float(opened(defense, r).r_a.abs()))
    worst = {name: max(values) for name, values in error.items()}
    assert worst["all"] <= 0.01, worst
    assert worst["all"] < 0.5 * min(worst["one"], worst["columns"]), worst


def test_two_broadcasts_without_a_step_do_not_tell_gamma():
    defense = make(dense(), classes=0, schedule=REGRESSION, r="constant")
    (sent, after), _ = play(defense, 2)
    still = replace(after, down={**sent.down})
    assert gammas_from_two(opened(defense, sent), opened(defense, still), defense.wire.plan) is None


def test_rounds_that_are_not_neighbours_tell_together():
    defense = make(dense(), classes=0, schedule=REGRESSION | {"lr": 0.001}, r="constant")
    rounds, _ = play(defense, 120)
    seen = seen_by(defense, rounds[::2], "eavesdropper")
    r = rounds[60]
    found = estimate_gamma(defense, defense.wire, seen, r.index)
    assert abs(found - float(r.secret[GAMMA])) * float(opened(defense, r).r_a) <= 0.02


def test_masks_that_change_are_not_taken_for_steady_ones():
    defense = make(dense(), classes=0, schedule=REGRESSION)
    rounds, _ = play(defense, 1)
    alone = seen_by(defense, rounds, "eavesdropper")
    assert estimate_gamma(defense, defense.wire, alone, 0) == gamma_from_columns(opened(defense, rounds[0]))
    own = seen_by(defense, rounds, "client")
    x, y = own[0].own_data.images()
    by_labels = gamma_from_labels(opened(defense, rounds[0]), defense.wire.wide, defense.task.criterion, x, y)
    assert estimate_gamma(defense, defense.wire, own, 0) == by_labels


def still(gammas, r_a, seed=0):
    """Broadcasts of one model: columns of an output layer, and nothing else."""
    weight = 0.2 + 0.3 * torch.randn(1, 50, generator=Rng(seed).torch(), dtype=torch.float64)
    return [
        Masked({"w": weight + g * r}, torch.tensor([r], dtype=torch.float64), ("w",))
        for g, r in zip(gammas, r_a, strict=True)
    ]


def law(low, high):
    return lambda r_a, between: (low, high)


def test_what_is_told_is_kept_within_the_bounds():
    sents = still([0.3, 0.6], [0.5, 0.8])
    between = 0.6 * 0.8 - 0.3 * 0.5
    for at, since in ((0, 0.0), (1, between)):
        r_a = float(sents[at].r_a)

        def found(low, high, labels=None, at=at):
            return gamma_from_bounds(sents, at, law(low, high), labels)

        middle = found(-2.0, -1.0)  # no column says that
        assert middle == pytest.approx(-1.5 / r_a)
        assert found(-1.0, -2.0) == middle  # swapped by drift
        columns = float(sents[at].columns().median())
        assert found(-5.0, 5.0) == pytest.approx(columns / r_a)
        true = {id(s): g for s, g in zip(sents, (0.3, 0.6), strict=True)}
        assert found(-5.0, 5.0, lambda s, true=true: true[id(s)]) == pytest.approx((0.15 + since) / r_a)
        assert found(-5.0, 0.1, lambda s: 9.0) == pytest.approx(0.1 / r_a)
        assert found(4.0, 5.0, lambda s: 0.0) == pytest.approx(4.0 / r_a)


@pytest.mark.parametrize(
    "options",
    [Options(), Options(gamma_scale=7.0), Options(r_a="normal"), Options(gamma="normal"), Options(gamma="cancelling")],
)
def test_the_law_of_gamma_bounds_the_unknown_of_the_chain(options):
    outside, widths = 0, []
    for trial in range(20):
        drawn = [direction(options, 1, Rng(trial).child(t)) for t in range(200)]
        gammas = [coefficient(options, r, Rng(trial).child(t)) for t, r in enumerate(drawn)]
        r_a, a = torch.cat(drawn), torch.cat([g * r for g, r in zip(gammas, drawn, strict=True)])
        low, high = offset(options, r_a, a - a[0])
        assert low < high
        outside += not low <= float(a[0]) <= high
        widths.append((high - low) / options.gamma_scale)
    assert outside <= (4 if options.gamma == "normal" else 0)  # two standard errors: 1 of 22 is outside
    assert sorted(widths)[10] <= (0.1 if options.gamma == "cancelling" else 0.03)
