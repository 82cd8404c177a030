"""What two consecutive broadcasts show, under any rule: the server's step, read as one client's upload.

A rule that picks an upload broadcasts it. Any other mixes several, and whoever reads the mixture as one client's upload
takes the others for noise. A client takes its own upload off where the server takes a mean; under other rules it does
not know how much of itself there is, and reads the step as an outsider does. The protocol must send the model down.
"""

from __future__ import annotations

from fedarena.contracts.defense import Defense
from fedarena.contracts.simulators import without_own
from fedarena.contracts.transcript import Seen
from fedarena.core.tensors import Tensors
from fedarena.core.threat import Threat


def difference(defense: Defense, threat: Threat, now: Seen, after: Seen) -> Tensors:
    """The server's step from W_t and W_{t+1}; without the party's own upload, if it is one of a mean."""
    shown = defense.in_round(now.index).direction_between(now.down, after.down)
    if now.own_up is None or not defense.takes_mean:
        return shown
    return without_own(shown, now.own_up, defense.mean_weights, now, threat)
