"""Whom goals about all uploads of a training ask about, and what a party reads of these clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedarena.contracts.inference import Inference
from fedarena.contracts.left_models import with_left_models
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.transcript import cut
from fedarena.core.rng import Rng
from fedarena.core.threat import NotApplicable
from fedarena.goals.challenge import PartyTranscript

if TYPE_CHECKING:
    from fedarena.federation.finished_run import FinishedRun

MOST_CLIENTS = 10
"""The largest number of clients that are asked about."""
MOST_SAMPLES = 100
"""The largest number of samples of each of them. With ten clients there are a thousand, and as many held out, so that a
false positive rate of 0.1 % is one of them."""


def asked_about(finished: FinishedRun, transcript: PartyTranscript) -> list[int]:
    """At most `MOST_CLIENTS` of the clients that took part. The one that may be curious is none where others did."""
    took_part = {c for r in finished.run.rounds if r.index in transcript.victims for c in r.participants}
    clients = sorted(took_part - {transcript.threat.client} or took_part)
    order = torch.randperm(len(clients), generator=Rng(finished.spec.root).child("asked about").torch())
    return sorted(clients[i] for i in order[:MOST_CLIENTS].tolist())


def some_of(samples: Tensor, client: int, rng: Rng, most: int = MOST_SAMPLES) -> Tensor:
    """At most `most` of a client's samples [n], in random order."""
    order = torch.randperm(len(samples), generator=rng.child("samples", client).torch())[:most]
    return samples[order.to(samples.device)]


def readings_of(
    finished: FinishedRun, transcript: PartyTranscript, clients: Sequence[int], attack: Inference
) -> list[Reading] | NotApplicable:
    """The readings of these clients' uploads in the rounds that are attacked, each observation once.

    Args:
        attack: gets the models that the clients led to only if it declares that it needs them.
    """
    observations: dict[str, dict[tuple[int, tuple[int, ...]], Observation]] = {}
    why = NotApplicable("no client took part in a round that is attacked")
    for client in clients:
        rounds = tuple(replace(r, victim=client) if client in r.participants else r for r in finished.run.rounds)
        victims = [r.index for r in rounds if client in r.participants and r.index in transcript.victims]
        seen = cut(rounds, transcript.threat, finished.problem.data_of(transcript.threat))
        of_client = replace(finished, run=replace(finished.run, rounds=rounds))
        readings = of_client.readings(transcript.threat, seen, victims)
        if isinstance(readings, NotApplicable):
            why = readings
            continue
        for reading in readings:
            known = observations.setdefault(reading.name, {})
            for o in reading.observations:
                known.setdefault((o.round, o.clients), o)
    if not observations:
        return why
    found = {name: tuple(known[key] for key in sorted(known)) for name, known in observations.items()}
    if attack.needs_models:
        known_to = finished.defense, transcript.threat, transcript.seen
        found = {name: with_left_models(*known_to, some) for name, some in found.items()}
    return [Reading(name, some) for name, some in found.items()]
