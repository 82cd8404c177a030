"""One training run and the trials that read it or take part in it.

`prepare` trains and cuts a sealed view for every threat; `attack` runs on such a view alone, in whichever
process. All inference attacks on one (problem, defense, seed) read the same run (`shared`), and every run is compared
with its references (`references`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from fedarena import goals
from fedarena.contracts.baseline import BASELINE
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Answer, Inference, Watch
from fedarena.contracts.transcript import cut
from fedarena.core.errors import describe
from fedarena.core.rng import Rng
from fedarena.core.tensors import find_device, finite
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.nodes import node_metrics
from fedarena.federation.replay import Replays
from fedarena.federation.spec import GroupSpec, MethodSpec, Training, training_under
from fedarena.goals.challenge import Challenge, NoChallenge, PartyTranscript
from fedarena.goals.clean_run import clean_record
from fedarena.goals.control import control_of, played_readings, with_control, with_failed_control
from fedarena.goals.inference_goal import InferenceGoal
from fedarena.goals.message_checks import message_check
from fedarena.goals.metrics.gain import gain, unfederated
from fedarena.goals.metrics.reconstruction import only_finite
from fedarena.goals.prepared import CompleteRecord, OpenRecord, PreparedRecord, SilentRecord
from fedarena.problem.problem import Problem, build
from fedarena.records.reading_names import name_in
from fedarena.records.record_of import record_of
from fedarena.records.results import Gallery, GroupResult
from fedarena.records.schema import Record, Status, Utility
from fedarena.records.transcript_files import write_transcript
from fedarena.records.trial_key import key_of
from fedarena.runs.sealed_attack import answer_of

Progress = Callable[[float, str], None]
_Answered = tuple[InferenceGoal, Answer | NotApplicable, float]
"""The goal of an attack, its answer to a challenge, and the CPU seconds that it took."""


@dataclass(frozen=True)
class _Reader:
    """An attack that reads a run.

    Attributes:
        attack, goal: the attack, and what it is after.
        watch: the rounds whose transcript it needs.
        elsewhere: other rounds that it reads, too, by the part of the training.
    """

    attack: Inference
    goal: InferenceGoal
    watch: Watch
    elsewhere: Mapping[str, Watch]

    @property
    def written(self) -> set[int]:
        """All rounds that are to be written down."""
        return {t for watch in (self.watch, *self.elsewhere.values()) for t in watch.written}


def gather(spec: GroupSpec, done: Sequence[tuple[Record, Gallery | None]]) -> GroupResult:
    """The trials of a group as one result."""
    return GroupResult(spec, [record for record, _ in done], [g for _, g in done if g is not None])


def prepare(spec: GroupSpec, progress: Progress = lambda share, text: None) -> list[PreparedRecord]:
    """Train once, and cut a view for every threat and reading. A poisoned run is complete after this.

    What parties reach alone is not measured: only boards and pairings show it. Raises UserError for input that cannot
    run.
    """
    return prepare_together([spec], progress, parties_alone=False)[0]


def prepare_together(
    specs: Sequence[GroupSpec], progress: Progress = lambda share, text: None, parties_alone: bool = True
) -> list[list[PreparedRecord]]:
    """Prepare several groups that share a training run (`fedarena.federation.spec.Training`), each as if it were alone.

    Args:
        parties_alone: whether clean runs say what their parties reach alone.

    Raises:
        UserError: input that cannot run.
    """
    first = specs[0]
    problem = build(first.problem, first.root, first.data_dir, first.device, compose.auxiliary(first.defense))
    replays = Replays.of_defense(first.defense, problem.task)  # before the defense is made, and can touch its task
    defense = compose.make_defense(first.defense, problem.task)
    if first.attack is not None:
        played = goals.of_attack(first.attack).play(first, problem, defense, replays, progress)
        if played is not None:
            if len(specs) > 1:
                raise ValueError("a run in which an attack takes part has one reader")
            return [[*played]]
    readers = [_reader(spec, problem) for spec in specs]
    run = _train(first, problem, defense, readers, replays, progress)
    if first.transcript is not None:
        write_transcript(FinishedRun(first, problem, defense, run), specs, first.transcript)
    prepared = []
    nodes = only_finite(node_metrics(FinishedRun(first, problem, defense, run)))
    for spec, reader in zip(specs, readers, strict=True):
        prepared.append(_records_of(FinishedRun(spec, problem, defense, run), reader, parties_alone))
        for one in prepared[-1] if nodes else ():
            one.record["utility"]["nodes"] = dict(nodes)
    return prepared


def _reader(spec: GroupSpec, problem: Problem) -> _Reader | None:
    if spec.attack is None:
        return None
    attack, schedule = compose.make_inference(spec.attack), problem.task.schedule
    watch = attack.watched(schedule).draw(Rng(spec.root).child("victims"))
    elsewhere = watch.elsewhere(schedule, Rng(spec.root).child("elsewhere")) if spec.other_rounds else {}
    return _Reader(attack, goals.find(attack.goal), watch, elsewhere)


def _train(
    spec: GroupSpec,
    problem: Problem,
    defense: Defense,
    readers: Sequence[_Reader | None],
    replays: Replays,
    progress: Progress,
) -> federation.Run:
    """The run that all groups read. If the first goal determines what clients work on, this holds for all of them."""
    draw, first = None, readers[0]
    if first is not None:
        draw = first.goal.draws(problem, defense, first.attack, first.watch, Rng(spec.root))
    return federation.run(
        defense,
        problem,
        Rng(spec.root).child("federation"),
        watch={t for reader in readers if reader is not None for t in reader.written},
        progress=lambda share: progress(share, "training"),
        draw=draw or (lambda t, client: None),
        replays=replays,
    )


def _records_of(finished: FinishedRun, reader: _Reader | None, parties_alone: bool) -> list[PreparedRecord]:
    """The records of a group on its finished run, before its attack."""
    if reader is None:
        return [CompleteRecord(finished.spec, None, clean_record(finished, parties_alone))]
    prepared: list[PreparedRecord] = []
    for threat in finished.spec.threats:
        of_threat = _challenged(_seeing(finished, reader.watch), threat, reader, reader.watch)
        for part, watch in reader.elsewhere.items():
            of_threat += [_in_part(one, part) for one in _challenged(_seeing(finished, watch), threat, reader, watch)]
        of_threat = _counted(of_threat)
        for one in of_threat:
            one.record["trial"]["records"] = len(of_threat)
        prepared += of_threat
    return prepared


def _seeing(finished: FinishedRun, watch: Watch) -> FinishedRun:
    """The run with these rounds alone: an attack must not see what was written down for others."""
    written = {*watch.written}
    seen = replace(finished.run, rounds=tuple(r for r in finished.run.rounds if r.index in written))
    return replace(finished, run=seen)


def _in_part(prepared: PreparedRecord, part: str) -> PreparedRecord:
    """The record of a reading of another part of the training."""
    record = prepared.record
    record["reading"] = name_in(part, record["reading"])
    record["key"] = key_of(record)
    return prepared


def _counted(prepared: Sequence[PreparedRecord]) -> list[PreparedRecord]:
    """The records of a threat in all parts of the training, each of which knows how many readings there are."""
    total = sum(isinstance(one, OpenRecord) for one in prepared)
    return [
        replace(one, challenge=replace(one.challenge, readings=total)) if isinstance(one, OpenRecord) else one
        for one in prepared
    ]


def _challenged(finished: FinishedRun, threat: Threat, reader: _Reader, watch: Watch) -> list[PreparedRecord]:
    """A record for every challenge of a threat in the rounds that are watched.

    A run that diverges after the attacked rounds is still attacked, and its status remains `diverged`.
    """

    def complete(status: Status, reason: str) -> CompleteRecord:
        return CompleteRecord(finished.spec, threat, record_of(finished, threat, "", status, reason))

    status: Status = "ok"
    reason = ""
    if finished.run.not_replayed:
        return [complete("failed", finished.run.not_replayed)]
    if finished.run.diverged_at is not None:
        status, reason = "diverged", finished.run.why
        if not all(finite(r.after) for r in finished.run.rounds):
            return [complete(status, reason)]
    seen = cut(finished.run.rounds, threat, finished.problem.data_of(threat))
    victims = [t for t in watch.victims if t < finished.problem.task.schedule.rounds]
    transcript, goal = PartyTranscript(threat, seen, victims), reader.goal
    try:
        challenges = goal.challenges(finished, transcript, reader.attack)
        given = [] if isinstance(challenges, NotApplicable) else challenges
        said = played_readings(goal, finished, given)
        control = control_of(goal, finished, transcript, reader.attack, said)
        check = message_check(finished, threat, said)
    except Exception as error:  # a third party's code; the trial stays in the denominator
        return [complete("failed", describe(error))]
    if isinstance(challenges, NotApplicable):
        # The status is `diverged` if that is why no attacked round was seen.
        stopped = status == "diverged" and not any(t in seen for t in victims)
        return [complete(status, reason) if stopped else _beside(complete("n/a", challenges.reason), control)]
    prepared: list[CompleteRecord | OpenRecord] = []
    for challenge in challenges:
        if isinstance(challenge, NoChallenge):
            prepared.append(complete("n/a", challenge.reason))
            continue
        record = record_of(finished, threat, challenge.reading, status, reason, only_finite(challenge.metrics))
        if check is not None:
            record["control"] = check
        prepared.append(OpenRecord(finished.spec, threat, challenge, record))
    return [_beside(one, control) for one in prepared or [complete("n/a", "the defense gives no reading")]]


def _beside(prepared: CompleteRecord | OpenRecord, control: Challenge | None) -> PreparedRecord:
    """The record with a control reading to be attacked beside it, where there is one."""
    if control is None:
        return prepared
    if isinstance(prepared, OpenRecord):
        return replace(prepared, control=control)
    assert prepared.threat is not None
    return SilentRecord(prepared.spec, prepared.threat, prepared.record, control)


def attack(prepared: PreparedRecord, progress: Progress = lambda share, text: None) -> tuple[Record, Gallery | None]:
    """Run the attack on its view and judge the answer. A complete record is returned as it is.

    A control reading is attacked in the same way, beside the view or in place of one.
    """
    if isinstance(prepared, CompleteRecord):
        return prepared.record, None
    return attack_alike([prepared], progress)[0]


def attack_alike(
    prepared: Sequence[OpenRecord | SilentRecord], progress: Progress = lambda share, text: None
) -> list[tuple[Record, Gallery | None]]:
    """`attack` on records of the same task (`fedarena.goals.prepared.task_digest`): it runs once, and each is judged.

    The seconds of the attack count in each of the records.
    """
    first = prepared[0]
    find_device(first.spec.device)  # this process may not have trained, and must compute as the one that has

    @cache
    def answer(control: bool) -> _Answered:
        challenge = first.control if control or isinstance(first, SilentRecord) else first.challenge
        assert challenge is not None
        return _answer(first, challenge, progress)

    return [_judged(one, answer) for one in prepared]


def _judged(prepared: OpenRecord | SilentRecord, answer: Callable[[bool], _Answered]) -> tuple[Record, Gallery | None]:
    """The record with the attack's answers.

    Args:
        answer: (whether to the control reading) → the answer.
    """
    record, gallery = _attacked(prepared, answer) if isinstance(prepared, OpenRecord) else (prepared.record, None)
    if prepared.control is None:
        return record, gallery
    silent = isinstance(prepared, SilentRecord)
    try:
        goal, guess, _ = answer(True)
        if isinstance(guess, NotApplicable):
            return record, gallery
        metrics = only_finite({**prepared.control.metrics, **goal.judge(guess, prepared.control)})
        return with_control(record, goal, metrics, silent), gallery
    except Exception as error:  # as below
        return with_failed_control(record, describe(error), silent), gallery


def _attacked(prepared: OpenRecord, answer: Callable[[bool], _Answered]) -> tuple[Record, Gallery | None]:
    try:
        goal, guess, seconds = answer(False)
        began = time.process_time()
        if isinstance(guess, NotApplicable):
            return {**prepared.record, "status": "n/a", "reason": guess.reason}, None
        metrics = only_finite(goal.judge(guess, prepared.challenge)) | prepared.record["metrics"]
        series, pictures = _finite(goal.series(guess, prepared.challenge)), goal.pictures(guess, prepared.challenge)
    except Exception as error:  # as above; an answer that cannot be judged is also an error of the attack
        return {**prepared.record, "status": "failed", "reason": describe(error)}, None
    record: Record = {
        **prepared.record,
        "metrics": metrics,
        "series": series,
        "scores": goal.privacy(metrics),
        "cost": {**prepared.record["cost"], "attack_seconds": seconds + time.process_time() - began},
    }
    return record, None if pictures is None else Gallery(record["key"], *pictures)


def _answer(prepared: OpenRecord | SilentRecord, challenge: Challenge, progress: Progress) -> _Answered:
    began = time.process_time()
    spec, attack = prepared.spec, prepared.spec.attack
    assert attack is not None
    where = f"{prepared.threat.party}, {prepared.threat.form} form"
    progress(0.0, where)
    method = compose.make_inference(attack)
    goal = goals.find(method.goal)
    # A seed of its own, from which the run's seed cannot be computed back.
    rng = Rng(Rng(spec.root).child("attack").integer())

    def report(share: float, text: str) -> None:
        progress(share, where)

    if compose.foreign("attack", attack):
        answer, elsewhere = answer_of(attack.bare, challenge.view, rng, spec.device, report)
    else:
        answer, elsewhere = method(challenge.view, rng, report), 0.0
    return goal, answer, elsewhere + time.process_time() - began


def _finite(series: dict[str, list[list[float]]]) -> dict[str, list[list[float]]]:
    """The points that JSON can hold: those that are not finite are left out."""
    return {name: [p for p in points if all(math.isfinite(v) for v in p)] for name, points in series.items()}


def training_of(spec: GroupSpec) -> Training:
    """The run that a group reads, without a probe: the same run serves all probes."""
    return training_under(spec) if spec.attack is None else goals.of_attack(spec.attack).training(spec)


def given_by(spec: GroupSpec) -> list[Training]:
    """The runs for which a group's record can serve as the reference; none for a poisoned group."""
    run, probe = training_of(spec), compose.trigger_of(spec.probe)
    if run.poisoned:
        return []
    given = [run] if probe is None else [run, replace(run, probe=probe)]
    return given if spec.attack is not None else [*given, *(replace(one, alone=True) for one in given)]


def references(spec: GroupSpec) -> tuple[Training, Training]:
    """The runs that a group is measured against: its own defense's clean run, and FedAvg's."""
    if spec.attack is not None:
        return goals.of_attack(spec.attack).references(spec)
    run = replace(training_under(spec), alone=True)
    return run, replace(run, defense=MethodSpec(BASELINE))


def shared(groups: Sequence[GroupSpec]) -> list[list[int]]:
    """The indices of the groups by the run that they read, in the order in which the runs first appear."""
    readers: dict[object, list[int]] = {}
    for i, group in enumerate(groups):
        run = training_of(group)
        # A poisoned run has one reader; a duplicate is run twice.
        readers.setdefault(i if run.poisoned else run, []).append(i)
    return list(readers.values())


def add_reference(record: Record, own: Record, plain: Record) -> None:
    """Fill in the comparisons of a run with its references (`fedarena.goals.goal.Goal.references`).

    Every run is compared with FedAvg's: `utility.fedavg_accuracy` and `cost.relative_seconds`. Runs that are judged by
    their model are also compared with what can be had without a federation (`utility.references`). The goal decides
    what it takes from the clean run (`fedarena.goals.goal.Goal.add_reference`).

    Args:
        own: the same defense's clean run. plain: FedAvg's run.
    """
    utility, cost = record["utility"], record["cost"]
    accuracy, seconds = plain["utility"]["clean_accuracy"], plain["cost"]["seconds"]
    utility["fedavg_accuracy"] = accuracy
    goal = goals.of_record(record)
    if goal is None or goal.axis == "integrity":
        _add_unfederated(utility, own["utility"], plain["utility"])
    if goal is not None:
        goal.add_reference(record, own)
    cost["relative_seconds"] = cost["seconds"] / seconds if seconds else None


def _add_unfederated(utility: Utility, own: Utility, plain: Utility) -> None:
    """Fill in what can be had without a federation, and the gain over it (`fedarena.goals.metrics.gain`)."""
    alone = utility["references"]
    if "local_only" in plain["references"]:
        alone["local_only"] = plain["references"]["local_only"]
    if "server_only" in own["references"]:
        alone["server_only"] = own["references"]["server_only"]
    if (floor := unfederated(utility)) is not None:
        alone["unfederated"] = floor
        if (kept := gain({**utility, "clean_accuracy": own["clean_accuracy"]})) is not None:
            alone["gain"] = kept
