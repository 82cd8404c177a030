"""What each party makes of what it sees of BAFFLE.

    paper form      the Stein estimate ĝ_c as if it were the gradient, matched with the plain model
    adaptive form   the K loss differences themselves, matched through the protocol: (L(W + σ z_k; x', y') −
                    L(W; x', y'))/σ as a client computes them, and as a start z_kᵀ ∂L/∂W(x', y')
                    (`fedarena.defenses.baffle.simulators`)

Both ends expand the seed, so every party knows the z_k, and K numbers are K linear measurements of the gradient. What
the estimate loses, the paper's noise of size √(n/K), is not lost in them.

    server, eavesdropper   each client's differences, off the wire
    with a secure sum      the mean of the cohort's differences, to both of them
    client                 with downlink=scalars the aggregated differences come down in clear; else two consecutive W
                           show ĝ = Σ_k z_k ΔL_k/(Kσ), K unknowns in n > K equations, and its own share is taken off

At the epoch level W − W_local crosses the wire. The paper form reads it as FedAvg's; the adaptive form replays the
local steps along the seed's own directions. What a client keeps to itself it cannot replay: how many directions it
took (`min_directions`), the memory of its optimiser from rounds before (`optimizer_state=kept`), and the order of its
samples, which with several local epochs leaves the replay far off. Where clients perturb with seeds of their own, as
in the released code, nobody else can, and both forms read a noisy update of FedAvg's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.contracts.estimand import GRADIENT
from fedarena.contracts.observation import Disclosure, Observation, Reading
from fedarena.contracts.simulators import (
    PlainGradient,
    images_behind,
    others_of,
    uploads_seen,
    why_no_difference,
    without_own,
)
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine, flatten, scale
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.baffle.directions import directions
from fedarena.defenses.baffle.simulators import SMALL, Differences, LocalSteps, Projections, Slot
from fedarena.defenses.baffle.wire import COUNT, DIFFERENCES, SEED
from fedarena.defenses.fedavg.protocol import FedAvg

if TYPE_CHECKING:
    from fedarena.defenses.baffle.protocol import Baffle

MOST = 2e7
"""Numbers of perturbed parameters, steps·K·n, that `LocalSteps` goes through at most. An attack that differentiates it
holds all of them for each of its starts: 160 MB."""


def readings(
    defense: Baffle, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    schedule = defense.task.schedule
    if not schedule.fedsgd:
        return _epoch_level(defense, threat, seen, victims)
    if defense.options.law:
        return NotApplicable("the run was simulated in law: no loss difference crossed a wire that could be read")
    if threat.party == "client":
        why = _no_difference(defense)
        if why:
            return NotApplicable(why)
    slot = Slot()
    found = [_observation(defense, threat, seen, t, slot) for t in victims if t in seen]
    observations = tuple(o for o in found if isinstance(o, Observation))
    if not observations:
        reasons = [o.reason for o in found if isinstance(o, NotApplicable)]
        return NotApplicable(reasons[0] if reasons else "none of the rounds attacked took place")
    return [Reading("differences" if threat.form == "adaptive" else "estimate", observations)]


def _observation(
    defense: Baffle, threat: Threat, seen: Mapping[int, Seen], t: int, slot: Slot
) -> Observation | NotApplicable:
    now, task = seen[t], defense.task
    params = _model(defense, seen, t)
    if params is None:
        return NotApplicable(
            "with downlink=scalars the model of a round is known only to those who saw all rounds since it was sent, "
            "with server_optimizer=adam all from the first"
        )
    if threat.party == "client":
        read = _of_others(defense, threat, seen, t, params)
        if isinstance(read, NotApplicable):
            return read
        clients, up = read
    else:
        clients, up = uploads_seen(now, threat)
    seed = int(up[SEED]) if SEED in up else int(now.down[SEED])
    differences = up[DIFFERENCES][: int(up[COUNT])] if COUNT in up else up[DIFFERENCES]
    plain = PlainGradient(task, params, clients)
    estimate = defense.estimate(seed, differences)
    adaptive = threat.form == "adaptive"
    halves = 2.0 if defense.options.scheme == "central" else 1.0
    z = torch.stack(list(islice(directions(seed, defense.n), len(differences)))).to(differences.device)
    return Observation(
        round=t,
        clients=clients,
        images=sum(images_behind(task, c) for c in clients),
        target={DIFFERENCES: differences / (halves * defense.options.sigma)} if adaptive else estimate,
        simulate=Differences(plain, z, defense.options, slot) if adaptive else plain,
        rough=Projections(plain, z) if adaptive and defense.options.sigma <= SMALL else None,
        output_bias=None if adaptive else task.output_bias,
        estimate=estimate,
        estimate_of=GRADIENT,
    )


# -- a client -------------------------------------------------------------------------------------------


def _no_difference(defense: Baffle) -> str:
    """Why a client cannot read the others' mean differences from what comes down; empty if it can."""
    o = defense.options
    if why := defense.why_not_mean():
        return why
    if o.downlink == "scalars":
        return ""
    if defense.own_seeds or o.min_directions is not None:
        return "the perturbations behind the mean estimate are the other clients' own"
    if defense.task.schedule.server_optimizer != "sgd":
        return "the server's Adam steps do not show the estimate, and this attack does not invert Adam"
    return ""


def _of_others(
    defense: Baffle, threat: Threat, seen: Mapping[int, Seen], t: int, params: Tensors
) -> tuple[tuple[int, ...], Tensors] | NotApplicable:
    """The others' mean differences of round t, and who they are."""
    now, after, others = seen[t], seen.get(t + 1), others_of(seen[t], threat)
    if after is None or not others:
        return NotApplicable(why_no_difference(defense.task))
    assert now.own_up is not None
    if DIFFERENCES in after.down:
        total = after.down[DIFFERENCES]
    else:
        g = flatten(scale(1 / defense.step_size, combine(1.0, params, -1.0, {n: after.down[n] for n in params})))
        clip = defense.options.clip
        if clip is not None and float(g.abs().max()) >= clip * (1 - 1e-4):
            return NotApplicable("the server shortened its estimate, which hides the scale of the differences")
        total = _solved(defense, int(now.down[SEED]), g)
    mine = {DIFFERENCES: now.own_up[DIFFERENCES]}
    return others, without_own({DIFFERENCES: total}, mine, defense.mean_weights, now, threat)


def _solved(defense: Baffle, seed: int, g: Tensor) -> Tensor:
    """ΔL_1 … ΔL_K from ĝ = Σ_k z_k ΔL_k/(Kσ), by least squares in double precision."""
    o = defense.options
    z = torch.stack(list(islice(directions(seed, defense.n), o.directions))).double().to(g.device)
    halves = 2.0 if o.scheme == "central" else 1.0
    found: Tensor = torch.linalg.lstsq(z.T, g.double()[:, None]).solution[:, 0]
    return (found * o.directions * o.sigma * halves).to(g)


def _model(defense: Baffle, seen: Mapping[int, Seen], t: int) -> Tensors | None:
    """W_t as the party knows it: its own, sent, or rebuilt from the last one sent; None when it missed something since.

    W is sent in the first round, and anew after each that failed. The server's Adam builds on all from the first on.
    """
    now = seen[t]
    if now.params is not None:
        return now.params
    if all(name in now.down for name in defense.like):
        return {name: now.down[name] for name in defense.like}
    sent = [r for r in seen if r < t and DIFFERENCES not in seen[r].down]
    first = 0 if defense.task.schedule.server_optimizer == "adam" else max(sent, default=0)
    params, memory = None, dict[str, Tensor]()
    for r in range(first, t + 1):
        if r not in seen:
            return None
        params, memory = defense.opened(seen[r].down, memory)
    return params


def rebuilt(defense: Baffle, seen: Mapping[int, Seen], rounds: Sequence[int]) -> list[Disclosure] | NotApplicable:
    """W of the given rounds, by a party to which scalars came down."""
    found = {t: _model(defense, seen, t) for t in rounds if t in seen}
    told = [Disclosure(t, params) for t, params in found.items() if params is not None]
    if not found or len(told) < len(found):
        return NotApplicable(
            "with downlink=scalars W is known only to those who saw every broadcast before, back to the last W in "
            "clear, or to the first under server_optimizer=adam: they were not all kept (an option of the attack), a "
            "round between them failed, or the malicious client was not sampled in all of these rounds"
        )
    return told


# -- the epoch level ------------------------------------------------------------------------------------


def _epoch_level(
    defense: Baffle, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """W − W_local, read as FedAvg's, in the adaptive form through the seed's directions where they are shared."""
    plain = {t: replace(s, down={n: x for n, x in s.down.items() if n != SEED}) for t, s in seen.items()}
    found = FedAvg(None, defense.task, defense.rule).readings(threat, plain, victims)
    if isinstance(found, NotApplicable) or threat.form == "paper" or defense.own_seeds:
        return found
    if any(len(o.clients) > 1 for reading in found for o in reading.observations):
        return NotApplicable("the local steps of several clients at once are not replayed by this attack")
    if defense.options.min_directions is not None:
        return NotApplicable(
            "how many directions a client took is not on the wire, and this attack does not try all numbers"
        )
    if defense.options.optimizer_state == "kept":
        first = [replace(r, observations=tuple(o for o in r.observations if _first(seen, o))) for r in found]
        found = [r for r in first if r.observations]
        if not found:
            return NotApplicable(
                "the client's optimiser keeps its memory between rounds, and of none of the rounds attacked it is "
                "known that the client had taken no part before"
            )
    steps = max(defense.task.schedule.steps(defense.task.sizes[o.clients[0]]) for r in found for o in r.observations)
    numbers = steps * defense.options.directions * defense.n
    if numbers > MOST:
        return NotApplicable(
            f"replaying {steps} local steps needs {numbers:.1e} numbers for their directions, more than the {MOST:.1e} "
            "that this attack holds"
        )
    return [replace(r, observations=tuple(_replayed(defense, seen[o.round], o) for o in r.observations)) for r in found]


def _first(seen: Mapping[int, Seen], o: Observation) -> bool:
    """Whether the party saw all rounds before, and the client in none of them."""
    return all(r in seen and o.clients[0] not in seen[r].participants for r in range(o.round))


def _replayed(defense: Baffle, now: Seen, o: Observation) -> Observation:
    (client,), start = o.clients, {name: now.down[name] for name in defense.like}
    steps, k = defense.task.schedule.steps(defense.task.sizes[client]), defense.options.directions
    seeds = [defense.seed_of_step(int(now.down[SEED]), t) for t in range(steps)]
    z = torch.stack([torch.stack(list(islice(directions(seed, defense.n), k))) for seed in seeds])
    exact = LocalSteps(defense, start, client, z.to(next(iter(start.values()))))
    return replace(o, simulate=exact, rough=replace(exact, exact=False) if defense.options.sigma <= SMALL else None)
