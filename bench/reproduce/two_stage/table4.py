"""Two-stage, Table 4: the side effect without attackers.

RA: DP alone, honest workers alone. zero: the server takes 60 % of the workers for Byzantine, although all follow the
protocol.

The further rows go one step at a time towards what the authors' code does: their copy of USPS is blurred, their ELU is
a ReLU, their initial weights come from one seed whatever the run's, their server divides the sum of the selected
uploads by the number selected."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.published import Cause
from fedarena.reproduce.two_stage import causes
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import BLUR, RELU, WEIGHTS, Experiment, accuracy_table, reference

SETTING = "test accuracy without attackers; RA = DP only, zero = both stages with 60 % of the workers suspected"

PAPER = {
    "mnist": {0.125: (0.88, 0.85), 0.5: (0.95, 0.94), 2.0: (0.96, 0.96)},
    "fashion-mnist": {0.125: (0.69, 0.69), 0.5: (0.77, 0.77), 2.0: (0.80, 0.80)},
    "usps": {0.125: (0.64, 0.58), 0.5: (0.82, 0.81), 2.0: (0.87, 0.87)},
}
"""Data set → ε → (RA, zero)."""

PRINTED = [
    experiment
    for data, by_epsilon in PAPER.items()
    for epsilon, (alone, zero) in by_epsilon.items()
    for experiment in (
        reference(data, "RA", alone, epsilon),
        Experiment(data=data, title="zero attackers", paper=zero, byzantine=0.6, epsilon=epsilon),
        Experiment(
            data=data,
            title="zero attackers, variant=code",
            paper=zero,
            byzantine=0.6,
            epsilon=epsilon,
            settings=(("variant", "code"),),
        ),
    )
]

MODELS: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "fashion-mnist": {"RA, activation=relu": (RELU,)},
    "usps": {"RA, blur=0.75": (BLUR,), "RA, blur=0.75, activation=relu": (BLUR, RELU)},
}
"""Data set → title → options of the model in the authors' code."""

TOWARDS_THE_CODE = [
    experiment
    for data, models in MODELS.items()
    for epsilon, (alone, zero) in PAPER[data].items()
    for experiment in (
        *(reference(data, title, alone, epsilon, model=options) for title, options in models.items()),
        Experiment(
            data=data,
            title="zero attackers, divisor=selected",
            paper=zero,
            byzantine=0.6,
            epsilon=epsilon,
            settings=(("divisor", "selected"),),
        ),
    )
] + [
    reference("mnist", "RA, weights_seed=1234", alone, epsilon, model=(WEIGHTS,))
    for epsilon, (alone, _) in PAPER["mnist"].items()
]

BY_TEXT = "zero attackers"
"""The title of the rows by the text's rule."""


def explained(experiment: Experiment) -> Experiment:
    """The experiment with what may make it differ from the paper."""
    if experiment.title.startswith("RA"):
        found = causes.rows(
            (causes.BLUR, named(experiment, "RA, blur=0.75")),
            (causes.WEIGHTS, named(experiment, "RA, weights_seed=1234")),
            (causes.ALL, named(experiment, "DP alone", "two-stage/logs-alone")),
        )
        twice = "the paper's Table 15 has another number for this run, and ours agrees with it"
        run = named(experiment, "RA", "two-stage/table15")
        found = (*found, Cause(twice, run, contradiction=True))
    else:
        found = causes.rows((causes.ALL, named(experiment, "no attackers, 60 % suspected", "two-stage/logs-alone")))
        if experiment.title == BY_TEXT:
            found = (
                *causes.rows(
                    (causes.DIVISOR, named(experiment, f"{BY_TEXT}, variant=code")),
                    (causes.DIVISOR, named(experiment, f"{BY_TEXT}, divisor=selected")),
                ),
                *found,
            )
    return replace(experiment, causes=found)


EXPERIMENTS = [explained(experiment) for experiment in PRINTED + TOWARDS_THE_CODE]

NOTES = (
    "`zero` is not the mean of the authors' logs everywhere: USPS at ε = 1/2 has .795 there and .81 here, at 2 .861 "
    "and .87, Colorectal .384, .627 and .729 where the paper prints .44, .67 and .74.",
)

TABLE = accuracy_table(SETTING, EXPERIMENTS, notes=NOTES)
