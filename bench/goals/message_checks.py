"""What the harness checks of messages themselves, whatever attacks them.

An adaptive attacker plays the client step on candidates, without what only the client knows: its private randomness and
its memory of samples. Played on the true samples, that gives what was sent, but for this rest. Two things show:

    empty         played on other samples, the step gives the same: the message says nothing of any sample. An attack
                  then fails whatever the defense does elsewhere, for instance in larger federations.
    unexplained   the rest is large, and nothing accounts for it. It may protect (noise), or only seem to: a pad whose
                  key stands in the same message hides nothing, and blinds every attack that takes it for noise. No
                  measurement tells these apart. So the defense has to answer for the rest: by a guarantee such as ε, by
                  a declared `noise_std`, or in words (`fedarena.contracts.defense.Defense.undisclosed`).

Boards do not rank a defense with such a message (`fedarena.board.exclusion`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedarena.contracts.control import relative_error
from fedarena.contracts.observation import Observation
from fedarena.contracts.peers import Peers
from fedarena.core.rng import Rng
from fedarena.core.tensors import flatten
from fedarena.core.threat import Threat
from fedarena.federation.finished_run import FinishedRun
from fedarena.goals.control import UNLIKE, PlayedReading
from fedarena.models.drawn import has_drawn
from fedarena.problem.task import targets
from fedarena.records.schema import Control

SAME = 1e-6
"""The relative error up to which two messages are the same."""
MOST_NOISE = 1.5
"""Times σ√d: the length of declared noise on d coordinates is about σ√d, and never this much above it."""
EMPTY = "what clients send does not depend on their samples"
UNEXPLAINED = "no reading holds what clients add to messages, and no promise, declared noise or words account for it"


def message_check(finished: FinishedRun, threat: Threat, said: Sequence[PlayedReading]) -> Control | None:
    """What the record says of a message that is empty or unexplained; None where there is none, or it does not show.

    It shows to parties that see uploads, in the adaptive form.

    Args:
        said: the defense's readings.
    """
    reads = threat.form == "adaptive" and threat.party in ("server", "eavesdropper")
    if not reads or not said:
        return None
    if all(_is_empty(finished, o) for reading in said for o in reading.observations):
        return {"said": "nothing of samples", "outcome": EMPTY, "finding": "", "metrics": {}}
    return None if _answered_for(finished) else _unexplained(finished, said)


def _is_empty(finished: FinishedRun, seen: Observation) -> bool:
    """Whether two batches of held-out samples would give the same."""
    problem, like = finished.problem, next(iter(seen.target.values()))
    generator, given = Rng(seen.round).child("message").torch(), []
    for _ in range(2):
        index = torch.randint(len(problem.y_test), (seen.images,), generator=generator).to(problem.y_test.device)
        x, y = (problem.x_test[index].float() / problem.scale).to(like), problem.y_test[index]
        given.append(seen.simulate(x, targets(y, problem.task.n_classes, x)))
    return relative_error(*given) <= SAME


def _answered_for(finished: FinishedRun) -> bool:
    """Whether the defense accounts for what it adds, or the harness cannot tell it from something else.

    A secure sum hides by masks, and without a server nobody sees with what model a node began. With momenta, layers
    that draw or several local epochs in a random order, a rest may be the gradients of earlier rounds, what was drawn
    or the order.
    """
    defense, task = finished.defense, finished.problem.task
    once = task.schedule.local_epochs <= 1 and not task.schedule.client_momentum
    shows = once and defense.secure is None and not has_drawn(task.model) and not isinstance(defense, Peers)
    return not shows or bool(defense.guarantees() or defense.undisclosed)


def _rests(finished: FinishedRun, reading: PlayedReading) -> list[float]:
    """‖sent − what the true samples give‖/‖sent‖, less the most that declared noise makes of it."""
    rests = []
    for o in reading.observations:
        if (error := reading.errors.get((o.round, o.clients))) is not None:
            sent = flatten(o.target)
            noise = max(o.noise_std, finished.defense.noise_std) * len(sent) ** 0.5
            rests.append(error - MOST_NOISE * noise / (float(sent.norm()) or 1.0))
    return rests


def _unexplained(finished: FinishedRun, said: Sequence[PlayedReading]) -> Control | None:
    worst = [max(_rests(finished, reading), default=0.0) for reading in said]
    if min(worst) <= UNLIKE:
        return None
    finding = f"the client step, played on the true samples, is {min(worst):.2g} of what was sent away from it"
    return {"said": "a part", "outcome": UNEXPLAINED, "finding": finding, "metrics": {}}
