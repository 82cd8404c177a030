"""Two-stage, Table 5: 60 % label flippers that follow the protocol until round TTBB·T (time to be Byzantine).

`whole protocol`: an attacker flips its whole batch and follows Algorithm 1; the server's rule is the paper's.
`released code`: one sample a round, which makes it 16 times weaker, against the rule of the code. The last rows add
what the authors had besides: on MNIST the code's initial weights, the same in every run, and its activation; on USPS
their blurred copy of the data and that activation."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.two_stage.common import AUTHORS, BLUR, RELU, WEIGHTS, Experiment, accuracy_table

SETTING = "test accuracy, 60 % label flippers, honest until TTBB x T"

PAPER = {
    "mnist": {2.0: (0.96, 0.96, 0.96, 0.96, 0.96), 0.125: (0.82, 0.82, 0.81, 0.81, 0.82)},
    "fashion-mnist": {2.0: (0.80, 0.80, 0.80, 0.80, 0.80), 0.125: (0.68, 0.68, 0.68, 0.69, 0.69)},
    "usps": {2.0: (0.86, 0.86, 0.86, 0.86, 0.86), 0.125: (0.60, 0.60, 0.57, 0.57, 0.60)},
}
"""Data set → ε → accuracy at TTBB = 0, 0.2, 0.4, 0.6, 0.8."""
TTBB = (0.0, 0.2, 0.4, 0.6, 0.8)
FORMS = {
    "whole protocol": ((("samples", "batch"),), ()),
    "released code": ((("samples", "one"),), (("variant", "code"),)),
}


def attacked(data: str, epsilon: float, share: float, paper: float, form: str) -> Experiment:
    """One experiment. Late attackers know all uploads, since they copy honest ones before they turn."""
    options, settings = FORMS[form]
    title = f"label flip, {form}, TTBB {share:g}"
    if share == 0:
        return Experiment(
            data=data,
            title=title,
            paper=paper,
            byzantine=0.6,
            epsilon=epsilon,
            attack="label-flip",
            options=options,
            knowledge="own",
            settings=settings,
        )
    start = ("start", f"{share:g}")
    attack = "delayed+label-flip"
    return Experiment(
        data=data,
        title=title,
        paper=paper,
        byzantine=0.6,
        epsilon=epsilon,
        attack=attack,
        options=(*options, start),
        knowledge="omniscient",
        settings=settings,
    )


OWN = {"mnist": (", weights_seed=1234, activation=relu", (WEIGHTS, RELU)), "usps": (AUTHORS, (BLUR, RELU))}
"""Data set → what the authors had besides: the title, and the model's options."""


def with_their_own(experiment: Experiment) -> Experiment:
    """The experiment with the authors' weights or data, and their network."""
    title, model = OWN[experiment.data]
    return replace(experiment, title=experiment.title + title, model=model)


EACH = [
    (data, epsilon, share, paper)
    for data, by_epsilon in PAPER.items()
    for epsilon, papers in by_epsilon.items()
    for share, paper in zip(TTBB, papers, strict=True)
]

EXPERIMENTS = [
    *(attacked(*setting, form) for form in FORMS for setting in EACH),
    *(with_their_own(attacked(*setting, "released code")) for setting in EACH if setting[0] in OWN),
]

TABLE = accuracy_table(SETTING, EXPERIMENTS)
