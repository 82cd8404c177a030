"""Two-stage against attackers who have read its paper: banked reputation in rank-mapped uploads, own data only.

No paper's table: the two-stage paper's strongest adaptive attack copies honest uploads until it turns. `bank` sends
the gradient of its own samples as noise sorted along it until nine tenths of the rounds are over, and then the gradient
of the same samples with wrong labels. The other rules run on the same DP uploads, FLTrust also without noise."""

from __future__ import annotations

from fedarena.reproduce.two_stage.common import Experiment, accuracy_table, reference

SETTING = "test accuracy at ε = 2 under banked reputation, own data only; no paper tried it"

DP = (("dp-sgd.bound", "normalise"), ("dp-sgd.momentum", "0.1"))  # norm-bounding has a bound of its own
CODE = (("variant", "code"),)
HARDENED = "two-stage-hardened"
RULES = (
    *("krum", "median", "trimmed-mean", "geometric-median", "centered-clipping", "fltrust", "signguard"),
    *("multi-krum", "bulyan", "norm-bounding", "dnc", "nnm+median", "bucketing+median"),
)
NOTHING: tuple[tuple[str, str], ...] = ()
DECOY = (("decoys", "1"),)
SIDEWAYS = (("strike", "sideways"), ("strength", "0.14"))
"""The largest component along a direction that two-stage-hardened's averages let pass."""
LATE = "bank in the last two rounds"
LAST = (("delayed.start", "0.9986"), ("bank.turn", "0"), ("bank.strike", "sideways"), ("bank.tilt", "0.05"))
"""The attack begins when two rounds are left, which are too few to show in averages and scores."""
CANCELS = (("strike", "sideways"), ("strength", "0.19"), ("tilt", "0.1"), ("cancel", "true"), ("turn", "0.002"))
TILTED = (*SIDEWAYS, ("tilt", "0.3"), ("turn", "0.5"))
ATTACKS: tuple[tuple[str, str | None, tuple[tuple[str, str], ...]], ...] = (
    ("nobody attacks", None, NOTHING),
    ("bank", "bank", NOTHING),
    ("bank, the opposite of the gradient", "bank", (("strike", "ascent"),)),
    ("bank, pulses", "bank", (("turn", "0.5"), ("burn_rounds", "30"), ("bank_rounds", "120"))),
    ("bank, striking after 3 rounds", "bank", (("turn", "0.002"),)),
    ("delayed label flip, turning at 0.9 T", "delayed+label-flip", (("start", "0.9"),)),
)

EXPERIMENTS = [
    reference("fashion-mnist", "RA: DP alone", 0.80),
    *(
        Experiment(
            data="fashion-mnist",
            title=f"two-stage, {title}",
            paper=None,
            byzantine=share,
            epsilon=2.0,
            attack=attack,
            options=options,
        )
        for share in (0.2, 0.6)
        for title, attack, options in ATTACKS
    ),
    Experiment(
        data="fashion-mnist",
        title="two-stage, bank with one attacker",
        paper=None,
        byzantine=0.05,
        epsilon=2.0,
        attack="bank",
    ),
    *(
        Experiment(
            data="fashion-mnist",
            title=f"two-stage-hardened, {title}",
            paper=None,
            byzantine=share,
            epsilon=2.0,
            attack=attack,
            options=options,
            defense=HARDENED,
        )
        for share in (0.2, 0.6)
        for title, attack, options in (*ATTACKS[:2], ("bank, sideways", "bank", SIDEWAYS))
    ),
    *(
        Experiment(
            data="fashion-mnist",
            title=f"{HARDENED}, {title}",
            paper=None,
            byzantine=0.6,
            epsilon=2.0,
            attack="bank",
            options=options,
            knowledge="own",
            defense=HARDENED,
            settings=settings,
        )
        for title, options, settings in (
            ("score_decay=1, bank, sideways", SIDEWAYS, (("score_decay", "1"),)),
            ("bank, sideways, noise that cancels", CANCELS, NOTHING),
            ("bank, sideways and tilted", TILTED, NOTHING),
        )
    ),
    *(
        Experiment(
            data="fashion-mnist",
            title=f"{HARDENED}, {LATE}",
            paper=None,
            byzantine=share,
            epsilon=2.0,
            attack="delayed+bank",
            options=LAST,
            defense=HARDENED,
        )
        for share in (0.2, 0.4)
    ),
    Experiment(
        data="fashion-mnist",
        title="two-stage, variant=code, bank",
        paper=None,
        byzantine=0.2,
        epsilon=2.0,
        attack="bank",
        settings=CODE,
    ),
    *(
        Experiment(
            data="fashion-mnist",
            title=f"dp-sgd+{rule}, {title}",
            paper=None,
            byzantine=0.2,
            epsilon=2.0,
            attack=attack,
            options=(),
            knowledge="own",
            defense=f"dp-sgd+{rule}",
            settings=DP,
        )
        for rule in RULES
        for title, attack in (("nobody attacks", None), ("bank", "bank"))
    ),
    Experiment(
        data="fashion-mnist",
        title="dp-sgd+dnc, bank behind a decoy",
        paper=None,
        byzantine=0.2,
        epsilon=2.0,
        attack="bank",
        options=DECOY,
        knowledge="own",
        defense="dp-sgd+dnc",
        settings=DP,
    ),
    *(
        Experiment(
            data="fashion-mnist",
            title=f"fltrust without noise, {title}",
            paper=None,
            byzantine=0.2,
            epsilon=None,
            attack=attack,
            defense="fedavg+fltrust",
        )
        for title, attack in (("nobody attacks", None), ("bank", "bank"))
    ),
]

TABLE = accuracy_table(SETTING, EXPERIMENTS, published=False)
