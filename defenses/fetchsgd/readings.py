"""What each party observes of FetchSGD.

server, eavesdropper   `unsketched`   paper form: U(S(g_c)) for the gradient of the plain model
                       `upload`       adaptive form: S(g_c), matched through the client step
client                 nothing: a step of the server is the k largest entries of a sketch that holds the momentum and
                       the error of all former rounds, and no upload of one round can be told from it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedarena.contracts.defense import Defense
from fedarena.contracts.estimand import GRADIENT
from fedarena.contracts.observation import Observation, Reading
from fedarena.contracts.plain_readings import per_step
from fedarena.contracts.simulators import PlainGradient, ThroughProtocol, images_behind, uploads_seen
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import shaped
from fedarena.core.threat import NotApplicable, Threat
from fedarena.defenses.fetchsgd.wire import SKETCH, hashes_of, without_seed

MIXED = (
    "a step of the server is the largest entries of the momentum and error of all rounds, and this attack reads one "
    "round's mean upload: that is its limit, and no strength of the protocol"
)


def readings(
    defense: Defense, threat: Threat, seen: Mapping[int, Seen], victims: Sequence[int]
) -> Sequence[Reading] | NotApplicable:
    """See `fedarena.contracts.defense.Defense.readings`."""
    if threat.party == "client":
        return NotApplicable(MIXED)
    observations = tuple(_observation(defense, threat, seen[t]) for t in victims if t in seen)
    if not observations:
        return NotApplicable("none of the rounds attacked took place")
    return [Reading("upload" if threat.form == "adaptive" else "unsketched", observations)]


def _observation(defense: Defense, threat: Threat, now: Seen) -> Observation:
    defense = defense.in_round(now.index)
    task, params = defense.task, without_seed(now.down)
    clients, upload = uploads_seen(now, threat)
    estimate = shaped(hashes_of(defense.options, now.down).estimate(upload[SKETCH]), params)
    gradient, adaptive = per_step(defense, estimate, clients), threat.form == "adaptive"
    return Observation(
        round=now.index,
        clients=clients,
        images=sum(images_behind(task, c) for c in clients),
        target=upload if adaptive else gradient,
        simulate=ThroughProtocol.of(defense, now, clients) if adaptive else PlainGradient(task, params, clients),
        output_bias=None if adaptive else task.output_bias,
        estimate=gradient,
        estimate_of=GRADIENT,
    )
