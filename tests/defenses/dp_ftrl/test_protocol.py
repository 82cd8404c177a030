"""DP-FTRL: the models against naive prefix sums, how far a client moves them, and what each party sees."""

from __future__ import annotations

import pytest
import torch
from helpers.changed_uploads import make, read
from torch import Tensor

from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, shaped
from fedarena.defenses.dp_ftrl.protocol import DPFTRL, NODES
from fedarena.defenses.dp_ftrl.tree import closed, prefix_variance, step_variance


def defense(**options: object) -> DPFTRL:
    made = make("dp-ftrl", **options)
    assert isinstance(made, DPFTRL)
    return made


def models(protocol: DPFTRL, uploads: Tensor, seed: int) -> list[Tensor]:
    """W_0, W_1, … [d] of uploads [rounds, n, d]."""
    like = {name: p.detach() for name, p in protocol.task.model.named_parameters()}
    state, cohort = State(like), Cohort((0, 1, 2), torch.tensor([20.0, 40.0, 40.0]))
    seen = [flatten(like)]
    for t, ups in enumerate(uploads):
        state = protocol.aggregate(state, Broadcast(like), shaped(ups, like), cohort, Rng(seed).child("aggregate", t))
        seen.append(flatten({name: state.params[name] for name in like}))
    assert (NODES in state.extra) == bool(protocol.multiplier)
    return seen


def test_models_are_the_first_one_and_noisy_prefix_sums() -> None:
    """By a tree that is written out, of the same draws: each node's estimate from its own noise and its halves."""
    z, bound, rounds = 2.0, 0.5, 7
    protocol = defense(epsilon=None, noise=z, clip=bound)
    uploads = 0.01 * torch.randn(rounds, 3, protocol.entries, generator=Rng(0).torch())
    uploads[2, 0] *= 1000  # a corrupted client need not bound what it sends
    seen = models(protocol, uploads, 0)
    streams = [Rng(0).child("aggregate", t) for t in range(rounds)]
    own = [torch.randn((closed(t) + 1, protocol.entries), generator=rng.torch()) for t, rng in enumerate(streams)]

    def noise(height: int, place: int) -> Tensor:
        root = own[(place + 1 << height) - 1][height]
        if not height:
            return root
        v = 1 / (2 - 2.0**-height)
        return v * root + (1 - v) * (noise(height - 1, 2 * place) + noise(height - 1, 2 * place + 1))

    trees = {1: [(0, 0)], 3: [(1, 0), (0, 2)], 4: [(2, 0)], 7: [(2, 0), (1, 2), (0, 6)]}
    for t, nodes in trees.items():
        total = sum(u * min(1.0, bound / float(u.norm())) for u in uploads[:t].flatten(0, 1)) / 3
        total = total + z * bound / 3 * sum(noise(*node) for node in nodes)
        assert torch.allclose(seen[t], seen[0] - protocol.step_size * total, atol=1e-5)


def test_noise_grows_with_binary_digits_and_differences_show_more() -> None:
    z, bound = 3.0, 0.5
    protocol = defense(epsilon=None, noise=z, clip=bound)
    runs = torch.stack([torch.stack(models(protocol, torch.zeros(4, 3, protocol.entries), s)) for s in range(30)])
    unit = protocol.step_size * z * bound / 3
    for t in (1, 2, 3, 4):
        assert float((runs[:, t] - runs[:, 0]).std()) == pytest.approx(unit * prefix_variance(t) ** 0.5, rel=0.05)
        assert float((runs[:, t] - runs[:, t - 1]).std()) == pytest.approx(unit * step_variance(t - 1) ** 0.5, rel=0.05)
    assert step_variance(3) > prefix_variance(4)


def test_without_noise_it_is_the_mean_of_bounded_uploads() -> None:
    protocol = defense(epsilon=None, clip=1e6)
    uploads = torch.randn(2, 3, protocol.entries, generator=Rng(1).torch())
    first, *_, last = models(protocol, uploads, 0)
    assert torch.allclose(last, first - protocol.step_size * uploads.mean(1).sum(0), atol=1e-5)


@pytest.mark.parametrize("form", ["paper", "adaptive"])
@pytest.mark.parametrize(("party", "size"), [("server", 0.0), ("eavesdropper", 0.0), ("client", 1.5 * 0.4 / 2)])
def test_only_who_sees_models_alone_sees_noise(party, form, size) -> None:
    (observed,) = read(defense(epsilon=None, noise=1.5, clip=0.4), party, form)[0].observations
    assert observed.noise_std == pytest.approx(size * step_variance(observed.round) ** 0.5)


def test_what_cannot_be_promised_is_refused() -> None:
    with pytest.raises(UserError, match="defense dp-ftrl: option 'noise' is 1 and option 'epsilon' is 2"):
        defense(epsilon=2.0, noise=1.0)
    plain = defense(epsilon=None)
    card = registry.find("aggregator", "median")
    with pytest.raises(UserError, match="defense dp-ftrl takes no aggregation rule"):
        DPFTRL(plain.options, plain.task, card.load()(card.options()))
    secure = registry.find("secure", "pairwise-masks")
    same = plain.task.__class__(**{**vars(plain.task), "sizes": (40, 40, 40)})
    with pytest.raises(UserError, match=r"option 'dropout' is 0\.1, allowed with dp-ftrl: 0"):
        DPFTRL(plain.options, same).secured(secure.load()(secure.options(dropout=0.1)))
    assert DPFTRL(plain.options, same).secured(secure.load()(secure.options())).secure is not None


def test_an_optimiser_that_undoes_the_sum_is_refused() -> None:
    from dataclasses import replace

    task = defense(epsilon=None).task
    task = replace(task, schedule=replace(task.schedule, server_optimizer="adam"))
    with pytest.raises(UserError, match=r"'training\.server_optimizer' is adam, allowed with defense dp-ftrl: sgd"):
        DPFTRL(defense(epsilon=None).options, task)
