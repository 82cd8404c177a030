"""One defended training run and the cells that read it.

`prepare` trains and cuts a sealed view for every threat; `attack` runs on such a view alone, in whichever
process. All inference attacks on one (problem, defense, seed) read the same run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedarena import federation, judge, registry, scores
from fedarena.attack import Inference
from fedarena.cards import NoOptions
from fedarena.defense import Defense, Reading
from fedarena.observe import images_behind
from fedarena.problem import Problem, ProblemSpec, build
from fedarena.records import SCHEMA, Record, environment, key_of
from fedarena.rng import Rng
from fedarena.tensors import Tensors, same_names, stack, weighted_mean
from fedarena.threat import Form, NotApplicable, Party, Threat
from fedarena.transcript import Round, cut, weights
from fedarena.view import Observation, View

Progress = Callable[[float, str], None]

TRAINING = 0.1
"""Share of a group's time that the training is taken to need, for progress."""


@dataclass(frozen=True)
class MethodSpec:
    """A defense or an attack with its options."""

    name: str
    options: Any = field(default_factory=NoOptions)


@dataclass(frozen=True)
class GroupSpec:
    """One training run and the cells that read it.

    Attributes:
        problem, defense, attack: what meets what.
        threats: the parties and forms to attack as.
        seed: everything random follows from it.
        device: cpu or cuda.
        data_dir: where data files are looked for (not part of a record's key; their checksum is).
    """

    problem: ProblemSpec
    defense: MethodSpec
    attack: MethodSpec
    threats: tuple[Threat, ...]
    seed: int
    device: str = "cpu"
    data_dir: Path | None = None


@dataclass(frozen=True)
class Gallery:
    """Originals and reconstructions of one cell, for pictures: arrays [n, *input_shape]."""

    key: str
    originals: Tensor
    guesses: Tensor


@dataclass(frozen=True)
class GroupResult:
    """Records of a group (without FedAvg's accuracy in `utility`, which another group holds) and pictures."""

    spec: GroupSpec
    records: list[Record]
    galleries: list[Gallery]


@dataclass(frozen=True)
class Prepared:
    """One cell as it stands before the attack: its view, sealed off from the run, and what the judge needs.

    Attributes:
        spec, threat: the cell.
        view: all that the attack will get; None where nothing is to be attacked, and the record is complete.
        truths: samples and labels behind each observation, for the judge.
        record: the record without the attack's metrics and key.
    """

    spec: GroupSpec
    threat: Threat
    view: View | None
    truths: list[tuple[Tensor, Tensor]]
    record: Record


def run_group(spec: GroupSpec, progress: Progress = lambda share, text: None) -> GroupResult:
    """Train once, attack as every threat, judge; everything in this process.

    Raises:
        UserError: input that cannot run. Anything that fails later becomes a record of status failed.
    """
    prepared = prepare(spec, lambda share, text: progress(TRAINING * share, text))
    done = []
    for i, cell in enumerate(prepared):

        def report(share: float, text: str, i: int = i) -> None:
            progress(TRAINING + (1 - TRAINING) * (i + share) / len(prepared), text)

        done.append(attack(cell, report))
    return gather(spec, done)


def gather(spec: GroupSpec, done: Sequence[tuple[Record, Gallery | None]]) -> GroupResult:
    """The cells of a group as one result."""
    return GroupResult(spec, [record for record, _ in done], [g for _, g in done if g is not None])


def prepare(spec: GroupSpec, progress: Progress = lambda share, text: None) -> list[Prepared]:
    """Train once, and cut a view for every threat and reading. Raises UserError for input that cannot run."""
    problem = build(spec.problem, spec.seed, spec.data_dir, spec.device)
    defense: Defense = registry.find("defense", spec.defense.name).load()(spec.defense.options, problem.task)
    attack = load_attack(spec)
    watch = attack.watch(problem.task.schedule)
    run = federation.run(
        defense,
        problem,
        Rng(spec.seed).child("federation"),
        watch=range(watch.first, watch.last + 1),
        progress=lambda share: progress(share, "training"),
    )
    book = Book(spec, problem, defense, run)
    victims = [t for t in watch.victims if t < problem.task.schedule.rounds]
    return [cell for threat in spec.threats for cell in _prepare(book, threat, victims, attack.knows_labels)]


def _prepare(book: Book, threat: Threat, victims: list[int], knows_labels: bool) -> list[Prepared]:
    """A cell for every reading that the defense offers a threat."""

    def without_view(status: str, reason: str) -> list[Prepared]:
        return [Prepared(book.spec, threat, None, [], book.record(threat, "", status, reason))]

    if book.run.diverged_at is not None:
        return without_view("diverged", f"a parameter was not finite after round {book.run.diverged_at}")
    try:
        readings = book.defense.readings(threat, cut(book.run.rounds, threat), victims)
    except Exception as error:  # a third party's code; the trial stays in the denominator
        return without_view("failed", describe(error))
    if isinstance(readings, NotApplicable):
        return without_view("n/a", readings.reason)
    cells = []
    for reading in readings:
        truths = [book.truth(o) for o in reading.observations]
        view = book.view(threat, reading, truths if knows_labels else None)
        estimates = book.estimate_metrics(reading.observations)
        record = book.record(threat, reading.name, "ok", "", estimates)
        record["metrics"] |= judge.prior_metrics(truths, book.problem)
        cells.append(Prepared(book.spec, threat, view, truths, record))
    return cells


def attack(cell: Prepared, progress: Progress = lambda share, text: None) -> tuple[Record, Gallery | None]:
    """Hand the view over, and judge what comes back."""
    if cell.view is None:
        return cell.record, None
    where = f"{cell.threat.party}, {cell.threat.form} form"
    progress(0.0, where)
    try:
        method = load_attack(cell.spec)
        rng = Rng(cell.spec.seed).child("attack")
        guess = method(cell.view, rng, lambda share, text: progress(share, where))
    except Exception as error:  # as above
        return {**cell.record, "status": "failed", "reason": describe(error)}, None
    if isinstance(guess, NotApplicable):
        return {**cell.record, "status": "n/a", "reason": guess.reason}, None
    metrics = judge.reconstruction_metrics(guess, cell.truths) | cell.record["metrics"]
    record = {**cell.record, "metrics": metrics, "scores": scores.privacy("ok", metrics)}
    originals = torch.cat([x for x, _ in cell.truths]).cpu()
    matched = [judge.matched(g.images, x) for g, (x, _) in zip(guess, cell.truths, strict=True)]
    return record, Gallery(record["key"], originals, torch.cat(matched).cpu())


def load_attack(spec: GroupSpec) -> Inference:
    """The attack with its options."""
    made: Inference = registry.find("attack", spec.attack.name).load()(spec.attack.options)
    return made


def describe(error: Exception) -> str:
    """Type, message and innermost place of an exception, in one line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} (in {frame.name}, {Path(frame.filename).name}:{frame.lineno})"


@dataclass(frozen=True)
class Book:
    """A finished run with the truth about it, from which records are written."""

    spec: GroupSpec
    problem: Problem
    defense: Defense
    run: federation.Run

    def round(self, t: int) -> Round:
        """A written round."""
        return next(r for r in self.run.rounds if r.index == t)

    def truth(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """The samples and labels behind an observation (of the first local epoch, where there are several)."""
        r, images, labels = self.round(observation.round), [], []
        for client in observation.clients:
            x, y = r.batches[r.participants.index(client)].images()
            n = images_behind(self.problem.task, client)
            images.append(x[:n])
            labels.append(y[:n])
        return torch.cat(images), torch.cat(labels)

    def view(self, threat: Threat, reading: Reading, given: list[tuple[Tensor, Tensor]] | None) -> View:
        """The view of a reading; with the true labels only where the attack declares that it is given them."""
        task, observations = self.problem.task, reading.observations
        if given is not None:
            pairs = zip(observations, given, strict=True)
            observations = tuple(Observation(**{**vars(o), "labels": y}) for o, (_, y) in pairs)
        own = {}
        if threat.sight.own:
            seen = cut(self.run.rounds, threat)
            own = {t: s.own_batch for t, s in seen.items() if s.own_batch is not None}
        return View(threat, reading.name, task.input_shape, task.n_classes, observations, own)

    def estimate_metrics(self, observations: tuple[Observation, ...]) -> dict[str, float]:
        """Median over observations of cosine and relative L2 error of the party's estimate (DBCL, Section 6.3)."""
        pairs = [judge.estimate_metrics(o.estimate, self._estimated(o)) for o in observations if o.estimate is not None]
        if not pairs:
            return {}
        return {name: float(torch.tensor([p[name] for p in pairs]).median()) for name in ("cosine", "relative_l2")}

    def _estimated(self, observation: Observation) -> Tensors:
        """The truth that an observation's `estimate` estimates."""
        assert observation.estimate is not None
        r, names = self.round(observation.round), tuple(observation.estimate)
        if observation.estimate_of == "update":
            return {name: r.params[name] - r.after[name] for name in names}
        task = self.problem.task
        gradients = []
        for client in observation.clients:
            x, y = r.batches[r.participants.index(client)].images()
            n = images_behind(task, client)
            gradients.append(torch.func.grad(task.loss)(r.params, x[:n], y[:n]))
        sizes = weights(task.sizes, observation.clients).to(self.problem.device)
        return same_names(weighted_mean(stack(gradients), sizes), names)

    def record(
        self, threat: Threat, reading: str, status: str, reason: str, metrics: dict[str, float] | None = None
    ) -> Record:
        """One record; `utility.fedavg_accuracy` and what follows from it are filled in when FedAvg's run is known."""
        spec, run, problem = self.spec, self.run, self.problem
        cards = {
            "defense": registry.find("defense", spec.defense.name),
            "attack": registry.find("attack", spec.attack.name),
            **spec.problem.cards(),
        }
        metrics = metrics or {}
        record: Record = {
            "schema": SCHEMA,
            "key": "",
            "problem": {
                "dataset": spec.problem.dataset,
                "data": asdict(problem.provenance),
                "model": spec.problem.model,
                "partition": spec.problem.partition,
                "clients": spec.problem.clients,
                "device": spec.device,
            },
            "defense": spec.defense.name,
            "attack": spec.attack.name,
            "party": threat.party,
            "form": threat.form,
            "reading": reading,
            "seed": spec.seed,
            "status": status,
            "reason": reason,
            "metrics": metrics,
            "scores": {},
            "utility": {
                "clean_accuracy": run.accuracy,
                "curve": [[p.rounds, p.accuracy, p.loss if p.loss == p.loss else None] for p in run.curve],
            },
            "cost": {
                "bytes_up": run.bytes_up,
                "bytes_down": run.bytes_down,
                "seconds": run.seconds,
                "peak_bytes": run.peak_bytes,
            },
            "options": {
                "defense": asdict(spec.defense.options),
                "attack": asdict(spec.attack.options),
                **spec.problem.options(),
            },
            "versions": {kind: card.version for kind, card in cards.items()},
            "environment": environment(),
        }
        record["key"] = key_of(record)
        return record


def threats(parties: tuple[Party, ...], forms: tuple[Form, ...]) -> tuple[Threat, ...]:
    """Every party in every form, parties first."""
    return tuple(Threat(party, form) for party in parties for form in forms)
