"""Banked reputation: when it helps and when it strikes, what it wears, what it knows, and what it does to a server."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from helpers.poisoning import knowledge, make, problem
from torch import Tensor

from fedarena.attacks.poisoning.bank import Bank
from fedarena.attacks.poisoning.cards.bank import Options
from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.contracts.aggregator import Call
from fedarena.contracts.poisoning import RoundView
from fedarena.core.errors import UserError
from fedarena.core.registry import find
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows, shaped
from fedarena.core.threat import Knowledge
from fedarena.defenses.two_stage.first_stage import FirstStage
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.problem.task import Batch

STD = 0.05


def bank(knows: Knowledge = "own", std: float = STD, **options: Any) -> Bank:
    made = make("bank", knowledge(knows, std=std), **options)
    assert isinstance(made, Bank)
    return made


@cache
def own_uploads() -> Tensors:
    """What the three colluders would send in the first round."""
    p = problem()
    batches = [p.batch(c, Rng(1).child(c)) for c in p.corrupted]
    return knowledge().defense.clients(p.init, batches, [{}] * 3, [{}] * 3)[0]


def round_view(t: int = 0, honest: Tensors | None = None) -> RoundView:
    clients = tuple(range(len(next(iter(honest.values()))))) if honest else ()
    down = {name: x.clone() for name, x in problem().init.items()}
    return RoundView(
        t,
        participants=10,
        size=3,
        down=down,
        own=own_uploads(),
        honest=honest or {},
        honest_clients=clients,
        clients=problem().corrupted,
    )


def sent(attack: Bank, t: int = 0, seed: int = 0, honest: Tensors | None = None) -> Tensor:
    """What the colluders send in round t of 20, [3, d]."""
    return rows(attack.craft(round_view(t, honest), {}, Rng(seed))[0])


def gradient(shift: int = 0) -> Tensor:
    """∇L at the initial parameters on all own samples, with labels moved on by `shift`."""
    data, task = knowledge().data, problem().task
    x, y = data.inputs(torch.arange(len(data.y))), (data.y + shift) % task.n_classes
    return flatten(torch.func.grad(task.loss)(problem().init, x, y))


def cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.cosine_similarity(a, b, dim=-1).min())


EVERYTHING = 10**6


@pytest.mark.parametrize(
    ("options", "strikes"),
    [
        ({}, {18, 19}),
        ({"turn": 0.0}, set(range(20))),
        ({"turn": 1.0}, set()),
        ({"turn": 0.33}, set(range(7, 20))),
        ({"turn": 0.5, "burn_rounds": 2, "bank_rounds": 3}, {10, 11, 15, 16}),
        ({"turn": 0.5, "burn_rounds": 2}, set(range(10, 20))),
    ],
)
def test_phases_of_twenty_rounds(options: dict[str, Any], strikes: set[int]) -> None:
    attack = bank(std=0.0, strike="ascent", samples=EVERYTHING, **options)
    g = gradient()
    assert {t for t in range(20) if attack.strikes(t)} == strikes
    assert attack.begins == min(strikes, default=20)
    ends = {t for t in range(19) if attack.culminates(t)}  # the last round is looked at anyway
    assert ends == {t for t in strikes if t + 1 not in strikes and t < 19}
    for t in (0, 6, 7, 9, 10, 12, 15, 19):
        assert cosine(sent(attack, t), g) == pytest.approx(-1.0 if t in strikes else 1.0, abs=1e-4)


def test_a_strike_trains_on_wrong_labels_or_moves_sideways_or_ascends() -> None:
    right, wrong = gradient() / gradient().norm(), gradient(1)
    for strike, direction in (("labels", wrong), ("sideways", wrong - (wrong @ right) * right), ("ascent", -right)):
        out = sent(bank(std=0.0, turn=0.0, strike=strike, samples=EVERYTHING))
        assert cosine(out, direction) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("strength", [1.0, 0.3])
def test_plain_has_the_length_of_its_own_honest_uploads(strength: float) -> None:
    out = sent(bank(std=0.0, strength=strength))
    torch.testing.assert_close(out.norm(dim=1), strength * rows(own_uploads()).norm(dim=1).mean().repeat(3))


def test_a_rank_mapped_upload_is_all_direction_and_passes_for_noise() -> None:
    out, g = sent(bank(samples=EVERYTHING)), gradient()
    assert torch.equal(out[0], out[2])
    pairs = sorted(zip(g.tolist(), out[0].tolist(), strict=True))
    assert all(low <= high for (a, low), (b, high) in pairwise(pairs) if b - a > 1e-6)
    assert not FirstStage().rejects(out, STD).any()


def test_strength_is_the_cosine_with_the_direction() -> None:
    """In d = 20,000: cosine a with the rank map of v before the second sort, which costs next to nothing."""
    v = torch.randn(20_000, generator=Rng(0).torch())
    for a in (0.2, 0.6):
        z = torch.randn(3, 20_000, generator=Rng(2).torch())
        out = bank(strength=a)._ranked(v, z, 3, Rng(1).torch())
        assert torch.cosine_similarity(out, v).tolist() == pytest.approx([a] * 3, abs=0.02)
        assert cosine(out[:1], out[1:]) < a  # the noise is each one's own


def test_never_rejected_by_stage_one_while_honest_noise_is() -> None:
    """200 directions of each kind; the level of stage one is 5 % and 0.27 %."""
    d, generator = 5000, Rng(0).torch()
    v = torch.randn(200, d, generator=generator) ** 3
    quantiles = torch.cat([bank()._ranked(row, None, 1, generator) for row in v])
    sample = torch.cat([bank(form="sample")._ranked(row, None, 1, generator) for row in v])
    noise = STD * torch.randn(200, d, generator=generator)
    rejected = [int(FirstStage().rejects(x, STD).sum()) for x in (quantiles, sample, noise)]
    assert rejected[0] == 0
    assert 2 <= rejected[1] <= 24
    assert 2 <= rejected[2] <= 24


def test_noise_is_the_protocols_with_the_strongest_signal_of_a_client() -> None:
    """Over 400 rounds the mean upload is v·‖one sample's upload‖, and every row carries its own noise."""
    attack = bank(disguise="noise", samples=1)
    x, y = attack.knowledge.data.draw(1, Rng(7).child("samples"))
    one = flatten(attack.knowledge.defense.expected_upload(dict(problem().init), x, y))
    out = sent(attack, seed=7)
    rest = (out - one) / STD  # with one sample v is its gradient, so v·ℓ is `one`
    assert float(rest.mean()) == pytest.approx(0.0, abs=0.1)
    assert float(rest.std()) == pytest.approx(1.0, abs=0.05)
    assert abs(cosine(rest[:1], rest[1:])) < 0.1


@pytest.mark.parametrize("options", [{"disguise": "noise"}, {"disguise": "rank", "strength": 0.3}])
def test_noise_that_is_taken_back_leaves_the_direction(options: dict[str, Any]) -> None:
    """The mean of two rounds of a colluder has hardly any noise."""
    v, g = gradient() / gradient().norm(), torch.full_like(gradient(), STD).norm()
    for cancel in (True, False):
        attack = bank(samples=EVERYTHING, cancel=cancel, **options)
        first, memory = attack.craft(round_view(0), {}, Rng(0))
        second, memory = attack.craft(round_view(1), memory, Rng(1))
        a, b = rows(first), rows(second)
        assert not FirstStage().rejects(a, STD).any() or options["disguise"] == "noise"
        noise = (a + b) / 2 - ((a + b) / 2 @ v).unsqueeze(1) * v
        assert bool((noise.norm(dim=1) < 0.25 * g).all()) == cancel  # fresh noise leaves 1/√2 of its length
        third = rows(attack.craft(round_view(2), memory, Rng(2))[0])
        fresh, before = (x - (x @ v).unsqueeze(1) * v for x in (third, a))
        assert abs(cosine(fresh, before)) < 0.3  # paid: the next noise is new


def test_each_colluder_takes_back_its_own_noise_when_it_returns() -> None:
    """Rounds of different colluders: 0 and 2 in the first one, 1 and 2 in the second, all in the third."""
    corrupted = problem().corrupted
    attack, seen = bank(disguise="noise", cancel=True, strength=1e-6), []
    memory: Tensors = {}
    for t, members in enumerate(((0, 2), (1, 2), (0, 1, 2))):
        s = replace(round_view(t), size=len(members), clients=tuple(corrupted[i] for i in members))
        up, memory = attack.craft(s, memory, Rng(t))
        seen.append(dict(zip(members, rows(up), strict=True)))
    for i, first, then in ((0, 0, 2), (1, 1, 2), (2, 0, 1)):
        torch.testing.assert_close(seen[then][i], -seen[first][i], atol=1e-5, rtol=0)
    assert abs(float(torch.cosine_similarity(seen[2][2], seen[0][2], dim=0))) < 0.5


@pytest.mark.parametrize("tilt", [-0.5, 0.0, 0.5])
def test_tilt_leans_a_sideways_strike_on_the_gradient(tilt: float) -> None:
    out = sent(bank(std=0.0, turn=0.0, strike="sideways", tilt=tilt, samples=EVERYTHING))
    assert cosine(out, gradient()) == pytest.approx(tilt / (1 + tilt**2) ** 0.5, abs=1e-4)


@pytest.mark.parametrize(("decoys", "rejected"), [(0, (1, 1, 1)), (1, (1, 0, 0))])
def test_a_decoy_takes_the_outlier_test_upon_itself(decoys: int, rejected: tuple[int, ...]) -> None:
    """DnC with seven uploads of noise: it drops colluders who agree, and behind a decoy honest clients."""
    attack, rule = bank(turn=0.0, decoys=decoys), find("aggregator", "dnc")
    dnc = rule.load()(rule.options())
    for seed in range(20):
        strike = sent(attack, seed=seed)
        honest = STD * torch.randn(7, strike.shape[1], generator=Rng(seed).child("honest").torch())
        used = dnc(
            torch.cat([strike, honest]), Call(weights=torch.ones(10), f=3, memory={}, rng=Rng(seed), reference=gradient)
        ).used
        assert tuple(int(x == 0) for x in used[:3]) == rejected
    assert torch.equal(sent(bank(decoys=decoys)), sent(bank()))  # none while it banks


def test_auto_is_rank_where_the_defense_adds_noise_and_plain_elsewhere() -> None:
    for std, name in ((STD, "rank"), (0.0, "plain")):
        assert bank(std=std).disguise == name
        assert torch.equal(sent(bank(std=std)), sent(bank(std=std, disguise=name)))


@pytest.mark.parametrize("disguise", ["rank", "noise"])
def test_without_noise_there_is_nothing_to_hide_in(disguise: str) -> None:
    reason = bank(std=0.0, disguise=disguise).applies()
    assert reason is not None
    assert "no noise" in reason.reason
    assert bank(disguise=disguise).applies() is None
    assert bank(std=0.0).applies() is None


class Untouchable(dict[str, Tensor]):
    """Honest uploads that nobody may look at."""

    def _no(self, *args: Any) -> Any:
        raise AssertionError("an attacker with knows=own looked at honest uploads")

    __getitem__ = __iter__ = __len__ = __bool__ = keys = values = items = get = _no  # type: ignore[assignment]


def test_own_knowledge_never_looks_at_honest_uploads() -> None:
    for t in (0, 19):
        s = replace(round_view(t), honest=Untouchable())
        bank().craft(s, {}, Rng(0))
        with pytest.raises(AssertionError, match="looked at honest uploads"):
            bank("omniscient").craft(replace(s, honest_clients=tuple(range(7))), {}, Rng(0))


def test_an_omniscient_attacker_trusts_honest_uploads_without_noise() -> None:
    """Without noise the honest mean is half of v; a mean that is all noise is left out."""
    attack, own = bank("omniscient", std=0.0, samples=EVERYTHING), gradient()
    other = torch.randn(own.shape, generator=Rng(3).torch())
    honest = shaped(other.repeat(7, 1), problem().init)
    both = own / own.norm() + other / other.norm()
    assert cosine(sent(attack, honest=honest), both) == pytest.approx(1.0, abs=1e-4)
    strike = sent(attack, 19, honest=honest)
    wrong = gradient(1) / gradient(1).norm() - other / other.norm()
    assert cosine(strike, wrong) == pytest.approx(1.0, abs=1e-4)
    noise = shaped(0.5 * STD / 7**0.5 * other.repeat(7, 1), problem().init)
    blind, seeing = (
        sent(bank(knows, samples=EVERYTHING), honest=noise if seen else None)
        for knows, seen in (("own", False), ("omniscient", True))
    )  # type: ignore[arg-type]
    assert torch.equal(blind, seeing)


def test_a_protocol_that_hides_the_model_is_banked_through_its_client_step() -> None:
    spec = compose.parse_defense("dbcl")
    p = problem()
    on = knowledge_of(p, compose.make_defense(spec, p.task), "own")
    down = on.defense.broadcast(on.defense.init(p.init, Rng(0)), Rng(0)).down
    batches = [p.batch(c, Rng(1).child(c)) for c in p.corrupted]
    own = on.defense.clients(down, batches, [{}] * 3, [{}] * 3)[0]
    out, _ = Bank(Options(samples=EVERYTHING), on).craft(
        RoundView(0, participants=10, size=3, down=down, own=own, honest={}), {}, Rng(0)
    )
    x, y = on.data.inputs(torch.arange(len(on.data.y))), on.data.y
    assert cosine(rows(out), flatten(on.defense.expected_upload(down, x, y))) == pytest.approx(1.0, abs=1e-4)


ACTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "turn": (0.5, {}),
    "burn_rounds": (1, {"turn": 0.5, "bank_rounds": 0}),
    "bank_rounds": (3, {"turn": 0.5, "burn_rounds": 2}),
    "strike": ("ascent", {}),
    "disguise": ("noise", {}),
    "strength": (0.5, {}),
    "form": ("sample", {}),
    "samples": (16, {}),
    "decoys": (1, {}),
    "tilt": (0.5, {"strike": "sideways"}),
    "cancel": (True, {"disguise": "noise"}),
}
"""Option → another value, and what else is set."""


def deeds(**options: Any) -> Tensor:
    attack, out = bank(**options), []
    memory: Tensors = {}
    for t in range(20):
        up, memory = attack.craft(round_view(t), memory, Rng(t))
        out.append(rows(up))
    return torch.stack(out)


def test_every_option_acts() -> None:
    assert set(ACTS) == {f.name for f in dataclasses.fields(Options)} - {
        f.name for f in dataclasses.fields(TuningOptions)
    }
    for name, (value, shared) in ACTS.items():
        if name == "burn_rounds":
            shared, value = {"turn": 0.5, "burn_rounds": 1, "bank_rounds": 3}, 2
        assert not torch.equal(deeds(**shared), deeds(**{**shared, name: value})), name


def test_the_rng_determines_everything_and_nothing_given_is_changed() -> None:
    for options in ({}, {"form": "sample"}, {"disguise": "noise"}, {"strength": 0.5}):
        attack, s = bank(**options), round_view()
        before = {name: x.clone() for name, x in {**s.down, **s.own}.items()}
        assert torch.equal(sent(attack), sent(attack))
        assert not torch.equal(sent(attack), sent(attack, seed=1))
        assert all(torch.equal(x, before[name]) for name, x in {**s.down, **s.own}.items())


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tune": 2, "tune_rounds": 5}, "tune_rounds"),
        ({"strength": 1.5}, "strength"),
        ({"cancel": True}, "cancel"),
        ({"cancel": True, "disguise": "plain"}, "cancel"),
        ({"decoys": 3}, "decoys"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options: dict[str, Any], name: str) -> None:
    with pytest.raises(UserError, match=name):
        bank(**options)


def test_what_it_tunes_is_its_own() -> None:
    card = find("attack", "bank")
    assert card.form == "adaptive"
    for option, grid in Bank.tunes.items():
        assert all(getattr(card.parse({option: str(value)}), option) == value for value in grid)


# -- against servers -------------------------------------------------------------------------------


@cache
def federated(defense: str, rounds: int = 120) -> tuple[Problem, Any]:
    """Digits, a dense network, ten clients of which two are corrupted."""
    model = find("model", "mlp").parse({"widths": "32"})
    schedule = Schedule(rounds=rounds, batch_size=16, lr=0.5)
    spec = compose.parse_defense(defense, {"epsilon": "8"} if defense.startswith("two-stage") else {})
    held = compose.auxiliary(spec)
    p = build(
        ProblemSpec(
            "digits", model="mlp", partition="iid", clients=10, model_options=model, schedule=schedule, corrupted=2
        ),
        0,
        auxiliary=held,
    )
    return p, compose.make_defense(spec, p.task)


def accuracy(defense: str, attack: str, **options: str) -> tuple[float, federation.Run]:
    p, made = federated(defense)
    on = knowledge_of(p, made, "own")
    adversary = Adversary(
        compose.make_poisoning(compose.parse_attack(attack, options), on), frozenset(p.corrupted), Rng(5)
    )
    run = federation.run(made, p, Rng(0).child("federation"), adversary=adversary)
    return run.accuracy, run


def test_it_breaks_the_two_stage_protocol_which_withstands_label_flipping() -> None:
    p, made = federated("two-stage")
    clean = federation.run(made, p, Rng(0).child("federation")).accuracy
    flipped, _ = accuracy("two-stage", "label-flip")
    banked, run = accuracy("two-stage", "bank")
    assert clean > 0.7
    assert flipped > clean - 0.15
    assert banked < clean / 2
    for verdict in run.verdicts:
        for i in p.corrupted:
            assert verdict.values["first_stage"][i] == 0  # never rejected
    assert all(v.values["used"][i] == 1 for v in run.verdicts[-12:] for i in p.corrupted)


def test_a_server_without_memory_has_nothing_to_bank_with() -> None:
    """Two of ten, at honest length: averaging and FLTrust, which judges each round by itself, shrug it off."""
    p, made = federated("fedavg")
    clean = federation.run(made, p, Rng(0).child("federation")).accuracy
    for defense in ("fedavg", "fltrust"):
        (helped, banked), (struck, burnt) = (accuracy(defense, "bank", turn=turn) for turn in ("1.0", "0.5"))
        assert helped > clean - 0.1
        assert struck > clean - 0.1
        assert not torch.equal(flatten(banked.params), flatten(burnt.params))


def test_an_empty_batch_does_not_stop_it() -> None:
    """Poisson sampling: a round in which no colluder drew a sample."""
    p, made = federated("two-stage")
    empty = Batch(torch.zeros(1, 0, 1, 8, 8), torch.zeros(1, 0, dtype=torch.int64))
    noise = made.draw(Rng(0))
    own = made.clients(p.init, [empty] * 2, [{}] * 2, [noise] * 2)[0]
    for disguise in ("rank", "noise", "plain"):
        attack = Bank(Options(disguise=disguise), knowledge_of(p, made, "own"))
        out, _ = attack.craft(RoundView(0, participants=10, size=2, down=dict(p.init), own=own, honest={}), {}, Rng(0))
        assert all(bool(x.isfinite().all()) for x in out.values())
