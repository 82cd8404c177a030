"""What the broadcast leaks under each aggregation rule, beside how many clients the rule mixes in it.

A robust rule follows few uploads, so what it broadcasts may show these few. Every client follows the protocol here, and
the server assumes two of eleven to be corrupted. Two parties read the differences of consecutive broadcasts: an
*outsider*, who sees nothing else, and a *client*, which also has its own data and upload. Both know the protocol.

    in a number       how many clients a number of the broadcast mixes (`fedarena.federation.mixed_clients`)
    in the broadcast  how many the whole broadcast mixes
    members           who was in a round's batches: AUC, and members found at 1 % and .1 % false positives
    exposed           samples identified of the client with the largest share of the round, in batches of eight
    everybody         samples identified of all clients, if each sends the gradient of one sample

Membership is told by a regression of the difference on all candidates of a round at once. Samples are read with SPEAR,
from the difference as one client's upload and, where it holds few samples, as the mean upload of all. The judge shows
the better of the two, and knows who is exposed. A party's own samples are never counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import cast

import torch
from torch import Tensor

from fedarena.contracts.broadcast_difference import difference
from fedarena.contracts.inference import Reconstruction, Scores
from fedarena.contracts.observation import Candidates, Observation, Reading
from fedarena.contracts.plain_readings import observation
from fedarena.contracts.transcript import Seen, cut
from fedarena.core.gradients import gradient
from fedarena.core.rng import Rng
from fedarena.core.text.figures import Cloud, clouds, save_png
from fedarena.core.text.numbers import Mean, mean, percent, share
from fedarena.core.threat import NotApplicable, Threat
from fedarena.federation import compose, rounds
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.mixed_clients import MixedClients, mixed_clients
from fedarena.federation.spec import GroupSpec
from fedarena.goals.candidates import draw_questions
from fedarena.goals.metrics.identification import Owned, draw_decoys, identified_in_batches
from fedarena.goals.metrics.membership import membership_metrics
from fedarena.goals.own_samples import of_others
from fedarena.problem.problem import build
from fedarena.problem.spec import usual_problem
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress
from fedarena.reproduce.table import Row, Table

RULES = (
    "mean",
    "krum",
    "multi-krum",
    "bulyan",
    "median",
    "trimmed-mean",
    "geometric-median",
    "centered-clipping",
    "norm-bounding",
    "dnc",
    "caf",
    "lasa",
    "signguard",
    "flame",
    "fltrust",
    "foolsgold",
    "fldetector+mean",
    "rlr+mean",
    "nnm+krum",
    "nnm+median",
    "nnm+trimmed-mean",
    "bucketing+median",
    "bucketing+geometric-median",
    "foundationfl+median",
    "arc+median",
    "clipping+geometric-median",
)
CLIENTS, ASSUMED = 11, 2
ROUNDS = 61
LOOKS = (1, 13, 25, 37, 49)
"""The rounds whose samples are read, and in which clients are counted."""
PARTIES: Mapping[str, Threat] = {
    "outsider": Threat("eavesdropper", "adaptive"),  # without the uploads, see `seen_by`
    "client": Threat("client", "adaptive"),
}
OUTSIDERS = 1500
"""So few that only a quarter of a round's members are asked about, and the regression cannot explain the rest away."""
SPEAR = {"draws": "5000", "max_batch": str(CLIENTS)}
NAMED = 8.0
"""Up to how many clients a rule mixes whose name stands in the picture; above, names would cover each other."""
FOUND = ("auc", "tpr_at_1_percent_fpr", "tpr_at_0.1_percent_fpr")
"""The metrics of membership."""
MEASURED = (
    *("in a number", "in the broadcast", "accuracy"),
    *(f"{party}: {what}" for party in PARTIES for what in ("auc", "tpr 1 %", "tpr .1 %", "exposed", "everybody")),
    "cpu_seconds",
)
SETTING = (
    f"usps, mlp of 64 units, {CLIENTS} clients, {ASSUMED} assumed to be corrupted and none is, {ROUNDS} rounds at rate "
    "0.1; what differences of broadcasts leak, beside how many clients the rule mixes in them"
)


def rows(rule: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One rule."""
    return [measure(rule, machine, seed, progress)]


def measure(
    rule: str, machine: Machine, seed: int, progress: Progress, total: int = ROUNDS, dataset: str = "usps"
) -> Row:
    """One rule. `total` replaces the number of rounds."""
    began = time.process_time()
    batches, single = (trained(rule, batch, machine, seed, total, dataset) for batch in (8, 1))
    looks = [t for t in LOOKS if t < total - 1]
    progress(0.2, f"{rule}: two trainings")
    mixed = {t: mixed_clients(batches, t) for t in looks}
    mixed_single = {t: mixed_clients(single, t) for t in looks[::2]}
    row: Row = {
        "rule": rule,
        "in a number": fmean(m.in_number for m in mixed.values()),
        "in the broadcast": fmean(m.in_broadcast for m in mixed.values()),
        "accuracy": batches.run.accuracy,
    }
    for i, (party, threat) in enumerate(PARTIES.items()):
        metrics = members(batches, threat)
        progress(0.4 + 0.4 * i, f"{rule}: members, {party}")
        found = {
            **dict(zip(("auc", "tpr 1 %", "tpr .1 %"), (metrics.get(name) for name in FOUND), strict=True)),
            "exposed": read(batches, threat, mixed, together=False)[0],
            "everybody": max(read(single, threat, mixed_single, together)[1] for together in (False, True)),
        }
        row |= {f"{party}: {what}": value for what, value in found.items()}
        progress(0.6 + 0.4 * i, f"{rule}: samples, {party}")
    return row | {"cpu_seconds": time.process_time() - began}


def trained(rule: str, batch: int, machine: Machine, seed: int, total: int, dataset: str) -> FinishedRun:
    """A run under a rule with every round written down."""
    settings = {
        "model": {"widths": "64"},
        "training": {"rounds": str(total), "batch_size": str(batch), "lr": "0.1"},
    }
    given = {"dataset": dataset, "model": "mlp", "clients": str(CLIENTS), "assumed_corrupted": str(ASSUMED)}
    spec = GroupSpec(
        problem=usual_problem(given, settings),
        defense=compose.parse_defense(rule),
        attack=None,
        threats=(),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )
    problem = build(spec.problem, spec.root, spec.data_dir, spec.device, compose.auxiliary(spec.defense))
    defense = compose.make_defense(spec.defense, problem.task)
    run = rounds.run(defense, problem, Rng(spec.root).child("federation"), range(total))
    return FinishedRun(spec, problem, defense, run)


def seen_by(finished: FinishedRun, threat: Threat) -> Mapping[int, Seen]:
    """What a party saw of each round; of the wires the broadcast alone."""
    seen = cut(finished.run.rounds, threat, finished.problem.data_of(threat))
    return {t: replace(one, ups=None) for t, one in seen.items()}


def others(finished: FinishedRun, threat: Threat) -> tuple[int, ...]:
    """The clients whose samples a party is after."""
    own = threat.client if threat.visibility.own else None
    return tuple(c for c in range(len(finished.problem.shards)) if c != own)


def observed(finished: FinishedRun, threat: Threat, t: int, clients: tuple[int, ...]) -> Observation:
    """The difference after round t, read as the mean upload of these clients, which are gradients of equal batches."""
    seen = seen_by(finished, threat)
    shown = difference(finished.defense, threat, seen[t], seen[t + 1])
    one = observation(finished.defense, threat, seen[t], clients, shown, None)
    return replace(one, simulate=partial(gradient, finished.problem.task.loss, seen[t].down))


def samples(finished: FinishedRun, t: int, clients: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The samples of these clients in a round, and their labels."""
    batches = [finished.round(t).batches[client] for client in clients]  # everybody takes part
    parts = [batch.images() for batch in batches]
    return torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])


def members(finished: FinishedRun, threat: Threat) -> dict[str, float]:
    """The metrics of membership in a round's batches, over all rounds but the last."""
    problem, whom = finished.problem, others(finished, threat)
    times = range(len(finished.run.rounds) - 1)
    shards = {c: of_others(problem, threat, c) for c in whom}
    questions = draw_questions(
        problem,
        {c: (problem.inputs(shard), problem.y[shard]) for c, shard in shards.items()},
        torch.arange(min(OUTSIDERS, len(problem.y_test))),
        [(whom, samples(finished, t, whom)) for t in times],
        Rng(finished.spec.root).child("candidates"),
    )
    attack = compose.make_inference(compose.parse_attack("upload-regression"))
    answers: list[Scores] = []
    for t, question in zip(times, questions, strict=True):
        seen = observed(finished, threat, t, whom[:1])
        asked = torch.full_like(question.candidates.y, whom[0])  # of one client as of any other
        candidates = Candidates(question.candidates.x, question.candidates.y, asked)
        view = replace(finished.view(threat, attack, Reading("difference", (seen,))), candidates=candidates)
        answer = attack(view, Rng(finished.spec.root).child("members", t))
        assert isinstance(answer, list), "a regression can be made of any difference"
        answers += cast("list[Scores]", answer)
    return membership_metrics(answers, [question.members for question in questions])


def read(
    finished: FinishedRun, threat: Threat, mixed: Mapping[int, MixedClients], together: bool
) -> tuple[float, float]:
    """The share of the most exposed client's samples identified, and that of everybody's.

    Args:
        mixed: the rounds that are read. together: whether a difference is read as the mean upload of all, or as one's.
    """
    whom, attack = others(finished, threat), compose.make_inference(compose.parse_attack("spear", SPEAR))
    exposed, everybody = list[float](), list[float]()
    for t, round_ in mixed.items():
        most = max(whom, key=lambda client: round(float(round_.shares[client]), 6))
        clients = whom if together else (most,)
        truth = samples(finished, t, clients)
        view = finished.view(threat, attack, Reading("difference", (observed(finished, threat, t, clients),)))
        answer = attack(view, Rng(finished.spec.root).child("samples", t))
        found = torch.zeros(len(truth[1]))
        if not isinstance(answer, NotApplicable):
            found = identified_in(finished, threat, cast("list[Reconstruction]", answer), truth, t)
        own = torch.tensor([client == most for client in clients]).repeat_interleave(len(found) // len(clients))
        exposed.append(float(found[own].double().mean()))
        everybody.append(float(found.sum()) / len(samples(finished, t, whom)[1]))
    return fmean(exposed), fmean(everybody)


def identified_in(
    finished: FinishedRun, threat: Threat, guess: Sequence[Reconstruction], truth: tuple[Tensor, Tensor], t: int
) -> Tensor:
    """Which of the samples a guess identifies (`fedarena.goals.metrics.identification`)."""
    problem, none = finished.problem, torch.empty(0, dtype=torch.int64)
    owned = Owned(train=problem.shards[threat.client] if threat.visibility.own else none, test=none)
    decoys = draw_decoys([truth], problem, owned, Rng(finished.spec.root).child("identification", t))
    return identified_in_batches([one.images for one in guess], [truth[0]], decoys)


def _tenths(m: Mean) -> str:
    """A number with one decimal: "10.8 ± 0.2"."""
    return f"{m.value:.1f}" + ("" if m.half is None else f" ± {m.half:.1f}")


def _rare(m: Mean) -> str:
    """A share in percent with one decimal: "0.4 ± 0.2 %"."""
    return share(m, lambda value: f"{100 * value:.1f}", " %")


TEXTS: Mapping[str, Callable[[Mean], str]] = {"auc": share, "tpr 1 %": _rare, "tpr .1 %": _rare}
"""What a party finds → how its mean over seeds is written; other shares are in whole per cent."""


def compact(rows: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """A line for each rule, the fewest clients in the broadcast first: means over seeds with 95 % intervals."""
    mixed = ("in a number", "in the broadcast")
    texts = {c: _tenths if c in mixed else TEXTS.get(c.rpartition(": ")[2], percent) for c in MEASURED[:-1]}
    own = {rule: [row for row in rows if row["rule"] == rule] for rule in dict.fromkeys(row["rule"] for row in rows)}
    lines = []
    for rule in sorted(own, key=lambda rule: fmean(row["in the broadcast"] for row in own[rule])):
        found = {c: [row[c] for row in own[rule] if row[c] is not None] for c in texts}
        cells = {c: text(mean(found[c])) if found[c] else None for c, text in texts.items()}
        lines.append({"rule": rule, "seeds": len(own[rule]), **cells})
    return lines, ["Means over seeds with 95 % intervals by Student's t."]


def draw(rows: Sequence[Row], path: Path) -> None:
    """What an outsider learns, over how many clients a number mixes and over how many the broadcast mixes."""
    own = {rule: [row for row in rows if row["rule"] == rule] for rule in dict.fromkeys(row["rule"] for row in rows)}

    def cloud(title: str, x: str, y: str) -> Cloud:
        points = {rule: (fmean(r[x] for r in some), fmean(r[y] for r in some)) for rule, some in own.items()}
        return Cloud(title, points, x=f"clients {x}", y=y, named=NAMED)

    panels = [
        cloud("members found at .1 % false positives", "in a number", "outsider: tpr .1 %"),
        cloud("members found at .1 % false positives", "in the broadcast", "outsider: tpr .1 %"),
        cloud("the exposed client's batch of eight", "in the broadcast", "outsider: exposed"),
    ]
    save_png(clouds(panels, "What broadcasts of rules leak to an outsider; the rules that mix fewest have names"), path)


TABLE = Table(setting=SETTING, pieces=RULES, rows=rows, measured=MEASURED, compact=compact, draw=draw)
