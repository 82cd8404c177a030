"""One round without a server: every node steps, sends to its neighbours, and mixes what it hears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from fedarena.contracts.defense import State
from fedarena.contracts.peers import Peers, mixed_plainly
from fedarena.contracts.transcript import Round
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, combine, nbytes, row, stack
from fedarena.core.threat import CURIOUS
from fedarena.federation.one_round import ClientWork, Clock, Federation, RoundResult, draw_work, try_first_client

Edge = tuple[int, int]


@dataclass(frozen=True)
class _Played:
    """What nodes did in a round.

    Attributes:
        ups: the uploads of their local steps, stacked; {} unless the round is written down. halves: h_i, stacked.
        messages: by sender and receiver; only the round that is written down, and rounds that are mixed node by node,
            have them all.
        models, memories: W_i after the round, stacked, and what the nodes' rules remember.
    """

    ups: Tensors
    halves: Tensors
    messages: Mapping[Edge, Tensors]
    models: Tensors
    memories: list[Tensors] = field(default_factory=list)


def play(federation: Federation, defense: Peers, state: State, t: int, write: bool = False) -> RoundResult:
    """Play round t. See `fedarena.federation.one_round.play`."""
    defense = defense.in_round(t)
    work, clock = draw_work(replace(federation, defense=defense), t, everyone=True), Clock(federation.problem.device)
    models = defense.models(state)
    try_first_client(replace(federation, defense=defense), t, row(models, 0), work)
    memories = tuple(federation.memories.get(node, {}) for node in work.clients)
    with clock:
        played = _played(federation, defense, state, work, t, write)
        honest = [i for i in work.clients if i not in federation.adversary.corrupted]
        after = defense.after(state, played.models, played.memories, honest)
    sent = _bytes(defense, played.halves)
    return RoundResult(
        state=after,
        participants=len(work.clients),
        bytes_up=sent,
        bytes_down=sent,  # what is sent is heard
        seconds=clock.seconds,
        transcript=_transcript(federation, defense, t, work, memories, played, (state, after)) if write else None,
    )


def _played(federation: Federation, defense: Peers, state: State, work: ClientWork, t: int, write: bool) -> _Played:
    """The local steps, and what nodes make of each other's messages. Updates the nodes' memories."""
    models, kept = defense.models(state), federation.memories
    given = models, work.batches, [kept.get(i, {}) for i in work.clients], work.noises
    if write:
        ups, after = defense.local(*given)
        halves = defense.half(models, ups)
    else:
        ups, (halves, after) = {}, defense.local_halves(*given)
    kept.update(zip(work.clients, after, strict=True))
    if defense.plain and not federation.adversary.corrupted:
        return _Played(ups, halves, {}, mixed_plainly(defense, halves))
    messages: dict[Edge, Tensors] = {}
    done = []
    for node in work.clients:
        u = _heard(federation, defense, halves, node, t, messages)
        cohort, memory = defense.cohort(node, next(iter(u.values()))), defense.memory(state, node)
        heard = row(halves, node), u, cohort, memory, federation.rng.child("aggregate", t, node)
        done.append(federation.replays.call(t, "mix", defense.mix, *heard))
    return _Played(ups, halves, messages, stack([model for model, _ in done]), [memory for _, memory in done])


def secret_of(rng: Rng, t: int, i: int, j: int) -> int:
    """The number that the two ends of an edge agreed on for round t."""
    return rng.child("edge", t, min(i, j), max(i, j)).integer(31)


def _heard(
    federation: Federation, defense: Peers, halves: Tensors, node: int, t: int, messages: dict[Edge, Tensors]
) -> Tensors:
    """u_ij of a node's neighbourhood, with what corrupted neighbours made of theirs. Adds the messages.

    A corrupted node sees what the node itself sends before it sends its own. It crafts in the coordinates u, from which
    its message follows, and so may send every neighbour something else.
    """
    half = row(halves, node)
    cohort = defense.cohort(node, next(iter(half.values())))
    around = cohort.clients
    sent = {j: row(halves, j) for j in around}
    adversary = federation.adversary
    if node not in adversary.corrupted and adversary.corrupted.intersection(around):
        computing = [i for i, j in enumerate(around) if adversary.computes(j)]
        honest = {name: h - halves[name][[around[i] for i in computing]] for name, h in half.items()}
        crafted = adversary.uploads(t, cohort, half, honest, node)
        for i, j in enumerate(around):
            if j in adversary.corrupted:
                sent[j] = combine(1.0, half, -1.0, row(crafted, i))
    differences = []
    for j in around:
        if j == node:
            differences.append({name: torch.zeros_like(h) for name, h in half.items()})
            continue
        secret = secret_of(federation.rng, t, node, j)
        messages[j, node] = defense.message(sent[j], secret)
        differences.append(defense.difference(half, messages[j, node], secret))
    return stack(differences)


def _bytes(defense: Peers, halves: Tensors) -> float:
    """Bytes of all messages of a round."""
    return float(2 * len(defense.graph.edges) * nbytes(defense.message(row(halves, 0), 0)))


def _transcript(
    federation: Federation,
    defense: Peers,
    t: int,
    work: ClientWork,
    memories: tuple[Tensors, ...],
    played: _Played,
    states: tuple[State, State],
) -> Round:
    """The whole round, as only the harness sees it."""
    before, after = states
    messages = played.messages or {
        (i, j): defense.message(row(played.halves, i), secret_of(federation.rng, t, i, j))
        for edge in defense.graph.edges
        for i, j in (edge, edge[::-1])
    }
    victim, *colluders = coalition(federation.rng, defense)
    return Round(
        index=t,
        participants=work.clients,
        params=before.params,
        after=after.params,
        secret={},
        down=dict(before.params) if t == 0 else {},
        ups=played.ups,
        batches=tuple(work.batches),
        victim=victim,
        extra=before.extra,
        memories=memories,
        models=defense.models(before),
        messages=messages,
        coalition=(CURIOUS, *colluders),
        tapped=(CURIOUS, victim),
        halves=played.halves,
    )


def coalition(run: Rng, defense: Peers) -> list[int]:
    """The victim, a neighbour of the curious client, and those of the victim's other neighbours that collude with it.

    They are drawn once a run, from its generator: over the rounds, all that is heard is heard of one node.
    """
    rng, neighbours = run.child("victim"), defense.graph.neighbours
    victim = neighbours[CURIOUS][int(torch.randint(len(neighbours[CURIOUS]), (), generator=rng.torch()))]
    others = [i for i in neighbours[victim] if i != CURIOUS]
    order = torch.randperm(len(others), generator=rng.child("colluders").torch())
    return [victim, *(others[int(i)] for i in order[: defense.options.colluders])]
