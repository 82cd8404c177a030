"""A finished run in which corrupted clients poison the attacked rounds (`fedarena.contracts.curious_poisoning`).

Each attacked round is played once more as it was, with the same honest uploads and the same randomness of the server,
but for the uploads of the corrupted clients. What they read of it stands beside what they would have read of the round
as it was, where they followed the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from fedarena.contracts.curious_poisoning import CuriousPoisoning, Turn
from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.peers import NO_SERVER, Peers
from fedarena.contracts.simulators import why_no_difference
from fedarena.contracts.transcript import Round, Seen
from fedarena.core.global_generators import generators_of
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, row, scale, stack, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation.adversary import knowledge_of, without_infinities
from fedarena.federation.finished_run import FinishedRun

NAME = "difference"


@dataclass(frozen=True)
class PoisonedRounds(FinishedRun):
    """A finished run with what corrupted clients read of some rounds.

    Attributes:
        poisoned: by round, what they read of it as poisoned.
        honest: by round, what they would have read without poison.
    """

    poisoned: Mapping[int, Observation] = field(default_factory=dict)
    honest: Mapping[int, Observation] = field(default_factory=dict)

    def readings(
        self, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
    ) -> Sequence[Reading] | NotApplicable:
        """One reading: the poisoned rounds, and then the same rounds as they were."""
        if not self.poisoned:
            return NotApplicable("none of the rounds attacked had both an honest and a corrupted client")
        return [Reading(NAME, (*self.poisoned.values(), *self.honest.values()))]


def why_unreadable(defense: Defense) -> NotApplicable | None:
    """Why two broadcasts of a protocol do not show the server's step; None if they do."""
    if isinstance(defense, Peers):
        return NO_SERVER
    if defense.secure is not None:
        return NotApplicable("a secure sum is a mean, in which no upload moves the weight of another")
    if defense.task.schedule.server_optimizer != "sgd":
        return NotApplicable("the server's Adam steps do not show its direction, and this attack does not invert Adam")
    if len(defense.task.sizes) == 1:
        return NotApplicable(why_no_difference(defense.task))
    return None


def poisoned_rounds(
    finished: FinishedRun, attack: CuriousPoisoning, threat: Threat, victims: Sequence[int]
) -> PoisonedRounds | NotApplicable:
    """The run with the rounds of `victims` that were written down, as the attack poisons them; or why it cannot."""
    if (why := why_unreadable(finished.defense)) is not None:
        return why
    poisoned, honest = {}, {}
    for r in (r for r in finished.run.rounds if r.index in victims):
        if set(r.down) != set(r.params):
            return NotApplicable("the broadcast is not the model, so that two of them do not show the server's step")
        turn = _turn(finished, attack, r)
        if turn is None:
            continue
        # A seed of its own, from which the run's seed cannot be computed back.
        sent = attack.poison(turn, Rng(Rng(finished.spec.root).child("curious poisoning", r.index).integer()))
        if isinstance(sent, NotApplicable):
            return sent
        read = partial(_read, finished, threat, r, turn)
        sent = {name: sent[name].to(own) for name, own in turn.own.items()}  # float64 may be infinite in float32
        shown, plain = read(without_infinities(sent, range(len(turn.clients)))), read(turn.own)
        if isinstance(shown, NotApplicable):
            return shown
        assert not isinstance(plain, NotApplicable), "the same protocol, round and victim"
        poisoned[r.index] = shown
        honest[r.index] = replace(plain, estimate=None)  # so that what is told of estimates is of poison
    return PoisonedRounds(
        spec=finished.spec,
        problem=finished.problem,
        defense=finished.defense,
        run=finished.run,
        control=finished.control,
        poisoned=poisoned,
        honest=honest,
    )


def _turn(finished: FinishedRun, attack: CuriousPoisoning, r: Round) -> Turn | None:
    """What the attack's knowledge allows it to see, as in `fedarena.federation.adversary`; None without a victim."""
    corrupted = tuple(c for c in r.participants if c in finished.problem.corrupted)
    others = [c for c in r.participants if c not in finished.problem.corrupted]
    if not corrupted or not others:
        return None
    generator = Rng(finished.spec.root).child("curious poisoning", "victim", r.index).torch()
    return Turn(
        protocol=finished.defense.in_round(r.index),
        round=r.index,
        down=r.down,
        participants=r.participants,
        clients=corrupted,
        victim=others[int(torch.randint(len(others), (), generator=generator))],
        own=_rows(r, corrupted),
        data=knowledge_of(finished.problem, finished.defense, "own").data,
        honest=_rows(r, others) if attack.knows == "omniscient" else {},
    )


def _rows(r: Round, clients: Sequence[int]) -> Tensors:
    index = [r.participants.index(client) for client in clients]
    return {name: up[index] for name, up in r.ups.items()}


def _read(finished: FinishedRun, threat: Threat, r: Round, turn: Turn, sent: Tensors) -> Observation | NotApplicable:
    """The next broadcast's difference where the corrupted clients send this, read as the protocol reads an upload."""
    after = _next_broadcast(finished, turn, r, sent)
    shown = turn.protocol.direction_between(r.down, after)
    upload = stack([_without_own(turn, shown, sent)])
    now = Seen(index=r.index, participants=(turn.victim,), down=r.down, ups=upload, victim=turn.victim)
    readings = turn.protocol.readings(Threat("eavesdropper", threat.form), {r.index: now}, [r.index])
    return readings if isinstance(readings, NotApplicable) else readings[0].observations[0]


def _next_broadcast(finished: FinishedRun, turn: Turn, r: Round, sent: Tensors) -> Tensors:
    """What the server sends after the round, with its own state and randomness of then."""
    state, broadcast, cohort, rng = finished.server_in(r)
    rows_ = {client: row(r.ups, i) for i, client in enumerate(r.participants)}
    rows_ |= {client: row(sent, i) for i, client in enumerate(turn.clients)}
    with generators_of(rng):
        after = turn.protocol.aggregate(state, broadcast, stack([*rows_.values()]), cohort, rng)
    later = Rng(finished.spec.root).child("federation", "broadcast", r.index + 1)
    with generators_of(later):
        return finished.defense.in_round(r.index + 1).broadcast(after, later).down


def _without_own(turn: Turn, shown: Tensors, sent: Tensors) -> Tensors:
    """The others' mean upload where the server takes a mean; else what was shown."""
    if not turn.protocol.takes_mean:
        return shown
    counts = turn.protocol.mean_weights
    own = shown[next(iter(shown))].new_tensor([float(counts[client]) for client in turn.clients])
    mine, whole = float(own.sum()), float(sum(counts[client] for client in turn.participants))
    return scale(1 / (whole - mine), combine(whole, shown, -mine, weighted_mean(sent, own)))
