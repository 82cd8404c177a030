"""Two-stage, Figure 2: 90 % label flippers.

The figure prints no numbers; the paper's column holds the means of its authors' published logs where they have them."""

from __future__ import annotations

from fedarena.reproduce.two_stage.common import LOGGED_BY_CODE, Experiment, accuracy_table

SETTING = "test accuracy under 90 % label flippers, by ε"

LOGS: dict[str, dict[float, float | None]] = {
    "fashion-mnist": {2.0: 0.8026, 1.0: 0.7943, 0.5: 0.7741, 0.25: 0.7342, 0.125: 0.6672},
    "usps": dict.fromkeys((2.0, 1.0, 0.5, 0.25, 0.125)),
    "mnist": {2.0: None, 0.125: 0.7649},
}
"""Data set → ε → accuracy."""

EXPERIMENTS = [
    Experiment(
        data=data,
        title=f"label flip, {form}",
        paper=logged,
        byzantine=0.9,
        epsilon=epsilon,
        attack="label-flip",
        options=(("samples", samples),),
        settings=settings,
        source="authors' logs",
        remark="" if settings else LOGGED_BY_CODE,
        decimals=4,
    )
    for data, by_epsilon in LOGS.items()
    for epsilon, logged in by_epsilon.items()
    for form, samples, settings in (
        ("whole protocol", "batch", ()),
        ("released code", "one", (("variant", "code"),)),
    )
]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
