"""Membership inference on released models that overfit: LiRA beside the loss threshold, without a defense and by ε.

Carlini et al. 2022 find LiRA ten times as strong as the loss threshold at a false positive rate of 0.1 %, on networks
for CIFAR-10 and 25,000 samples; here dense networks see few samples of easier data, so that no number of theirs stands
beside. What can be held to theirs is the order: at low false positive rates LiRA finds more than the loss does.

Rows are told apart by who attacks (an outsider, who asks for predictions and holds samples of its own; a client, who
holds its own shard besides), by how shadows are trained (paper: plainly, adaptive: through the protocol) and by what
ranks the candidates. Server and eavesdropper hold the model that the outsider asks, and no further samples: their
numbers are the outsider's. The loss threshold needs no shadows and no samples, so that one row is all that it has.

`asked` says who stands where members stand. On rows "trained on by nobody" these are samples of the training set that
no client holds, so that neither they nor the strangers were seen: an attack that ranks them above strangers tells data
apart, not memory, and its other rows would be worth that much less.

A column `tpr_at_X` is the share of members found where a share X of the strangers is taken for members, which takes at
least 1/X strangers. Of the rates that the judge measures there is the 95 % interval of one seed's share besides, as
`low_at_X` and `high_at_X` (`fedarena.goals.metrics.membership.membership_metrics`): over the members, the threshold
being given.
`strangers` says how many there were: at 1 % of 144 one stranger sets the threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from fedarena.goals.trials import OpenTrial, PreparedTrial
from fedarena.problem.problem import Problem, build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.inference.membership_picture import Line, Panel, draw_panels
from fedarena.reproduce.place import Where
from fedarena.runs import trial

Progress = Callable[[float, str], None]

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""False positive rates."""
SHADOWS = 16
SETTING = (
    "share of members found by false positive rate; dense network of 200-200 units on few samples; "
    f"{SHADOWS} shadow models, one variance; seeds: mean [least, largest]"
)
COLUMNS = tuple(f"tpr_at_{rate:g}" for rate in RATES)
ENDS = {f"{end}_at_{rate:g}": f"{name}_{end}" for name, rate in JUDGED.items() for end in ("low", "high")}
TOLD_APART = ("data", "defense", "party", "form", "statistic", "asked")
MEASURED = ("auc", "auc_low", "auc_high", "strangers", *COLUMNS, *ENDS, "on_members", "on_strangers")


@dataclass(frozen=True)
class Data:
    """A federation that overfits.

    Attributes:
        name: of the data set. clients, samples: how many clients with how many samples each. batch: a client's.
    """

    name: str
    clients: int
    samples: int
    batch: int


DATA = (Data("digits", 4, 50, 16), Data("mnist", 5, 300, 64))
DEFENSES: dict[str, tuple[str, dict[str, str]]] = {
    "fedavg": ("fedavg", {}),
    "dp-sgd, ε = 8": ("dp-sgd", {"epsilon": "8"}),
    "dp-sgd, ε = 2": ("dp-sgd", {"epsilon": "2"}),
    "dp-sgd, ε = 0.5": ("dp-sgd", {"epsilon": "0.5"}),
}
ROUNDS = 200

_CASES = {f"{data.name}, {title}": (data, title) for data in DATA for title in DEFENSES}
PIECES = tuple(_CASES)

PARTIES: tuple[Party, ...] = ("outsider", "client")
MEMBERS, NOBODYS = "members", "trained on by nobody"
LOSS = compose.parse_attack("membership-inference", {"statistic": "loss"})


def rows(piece: str, where: Where, seed: int, progress: Progress) -> list[dict[str, Any]]:
    """Train one federation, and attack its model in every way."""
    data, title = _CASES[piece]
    return measure(data, title, where, seed, lambda share, text: progress(share, f"{piece}: {text}"))


def measure(
    data: Data, title: str, where: Where, seed: int, progress: Progress, shadows: int = SHADOWS
) -> list[dict[str, Any]]:
    """One row for every attack and form."""
    lira = compose.parse_attack("membership-inference", {"shadows": str(shadows)})
    threats = tuple(Threat(party, form) for party in PARTIES for form in FORMS)
    spec = GroupSpec(problem_of(data), defense_of(title), lira, threats, seed, where.device, where.data_dir)
    cells = trial.prepare(spec)
    first, *others = [_challenge(cell) for cell in cells]
    null = among_nobodys(build(spec.problem, seed, where.data_dir, where.device), seed, first)
    cases = [
        *(
            (method, threats[0], asked, challenge)
            for asked, challenge in ((MEMBERS, first), (NOBODYS, null))
            for method in (LOSS, lira)
        ),
        *((lira, threat, MEMBERS, challenge) for threat, challenge in zip(threats[1:], others, strict=True)),
    ]
    found = []
    for i, (method, threat, asked, challenge) in enumerate(cases):

        def tell(share: float, text: str, i: int = i) -> None:
            progress((i + share) / len(cases), text)

        answer: Any = compose.make_inference(method)(challenge.view, Rng(seed).child("attack"), tell)
        assert not isinstance(answer, NotApplicable), answer.reason
        metrics = goals.find("training-membership").judge(answer, challenge) | challenge.metrics
        found.append(
            {
                "data": data.name,
                "defense": title,
                "party": threat.party,
                "form": "-" if method is LOSS else threat.form,
                "statistic": method.options.statistic,
                "asked": asked,
                "auc": metrics["auc"],
                "auc_low": metrics["auc_low"],
                "auc_high": metrics["auc_high"],
                "strangers": float((~challenge.answers).sum()),
                **dict(zip(COLUMNS, roc(answer[0], challenge.answers), strict=True)),
                **{column: metrics.get(name) for column, name in ENDS.items()},
                "on_members": metrics.get("member_accuracy"),
                "on_strangers": metrics.get("stranger_accuracy"),
            }
        )
    return found


def _challenge(cell: PreparedTrial) -> Challenge:
    assert isinstance(cell, OpenTrial), cell.record["reason"]
    return cell.challenge


def among_nobodys(problem: Problem, seed: int, real: Challenge) -> Challenge:
    """The same model and attacker, asked about samples that no client holds in the place of members."""
    held = torch.zeros(len(problem.y), dtype=torch.bool, device=problem.device)
    held[torch.cat(problem.shards)] = True
    nobodys = (~held).nonzero().flatten()
    question = training_membership.ask(problem, nobodys, halves(problem, seed)[1], Rng(seed).child("nobody's"))
    return replace(real, view=replace(real.view, candidates=question.candidates), answers=question.members, metrics={})


def problem_of(data: Data) -> ProblemSpec:
    """The federation as a problem."""
    model = registry.find("model", "mlp").parse({})
    partition = registry.find("partition", "few").parse({"samples": str(data.samples)})
    schedule = Schedule(rounds=ROUNDS, batch_size=data.batch)
    return ProblemSpec(data.name, "mlp", "few", data.clients, model, partition, schedule)


def defense_of(title: str) -> MethodSpec:
    """The protocol that a row names."""
    return compose.parse_defense(*DEFENSES[title])


def roc(answer: Scores, members: Tensor) -> list[float | None]:
    """The share of members that outrank all but a share of `RATES` of the strangers; None where that is nobody."""
    values = answer.values.double().cpu()
    inside, outside = values[members], values[~members].sort(descending=True).values
    allowed = [int(rate * len(outside) + 1e-9) for rate in RATES]
    return [float((inside > outside[k]).double().mean()) if k else None for k in allowed]


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A panel for data and defense: means over seeds of the members found, on logarithmic axes."""
    panels: dict[str, dict[str, Line]] = {}
    for row in rows:
        title = f"{row['data']}, {row['defense']}"
        name = f"{row['statistic']}, {row['party']}" + ("" if row["form"] == "-" else f", {row['form']} form")
        name += "" if row["asked"] == MEMBERS else f", {row['asked']}"
        same = [r for r in rows if all(r[k] == row[k] for k in TOLD_APART)]
        points = [(x, [r[c] for r in same if r[c] is not None]) for x, c in zip(RATES, COLUMNS, strict=True)]
        line = Line([x for x, v in points if v], [fmean(v) for _, v in points if v])
        panels.setdefault(title, {})[name] = line
    draw_panels([Panel(title, lines) for title, lines in panels.items()], path)
