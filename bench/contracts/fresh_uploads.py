"""What a round alone added to a momentum upload, for a party that also saw the upload before it.

FedSGD clients with `client_optimizer=momentum` send m ← β·m + c·g (`fedarena.problem.client_steps.momentum`). With t'
the last round before t in which a client took part,

    m_t − β m_t' = c·g_t

The same holds for the mean of several clients, if the same ones are in the means of both rounds. A first upload is c·g
as it is. If other clients were in the earlier mean, or the party did not see each round in between, the momentum of
earlier rounds stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fedarena.contracts.defense import Defense
from fedarena.contracts.simulators import others_of, upload_of
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors, combine
from fedarena.core.threat import Threat

OthersUpload = Callable[[int], Tensors | None]
"""Round → the other clients' mean upload, for a client; None: it is not known."""


def undoes_momentum(defense: Defense, threat: Threat) -> bool:
    """Whether a party takes earlier momenta out of uploads, where it can.

    In the paper form it does not: published attacks take an upload as if it were a gradient.
    """
    return defense.task.schedule.client_momentum and threat.form == "adaptive"


def fresh_upload(
    defense: Defense,
    threat: Threat,
    seen: Mapping[int, Seen],
    t: int,
    clients: tuple[int, ...],
    upload: Tensors,
    others_upload: OthersUpload,
) -> Tensors | None:
    """c·g_t of an upload, or of the mean upload of several clients; None where the party cannot tell it.

    Args:
        seen: the rounds that the party saw.
        t, clients, upload: the round, and whose upload was observed in it.
        others_upload: how a client reads what others sent in a round.
    """
    if not undoes_momentum(defense, threat):
        return None
    if threat.party == "client" and defense.picks:  # it does not know whose upload was picked
        return None
    before = t - 1
    while before in seen and not set(clients) & set(seen[before].participants):
        before -= 1
    if before < 0:
        return upload
    if before not in seen:
        return None
    earlier = _mean_upload(threat, seen[before], clients, others_upload)
    return None if earlier is None else without_earlier(defense, upload, earlier)


def without_earlier(defense: Defense, upload: Tensors, earlier: Tensors) -> Tensors:
    """c·g_t, from an upload and the one before it."""
    return combine(1.0, upload, -defense.task.schedule.momentum, earlier)


def _mean_upload(threat: Threat, now: Seen, clients: tuple[int, ...], others_upload: OthersUpload) -> Tensors | None:
    """The mean upload of these clients and no others in a round, if the party knows it."""
    if threat.party == "client":
        return others_upload(now.index) if set(others_of(now, threat)) == set(clients) else None
    if now.mean is not None:
        return now.mean if set(now.averaged) == set(clients) else None
    return upload_of(now, clients[0]) if now.ups is not None and len(clients) == 1 else None
