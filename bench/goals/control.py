"""Holds what a defense says of its messages against the harness's own reading of them, the control reading.

What a party can read of a protocol is said by the protocol itself. It must not count as private only because it says
nothing. The control reading (`fedarena.contracts.control`) is attacked in two cases:

    nothing          the defense gives a party no reading in a form, and shows the message in the other form neither
    something else   none of its readings has to do with its messages: played on the true samples, the simulator of a
                     reading gives something else than what the party is said to see, while the simulator of the control
                     reading gives exactly what crossed the wires

If the control reading leaks, which means that the lower end of its interval lies above what a guess reaches, the record
says so, and boards do not count the cell (`fedarena.board.exclusion`). The second case is found only if messages are
functions of the samples alone, without noise, memory, or a random order of local steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedarena.contracts import server_step
from fedarena.contracts.control import relative_error
from fedarena.contracts.inference import Inference
from fedarena.contracts.observation import Observation
from fedarena.core.threat import Form, NotApplicable
from fedarena.federation.finished_run import FinishedRun
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.problem.task import targets
from fedarena.records.schema import Control, Record

EXACT = 1e-2
"""The relative error up to which a simulator gives what crossed the wires."""
UNLIKE = 0.5
"""The relative error above which a simulator gives something else."""


@dataclass(frozen=True)
class PlayedReading:
    """A reading of the defense, and what its simulators give of the true samples.

    Attributes:
        errors: see `simulation_errors`.
    """

    observations: Sequence[Observation]
    errors: Mapping[tuple[int, tuple[int, ...]], float]


def played_readings(
    goal: InferenceGoal, finished: FinishedRun, given: Sequence[Challenge | NoChallenge]
) -> list[PlayedReading]:
    """The defense's readings behind the challenges of a goal that reads uploads, each played once."""
    if not goal.reads_uploads:
        return []
    views = [c.view for c in given if isinstance(c, Challenge) and c.view.reading != server_step.NAME]
    said = [view.observations for view in views if view.observations]
    return [PlayedReading(reading, simulation_errors(finished, reading)) for reading in said]


def control_of(
    goal: InferenceGoal,
    finished: FinishedRun,
    transcript: PartyTranscript,
    attack: Inference,
    said: Sequence[PlayedReading],
) -> Challenge | None:
    """The challenge of the control reading; None where the defense's readings do, or where there is no control reading.

    Args:
        said: the defense's readings.
    """
    if not goal.reads_uploads:
        return None
    control = replace(finished, control=True)
    unlike = [{seen for seen, error in reading.errors.items() if error > UNLIKE} for reading in said]
    if not all(unlike):
        return None
    if said:
        exact = {
            seen
            for seen, error in simulation_errors(finished, _observations(control, transcript)).items()
            if error < EXACT
        }
        if not all(others & exact for others in unlike):
            return None
    elif _shown_in_the_other_form(finished, control, transcript):
        return None
    made = goal.challenges(control, transcript, attack)
    return None if isinstance(made, NotApplicable) else next((c for c in made if isinstance(c, Challenge)), None)


def _shown_in_the_other_form(finished: FinishedRun, control: FinishedRun, transcript: PartyTranscript) -> bool:
    """Whether the first reading of the other form shows what the control reading does."""
    form: Form = "paper" if transcript.threat.form == "adaptive" else "adaptive"
    other = replace(transcript, threat=replace(transcript.threat, form=form))
    said = {o.round: o.target for o in _observations(finished, other)}
    read = {o.round: o.target for o in _observations(control, other)}
    return bool(read) and all(t in said and relative_error(said[t], target) < EXACT for t, target in read.items())


def _observations(finished: FinishedRun, transcript: PartyTranscript) -> Sequence[Observation]:
    """The observations of the first reading; none where there is no reading."""
    readings = finished.readings(transcript.threat, transcript.seen, transcript.victims)
    return () if isinstance(readings, NotApplicable) or not readings else readings[0].observations


def simulation_errors(
    finished: FinishedRun, reading: Sequence[Observation]
) -> dict[tuple[int, tuple[int, ...]], float]:
    """By round and clients, how far what the true samples would give is from what was seen.

    Rounds are left out whose clients drew their samples by chance, and not as many as the party expects.
    """
    truths = {(o.round, o.clients): (o, *finished.truth(o)) for o in reading}
    return {seen: _error(finished, o, x, y) for seen, (o, x, y) in truths.items() if len(y) == o.images}


def _error(finished: FinishedRun, seen: Observation, x: Tensor, y: Tensor) -> float:
    return relative_error(seen.simulate(x, targets(y, finished.problem.task.n_classes, x)), seen.target)


def with_control(record: Record, goal: InferenceGoal, metrics: Mapping[str, float], silent: bool) -> Record:
    """The record of a trial whose control reading was attacked, with what leaks.

    Args:
        metrics: what the judge measured of the attack on the control reading.
        silent: whether the defense gives no reading.
    """
    name, guess = goal.chance(metrics)
    if (low := metrics.get(f"{name}_low", guess)) <= guess:  # there may have been nothing to name
        return record
    finding = f"{name.replace('_', ' ')} {metrics[name]:.2f} (95 %: from {low:.2f}), of a guess {guess:.2f}"
    return _with(record, silent, f"leaks {goal.what_leaks}", finding, metrics)


def with_failed_control(record: Record, error: str, silent: bool) -> Record:
    """The record of a trial whose control reading could not be attacked: it does not show that nothing leaks."""
    return _with(record, silent, "could not be attacked", error, {})


def _with(record: Record, silent: bool, outcome: str, finding: str, metrics: Mapping[str, float]) -> Record:
    control: Control = {
        "said": "nothing" if silent else "something else",
        "outcome": outcome,
        "finding": finding,
        "metrics": dict(metrics),
    }
    reason = record["reason"]
    if record["status"] == "n/a":
        reason += f"; but a control reading of the same messages {outcome}: {finding}"
    return {**record, "reason": reason, "control": control}
