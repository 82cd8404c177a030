"""The accuracies in the logs that the authors of the two-stage paper released, and the same runs here.

`authors_logs.csv` has one line for each setting that was run with three or five seeds: the mean accuracy of the last
epoch and its standard deviation. Colorectal is left out. Columns: the group (a table here each), the attack, the share
of Byzantine workers, the time to be Byzantine (TTBB), the learning rate at ε = 2, the partition, the data set, ε.

Our runs take the released code's form throughout: the rule of the code, its label flip of one sample, no momentum under
Eq. 10, lengths with 1e-6 added where there is no momentum, its ReLU, its initial weights, which are the same in every
run, and on USPS a blur that brings the data near the authors' copy.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files

from fedarena.reproduce.published import Spread
from fedarena.reproduce.two_stage.common import BLUR, RELU, WEIGHTS, Experiment, reference

FILE = "authors_logs.csv"
STILL = (("momentum", "0"), ("offset", "1e-6"))
"""The workers' options in the code's runs under Eq. 10."""
RATE = 0.2
"""The learning rate of all runs but those that vary it."""


def experiments(group: str) -> list[Experiment]:
    """The runs of a group of the logs, in the order of the file."""
    return [_experiment(line) for line in _lines() if line["group"] == group]


def _lines() -> list[dict[str, str]]:
    text = files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _spread(line: dict[str, str]) -> Spread:
    return Spread(float(line["deviation"]), int(line["seeds"]))


def _experiment(line: dict[str, str]) -> Experiment:
    data, epsilon, mean = line["data"], float(line["epsilon"]), float(line["accuracy"])
    model = (*((BLUR,) if data == "usps" else ()), RELU, WEIGHTS)
    common = {"model": model, "partition": line["partition"], "logged": _spread(line), "source": "authors' logs"}
    if not line["attack"]:
        spread = "" if line["partition"] == "iid" else ", not iid"
        return reference(data, f"DP alone{spread}", mean, epsilon, decimals=4, **common)
    still = line["attack"] in ("eq10", "zero, no momentum")
    attack, options, omniscient = _attack(line)
    return Experiment(
        data=data,
        title=_title(line),
        paper=mean,
        byzantine=float(line["byzantine"]),
        epsilon=epsilon,
        attack=attack,
        options=options,
        knowledge="omniscient" if omniscient else "own",
        settings=(("variant", "code"), *(STILL if still else ())),
        lr=float(line["rate"]),
        decimals=4,
        **common,  # type: ignore[arg-type]
    )


def _title(line: dict[str, str]) -> str:
    attack = line["attack"].replace("zero", "no attackers, 60 % suspected")
    late = f", TTBB {line['ttbb']}" if float(line["ttbb"]) else ""
    rate = f", rate {line['rate']}" if float(line["rate"]) != RATE else ""
    return f"{attack}{late}{rate}"


def _attack(line: dict[str, str]) -> tuple[str | None, tuple[tuple[str, str], ...], bool]:
    """The name of the attack, its options, and whether it knows the uploads of all workers."""
    if line["attack"].startswith("zero"):
        return None, (), False
    name, options, omniscient = {
        "label flip": ("label-flip", (("samples", "one"),), False),
        "gaussian": ("gaussian", (), False),
        "eq10": ("optimized", (("against", "eq10"),), True),
    }[line["attack"]]
    if not float(line["ttbb"]):
        return name, options, omniscient
    # Late attackers know all uploads, since they copy honest ones before they turn.
    return f"delayed+{name}", (*options, ("start", line["ttbb"])), True


@dataclass(frozen=True)
class LoggedMean:
    """The mean accuracy of a setting, and its spread."""

    accuracy: float
    spread: Spread


@functools.cache
def shares() -> dict[tuple[str, float, str, float], LoggedMean]:
    """(attack, Byzantine share, data set, ε) → what was logged, of the iid runs with attackers who are not late."""
    return {
        (line["attack"], float(line["byzantine"]), line["data"], float(line["epsilon"])): LoggedMean(
            float(line["accuracy"]), _spread(line)
        )
        for line in _lines()
        if line["group"] == "shares" and line["partition"] == "iid"
    }


def described(what: str) -> str:
    """The setting of a table of these runs."""
    return f"test accuracy in the released code's form, {what}; the authors' logs: means of 3 or 5 seeds"
