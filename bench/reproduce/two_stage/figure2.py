"""Two-stage, Figure 2: 90 % label flippers.

The figure prints no numbers; the paper's column holds the means of its authors' published logs where they have them."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.published import Cause
from fedarena.reproduce.two_stage import causes
from fedarena.reproduce.two_stage.authors_logs import shares
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import Experiment, accuracy_table

SETTING = "test accuracy under 90 % label flippers, by ε"

LOGS: dict[str, dict[float, bool]] = {
    "fashion-mnist": dict.fromkeys((2.0, 1.0, 0.5, 0.25, 0.125), True),
    "usps": dict.fromkeys((2.0, 1.0, 0.5, 0.25, 0.125), False),
    "mnist": {2.0: False, 0.125: True},
}
"""Data set → ε → whether the row stands beside the authors' logs."""

CODE = "label flip, released code"


def explained(experiment: Experiment) -> Experiment:
    """The experiment with what may make it differ from the logs."""
    logs = named(experiment, "label flip", "two-stage/logs-shares")
    own = causes.rows((causes.ALL, logs))
    text = causes.rows((causes.BY_TEXT, named(experiment, CODE)), (causes.BY_TEXT, logs))
    found: tuple[Cause, ...] = own if experiment.title == CODE else text
    return replace(experiment, causes=found)


PLAIN = [
    Experiment(
        data=data,
        title=f"label flip, {form}",
        paper=logged.accuracy if logged else None,
        byzantine=0.9,
        epsilon=epsilon,
        attack="label-flip",
        options=(("samples", samples),),
        settings=settings,
        source="authors' logs",
        logged=logged.spread if logged else None,
        decimals=4,
    )
    for data, by_epsilon in LOGS.items()
    for epsilon, is_logged in by_epsilon.items()
    for logged in (shares()["label flip", 0.9, data, epsilon] if is_logged else None,)
    for form, samples, settings in (
        ("whole protocol", "batch", ()),
        ("released code", "one", (("variant", "code"),)),
    )
]

EXPERIMENTS = [explained(experiment) for experiment in PLAIN]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
