"""The control reading: what the harness itself reads of the messages that crossed the wires.

A defense says what each party observes of it. If it says nothing, or something that has nothing to do with its
messages, attacks find nothing. The control reading does not depend on what the defense says:

    server, eavesdropper   one client's upload, or the mean that a secure sum gives away
    client                 the others' mean upload, from two consecutive broadcasts, if the server steps by the mean
    without a server       the messages of a neighbour, as if they were its models

It is read as a plain protocol's (`fedarena.contracts.plain_readings`). In the paper form the upload is taken as the
plain gradient, if it has as many numbers as the model has parameters. In the adaptive form it is matched through the
client step, whatever its tensors are; of a momentum, only what the round alone added to it, where the party can tell
that (`fedarena.contracts.fresh_uploads`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from fedarena.contracts import peer_readings
from fedarena.contracts.defense import Defense
from fedarena.contracts.fresh_uploads import fresh_upload
from fedarena.contracts.observation import Observation, Reading, Simulator
from fedarena.contracts.peers import Peers
from fedarena.contracts.plain_readings import plain_gradient
from fedarena.contracts.simulators import (
    PlainGradient,
    ThroughProtocol,
    images_behind,
    others_of,
    uploads_seen,
    without_own,
)
from fedarena.contracts.transcript import Round, Seen, weights
from fedarena.core.tensors import Tensors, combine, flatten, same_names, shaped, weighted_mean
from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.task import Task

NAME = "control"
IS_THE_MEAN = 1e-3
"""The relative error up to which the server's step counts as the mean of the uploads; broadcasts are rounded."""


def control_readings(
    defense: Defense, threat: Threat, rounds: Sequence[Round], seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """The control reading of what a party saw, or why there is none.

    Args:
        rounds: the whole rounds. They tell only whether the server stepped by the mean, which clients can know.
        seen, victims: see `fedarena.contracts.defense.Defense.readings`.
    """
    if isinstance(defense, Peers):
        return _of_messages(defense, threat, seen, victims)
    written = {r.index: r for r in rounds}

    def others(t: int) -> tuple[tuple[int, ...], Tensors] | None:
        return _others_upload(defense, threat, written[t], seen[t], seen[t + 1]) if t + 1 in seen else None

    def others_upload(t: int) -> Tensors | None:
        found = others(t)
        return None if found is None else found[1]

    observations = []
    for t in (r.index for r in rounds if r.index in victims and r.index in seen):
        uploads = others(t) if threat.party == "client" else uploads_seen(seen[t], threat)
        if uploads is None:
            continue
        fresh = fresh_upload(defense, threat, seen, t, *uploads, others_upload)
        observation = _observation(defense, threat, seen[t], *uploads, fresh)
        observations += [] if observation is None else [observation]
    if not observations:
        return NotApplicable("nothing that the party saw can be read as a plain protocol's")
    return [Reading(NAME, tuple(observations))]


def _of_messages(
    defense: Peers, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """Without a server: a neighbour's messages as if they were its models, if they are as many numbers."""
    task = defense.task
    plain = {
        t: replace(now, messages={edge: like_parameters(task, sent) for edge, sent in now.messages.items()})
        for t, now in seen.items()
    }
    if not all(_is_model(task, sent) for now in plain.values() for sent in now.messages.values()):
        return NotApplicable("nothing that the party saw can be read as a plain protocol's")
    found = peer_readings.readings(defense, threat, plain, victims, partial(peer_readings.plain_traces, defense))
    return found if isinstance(found, NotApplicable) else [Reading(NAME, r.observations) for r in found]


def like_parameters(task: Task, tensors: Tensors) -> Tensors:
    """Tensors under the names and shapes of the model's parameters, if they are as many numbers; else as they are.

    Integers, such as a client's own seed, are left out.
    """
    parameters = dict(task.model.named_parameters())
    if all(name in tensors and tensors[name].shape == p.shape for name, p in parameters.items()):
        return same_names(tensors, tuple(parameters))
    numbers = {name: t for name, t in tensors.items() if t.is_floating_point()}
    if sum(t.numel() for t in numbers.values()) != sum(p.numel() for p in parameters.values()):
        return numbers
    return shaped(flatten(numbers), parameters)


def relative_error(guess: Tensors, truth: Tensors) -> float:
    """‖guess − truth‖/‖truth‖; infinite where the tensors differ in name or shape or are not finite."""
    if {name: t.shape for name, t in guess.items()} != {name: t.shape for name, t in truth.items()}:
        return float("inf")
    difference, whole = flatten(combine(1.0, guess, -1.0, truth)).double().norm(), flatten(truth).double().norm()
    error = float(difference / whole) if whole else float(difference)
    return error if error == error else float("inf")


@dataclass(frozen=True)
class LikeParameters:
    """Simulator: what another one gives, under the names and shapes of the model's parameters where it fits."""

    task: Task
    whole: Simulator

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return like_parameters(self.task, self.whole(x, y))


def _others_upload(
    defense: Defense, threat: Threat, r: Round, now: Seen, after: Seen
) -> tuple[tuple[int, ...], Tensors] | None:
    """The other clients and their mean upload; None if the broadcasts do not show it."""
    task, others = defense.task, others_of(now, threat)
    before, then = like_parameters(task, now.down), like_parameters(task, after.down)
    if not others or not _is_model(task, before) or not _is_model(task, then):
        return None
    shown = defense.in_round(now.index).direction_between(before, then)
    shares = weights(defense.mean_weights, r.participants)
    mean = r.mean if r.mean is not None else weighted_mean(r.ups, shares.to(next(iter(r.ups.values())).device))
    if now.own_up is None or relative_error(shown, like_parameters(task, mean)) > IS_THE_MEAN:
        return None
    return others, without_own(shown, like_parameters(task, now.own_up), defense.mean_weights, now, threat)


def _observation(
    defense: Defense,
    threat: Threat,
    now: Seen,
    clients: tuple[int, ...],
    upload: Tensors,
    fresh: Tensors | None,
) -> Observation | None:
    """The upload, as it is matched in the party's form; None where the paper form cannot take it as a gradient.

    Args:
        fresh: what the round alone added to a momentum upload, where the party can tell it.
    """
    defense = defense.in_round(now.index)
    task, adaptive = defense.task, threat.form == "adaptive"
    up = like_parameters(task, upload if fresh is None else fresh)
    gradient = plain_gradient(defense, up, None if fresh is None else up, clients) if _is_model(task, up) else None
    model = now.params if now.params is not None else like_parameters(task, now.down)
    simulate: Simulator = LikeParameters(task, ThroughProtocol.of(defense, now, clients))
    if not adaptive:
        if gradient is None or not _is_model(task, model):
            return None
        up, simulate = gradient, PlainGradient(task, model, clients)
    return Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(task, c) for c in clients),
        target=up,
        simulate=simulate,
        output_bias=None if gradient is None else task.output_bias,
        estimate=gradient,
    )


def _is_model(task: Task, tensors: Tensors) -> bool:
    """Whether these are tensors of the model's parameters, as `like_parameters` gives them."""
    return {n: t.shape for n, t in tensors.items()} == {n: p.shape for n, p in task.model.named_parameters()}
