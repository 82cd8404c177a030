"""What each party reads of BAFFLE: the true samples give what was seen, at any sigma and along local steps."""

from __future__ import annotations

import pytest
import torch
from helpers.baffle import make, watched

from fedarena.contracts.transcript import cut
from fedarena.core.tensors import flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.baffle.protocol import DIFFERENCES
from fedarena.problem.local_training import upload

# -- what parties observe -------------------------------------------------------------------------------


def reading(defense, rounds, party, form):
    threat = Threat(party, form)
    return defense.readings(threat, cut(rounds, threat), range(len(rounds)))


@pytest.mark.parametrize("party", ["server", "eavesdropper", "client"])
@pytest.mark.parametrize("options", [{}, {"scheme": "central"}, {"downlink": "scalars"}, {"perturbations": "client"}])
def test_the_adaptive_form_simulates_what_was_sent(party, options):
    """The true samples give the observed differences, up to curvature and rounding."""
    defense = make(directions=30, precision="float64", **options)
    rounds = watched(defense, 3)
    found = reading(defense, rounds, party, "adaptive")
    if party == "client" and options.get("perturbations") == "client":
        assert isinstance(found, NotApplicable)
        return
    (one,) = found
    assert one.observations
    for o in one.observations:
        r = rounds[o.round]
        xs, ys = zip(*(r.batches[c].images() for c in o.clients), strict=True)
        y = torch.nn.functional.one_hot(torch.cat(ys), 3).float()
        simulated, seen = o.simulate(torch.cat(xs), y)[DIFFERENCES], o.target[DIFFERENCES]
        assert float((simulated - seen).norm() / seen.norm()) < (0.05 if party == "client" else 0.01)
        assert o.images == 4 * len(o.clients)


def test_the_paper_form_takes_the_estimate_for_the_gradient():
    defense = make(directions=30, precision="float64")
    rounds = watched(defense, 3)
    (one,) = reading(defense, rounds, "server", "paper")
    o = one.observations[0]
    assert set(o.target) == set(defense.wire.like)
    estimate = defense.wire.estimate(int(rounds[0].down["seed"]), rounds[0].ups[DIFFERENCES][1])
    assert torch.equal(flatten(o.target), flatten(estimate))
    assert o.clients == (1,)


def test_simulated_runs_have_nothing_to_read():
    defense = make(law=True, directions=10)
    found = reading(defense, watched(defense, 3), "server", "adaptive")
    assert isinstance(found, NotApplicable)
    assert "simulated in law" in found.reason


@pytest.mark.parametrize("scheme", ["forward", "central"])
def test_a_large_sigma_is_matched_by_the_differences_themselves(scheme):
    """Where the loss is curved over σ, projections of the gradient are not what a client sent."""
    defense = make(directions=30, sigma=0.1, scheme=scheme, precision="float64")
    rounds = watched(defense, 3)
    (one,) = reading(defense, rounds, "server", "adaptive")
    o = one.observations[0]
    x, y = rounds[0].batches[o.clients[0]].images()
    simulated = o.simulate(x, torch.nn.functional.one_hot(y, 3).float())[DIFFERENCES]
    assert float((simulated - o.target[DIFFERENCES]).norm() / o.target[DIFFERENCES].norm()) < 1e-3


def test_the_epoch_level_is_replayed_along_the_seed():
    """The true samples, in their order, give the observed update; FedAvg's plain steps do not."""
    defense = make(directions=20, precision="float64", sizes=(8, 8, 8), schedule={"local_epochs": 1, "batch_size": 4})
    rounds = watched(defense, 3)
    (one,) = reading(defense, rounds, "server", "adaptive")
    o = one.observations[0]
    batch = rounds[0].batches[o.clients[0]]
    x, y = batch.images()
    seen, found = flatten(o.target), flatten(o.simulate(x, torch.nn.functional.one_hot(y, 3).float()))
    assert float((found - seen).norm() / seen.norm()) < 0.02
    plain = flatten(upload(defense.task.loss, rounds[0].params, batch, defense.task.schedule))
    assert float((plain - seen).norm() / seen.norm()) > 0.5
    own = make(directions=20, perturbations="client", sizes=(8, 8, 8), schedule={"local_epochs": 1, "batch_size": 4})
    (one,) = reading(own, watched(own, 3), "server", "adaptive")
    again = flatten(one.observations[0].simulate(x, torch.nn.functional.one_hot(y, 3).float()))
    assert torch.allclose(again, plain, rtol=1e-4, atol=1e-6)


# -- the server's model ---------------------------------------------------------------------------------


def disclosed(defense, rounds, party, wanted, saw=None):
    threat = Threat(party, "adaptive")
    return defense.disclosures(threat, cut([r for r in rounds if saw is None or r.index in saw], threat), wanted)


@pytest.mark.parametrize("party", ["eavesdropper", "client"])
@pytest.mark.parametrize("downlink", ["model", "scalars"])
def test_broadcasts_tell_the_model(party, downlink):
    """Scalars do too, to whoever kept all of them."""
    defense = make(directions=10, downlink=downlink)
    rounds = watched(defense, 3)
    found = disclosed(defense, rounds, party, (0, 2))
    for told, r in zip(found, (rounds[0], rounds[2]), strict=True):
        assert told.round == r.index
        assert set(told.params) == set(r.params)
        for name, w in r.params.items():
            assert torch.allclose(told.params[name], w, rtol=1e-5, atol=1e-6)


def test_scalars_tell_nothing_to_who_missed_one():
    defense = make(directions=10, downlink="scalars")
    found = disclosed(defense, watched(defense, 3), "eavesdropper", (2,), saw=(0, 2))
    assert isinstance(found, NotApplicable)
    assert "every broadcast before" in found.reason
    own = disclosed(defense, watched(defense, 3), "server", (2,))
    assert "its own model" in own.reason
