"""One defended training run and the cells that read it.

`prepare` trains and cuts a sealed view for every threat; `attack` runs on such a view alone, in whichever
process. All inference attacks on one (problem, defense, seed) read the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from fedarena import compose, federation, judge, poisoned, registry, scores
from fedarena.attack import Answer, Extraction, Goal, Guess, Inference, Labels, Scores
from fedarena.book import Book
from fedarena.candidates import Question, ask
from fedarena.defense import Reading
from fedarena.extraction import Exam, extraction_metrics, secret_metrics
from fedarena.judge import Truth, only_finite
from fedarena.label_guess import label_metrics, prior_label_metrics
from fedarena.membership import membership_metrics
from fedarena.poisoning import Poisoning
from fedarena.problem import build
from fedarena.records import Record, describe
from fedarena.rng import Rng
from fedarena.spec import GroupSpec, MethodSpec
from fedarena.tensors import finite
from fedarena.threat import NotApplicable, Threat
from fedarena.transcript import cut
from fedarena.view import Disclosure, View

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Gallery:
    """Originals and reconstructions of one cell, for pictures: arrays [n, *input_shape]."""

    key: str
    originals: Tensor
    guesses: Tensor


@dataclass(frozen=True)
class GroupResult:
    """Records of a group and pictures."""

    spec: GroupSpec
    records: list[Record]
    galleries: list[Gallery]


@dataclass(frozen=True)
class Prepared:
    """One cell as it stands before the attack: its view, sealed off from the run, and what the judge needs.

    Attributes:
        spec, threat: the cell; no threat where nobody attacks.
        view: all that the attack will get; None where nothing is left to attack, and the record is complete.
        truths: samples and labels behind each observation, for the judge.
        members: which candidates are members, per observation, for the judge of an attack that tells members.
        record: the record without the attack's metrics and key.
        exam: what stolen models are held against, for the judge of an attack that extracts.
    """

    spec: GroupSpec
    threat: Threat | None
    view: View | None
    truths: list[tuple[Tensor, Tensor]]
    record: Record
    members: tuple[Tensor, ...] = ()
    exam: Exam | None = None


def gather(spec: GroupSpec, done: Sequence[tuple[Record, Gallery | None]]) -> GroupResult:
    """The cells of a group as one result."""
    return GroupResult(spec, [record for record, _ in done], [g for _, g in done if g is not None])


def prepare(spec: GroupSpec, progress: Progress = lambda share, text: None) -> list[Prepared]:
    """Train once, and cut a view for every threat and reading; a poisoned run is complete then.

    Raises UserError for input that cannot run.
    """
    held = compose.auxiliary(spec.defense)
    problem = build(spec.problem, spec.seed, spec.data_dir, spec.device, held)
    defense = compose.make_defense(spec.defense, problem.task)
    if spec.attack is None or issubclass(compose.attack_class(spec.attack), Poisoning):
        record = poisoned.record(spec, problem, defense, progress)
        return [Prepared(spec, threat, None, [], record) for threat in spec.threats or (None,)]
    attack = load_attack(spec.attack)
    watch = attack.watch(problem.task.schedule)
    run = federation.run(
        defense,
        problem,
        Rng(spec.seed).child("federation"),
        watch=watch.written,
        progress=lambda share: progress(share, "training"),
    )
    book = Book(spec, problem, defense, run)
    victims = [t for t in watch.victims if t < problem.task.schedule.rounds]
    return [cell for threat in spec.threats for cell in _prepare(book, threat, victims, attack)]


def _prepare(book: Book, threat: Threat, victims: list[int], attack: Inference) -> list[Prepared]:
    """A cell for every reading that the defense offers a threat.

    A run that diverges after the rounds attacked is attacked all the same, and stays marked as diverged.
    """

    def without_view(status: str, reason: str) -> list[Prepared]:
        return [Prepared(book.spec, threat, None, [], book.record(threat, "", status, reason))]

    def not_applicable(why: str) -> list[Prepared]:
        """Diverged, if that is why none of the rounds attacked was seen."""
        stopped = status == "diverged" and bool(victims) and not any(t in seen for t in victims)
        return without_view(status, reason) if stopped else without_view("n/a", why)

    status, reason = "ok", ""
    if book.run.diverged_at is not None:
        status, reason = "diverged", book.run.why
        if not all(finite(r.after) for r in book.run.rounds):
            return without_view(status, reason)
    seen = cut(book.run.rounds, threat, book.problem.data_of(threat))
    try:
        if attack.goal == "extraction":
            taken = book.defense.disclosures(threat, seen, victims)
            if isinstance(taken, NotApplicable):
                return not_applicable(taken.reason)
            return [_extraction(book, threat, taken, status, reason)]
        readings = book.defense.readings(threat, seen, victims)
    except Exception as error:  # a third party's code; the trial stays in the denominator
        return without_view("failed", describe(error))
    if isinstance(readings, NotApplicable):
        return not_applicable(readings.reason)
    if attack.goal == "labels" and not book.problem.task.n_classes:
        return without_view("n/a", "the labels are numbers: there are no classes to be named")
    cells = []
    for reading in readings:
        truths = [book.truth(o) for o in reading.observations]
        questions = _ask(book, reading, truths) if attack.goal == "membership" else None
        if questions is not None and not any(len(q.members) for q in questions):
            cells += without_view("n/a", "no batch attacked held a sample, or no held-out sample is like them")
            continue
        view = book.view(threat, reading, truths if attack.knows_labels else None, questions)
        metrics = book.estimate_metrics(reading.observations) | _priors(book, attack.goal, reading, truths)
        record = book.record(threat, reading.name, status, reason, only_finite(metrics))
        members = tuple(q.members for q in questions or ())
        cells.append(Prepared(book.spec, threat, view, truths, record, members))
    return cells


def _extraction(book: Book, threat: Threat, found: Sequence[Disclosure], status: str, reason: str) -> Prepared:
    """The cell of an attack on the server's model."""
    problem, reading = book.problem, Reading("broadcast", ())
    rounds = [book.round(d.round) for d in found]
    metrics = only_finite(secret_metrics(found, [r.secret for r in rounds]))
    record = book.record(threat, reading.name, status, reason, metrics)
    view = replace(book.view(threat, reading), disclosures=tuple(found))
    exam = Exam(problem.task, problem.x_test, problem.y_test, problem.scale, tuple(r.params for r in rounds))
    return Prepared(book.spec, threat, view, [], record, exam=exam)


def _ask(book: Book, reading: Reading, truths: Sequence[Truth]) -> list[Question]:
    """Candidates for every observation; the same ones whoever attacks the same samples of a round."""
    rng = Rng(book.spec.seed).child("candidates")
    pairs = zip(reading.observations, truths, strict=True)
    return [ask(book.problem, o.clients, truth, rng.child(o.round, *o.clients)) for o, truth in pairs]


def _priors(book: Book, goal: Goal, reading: Reading, truths: Sequence[Truth]) -> dict[str, float]:
    """What guesses that see nothing of the victims reach; of membership it is an AUC of 0.5, which needs no record."""
    if goal == "reconstruction":
        return judge.prior_metrics(truths, book.problem)
    if goal == "labels":
        sizes = [o.images for o in reading.observations]
        return prior_label_metrics([y for _, y in truths], sizes, book.problem.y)
    return {}


def attack(cell: Prepared, progress: Progress = lambda share, text: None) -> tuple[Record, Gallery | None]:
    """Hand the view over, and judge what comes back."""
    if cell.view is None or cell.threat is None or cell.spec.attack is None:
        return cell.record, None
    where = f"{cell.threat.party}, {cell.threat.form} form"
    progress(0.0, where)
    try:
        method = load_attack(cell.spec.attack)
        # A seed of its own, from which the run's seed cannot be computed back.
        rng = Rng(Rng(cell.spec.seed).child("attack").integer())
        answer = method(cell.view, rng, lambda share, text: progress(share, where))
        if isinstance(answer, NotApplicable):
            return {**cell.record, "status": "n/a", "reason": answer.reason}, None
        metrics = only_finite(_judged(cell, cell.view, method.goal, answer)) | cell.record["metrics"]
    except Exception as error:  # as above; an answer that cannot be judged is its author's error too
        return {**cell.record, "status": "failed", "reason": describe(error)}, None
    record = {**cell.record, "metrics": metrics, "scores": scores.privacy(metrics)}
    return record, _gallery(cell, cast(Guess, answer)) if method.goal == "reconstruction" else None


def _judged(cell: Prepared, view: View, goal: Goal, answer: Answer) -> dict[str, float]:
    if goal == "membership":
        return membership_metrics(cast(list[Scores], answer), cell.members)
    if goal == "labels":
        sizes = [o.images for o in view.observations]
        return label_metrics(cast(list[Labels], answer), [y for _, y in cell.truths], sizes)
    if goal == "extraction":
        assert cell.exam is not None
        return extraction_metrics(cast(list[Extraction], answer), cell.exam)
    return judge.reconstruction_metrics(cast(Guess, answer), cell.truths)


def _gallery(cell: Prepared, guess: Guess) -> Gallery:
    originals = torch.cat([x for x, _ in cell.truths]).cpu()
    matched = [judge.matched(g.images, x) for g, (x, _) in zip(guess, cell.truths, strict=True)]
    return Gallery(cell.record["key"], originals, torch.cat(matched).cpu())


def load_attack(spec: MethodSpec) -> Inference:
    """An inference attack with its options."""
    made: Inference = registry.find("attack", spec.name).load()(spec.options)
    return made
