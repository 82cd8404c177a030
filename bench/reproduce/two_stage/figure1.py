"""Two-stage, Figure 1 (label flipping) and its companions in the appendix (Gaussian, Eq. 10), by Byzantine share.

The figures print no numbers; the paper's column holds what its text, Table 4 and its authors' published logs say
where they do. `released code` is the rule of the code, by which the logs were made; against it the label flip has one
sample, and under Eq. 10 no worker has momentum, as in the code, which uses it only where attackers have rows of data.
The code divides a gradient by its length + 1e-6, and without momentum many samples' gradients are shorter than that:
`offset=0` leaves the 1e-6 out, as the paper's text does.
`weights_seed=1234` adds the code's initial weights, the same in every run, `activation=relu` its activation, and
`blur=0.75` brings USPS near the authors' copy of it."""

from __future__ import annotations

from dataclasses import replace

from fedarena.reproduce.published import Cause
from fedarena.reproduce.two_stage import causes
from fedarena.reproduce.two_stage.authors_logs import shares
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import AUTHORS, BLUR, RELU, WEIGHTS, Experiment, accuracy_table

SETTING = "test accuracy under label flip, Gaussian and Eq. 10, by the share of Byzantine workers"

SHARES = (0.2, 0.4, 0.6, 0.9)
EPSILONS = (2.0, 1.0, 0.5, 0.25, 0.125)
LOGS = {
    "fashion-mnist": ("label flip", "gaussian", "eq10"),
    "usps": ("label flip", "eq10"),
    "mnist": ("label flip", "gaussian", "eq10"),
}
"""Data set → attacks (label flip: of one sample) that stand beside the authors' logs at 60 %."""
CODE = (("variant", "code"),)
RELEASED, WHOLE = ", released code", ", whole protocol"
BY_TEXT = ", offset=0"
"""The title of a row whose gradients are normalised as the text says, all else as in the code."""

OWN = {"mnist": ", weights_seed=1234, activation=relu", "usps": AUTHORS}
"""Data set → the title of what the authors had besides."""


def attacked(data: str, epsilon: float, share: float, attack: str) -> Experiment:
    """One experiment of a figure."""
    released = attack.removesuffix(BY_TEXT)
    code, kind = released.endswith(RELEASED), released.removesuffix(RELEASED)
    logged_as = kind.removesuffix(WHOLE)
    logged = shares()[logged_as, share, data, epsilon] if logged_as in LOGS[data] and share == 0.6 else None
    experiment = Experiment(
        data=data,
        title=attack,
        paper=logged.accuracy if logged else None,
        byzantine=share,
        epsilon=epsilon,
        attack="label-flip",
        source="authors' logs",
        decimals=4,
    )
    if logged is not None:
        experiment = replace(experiment, logged=logged.spread, causes=_causes(experiment, logged_as))
    experiment = replace(experiment, settings=CODE) if code else experiment
    if attack.endswith(BY_TEXT):
        experiment = replace(experiment, apart="lengths by the paper's text; the logs' code adds 1e-6 to them")
    if kind == "gaussian":
        return replace(experiment, attack="gaussian")
    if kind == "eq10":
        offset = () if attack.endswith(BY_TEXT) else (("offset", "1e-6"),)
        still = (*experiment.settings, ("momentum", "0"), *offset) if code else ()
        return replace(
            experiment, attack="optimized", options=(("against", "eq10"),), knowledge="omniscient", settings=still
        )
    return replace(experiment, options=(("samples", "one"),)) if code else experiment


def _causes(experiment: Experiment, kind: str) -> tuple[Cause, ...]:
    """Why a row may differ from the logs of its kind of attack."""
    code, own = f"{kind}{RELEASED}", OWN.get(experiment.data, "")
    logs = named(experiment, kind, "two-stage/logs-shares")
    theirs = (causes.OWN.get(experiment.data, causes.ALL), named(experiment, f"{code}{own}"))
    if experiment.title == code:
        return causes.rows(theirs, (causes.ALL, logs))
    return causes.rows((causes.BY_TEXT, named(experiment, code)), (causes.BY_TEXT, theirs[1]), (causes.BY_TEXT, logs))


EXPERIMENTS = (
    [
        attacked(data, epsilon, share, attack)
        for data in LOGS
        for epsilon in EPSILONS
        for attack in ("label flip, whole protocol", "label flip, released code", "gaussian", "eq10")
        for share in SHARES
        if epsilon in (2.0, 0.125) or attack.startswith("label flip")
        if share != 0.9 or epsilon == 2.0  # Figure 2 has the other ε
    ]
    + [
        attacked(data, epsilon, 0.6, attack)
        for data in LOGS
        for epsilon in (2.0, 0.125)
        for attack in (f"gaussian{RELEASED}", f"eq10{RELEASED}", f"eq10{RELEASED}{BY_TEXT}")
        if attack.partition(",")[0] in LOGS[data]
    ]
    + [
        # The code's network, in addition to its rule and its attacker.
        replace(
            attacked("mnist", epsilon, 0.6, f"label flip{RELEASED}"),
            title=", ".join([f"label flip{RELEASED}", *("=".join(option) for option in model)]),
            model=model,
        )
        for epsilon, model in ((0.5, (WEIGHTS,)), (0.25, (WEIGHTS,)), (0.25, (WEIGHTS, RELU)))
    ]
    + [
        # The same for USPS, whose copy by the authors is blurred.
        replace(
            attacked("usps", epsilon, 0.6, f"{kind}{RELEASED}"), title=f"{kind}{RELEASED}{AUTHORS}", model=(BLUR, RELU)
        )
        for kind in ("label flip", "eq10")
        for epsilon in EPSILONS
        if kind == "label flip" or epsilon in (2.0, 0.125)
    ]
)

TABLE = accuracy_table(SETTING, EXPERIMENTS)
