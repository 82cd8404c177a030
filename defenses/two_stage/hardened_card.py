"""Card and options of `two-stage-hardened`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.defenses.dp_sgd import card as dp_sgd
from fedarena.defenses.two_stage import card as two_stage


@dataclass(frozen=True)
class Options(two_stage.Options):
    """Options of the hardened two-stage protocol: those of `two-stage`, and its further tests'."""

    score_sds: float = option(
        3.0, "reject scores below minus so many standard deviations of what noise alone gives", above=0
    )
    score_decay: float = option(
        0.98, "share of a client's sum of scores that is left after each of its rounds; 1: all", above=0, high=1
    )
    decay: float = option(0.9, "λ of the quick average of each client's uploads over its rounds", above=0, below=1)
    slow_decay: float | None = option(
        None,
        "λ of the slow one; none: where the noise left in it is as long as an honest signal can be",
        above=0,
        below=1,
    )


CARD = Card(
    name="two-stage-hardened",
    kind="defense",
    title="Two-stage aggregation that looks at every score and at each client's uploads over time",
    target="fedarena.defenses.two_stage.hardened:TwoStageHardened",
    options=Options,
    version=2,
    equations="both tests in fedarena.defenses.two_stage.hardened; everything else as two-stage",
    departures=(
        "Not from a paper: a change to two-stage that was tried against rank-map and bank.",
        "The server keeps two average uploads of each client that took part, 2d numbers a client.",
        "The bound on an honest signal takes batches for their nominal size; Poisson batches may be larger.",
    ),
    check="what it lets through and what it costs: tests/defenses/two_stage/test_hardened.py",
    facts=(
        ("down", "W"),
        ("up", "g = (1/b)(Σ normalised gradients + N(0, σ²))"),
        ("server knows", "W, every g, 2 samples a class of its own"),
        (
            "malicious server chooses",
            "the model at which clients work; normalisation and noise are the clients' own, and ε holds for any model",
        ),
        ("client knows", "W in its rounds, its own data and noise; not whom the server selects"),
        ("eavesdropper knows", "both wires"),
        (
            "limits",
            "60 % colluders that push sideways and a little towards the right (bank, strike=sideways, strength=0.14, "
            "tilt=0.3, turn=0.3 or 0.5) take half of its accuracy for hundreds of rounds, with 2 server samples a "
            "class. With 20 or 40 % who are honest until two rounds are left, and then push sideways, it loses 7 or 14 "
            "points: its averages and scores react after about three rounds. Noise that leans a little against the "
            "gradient from the first round on (bank, strike=ascent, disguise=noise, strength=0.4, turn=0) was tried on "
            "digits (20 clients, 200 rounds, three seeds). Sent by 60 %, it takes accuracy from 63 to 49 %; sent by "
            "20 %, it takes nothing. Attacks on some inputs only (backdoors) were not tried.",
        ),
        ("privacy unit", "one sample of one client; rounds that a client sits out are not counted in its favour"),
    ),
    guarantees=dp_sgd.GUARANTEES,
    promises=dp_sgd.PROMISES,
    verdicts=two_stage.VERDICTS,
)
