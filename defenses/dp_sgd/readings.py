"""What each party observes of DP-SGD: what it observes of FedAvg, with the noise's public size and a known momentum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedarena.contracts import plain_readings as plain
from fedarena.contracts.defense import Defense
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.simulators import ThroughProtocol, as_batch, upload_of, victim
from fedarena.contracts.transcript import Seen, weights
from fedarena.core.tensors import Tensors, flatten
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.dp_sgd.wire import PREVIOUS


def readings(
    defense: Defense, momentum: bool, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """The readings of FedAvg. In the adaptive form, a party that reads the wire replays the client's momentum, too.

    See `fedarena.contracts.defense.Defense.readings`.

    Args:
        defense: the protocol.
        momentum: whether clients have one.
        threat, seen, victims: as there.
    """
    of_fedavg = plain.readings(defense, threat, seen, victims)
    if isinstance(of_fedavg, NotApplicable):
        return of_fedavg
    replays = momentum and threat.form == "adaptive"
    with_noise = []
    for reading in of_fedavg:
        observations = [replace(o, noise_std=_noise_of_mean(defense, o.clients)) for o in reading.observations]
        if replays:
            observations = [_with_momentum(defense, threat, seen, o) for o in observations]
        with_noise.append(replace(reading, observations=tuple(observations)))
    return with_noise


def _noise_of_mean(defense: Defense, clients: Sequence[int]) -> float:
    """Standard deviation of the noise on these clients' mean upload, weighted by N_c."""
    share = weights(defense.task.sizes, clients)
    return defense.noise_std * float(share.norm() / share.sum())


def _with_momentum(defense: Defense, threat: Threat, seen: Mapping[int, Seen], o: Observation) -> Observation:
    """The observation, simulated with the client's momentum, which is its last upload before this one.

    If single uploads are not seen, or no earlier upload of this client was, the observation is returned unchanged.
    """
    now = seen[o.round]
    if now.ups is None:
        return o
    client, before = victim(now, threat), o.round - 1
    while before in seen and client not in seen[before].participants:
        before -= 1
    if before not in seen:
        return o
    memory = {PREVIOUS: flatten(upload_of(seen[before], client))}
    return replace(o, simulate=Remembering(defense, now.down, (client,), memory))


@dataclass(frozen=True)
class Remembering(ThroughProtocol):
    """The upload that a candidate batch gives through the step of one client, whose memory is known.

    Attributes:
        memory: the client's.
    """

    memory: Tensors

    def __call__(self, x: Tensor, y: Tensor) -> Tensors:
        return self.defense.client(self.down, as_batch(self.defense.task, x, y), self.memory, {})[0]
