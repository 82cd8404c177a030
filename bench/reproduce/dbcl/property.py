"""DBCL, Section 6.3 and Appendix A.2: property inference, with sketches and without them.

Paper: LFW, gender as the task, two clients; does a batch of the victim's hold photographs of Africans? AUC over
iterations: 1.0 without sketches, with them 0.5 for a client and 0.726 for the server. 20,000 iterations, of which
19,000 are attacked, a fifth of them with the property; a random forest on estimated gradients, trained in each
iteration on 2 gradients with the property and 8 without it.

Here 1,000 iterations of which 150 are attacked, a fifth of them with the property; and, in the paper form, 150 of
3,000, and 300 of 1,000 on digits. Of LFW there are grey photographs here, of UTKFace colour ones: 32×32 pixels, gender
as the task again, does a batch hold photographs of people known as black? The paper form is run with the features of
the attack's published code, with magnitudes and with slopes, and two readings are added that the paper has not. `in
clear` looks at the biases and the output layer alone, which DBCL does not sketch: no estimate is needed for these. The
adaptive form knows the protocol: the server simulates Γ itself, and a client takes Γ from all broadcasts by a smoother.

The smoother of a dense layer with d_in inputs holds 60 matrices of s × (s + d_in) numbers, 7 GB at the paper's 4,480
and 1.5 GB at UTKFace's 2,048; so adaptive forms are measured on a narrower network (channels 16, 16, 32; d_in = 1,120
and 512) and on digits. The paper's attacker at the server holds as many samples as a client does; here it has the
held-out data. Few faces are known as black: of LFW 125 for training and 53 held out, of UTKFace 307 and 93.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fedarena.core import registry
from fedarena.core.threat import FORMS, Form, Party
from fedarena.defenses.dbcl.update_estimate import PSEUDO_INVERSE, TRANSPOSE
from fedarena.federation.compose import parse_defense
from fedarena.federation.spec import GroupSpec, MethodSpec, threats
from fedarena.goals.property import IN_CLEAR
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec
from fedarena.reproduce.place import Where
from fedarena.reproduce.published import Published
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
        title: what `--only` picks it by.
        model, options: from the registry.
        attack: options of the attack.
        forms: those that are measured.
        left_out: why the others are not.
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
    Case("digits", "digits", "mlp", (), (), Schedule(rounds=120, batch_size=64, lr=0.1)),
    Case(
        *("paper form, digits", "digits", "mlp", (), (), Schedule(rounds=120, batch_size=64, lr=0.1), ("paper",)),
        "not measured here: in the federation `digits`, a seed of which takes ten times as long",
    ),
    Case(
        *("paper form, digits, 1,000 rounds", "digits", "mlp", (), _OFTEN),
        *(Schedule(rounds=1000, batch_size=64, lr=0.1), ("paper",)),
        "not measured: with 120 rounds only",
        (*PARTIES, "eavesdropper"),
    ),
    Case("LFW, narrow", "lfw", "cnn-lfw", _NARROW, (*_SPREAD, _WITHIN), _LFW),
    Case(
        *("LFW, 3,000 rounds", "lfw", "cnn-lfw", _NARROW, _LONGER),
        replace(_LFW, rounds=3000),
        ("paper",),
        "not measured: with 1,000 rounds only",
    ),
    Case(
        "LFW, the paper's network",
        "lfw",
        "cnn-lfw",
        (),
        _SPREAD,
        _LFW,
        ("paper",),
        "not measured: the smoother of a layer with 4,480 inputs holds 7 GB",
    ),
    Case("UTKFace, narrow", "utkface", "cnn-lfw", _NARROW, (*_SPREAD, _WITHIN), _LFW),
    Case(
        "UTKFace, the paper's network",
        "utkface",
        "cnn-lfw",
        (),
        _SPREAD,
        _LFW,
        ("paper",),
        "not measured: the smoother of a layer with 2,048 inputs holds 1.5 GB",
    ),
)
DEFENSES = ("fedavg", "dbcl")
PAPER: dict[tuple[str, Party], float] = {
    ("fedavg", "server"): 1.0,
    ("fedavg", "client"): 1.0,
    ("dbcl", "server"): 0.726,
    ("dbcl", "client"): 0.5,
}

FEATURES = ("code", "margins", "slopes")
"""What a forest is shown in the paper form; the first is the authors'."""
ADAPTIVE = "best"
"""And in the adaptive one: margins or slopes, whichever does better on samples held back."""

PIECES = tuple(f"{case.title}: {defense}" for case in CASES for defense in DEFENSES)
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
"""What a client of the paper estimates updates by."""
PUBLISHED = tuple(
    Published(
        *(f"{case.title}: {defense}", paper, "auc"),
        # Readings of the layers in clear have no number of the paper's.
        (("attacker", party), ("features", kind), ("paper", paper), *((("reading", o),) if o else ())),
        decimals=3 if paper == 0.726 else 1,
        better="",
        apart=APART.get(case.title, ""),
    )
    for case in CASES
    for (defense, party), paper in PAPER.items()
    for o in OPTIONS.get((defense, party), ("",))
    for kind in FEATURES[1:]
)


def rows(piece: str, where: Where, seed: int, progress: Callable[[float, str], None]) -> list[dict[str, object]]:
    """One row for each reading of one federation."""
    title, _, defense = piece.rpartition(": ")
    (case,) = (case for case in CASES if case.title == title)
    return measure(case, defense, where, seed, lambda share, text: progress(share, f"{piece}: {text}"))


def measure(
    case: Case, defense: str, where: Where, seed: int, progress: Callable[[float, str], None]
) -> list[dict[str, object]]:
    """Train one federation, then attack it."""
    model, attack = registry.find("model", case.model), registry.find("attack", "property-inference")
    problem = ProblemSpec(
        *(case.dataset, model.name, "iid", 2, model.parse(dict(case.options))),
        registry.find("partition", "iid").parse({}),
        case.schedule,
    )
    method = MethodSpec(attack.name, attack.parse(dict(case.attack)))
    asked = threats(case.parties, case.forms)
    group = GroupSpec(problem, parse_defense(defense, {}), method, asked, seed, where.device, where.data_dir)
    cells = trial.prepare(group, lambda share, text: progress(0.3 * share, text))
    todo = [(cell, kind) for cell in cells for kind in (FEATURES if cell.record["form"] == "paper" else (ADAPTIVE,))]
    found = []
    for i, (cell, kind) in enumerate(todo):

        def tell(share: float, text: str, i: int = i) -> None:
            progress(0.3 + 0.7 * (i + share) / len(todo), text)

        shown = MethodSpec(attack.name, replace(method.options, features=kind))
        record = trial.attack(replace(cell, spec=replace(cell.spec, attack=shown)), tell)[0]
        found.append(_row(case, kind, record))
    blank = dict.fromkeys(found[0])
    said = {"federation": case.title, "defense": defense, "form": "adaptive", "reading": case.left_out}
    return [*found, {**blank, **said}] if case.left_out else found


def _row(case: Case, kind: str, record: dict[str, Any]) -> dict[str, object]:
    metrics, clear = record["metrics"], record["reading"].endswith(IN_CLEAR)
    paper = PAPER.get((record["defense"], record["party"])) if record["form"] == "paper" and not clear else None
    trained = {0.0: "all rounds", 1.0: "each round"}
    # What a choice was: a ridge sees an update as it is.
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
