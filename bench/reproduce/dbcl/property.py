"""DBCL, Section 6.3 and Appendix A.2: property inference, with sketches and without them.

Paper: LFW, gender as the task, two clients. The question is whether a batch of the victim holds photographs of
Africans. AUC over
iterations: 1.0 without sketches, with them 0.5 for a client and 0.726 for the server. 20,000 iterations, of which
19,000 are attacked, a fifth of them with the property; a random forest on estimated gradients, trained in each
iteration on 2 gradients with the property and 8 without it.

Here 1,000 iterations of which 150 are attacked, a fifth of them with the property; and, in the paper form, 150 of
3,000, and 300 of 1,000 on digits. LFW has grey photographs here and UTKFace colour ones, both of 32×32 pixels. The task
is gender again, and the question is whether a batch holds photographs of people known as black. The paper form is run
with the features of the attack's published code, with magnitudes and with slopes. Two readings are added to the
paper's. `in clear` uses the biases and the output layer alone, which DBCL does not sketch, so that no estimate is
needed. The
adaptive form knows the protocol: the server simulates Γ itself, and a client takes Γ from all broadcasts by a smoother.

The smoother of a dense layer with d_in inputs holds 60 matrices of s × (s + d_in) numbers, 7 GB at the paper's 4,480
and 1.5 GB at UTKFace's 2,048; so adaptive forms are measured on a narrower network (channels 16, 16, 32; d_in = 1,120
and 512) and on digits. The paper's attacker at the server holds as many samples as a client does; here it has the
held-out data. Few faces are known as black: of LFW 125 for training and 53 held out, of UTKFace 307 and 93.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fedarena.core import registry
from fedarena.core.threat import FORMS, Form, Party
from fedarena.defenses.dbcl.update_estimate import PSEUDO_INVERSE, TRANSPOSE
from fedarena.federation.spec import GroupSpec, MethodSpec, threats
from fedarena.goals.property import IN_CLEAR
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.records.schema import Record
from fedarena.reproduce import measured_with
from fedarena.reproduce.machine import Machine
from fedarena.reproduce.progress import Progress, between, prefixed, step
from fedarena.reproduce.published import Published
from fedarena.reproduce.table import Row, Table
from fedarena.runs import trial

SETTING = (
    "AUC of telling the victim's batches with the property from those without it, with its 95 % interval over rounds; "
    "2 clients, FedSGD; by what a forest is shown of an update"
)

PARTIES: tuple[Party, ...] = ("server", "client")


@dataclass(frozen=True)
class Case:
    """One federation.

    Attributes:
        title: the name by which `--only` selects it.
        model, options: from the registry.
        attack: options of the attack.
        forms: the forms that are measured.
        left_out: why the other forms are not.
        parties: who attacks; the paper has no eavesdropper.
    """

    title: str
    dataset: str
    model: str
    options: tuple[tuple[str, str], ...]
    attack: tuple[tuple[str, str], ...]
    schedule: Schedule
    forms: tuple[Form, ...] = FORMS
    left_out: str = ""
    parties: tuple[Party, ...] = PARTIES


_LFW = Schedule(rounds=1000, batch_size=32, lr=0.01)
_SPREAD = (("property", "black"), ("start", "100"), ("stride", "6"), ("rounds", "150"))
_LONGER = (("property", "black"), ("start", "300"), ("stride", "18"), ("rounds", "150"))
_OFTEN = (("start", "100"), ("stride", "3"), ("rounds", "300"))
_NARROW = (("channels", "16,16,32"),)
_WITHIN = ("round_batches", "16")

CASES = (
    Case(
        title="digits",
        dataset="digits",
        model="mlp",
        options=(),
        attack=(),
        schedule=Schedule(rounds=120, batch_size=64, lr=0.1),
    ),
    Case(
        title="paper form, digits",
        dataset="digits",
        model="mlp",
        options=(),
        attack=(),
        schedule=Schedule(rounds=120, batch_size=64, lr=0.1),
        forms=("paper",),
        left_out="not measured here: in the federation `digits`, a seed of which takes ten times as long",
    ),
    Case(
        title="paper form, digits, 1,000 rounds",
        dataset="digits",
        model="mlp",
        options=(),
        attack=_OFTEN,
        schedule=Schedule(rounds=1000, batch_size=64, lr=0.1),
        forms=("paper",),
        left_out="not measured: with 120 rounds only",
        parties=(*PARTIES, "eavesdropper"),
    ),
    Case(
        title="LFW, narrow", dataset="lfw", model="cnn-lfw", options=_NARROW, attack=(*_SPREAD, _WITHIN), schedule=_LFW
    ),
    Case(
        title="LFW, 3,000 rounds",
        dataset="lfw",
        model="cnn-lfw",
        options=_NARROW,
        attack=_LONGER,
        schedule=replace(_LFW, rounds=3000),
        forms=("paper",),
        left_out="not measured: with 1,000 rounds only",
    ),
    Case(
        title="LFW, the paper's network",
        dataset="lfw",
        model="cnn-lfw",
        options=(),
        attack=_SPREAD,
        schedule=_LFW,
        forms=("paper",),
        left_out="not measured: the smoother of a layer with 4,480 inputs holds 7 GB",
    ),
    Case(
        title="UTKFace, narrow",
        dataset="utkface",
        model="cnn-lfw",
        options=_NARROW,
        attack=(*_SPREAD, _WITHIN),
        schedule=_LFW,
    ),
    Case(
        title="UTKFace, the paper's network",
        dataset="utkface",
        model="cnn-lfw",
        options=(),
        attack=_SPREAD,
        schedule=_LFW,
        forms=("paper",),
        left_out="not measured: the smoother of a layer with 2,048 inputs holds 1.5 GB",
    ),
)
DEFENSES = ("fedavg", "dbcl")
PAPER: dict[tuple[str, str], float] = {
    ("fedavg", "server"): 1.0,
    ("fedavg", "client"): 1.0,
    ("dbcl", "server"): 0.726,
    ("dbcl", "client"): 0.5,
}

FEATURES = ("code", "margins", "slopes")
"""The features that a forest gets in the paper form; the first are the authors'."""
ADAPTIVE = "best"
"""The features in the adaptive form: margins or slopes, whichever does better on held-back samples."""

PAIRINGS = {f"{case.title}: {defense}": (case, defense) for case in CASES for defense in DEFENSES}
"""Piece → federation and defense."""
MEASURED = ("auc", "low", "high", "cosine", "accuracy")

_NARROWER = "a narrower network than the paper's"
_FACES = "UTKFace in place of LFW"
APART = {
    "digits": "digits in place of LFW",
    "paper form, digits": "digits in place of LFW",
    "paper form, digits, 1,000 rounds": "digits in place of LFW",
    "LFW, narrow": _NARROWER,
    "LFW, 3,000 rounds": _NARROWER,
    "UTKFace, narrow": f"{_FACES}, {_NARROWER}",
    "UTKFace, the paper's network": _FACES,
}
OPTIONS = {("dbcl", "client"): (TRANSPOSE, PSEUDO_INVERSE)}
"""The options by which a client of the paper estimates updates."""
PUBLISHED = tuple(
    Published(
        piece=f"{case.title}: {defense}",
        paper=paper,
        column="auc",
        row=(("attacker", party), ("features", kind), ("paper", paper), *((("reading", o),) if o else ())),
        decimals=3 if paper == 0.726 else 1,
        better="",
        apart=APART.get(case.title, ""),
    )
    for case in CASES
    for (defense, party), paper in PAPER.items()
    for o in OPTIONS.get((defense, party), ("",))
    for kind in FEATURES[1:]
)


def rows(piece: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """One row for each reading of one federation."""
    return measure(*PAIRINGS[piece], machine, seed, prefixed(progress, piece))


def measure(case: Case, defense: str, machine: Machine, seed: int, progress: Progress) -> list[Row]:
    """Train one federation, then attack it."""
    attack = registry.find("attack", "property-inference")
    method = MethodSpec(attack.name, attack.parse(dict(case.attack)))
    group = GroupSpec(
        problem=_problem(case),
        defense=measured_with.defense(defense),
        attack=method,
        threats=threats(case.parties, case.forms),
        seed=seed,
        device=machine.device,
        data_dir=machine.data_dir,
    )
    trials = trial.prepare(group, between(progress, 0.0, 0.3))
    attacks = [(one, kind) for one in trials for kind in (FEATURES if one.record["form"] == "paper" else (ADAPTIVE,))]
    measured = []
    for i, (one, kind) in enumerate(attacks):
        shown = MethodSpec(attack.name, replace(method.options, features=kind))
        variant = replace(one, spec=replace(one.spec, attack=shown))
        record = trial.attack(variant, step(between(progress, 0.3, 1.0), i, len(attacks)))[0]
        measured.append(_row(case, kind, record))
    if not case.left_out:
        return measured
    blank = dict.fromkeys(measured[0])
    reason = {"federation": case.title, "defense": defense, "form": "adaptive", "reading": case.left_out}
    return [*measured, {**blank, **reason}]


def _problem(case: Case) -> ProblemSpec:
    return ProblemSpec(
        dataset=case.dataset,
        model=case.model,
        partition="iid",
        clients=2,
        model_options=registry.find("model", case.model).parse(dict(case.options)),
        partition_options=registry.find("partition", "iid").parse({}),
        schedule=case.schedule,
    )


def _row(case: Case, kind: str, record: Record) -> Row:
    metrics, clear = record["metrics"], record["reading"].endswith(IN_CLEAR)
    paper = PAPER.get((record["defense"], record["party"])) if record["form"] == "paper" and not clear else None
    trained = {0.0: "all rounds", 1.0: "each round"}
    # The choice that was made: a ridge regression sees an update as it is.
    chosen = f"{kind}: {'slopes' if metrics.get('by_slopes') else 'others'}" if kind == ADAPTIVE else kind
    return {
        "federation": case.title,
        "defense": record["defense"],
        "attacker": record["party"],
        "form": record["form"],
        "reading": record["reading"] or record["reason"],
        "features": chosen,
        "trained over": trained[metrics["by_round"]] if "by_round" in metrics else None,
        "paper": paper,
        "auc": metrics.get("auc"),
        "low": metrics.get("auc_low"),
        "high": metrics.get("auc_high"),
        "cosine": metrics.get("cosine"),
        "accuracy": record["utility"]["clean_accuracy"],
    }


TABLE = Table(setting=SETTING, pieces=tuple(PAIRINGS), rows=rows, measured=MEASURED, published=PUBLISHED)
