"""One defended training run and the cells that read it.

`prepare` trains and cuts a sealed view for every threat; `attack` runs on such a view alone, in whichever
process. All inference attacks on one (problem, defense, seed) read the same run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fedarena import goals
from fedarena.contracts.inference import Inference
from fedarena.contracts.poisoning import Poisoning
from fedarena.contracts.transcript import cut
from fedarena.core import registry
from fedarena.core.errors import describe
from fedarena.core.rng import Rng
from fedarena.core.tensors import finite
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals import scores
from fedarena.goals.goal import Challenge, PartyTranscript
from fedarena.goals.metrics.reconstruction import only_finite
from fedarena.problem.problem import build
from fedarena.records.record_of import record_of
from fedarena.records.results import Gallery, GroupResult
from fedarena.records.schema import Record
from fedarena.runs import poisoned_run as poisoned

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Prepared:
    """One cell as it stands before the attack: its challenge, sealed off from the run.

    Attributes:
        spec, threat: the cell; no threat where nobody attacks.
        challenge: what the attack gets and what the judge keeps; None where nothing is left to attack, and the record
            is complete.
        record: the record without the attack's metrics and key.
    """

    spec: GroupSpec
    threat: Threat | None
    challenge: Challenge | None
    record: Record


def gather(spec: GroupSpec, done: Sequence[tuple[Record, Gallery | None]]) -> GroupResult:
    """The cells of a group as one result."""
    return GroupResult(spec, [record for record, _ in done], [g for _, g in done if g is not None])


def prepare(spec: GroupSpec, progress: Progress = lambda share, text: None) -> list[Prepared]:
    """Train once, and cut a view for every threat and reading; a poisoned run is complete then.

    Raises UserError for input that cannot run.
    """
    return prepare_together([spec], progress)[0]


def prepare_together(specs: Sequence[GroupSpec], progress: Progress = lambda share, text: None) -> list[list[Prepared]]:
    """The same for several groups that share a training run (`fedarena.runs.shared_training.Training`); each as if it
    were alone.

    Raises UserError for input that cannot run.
    """
    first = specs[0]
    problem = build(first.problem, first.seed, first.data_dir, first.device, compose.auxiliary(first.defense))
    defense = compose.make_defense(first.defense, problem.task)
    if first.attack is not None and issubclass(compose.attack_class(first.attack), Poisoning):
        if len(specs) > 1:
            raise ValueError("a poisoned run is nobody else's")
        made = poisoned.record(first, problem, defense, progress)
        return [[Prepared(first, threat, None, made) for threat in first.threats]]
    attacks = [None if spec.attack is None else load_attack(spec.attack) for spec in specs]
    watches = [None if attack is None else attack.watch(problem.task.schedule) for attack in attacks]
    draw = None
    if attacks[0] is not None and watches[0] is not None:
        rng = Rng(first.seed).child("draws")
        draw = goals.find(attacks[0].goal).draws(problem, attacks[0], watches[0], rng)
    run = federation.run(
        defense,
        problem,
        Rng(first.seed).child("federation"),
        watch={t for watch in watches if watch is not None for t in watch.written},
        progress=lambda share: progress(share, "training"),
        draw=draw or (lambda t, client: None),
    )
    found = []
    for spec, attack, watch in zip(specs, attacks, watches, strict=True):
        # What others wanted to be written down is not for this attack to see.
        wanted = () if watch is None else watch.written
        finished = FinishedRun(
            spec, problem, defense, replace(run, rounds=tuple(r for r in run.rounds if r.index in wanted))
        )
        if attack is None or watch is None:
            found.append([Prepared(spec, None, None, poisoned.honest(finished))])
            continue
        victims = [t for t in watch.victims if t < problem.task.schedule.rounds]
        found.append([cell for threat in spec.threats for cell in _prepare(finished, threat, victims, attack)])
    return found


def _prepare(finished: FinishedRun, threat: Threat, victims: list[int], attack: Inference) -> list[Prepared]:
    cells = _challenged(finished, threat, victims, attack)
    for cell in cells:
        cell.record["trial"]["records"] = len(cells)
    return cells


def _challenged(finished: FinishedRun, threat: Threat, victims: list[int], attack: Inference) -> list[Prepared]:
    """A cell for every challenge that a threat meets.

    A run that diverges after the rounds attacked is attacked all the same, and stays marked as diverged.
    """

    def without_challenge(status: str, reason: str) -> list[Prepared]:
        return [Prepared(finished.spec, threat, None, record_of(finished, threat, "", status, reason))]

    def not_applicable(why: str) -> list[Prepared]:
        """Diverged, if that is why none of the rounds attacked was seen."""
        stopped = status == "diverged" and not any(t in seen for t in victims)
        return without_challenge(status, reason) if stopped else without_challenge("n/a", why)

    status, reason = "ok", ""
    if finished.run.diverged_at is not None:
        status, reason = "diverged", finished.run.why
        if not all(finite(r.after) for r in finished.run.rounds):
            return without_challenge(status, reason)
    seen = cut(finished.run.rounds, threat, finished.problem.data_of(threat))
    try:
        found = goals.find(attack.goal).challenges(finished, PartyTranscript(threat, seen, victims), attack)
    except Exception as error:  # a third party's code; the trial stays in the denominator
        return without_challenge("failed", describe(error))
    if isinstance(found, NotApplicable):
        return not_applicable(found.reason)
    cells, readings = [], sum(challenge.view is not None for challenge in found)
    for challenge in found:
        if challenge.view is None:
            cells += without_challenge("n/a", challenge.reason)
            continue
        record = record_of(finished, threat, challenge.reading, status, reason, only_finite(challenge.metrics))
        cells.append(Prepared(finished.spec, threat, replace(challenge, readings=readings), record))
    return cells


def attack(cell: Prepared, progress: Progress = lambda share, text: None) -> tuple[Record, Gallery | None]:
    """Hand the view over, and judge what comes back."""
    if cell.challenge is None or cell.challenge.view is None or cell.threat is None or cell.spec.attack is None:
        return cell.record, None
    where = f"{cell.threat.party}, {cell.threat.form} form"
    progress(0.0, where)
    began = time.process_time()
    try:
        method = load_attack(cell.spec.attack)
        goal = goals.find(method.goal)
        # A seed of its own, from which the run's seed cannot be computed back.
        rng = Rng(Rng(cell.spec.seed).child("attack").integer())
        answer = method(cell.challenge.view, rng, lambda share, text: progress(share, where))
        if isinstance(answer, NotApplicable):
            return {**cell.record, "status": "n/a", "reason": answer.reason}, None
        metrics = only_finite(goal.judge(answer, cell.challenge)) | cell.record["metrics"]
        series, pictures = _finite(goal.series(answer, cell.challenge)), goal.pictures(answer, cell.challenge)
    except Exception as error:  # as above; an answer that cannot be judged is its author's error too
        return {**cell.record, "status": "failed", "reason": describe(error)}, None
    judged = {"metrics": metrics, "series": series, "scores": scores.privacy(method.goal, metrics)}
    spent = {"cost": {**cell.record["cost"], "attack_seconds": time.process_time() - began}}
    record = {**cell.record, **judged, **spent}
    return record, None if pictures is None else Gallery(record["key"], *pictures)


def _finite(series: dict[str, list[list[float]]]) -> dict[str, list[list[float]]]:
    """What JSON can hold: points that are not finite are left out."""
    return {name: [p for p in points if all(math.isfinite(v) for v in p)] for name, points in series.items()}


def load_attack(spec: MethodSpec) -> Inference:
    """An inference attack with its options."""
    made: Inference = registry.find("attack", spec.name).load()(spec.options)
    return made
