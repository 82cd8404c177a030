"""What each party observes of BAFFLE.

    paper form      the Stein estimate ĝ_c as if it were the gradient, matched with the plain model
    adaptive form   the K loss differences themselves, matched through the protocol: (L(W + σ z_k; x', y') −
                    L(W; x', y'))/σ as a client computes them, and as a start z_kᵀ ∂L/∂W(x', y')
                    (`fedarena.defenses.baffle.simulators`)

Both ends expand the seed, so that every party knows the z_k, and the K numbers are K linear measurements of the
gradient. The estimate adds noise of size √(n/K), as the paper says; the measurements do not have it.

    server, eavesdropper   each client's differences, off the wire
    with a secure sum      the mean of the cohort's differences, to both of them
    client                 with downlink=scalars the aggregated differences come down in clear; else two consecutive W
                           show ĝ = Σ_k z_k ΔL_k/(Kσ), K unknowns in n > K equations, and its own share is subtracted

At the epoch level W − W_local crosses the wire. The paper form reads it as FedAvg's update. The adaptive form replays
the local steps along the seed's own directions. It cannot replay what a client does not send: how many directions it
took (`min_directions`), the memory of its optimiser from earlier rounds (`optimizer_state=kept`), and the order of its
samples, without which the replay of several local epochs is inaccurate. If clients perturb with own seeds, as in the
released code, other parties can replay nothing, and both forms read a noisy update as FedAvg's.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from fedarena.contracts.defense import Defense
from fedarena.contracts.estimand import GRADIENT
from fedarena.contracts.observation import Disclosure, Observation, Reading
from fedarena.contracts.simulators import (
    PlainGradient,
    client_rounds,
    consecutive_rounds,
    images_behind,
    others_of,
    uploads_seen,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, flatten, least_squares
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.baffle.simulators import SMALL, Differences, LocalSteps, Projections, Slot
from fedarena.defenses.baffle.wire import COUNT, DIFFERENCES, SEED, BaffleWire
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.problem.task import Task

MOST = 2e7
"""The most numbers of perturbed parameters, steps·K·n, for which `LocalSteps` is used. An attack that differentiates it
holds all of them for each of its starts: 160 MB."""


def readings(
    defense: Defense, wire: BaffleWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    if not defense.task.schedule.fedsgd:
        return _epoch_level(defense, wire, threat, seen, victims)
    if wire.options.law:
        return NotApplicable("the run was simulated in law: no loss difference crossed a wire that could be read")
    rounds: Sequence[int] | NotApplicable = [t for t in victims if t in seen]
    if threat.party == "client":
        rounds = _client_rounds(defense, wire, threat, seen, victims)
    if isinstance(rounds, NotApplicable):
        return rounds
    slot = Slot()
    per_round = [_observation(defense, wire, threat, seen, t, slot) for t in rounds]
    observations = tuple(o for o in per_round if isinstance(o, Observation))
    if not observations:
        reasons = [o for o in per_round if isinstance(o, NotApplicable)]
        return reasons[0] if reasons else NotApplicable("none of the rounds attacked took place")
    return [Reading("differences" if threat.form == "adaptive" else "estimate", observations)]


def _observation(
    defense: Defense, wire: BaffleWire, threat: Threat, seen: Mapping[int, Seen], t: int, slot: Slot
) -> Observation | NotApplicable:
    """The differences of one round, or why the party cannot read them."""
    defense = defense.in_round(t)
    now, params = seen[t], _model(defense, wire, seen, t)
    if params is None:
        return NotApplicable(
            "with downlink=scalars the model of a round is known only to those who saw all rounds since it was sent, "
            "with server_optimizer=adam all from the first"
        )
    if threat.party != "client":
        clients, up = uploads_seen(now, threat)
    else:
        up_of_others = _of_others(defense, wire, threat, now, seen[t + 1], params)
        if isinstance(up_of_others, NotApplicable):
            return up_of_others
        clients, up = others_of(now, threat), up_of_others
    seed = int(up[SEED]) if SEED in up else int(now.down[SEED])
    differences = up[DIFFERENCES][: int(up[COUNT])] if COUNT in up else up[DIFFERENCES]
    return _matched(defense, wire, threat, now, clients, params, seed, differences, slot)


def _matched(
    defense: Defense,
    wire: BaffleWire,
    threat: Threat,
    now: Seen,
    clients: tuple[int, ...],
    params: Tensors,
    seed: int,
    differences: Tensor,
    slot: Slot,
) -> Observation:
    """The paper form matches ĝ with the plain gradient, the adaptive form the differences with simulated ones."""
    task, o = defense.task, wire.options
    plain, estimate = PlainGradient(task, params, clients), wire.estimate(seed, differences)
    of_round = Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(task, c) for c in clients),
        target=estimate,
        simulate=plain,
        output_bias=task.output_bias,
        estimate=estimate,
        estimate_of=GRADIENT,
    )
    if threat.form != "adaptive":
        return of_round
    z = _directions(wire, seed, len(differences), differences.device)
    return replace(
        of_round,
        target={DIFFERENCES: differences / wire.spacing},
        simulate=Differences(plain, z, o, slot),
        rough=Projections(plain, z) if o.sigma <= SMALL else None,
        output_bias=None,
    )


_DRAWN: WeakValueDictionary[Hashable, Tensor] = WeakValueDictionary()
"""The directions that observations hold. All clients of a round may have the same, and K·n numbers are many."""


def _directions(wire: BaffleWire, seed: int, count: int, device: torch.device) -> Tensor:
    """z [K, n], the same tensor as long as it is in use."""
    key = wire.n, seed, count, device
    z = _DRAWN.get(key)
    if z is None:
        z = _DRAWN[key] = torch.stack(list(wire.directions(seed, count))).to(device)
    return z


# -- a client -------------------------------------------------------------------------------------------


def _client_rounds(
    defense: Defense, wire: BaffleWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[int] | NotApplicable:
    """The rounds in which a client can read the others' mean differences from broadcasts, or why there is none."""
    if why := defense.why_not_mean():
        return NotApplicable(why)
    if wire.options.downlink == "scalars":
        return consecutive_rounds(defense, threat, seen, victims)
    if wire.own_seeds or wire.options.min_directions is not None:
        return NotApplicable("the perturbations behind the mean estimate are the other clients' own")
    return client_rounds(defense, threat, seen, victims, hidden="the estimate")


def _of_others(
    defense: Defense, wire: BaffleWire, threat: Threat, now: Seen, after: Seen, params: Tensors
) -> Tensors | NotApplicable:
    """The others' mean differences of a round, from its model and the next broadcast."""
    assert now.own_up is not None
    if DIFFERENCES in after.down:
        total = after.down[DIFFERENCES]
    else:
        g = flatten(defense.in_round(now.index).direction_between(params, after.down))
        clip = wire.options.clip
        if clip is not None and float(g.abs().max()) >= clip * (1 - 1e-4):
            return NotApplicable("the server shortened its estimate, which hides the scale of the differences")
        total = _solved(wire, int(now.down[SEED]), g)
    own = {DIFFERENCES: now.own_up[DIFFERENCES]}
    return without_own({DIFFERENCES: total}, own, defense.mean_weights, now, threat)


def _solved(wire: BaffleWire, seed: int, g: Tensor) -> Tensor:
    """ΔL_1 … ΔL_K from ĝ = Σ_k z_k ΔL_k/(Kσ), by least squares in double precision."""
    z = torch.stack(list(wire.directions(seed))).double()
    solution = least_squares(z.T, g.double())
    return (solution * wire.options.directions * wire.options.sigma * wire.points).to(g)


def _model(defense: Defense, wire: BaffleWire, seen: Mapping[int, Seen], t: int) -> Tensors | None:
    """W_t as the party knows it: its own, as sent, or rebuilt from the last W sent; None if it missed a round since.

    W is sent in the first round, and again after each failed round. With the server's Adam the party needs all rounds
    from the first on.
    """
    now = seen[t]
    if now.params is not None:
        return now.params
    if all(name in now.down for name in wire.like):
        return {name: now.down[name] for name in wire.like}
    sent = [r for r in seen if r < t and DIFFERENCES not in seen[r].down]
    first = 0 if defense.task.schedule.server_optimizer == "adam" else max(sent, default=0)
    params, memory = None, dict[str, Tensor]()
    for r in range(first, t + 1):
        if r not in seen:
            return None
        params, memory = wire.open(defense.step, seen[r].down, memory)
    return params


def rebuilt(
    defense: Defense, wire: BaffleWire, seen: Mapping[int, Seen], rounds: Sequence[int]
) -> list[Disclosure] | NotApplicable:
    """W of the given rounds, as a party rebuilds it that receives scalars."""
    models = {t: _model(defense, wire, seen, t) for t in rounds if t in seen}
    disclosures = [Disclosure(t, params) for t, params in models.items() if params is not None]
    if not models or len(disclosures) < len(models):
        return NotApplicable(
            "with downlink=scalars W is known only to those who saw every broadcast before, back to the last W in "
            "clear, or to the first under server_optimizer=adam: they were not all stored (an option of the attack), a "
            "round between them failed, or the malicious client was not sampled in all of these rounds"
        )
    return disclosures


# -- the epoch level ------------------------------------------------------------------------------------


def _epoch_level(
    defense: Defense, wire: BaffleWire, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """W − W_local, read as FedAvg's; in the adaptive form through the seed's directions if they are shared."""
    plain = {t: replace(s, down={n: x for n, x in s.down.items() if n != SEED}) for t, s in seen.items()}
    of_fedavg = FedAvg(None, defense.task, defense.rule).readings(threat, plain, victims)
    if isinstance(of_fedavg, NotApplicable) or threat.form == "paper" or wire.own_seeds:
        return of_fedavg
    replayable = _replayable(wire, seen, of_fedavg)
    if isinstance(replayable, NotApplicable):
        return replayable
    observations = [o for r in replayable for o in r.observations]
    steps = max(defense.task.schedule.steps(defense.task.sizes[o.clients[0]]) for o in observations)
    numbers = steps * wire.options.directions * wire.n
    if numbers > MOST:
        return NotApplicable(
            f"replaying {steps} local steps needs {numbers:.1e} numbers for their directions, more than the {MOST:.1e} "
            "that this attack holds"
        )
    return [
        replace(r, observations=tuple(_replayed(defense.task, wire, seen[o.round], o) for o in r.observations))
        for r in replayable
    ]


def _replayable(
    wire: BaffleWire, seen: Mapping[int, Seen], readings: Sequence[Reading]
) -> Sequence[Reading] | NotApplicable:
    """The observations whose local steps other parties can replay, or why there is none."""
    if any(len(o.clients) > 1 for reading in readings for o in reading.observations):
        return NotApplicable("the local steps of several clients at once are not replayed by this attack")
    if wire.options.min_directions is not None:
        return NotApplicable(
            "how many directions a client took is not on the wire, and this attack does not try all numbers"
        )
    if wire.options.optimizer_state != "kept":
        return readings
    first = [replace(r, observations=tuple(o for o in r.observations if _first(seen, o))) for r in readings]
    return [r for r in first if r.observations] or NotApplicable(
        "the client's optimiser keeps its memory between rounds, and for none of the attacked rounds it is "
        "known that the client had not taken part before"
    )


def _first(seen: Mapping[int, Seen], o: Observation) -> bool:
    """Whether the party saw all earlier rounds, and the client took part in none of them."""
    return all(r in seen and o.clients[0] not in seen[r].participants for r in range(o.round))


def _replayed(task: Task, wire: BaffleWire, now: Seen, o: Observation) -> Observation:
    """The observation, simulated by the client's local steps along its own directions."""
    (client,), start = o.clients, {name: now.down[name] for name in wire.like}
    seeds = [wire.seed_of_step(int(now.down[SEED]), t) for t in range(task.schedule.steps(task.sizes[client]))]
    z = torch.stack([torch.stack(list(wire.directions(seed))) for seed in seeds])
    exact = LocalSteps(task, wire, start, z.to(next(iter(start.values()))))
    return replace(o, simulate=exact, rough=replace(exact, exact=False) if wire.options.sigma <= SMALL else None)
