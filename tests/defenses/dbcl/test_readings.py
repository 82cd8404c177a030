"""What each party reads from DBCL's wires."""

from __future__ import annotations

import pytest
import torch
from helpers.dbcl import cnn, cosine, distance, one_hot, play
from torch import Tensor

from fedarena.contracts.estimand import GRADIENT, UPDATE
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.simulators import PlainGradient
from fedarena.contracts.transcript import Round, cut
from fedarena.contracts.view import View, seal
from fedarena.core.tensors import Tensors, combine, row, weighted_mean
from fedarena.core.threat import FORMS, Form, NotApplicable, Party, Threat
from fedarena.defenses.dbcl.card import Options
from fedarena.defenses.dbcl.protocol import DBCL
from fedarena.defenses.dbcl.sketch import DISTRIBUTIONS
from fedarena.defenses.dbcl.smoother import Step, smooth
from fedarena.defenses.dbcl.update_estimate import smoothed
from fedarena.problem.task import Batch
from fedarena.testing.defense_laws import view_of
from fedarena.testing.same import tensors_in

EACH = pytest.mark.parametrize("law", list(DISTRIBUTIONS))
LOSSLESS = Options(ratio=1.0, hash="balanced")
"""S is a signed permutation: S Sᵀ = I, and every estimate is exact."""


def read(defense: DBCL, rounds: list[Round], party: Party, form: Form, victims: list[int]) -> list[Reading]:
    """The readings, which must exist."""
    threat = Threat(party, form)
    found = defense.readings(threat, cut(rounds, threat), victims)
    assert not isinstance(found, NotApplicable), found.reason
    return list(found)


def private(observation: Observation, r: Round) -> tuple[Tensor, Tensor]:
    """The samples behind an observation, labels as probabilities."""
    batches: list[Batch] = [r.batches[r.participants.index(c)] for c in observation.clients]
    pairs = [b.images() for b in batches]
    return torch.cat([x for x, _ in pairs]), one_hot(torch.cat([y for _, y in pairs]))


def hidden(defense: DBCL, tensors: Tensors) -> Tensors:
    """The sketched parameters alone."""
    return {name: tensors[name] for name in defense.wire.shapes}


def others_mean(r: Round, sizes: tuple[int, ...]) -> Tensors:
    """The N_c-weighted mean upload of everybody but client 0."""
    index = [i for i, c in enumerate(r.participants) if c != 0]
    counts = torch.tensor([sizes[r.participants[i]] for i in index])
    return weighted_mean({n: t[index] for n, t in r.ups.items()}, counts)


# -- uploads --------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("party", ["server", "eavesdropper"])
@pytest.mark.parametrize("epochs", [0, 2])
def test_adaptive_target_is_the_upload_and_the_truth_matches_it(party: Party, law: str, epochs: int) -> None:
    defense, rounds = play(3, Options(hash=law), cnn(), (1, 8, 8), local_epochs=epochs)
    if epochs:  # the simulator replays one order, so let the victims' epochs be alike
        rounds = [repeat_first_epoch(defense, r) for r in rounds]
    (reading,) = read(defense, rounds, party, "adaptive", [0, 2])
    assert reading.name == "upload"
    assert [o.round for o in reading.observations] == [0, 2]
    for o in reading.observations:
        r = rounds[o.round]
        assert o.clients == (1,)
        assert distance(o.target, row(r.ups, 1)) == 0
        x, y = private(o, r)
        x, y = x[: o.images], y[: o.images]
        assert distance(o.simulate(x, y), o.target) < 1e-5
        assert distance(o.simulate(x + 0.3, y), o.target) > 1e-3


def repeat_first_epoch(defense: DBCL, r: Round) -> Round:
    """The round as if every local epoch had visited the samples in the order of the first."""
    steps = len(r.batches[0].x) // defense.task.schedule.local_epochs
    batches = [Batch(torch.cat([b.x[:steps]] * 2), torch.cat([b.y[:steps]] * 2)) for b in r.batches]
    ups, _ = defense.clients(r.down, batches, [{}] * len(batches), [{}] * len(batches))
    return Round(
        r.index,
        participants=r.participants,
        params=r.params,
        after=r.after,
        secret=r.secret,
        down=r.down,
        ups=ups,
        batches=tuple(batches),
    )


@EACH
def test_paper_form_hands_the_gradient_through_the_transpose(law: str) -> None:
    defense, rounds = play(2, Options(hash=law), cnn(), (1, 8, 8))
    r = rounds[1]
    sketches = defense.wire.open(r.down)[1]
    for party in ("server", "eavesdropper"):
        (reading,) = read(defense, rounds, party, "paper", [1])  # type: ignore[arg-type]
        (o,) = reading.observations
        assert reading.name == "expanded"
        for name, t in row(r.ups, 1).items():
            plain = (t @ sketches[name].dense(t.dtype).T).reshape(r.params[name].shape) if name in sketches else t
            torch.testing.assert_close(o.target[name], plain)
        assert set(o.estimate or {}) == set(defense.wire.shapes)
        assert o.estimate_of == GRADIENT
        simulator = o.simulate
        assert isinstance(simulator, PlainGradient)
        for name, w in r.params.items():  # the server knows W, the eavesdropper W S Sᵀ
            S = sketches[name].dense(w.dtype) if party == "eavesdropper" and name in sketches else None
            known = w if S is None else (w.flatten(1) @ S @ S.T).reshape(w.shape)
            torch.testing.assert_close(simulator.params[name], known)


@pytest.mark.parametrize("party", ["server", "eavesdropper", "client"])
@pytest.mark.parametrize("server_lr", [1.0, 0.5])
def test_paper_form_is_exact_where_nothing_is_lost(party: Party, server_lr: float) -> None:
    """With a lossless sketch the paper form is FedAvg's: the truth matches the target through the plain model."""
    defense, rounds = play(3, LOSSLESS, sizes=(8, 4, 8), dtype=torch.float64, server_lr=server_lr)
    for reading in read(defense, rounds, party, "paper", [0, 1]):
        for o in reading.observations:
            if party != "client" or o.images == 4:
                assert distance(o.simulate(*private(o, rounds[o.round])), o.target) < 1e-9
            truth = combine(1.0, rounds[o.round].params, -1.0, rounds[o.round].after)
            if party == "client":
                assert o.estimate is not None
                assert distance(o.estimate, truth) < 1e-9


@pytest.mark.parametrize("party", ["server", "client"])
def test_paper_form_of_local_training_is_the_gradient_per_step(party: Party) -> None:
    """One local step of the whole shard: the update over lr is the gradient."""
    defense, rounds = play(3, LOSSLESS, sizes=(4, 4), dtype=torch.float64, local_epochs=1, lr=0.05)
    for reading in read(defense, rounds, party, "paper", [0, 1]):
        for o in reading.observations:
            x, y = private(o, rounds[o.round])
            assert distance(o.simulate(x, y), o.target) < 1e-9


# -- a client -------------------------------------------------------------------------------------------


@EACH
def test_options_are_the_papers_formulas(law: str) -> None:
    defense, rounds = play(3, Options(hash=law, ratio=0.6), cnn(), (1, 8, 8), dtype=torch.float64)
    one, two = read(defense, rounds, "client", "paper", [1])
    assert (one.name, two.name) == ("option-I", "option-II")
    old, new = rounds[1], rounds[2]
    for reading, invert in ((one, lambda S: S.T), (two, torch.linalg.pinv)):
        (o,) = reading.observations
        assert (o.round, o.clients, o.estimate_of) == (1, (1, 2), UPDATE)
        assert o.estimate is not None
        assert set(o.estimate) == set(defense.wire.shapes)
        weights = []
        for r in (old, new):
            S = {n: s.dense() for n, s in defense.wire.open(r.down)[1].items()}
            weights.append({n: r.params[n].flatten(1) @ S[n] @ invert(S[n]) for n in S})
        for name, estimate in o.estimate.items():
            torch.testing.assert_close(estimate.flatten(1), weights[0][name] - weights[1][name])
        assert isinstance(o.simulate, PlainGradient)
        for name, w in weights[0].items():
            torch.testing.assert_close(o.simulate.params[name].flatten(1), w)


@pytest.mark.parametrize("sizes", [(8, 8), (20, 4, 12)])
def test_unsketched_parameters_are_exact(sizes: tuple[int, ...]) -> None:
    """Biases and output layer: the others' mean gradient, whatever the reading."""
    defense, rounds = play(6, sizes=sizes, dtype=torch.float64, server_lr=2.0)
    for form in FORMS:
        for reading in read(defense, rounds, "client", form, [2]):
            (o,) = reading.observations
            exact = {n: t for n, t in o.target.items() if n not in defense.wire.shapes}
            assert len(exact) == 4
            assert distance(exact, others_mean(rounds[2], sizes)) < 1e-6  # the server's weights are floats


@EACH
@pytest.mark.parametrize("epochs", [0, 1])
def test_smoother_reads_what_the_options_cannot(law: str, epochs: int) -> None:
    defense, rounds = play(60, Options(hash=law), cnn(), (1, 8, 8), sizes=(8, 8), local_epochs=epochs, lr=0.05)
    victims = [20, 30, 40]
    (smoother,) = read(defense, rounds, "client", "adaptive", victims)
    assert smoother.name == "smoother"
    for o in smoother.observations:
        r = rounds[o.round]
        truth = hidden(defense, combine(1.0, r.params, -1.0, r.after))
        assert o.estimate is not None
        assert cosine(o.estimate, truth) > 0.95
        assert cosine(o.target, others_mean(r, (8, 8))) > 0.95
        assert {n: t.shape for n, t in o.target.items()} == {n: t.shape[1:] for n, t in r.ups.items()}
    for option in read(defense, rounds, "client", "paper", victims):
        for o in option.observations:
            truth = hidden(defense, combine(1.0, rounds[o.round].params, -1.0, rounds[o.round].after))
            assert o.estimate is not None
            assert abs(cosine(o.estimate, truth)) < 0.3
            assert distance(o.estimate, truth) > 5


def test_smoother_survives_missed_rounds_and_varying_sizes() -> None:
    """The attacker misses every fifth round: worse than seeing all, far better than the options."""
    options = Options(vary=0.2)

    def who(t: int) -> tuple[int, ...]:
        return (1, 2) if t % 5 == 4 else (0, 1)

    defense, rounds = play(61, options, sizes=(8, 8, 8), participants=who)
    victims = [t for t in range(20, 40) if t % 5 in (0, 1, 2)]
    (smoother,) = read(defense, rounds, "client", "adaptive", victims)
    found = {}
    for reading in (smoother, *read(defense, rounds, "client", "paper", victims)):
        cosines = []
        for o in reading.observations:
            r = rounds[o.round]
            assert o.estimate is not None
            cosines.append(cosine(o.estimate, combine(1.0, r.params, -1.0, r.after)))
        found[reading.name] = float(torch.tensor(cosines).median())
    assert found["smoother"] > 0.6
    assert found["smoother"] > max(abs(found["option-I"]), abs(found["option-II"])) + 0.3


def test_smoother_expects_of_others_what_its_own_upload_shows() -> None:
    """Known: step·share·Γ_own; the rest as large as Γ_own would be, and so every step of a missed round."""

    def who(t: int) -> tuple[int, ...]:
        return (1, 2) if t in (3, 4, 7) else (0, 2)

    defense, rounds = play(10, sizes=(8, 8, 24), participants=who, server_lr=2.0, dtype=torch.float64)
    threat = Threat("client", "adaptive")
    steps = []
    for t, missed in ((0, 0), (1, 0), (2, 2), (5, 0), (6, 1), (8, 0), (9, 0)):
        down, own = rounds[t].down, rounds[t].ups["0.weight"][0]
        size = 0.2 * float(own.square().mean().sqrt())
        sketch = defense.wire.open(down)[1]["0.weight"]
        steps.append(Step(sketch, down["0.weight"], 0.2 * 0.25 * own, 0.75 * size, size * missed**0.5))
    expected = smooth(steps, [0, 3, 5])
    found = smoothed(defense, defense.wire, threat, cut(rounds, threat), [0, 5, 8])
    for t, move in zip((0, 5, 8), expected, strict=True):
        torch.testing.assert_close(found[t]["0.weight"].inside, move.inside)


def test_smoother_target_matches_through_the_protocol() -> None:
    """With a lossless sketch: the others' mean upload, which their true samples give."""
    defense, rounds = play(4, LOSSLESS, sizes=(8, 4, 12), dtype=torch.float64)
    (reading,) = read(defense, rounds, "client", "adaptive", [1, 2])
    for o in reading.observations:
        assert o.images == 8
        assert distance(o.target, others_mean(rounds[o.round], (8, 4, 12))) < 1e-4
        assert distance(o.simulate(*private(o, rounds[o.round])), o.target) < 1e-4


# -- what cannot start ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("settings", "victims", "reason"),
    [
        ({}, [2], "two consecutive rounds"),  # the last round: nothing is seen after it
        ({"participants": lambda t: (0, 1) if t % 2 else (1, 2)}, [1], "two consecutive rounds"),
        ({"participants": lambda t: (0,)}, [0, 1], "another client"),
        ({"server_optimizer": "adam"}, [0], "Adam"),
    ],
)
def test_a_client_that_cannot_start_says_why(
    form: Form, settings: dict[str, object], victims: list[int], reason: str
) -> None:
    defense, rounds = play(3, **settings)
    threat = Threat("client", form)
    found = defense.readings(threat, cut(rounds, threat), victims)
    assert isinstance(found, NotApplicable)
    assert reason in found.reason


@pytest.mark.parametrize("party", ["server", "eavesdropper"])
def test_where_only_client_zero_took_part_it_is_the_victim(party: Party) -> None:
    defense, rounds = play(2, participants=lambda t: (0,))
    threat = Threat(party, "paper")
    found = defense.readings(threat, cut(rounds, threat), [0])
    assert not isinstance(found, NotApplicable)
    assert [o.clients for o in found[0].observations] == [(0,)]


def test_only_the_rounds_asked_for_and_seen() -> None:
    defense, rounds = play(5, participants=lambda t: (1, 2) if t == 3 else (0, 1))
    for form in FORMS:
        for reading in read(defense, rounds, "client", form, [0, 1, 2, 3, 4]):
            assert [o.round for o in reading.observations] == [0, 1]


# -- secrets --------------------------------------------------------------------------------------------


def holds(view: View, secrets: list[Tensor]) -> bool:
    """Whether a tensor of the view has the values of a secret, in whatever shape."""
    return any(
        a.numel() == b.numel() and torch.allclose(a.flatten().double(), b.flatten().double(), rtol=1e-6, atol=1e-9)
        for a in tensors_in(view)
        for b in secrets
    )


def views(defense: DBCL, rounds: list[Round], party: Party, form: Form) -> list[View]:
    """Sealed views, the party's own batches with them, as the harness hands them over."""
    threat = Threat(party, form)
    seen = cut(rounds, threat)
    own = {t: s.own_batch for t, s in seen.items() if s.own_batch is not None}
    return [seal(view_of(defense.task, threat, r, own)) for r in read(defense, rounds, party, form, [1, 2])]


@EACH
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("party", ["client", "eavesdropper"])
def test_views_hold_neither_weights_nor_data(party: Party, form: Form, law: str) -> None:
    defense, rounds = play(5, Options(hash=law), cnn(), (1, 8, 8))
    weights = [r.params[name] for r in rounds for name in defense.wire.shapes]
    data = [t for r in rounds for c, b in zip(r.participants, r.batches, strict=True) if c != 0 for t in (b.x, *b.x)]
    for view in views(defense, rounds, party, form):
        assert len(tensors_in(view)) > 10
        assert not holds(view, weights)
        assert not holds(view, data)


def test_the_search_for_secrets_finds_them() -> None:
    """The server's paper form does hold W, and a client's view its own data."""
    defense, rounds = play(5)
    (server,) = views(defense, rounds, "server", "paper")
    assert holds(server, [rounds[1].params["0.weight"]])
    assert holds(views(defense, rounds, "client", "paper")[0], [rounds[1].batches[0].x])
