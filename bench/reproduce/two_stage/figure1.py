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
from fedarena.reproduce.two_stage.authors_logs import spreads
from fedarena.reproduce.two_stage.causes import named
from fedarena.reproduce.two_stage.common import AUTHORS, BLUR, RELU, WEIGHTS, Experiment, accuracy_table

SETTING = "test accuracy under label flip, Gaussian and Eq. 10, by the share of Byzantine workers"

SHARES = (0.2, 0.4, 0.6, 0.9)
EPSILONS = (2.0, 1.0, 0.5, 0.25, 0.125)
LOGS = {
    "fashion-mnist": {
        "label flip": (0.8014, 0.7916, 0.7777, 0.7463, 0.7023),
        "gaussian": (0.8015, 0.7924, 0.7778, 0.7486, 0.6993),
        "eq10": (0.7839, 0.7745, 0.7603, 0.7353, 0.6944),
    },
    "usps": {
        "label flip": (0.8705, 0.8495, 0.8127, 0.7304, 0.5569),
        "eq10": (0.8685, 0.8396, 0.7932, 0.7110, 0.6026),
    },
    "mnist": {
        "label flip": (0.9606, 0.9556, 0.9476, 0.9213, 0.8297),
        "gaussian": (0.9603, 0.9558, 0.9462, 0.9212, 0.8573),
        "eq10": (0.9618, 0.9570, 0.9455, 0.8971, 0.8166),
    },
}
"""Data set → attack (label flip: of one sample) → accuracy at 60 % by ε, means of three seeds in the authors' logs."""
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
    logged = LOGS[data].get(kind.removesuffix(WHOLE))
    paper = logged[EPSILONS.index(epsilon)] if logged and share == 0.6 else None
    experiment = Experiment(
        data=data,
        title=attack,
        paper=paper,
        byzantine=share,
        epsilon=epsilon,
        attack="label-flip",
        source="authors' logs",
        decimals=4,
    )
    if paper is not None:
        logged_as = kind.removesuffix(WHOLE)
        spread = spreads().get((logged_as, share, data, epsilon))
        experiment = replace(experiment, logged=spread, causes=_causes(experiment, logged_as))
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
