"""Membership inference on released models that overfit: LiRA beside the loss threshold, without a defense and by ε.

Carlini et al. 2022 find LiRA ten times as strong as the loss threshold at a false positive rate of 0.1 %, on networks
for CIFAR-10 and 25,000 samples; here dense networks see few samples of easier data, so that their numbers cannot be
compared. What can be compared is the order: at low false positive rates LiRA finds more members than the loss does.

Rows differ in the attacker (an outsider, who queries the model and holds samples of its own; a client, who also holds
its own shard), in how shadows are trained (paper: plainly, adaptive: through the protocol) and in the statistic that
ranks the candidates. Server and eavesdropper hold the model that the outsider queries, and no further samples: their
numbers are the outsider's. The loss threshold needs neither shadows nor samples, so that it has one row only.

`asked` says which samples take the place of members. On rows "trained on by nobody" they are samples of the training
set that no client holds, so that the model saw neither them nor the strangers. An attack that ranks them above
strangers distinguishes data sets, not membership, and its other rows are worth less accordingly.

A column `tpr_at_X` is the share of members found where a share X of the strangers is taken for members, which needs at
least 1/X strangers. For the rates that the judge measures, `low_at_X` and `high_at_X` are the 95 % interval of one
seed's share, which allows for the threshold (`fedarena.goals.metrics.membership.true_positive_interval`).
`strangers` is their number: at 1 % of 144, one stranger sets the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from fedarena import goals
from fedarena.contracts.inference import Scores
from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.threat import FORMS, NotApplicable, Party, Threat
from fedarena.federation import compose
from fedarena.federation.population import halves
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.goals import training_membership
from fedarena.goals.challenge import Challenge
from fedarena.goals.metrics.membership import RATES as JUDGED
from fedarena.goals.prepared import OpenRecord, PreparedRecord
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce import measured_with
from fedarena.reproduce.inference.membership_picture import Panel, RocCurve, draw_panels
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, prefixed, step
from fedarena.reproduce.table import Row, Table
from fedarena.runs import trial

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""False positive rates."""
SHADOWS = 16
SETTING = (
    "share of members found by false positive rate; dense network of 200-200 units on few samples; "
    f"{SHADOWS} shadow models, one variance; seeds: mean [least, largest]"
)
COLUMNS = tuple(f"tpr_at_{rate:g}" for rate in RATES)
ENDS = {f"{end}_at_{rate:g}": f"{name}_{end}" for name, rate in JUDGED.items() for end in ("low", "high")}
CURVE_KEYS = ("data", "defense", "party", "form", "statistic", "asked")
MEASURED = ("auc", "auc_low", "auc_high", "strangers", *COLUMNS, *ENDS, "on_members", "on_strangers")


@dataclass(frozen=True)
class Data:
    """A federation that overfits.

    Attributes:
        name: the data set. clients: the number of clients. samples, batch: the samples and the batch size of each
            client.
    """

    name: str
    clients: int
    samples: int
    batch: int


DATA = (Data("digits", 4, 50, 16), Data("mnist", 5, 300, 64))
DEFENSES: dict[str, tuple[str, dict[str, str]]] = {
    "fedavg": ("fedavg", {}),
    "dp-sgd, ε = 8": ("dp-sgd", {"epsilon": "8", **measured_with.ACCOUNTING}),
    "dp-sgd, ε = 2": ("dp-sgd", {"epsilon": "2", **measured_with.ACCOUNTING}),
    "dp-sgd, ε = 0.5": ("dp-sgd", {"epsilon": "0.5", **measured_with.ACCOUNTING}),
}
ROUNDS = 200

FEDERATIONS = {f"{data.name}, {title}": (data, title) for data in DATA for title in DEFENSES}
"""Piece → data and protocol."""

PARTIES: tuple[Party, ...] = ("outsider", "client")
MEMBERS, NOBODYS = "members", "trained on by nobody"
LOSS = compose.parse_attack("membership-inference", {"statistic": "loss"})


@dataclass(frozen=True)
class Question:
    """One attack and the candidates that it ranks.

    Attributes:
        positives: which candidates count as members: `MEMBERS` or `NOBODYS`.
    """

    method: MethodSpec
    threat: Threat
    positives: str
    challenge: Challenge


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """Train one federation, and attack its model in every way."""
    return measure(*FEDERATIONS[piece], machine, seed, prefixed(progress, piece))


def measure(
    data: Data, title: str, machine: Machine, seed: int, progress: Progress, shadows: int = SHADOWS
) -> list[Row]:
    """One row for every attack and form."""
    lira = compose.parse_attack("membership-inference", {"shadows": str(shadows)})
    spec = GroupSpec(
        problem=problem_of(data),
        defense=defense_of(title),
        attack=lira,
        threats=tuple(Threat(party, form) for party in PARTIES for form in FORMS),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )
    first, *others = [_challenge(prepared) for prepared in trial.prepare(spec)]
    null = among_nobodys(build(spec.problem, seed, machine.data_dir, machine.device), seed, first)
    questions = [
        *(
            Question(method, spec.threats[0], positives, challenge)
            for positives, challenge in ((MEMBERS, first), (NOBODYS, null))
            for method in (LOSS, lira)
        ),
        *(
            Question(lira, threat, MEMBERS, challenge)
            for threat, challenge in zip(spec.threats[1:], others, strict=True)
        ),
    ]
    return [
        {"data": data.name, "defense": title} | answer(question, seed, step(progress, i, len(questions)))
        for i, question in enumerate(questions)
    ]


def answer(question: Question, seed: int, progress: Progress) -> Row:
    """The columns of one attack: the attacker, and how well it recognises members."""
    method, challenge = question.method, question.challenge
    scores: Any = compose.make_inference(method)(challenge.view, Rng(seed).child("attack"), progress)
    assert not isinstance(scores, NotApplicable), scores.reason
    metrics = goals.find("training-membership").judge(scores, challenge) | challenge.metrics
    return {
        "party": question.threat.party,
        "form": "-" if method is LOSS else question.threat.form,
        "statistic": method.options.statistic,
        "asked": question.positives,
        "auc": metrics["auc"],
        "auc_low": metrics["auc_low"],
        "auc_high": metrics["auc_high"],
        "strangers": float((~challenge.answers).sum()),
        **dict(zip(COLUMNS, roc(scores[0], challenge.answers), strict=True)),
        **{column: metrics.get(name) for column, name in ENDS.items()},
        "on_members": metrics.get("member_accuracy"),
        "on_strangers": metrics.get("stranger_accuracy"),
    }


def _challenge(prepared: PreparedRecord) -> Challenge:
    assert isinstance(prepared, OpenRecord), prepared.record["reason"]
    return prepared.challenge


def among_nobodys(problem: Problem, seed: int, real: Challenge) -> Challenge:
    """The same model and attacker, with samples that no client holds in place of the members."""
    held = torch.zeros(len(problem.y), dtype=torch.bool, device=problem.device)
    held[torch.cat(problem.shards)] = True
    nobodys = (~held).nonzero().flatten()
    question = training_membership.draw_question(
        problem, nobodys, halves(problem, seed)[1], Rng(seed).child("nobody's")
    )
    return replace(real, view=replace(real.view, candidates=question.candidates), answers=question.members, metrics={})


def problem_of(data: Data) -> ProblemSpec:
    """The federation as a problem."""
    model = registry.find("model", "mlp").parse({})
    partition = registry.find("partition", "few").parse({"samples": str(data.samples)})
    schedule = Schedule(rounds=ROUNDS, batch_size=data.batch)
    return ProblemSpec(
        dataset=data.name,
        model="mlp",
        partition="few",
        clients=data.clients,
        model_options=model,
        partition_options=partition,
        schedule=schedule,
    )


def defense_of(title: str) -> MethodSpec:
    """The protocol that a row names."""
    return compose.parse_defense(*DEFENSES[title])


def roc(answer: Scores, members: Tensor) -> list[float | None]:
    """The share of members that outrank all but a share of the strangers, for each of `RATES`; None if that share is
    less than one stranger."""
    values = answer.values.double().cpu()
    inside, outside = values[members], values[~members].sort(descending=True).values
    allowed = [int(rate * len(outside) + 1e-9) for rate in RATES]
    return [float((inside > outside[k]).double().mean()) if k else None for k in allowed]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a panel for each data set and defense: the mean share of members found over seeds, on logarithmic axes."""
    panels: dict[str, dict[str, RocCurve]] = {}
    for row in rows:
        panel = panels.setdefault(f"{row['data']}, {row['defense']}", {})
        panel[_name(row)] = _curve([r for r in rows if all(r[k] == row[k] for k in CURVE_KEYS)])
    draw_panels([Panel(title, lines) for title, lines in panels.items()], path)


def _name(row: Row) -> str:
    """A curve's name in its panel."""
    form = "" if row["form"] == "-" else f", {row['form']} form"
    positives = "" if row["asked"] == MEMBERS else f", {row['asked']}"
    return f"{row['statistic']}, {row['party']}{form}{positives}"


def _curve(rows: Sequence[Row]) -> RocCurve:
    """The curve of the means over seeds, at each rate that some seed has."""
    shares = [(rate, [r[c] for r in rows if r[c] is not None]) for rate, c in zip(RATES, COLUMNS, strict=True)]
    return RocCurve([rate for rate, own in shares if own], [fmean(own) for _, own in shares if own])


TABLE = Table(setting=SETTING, pieces=tuple(FEDERATIONS), rows=rows, measured=MEASURED, draw=draw)
