"""DP-FedAvg: bounds, noise and what each party sees; how far two neighbouring federations can be told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.changed_uploads import make, read, sent_and_plain
from torch import Tensor

from fedarena.contracts.defense import Broadcast, Cohort, State
from fedarena.contracts.secure_sum import SecureSum
from fedarena.core import registry
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten, row, rows, shaped
from fedarena.defenses.dp_fedavg.protocol import DPFedAvg


def defense(**options: object) -> DPFedAvg:
    made = make("dp-fedavg", **options)
    assert isinstance(made, DPFedAvg)
    return made


def stepped(protocol: DPFedAvg, uploads: Tensor, seed: int) -> Tensor:
    """What the server steps against, of uploads [n, d]."""
    like = {name: p.detach() for name, p in protocol.task.model.named_parameters()}
    ups = shaped(uploads, like)
    cohort = Cohort(tuple(range(len(uploads))), torch.tensor([20.0, 40.0, 40.0])[: len(uploads)])
    step = protocol.direction(State(like), Broadcast(like), ups, cohort, Rng(seed).child("aggregate")).step
    return flatten({name: step[name] for name in like})


def test_an_upload_is_the_plain_one_and_no_longer_than_the_bound() -> None:
    _, _, plain = sent_and_plain(defense())
    lengths = rows(plain).norm(dim=1)
    bound = float(lengths.median())
    _, ups, _ = sent_and_plain(defense(clip=bound))
    assert torch.allclose(rows(ups), rows(plain) * (bound / lengths).clamp(max=1)[:, None], atol=1e-6)
    assert float(rows(ups).norm(dim=1).max()) <= bound * (1 + 1e-5)
    assert float(lengths.min()) < bound < float(lengths.max())


def test_the_server_takes_the_unweighted_mean_of_bounded_uploads() -> None:
    protocol = defense(epsilon=None, clip=2.0)
    uploads = torch.randn(3, protocol.entries, generator=Rng(0).torch())
    uploads[0] *= 1000  # a corrupted client need not bound what it sends
    bounded = torch.stack([u * min(1.0, 2.0 / float(u.norm())) for u in uploads])
    assert torch.allclose(stepped(protocol, uploads, 0), bounded.mean(0), atol=1e-6)


def test_a_client_moves_the_step_by_two_bounds_over_the_noise() -> None:
    """The canary of the worst case: one client sends S·e, and in the neighbouring federation −S·e."""
    z, bound = 3.0, 0.5
    protocol = defense(epsilon=None, noise=z, clip=bound)
    canary = torch.zeros(3, protocol.entries)
    canary[1, 7] = bound
    with_it, without = (
        torch.stack([stepped(protocol, sign * canary, seed)[7] for seed in range(4000)]).double() for sign in (1, -1)
    )
    assert float(with_it.mean() - without.mean()) == pytest.approx(2 * bound / 3, rel=0.05)
    for steps in (with_it, without):
        assert float(steps.std()) == pytest.approx(z * bound / 3, rel=0.04)


def test_rounds_have_noise_of_their_own() -> None:
    protocol, nothing = defense(), torch.zeros(3, defense().entries)
    one, other = (stepped(protocol, nothing, seed) for seed in (0, 1))
    assert torch.equal(one, stepped(protocol, nothing, 0))
    assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.5


@pytest.mark.parametrize(("party", "size"), [("server", 0.0), ("eavesdropper", 0.0), ("client", 1.5 * 0.4 / 2)])
@pytest.mark.parametrize("form", ["paper", "adaptive"])
def test_only_who_sees_models_alone_sees_noise(party, form, size) -> None:
    (observed,) = read(defense(epsilon=None, noise=1.5, clip=0.4), party, form)[0].observations
    assert observed.noise_std == pytest.approx(size)


def test_a_client_sees_the_others_unweighted_mean() -> None:
    """It takes its own upload off the mean, and matches what candidates give with the weights of the server."""
    protocol = defense(epsilon=None)
    (observed,) = read(protocol, "client", "adaptive")[0].observations
    assert observed.clients == (1, 2)
    _, ups, _ = sent_and_plain(protocol)
    mean = torch.stack([flatten(row(ups, i)) for i in (1, 2)]).mean(0)
    assert torch.allclose(flatten(observed.target), mean, atol=1e-4)


def secured(sizes: tuple[int, ...], **options: object) -> DPFedAvg:
    plain = defense(**options)
    task = replace(plain.task, sizes=sizes)
    card = registry.find("secure", "pairwise-masks")
    secure: SecureSum = card.load()(card.options())
    return DPFedAvg(plain.options, task).secured(secure)


def test_a_secure_sum_keeps_the_promise_where_clients_hold_as_many_samples() -> None:
    protocol = secured((40, 40, 40), epsilon=None, noise=2.0)
    mean = torch.randn(1, protocol.entries, generator=Rng(3).torch())
    like = {name: p.detach() for name, p in protocol.task.model.named_parameters()}
    direction = protocol.direction(
        State(like), Broadcast(like), shaped(mean, like), Cohort((0, 1, 2), torch.tensor([120.0])), Rng(0)
    )
    noise = flatten({name: direction.step[name] for name in like}) - mean[0]
    assert float(noise.std()) == pytest.approx(2.0 / 3, rel=0.1)
    assert tuple(direction.verdict["used"]) == (1.0,)
    with pytest.raises(UserError, match="clients with 20 to 40 samples, allowed with dp-fedavg: clients with as many"):
        secured((20, 40, 40))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 2.0, "noise": 1.0}, "'noise' is 1 and option 'epsilon' is 2, allowed: one of them"),
        ({"epsilon": 1e-7, "delta": 1e-9}, "option 'epsilon' is 1e-07, allowed with 20 rounds and δ = 1e-09: "),
    ],
)
def test_what_cannot_be_promised_is_refused(options, message) -> None:
    with pytest.raises(UserError, match=message):
        defense(**options)


def test_a_rule_is_refused() -> None:
    plain = defense()
    card = registry.find("aggregator", "median")
    with pytest.raises(UserError, match="takes no aggregation rule"):
        DPFedAvg(plain.options, plain.task, card.load()(card.options()))


def test_a_delta_that_protects_nobody_is_a_warning() -> None:
    assert any("δ = 0.4 is 1/3 or more" in text for text in defense(delta=0.4).warnings([]))
    assert any("δ = 0.3: with this probability nothing is promised" in text for text in defense().warnings([]))
    assert not any("δ" in text for text in (*defense(delta=0.1).warnings([]), *defense(epsilon=None).warnings([])))
