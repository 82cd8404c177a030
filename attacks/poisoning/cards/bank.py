"""Card and options of `bank`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.cards.rank_map import FORM_HELP
from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of banked reputation."""

    turn: float = option(0.9, "share of the scheduled rounds after which it strikes for the first time", low=0, high=1)
    burn_rounds: int = option(0, "rounds of a strike; 0: until the end", low=0)
    bank_rounds: int = option(0, "rounds of banking between two strikes", low=0, idle_with=("burn_rounds", 0))
    strike: str = option(
        "labels",
        "labels: train the model on wrong labels, y + 1; sideways: the same without its component along the gradient, "
        "so that scores stay near zero; ascent: send the opposite of the gradient",
        choices=("labels", "sideways", "ascent"),
    )
    disguise: str = option(
        "auto",
        "rank: a direction disguised as noise; noise: an honest client's strongest signal, with honest noise; plain: "
        "the length of its own honest uploads; auto: rank where the defense adds noise, else plain",
        choices=("auto", "rank", "noise", "plain"),
    )
    tilt: float = option(
        0.0,
        "how much of the gradient is added to a strike, so that scores rise a little; below 0: fall",
        low=-1,
        high=1,
        acts_with=("strike", "sideways"),
    )
    strength: float = option(
        1.0,
        "rank: cosine of an upload with its direction before the sort, 1 at most; noise, plain: factor on it",
        above=0,
    )
    cancel: bool = option(
        False,
        "for disguise noise, and for rank with a strength below 1: a colluder sends the opposite noise in its next "
        "round, +z and then -z, so that an average over its rounds has almost none",
    )
    decoys: int = option(
        0,
        "colluders that during a strike send a far outlier in a random direction, which then is the direction of "
        "largest variance",
        low=0,
    )
    form: str = option("quantiles", FORM_HELP, choices=("quantiles", "sample"), acts_with=("disguise", "auto", "rank"))
    samples: int = option(512, "own samples on which the gradient is estimated in a round", low=1)


CARD = Card(
    name="bank",
    version=3,
    kind="attack",
    goal="poisoning",
    form="adaptive",
    usual=USUAL,
    title="Banked reputation: help until trusted, then strike",
    target="fedarena.attacks.poisoning.bank:Bank",
    options=Options,
    equations="scores of Algorithm 3, lines 10 to 15, of arXiv:2304.09762, which never fade",
    departures=(
        "Not from a paper. The two-stage protocol's paper tries attackers that copy honest uploads before they turn "
        "(here delayed), which earns them no more trust than an honest client has.",
        "The idea is older: on-off attacks on reputation systems behave well until they are trusted (Sun, Han, Yu & "
        "Liu, INFOCOM 2006). What is added here is an upload that earns more trust than honest ones do.",
    ),
    check="two-stage protocol on digits: harm against label flipping's, tests/attacks/poisoning/test_bank.py",
    facts=(
        ("knows", "own: its own samples and the broadcast; omniscient: also the mean of the honest uploads"),
        ("sends", "the same upload from every colluder; form=sample, strength < 1 and disguise=noise: each its own"),
        ("remembers", "with cancel=true the noise that each colluder has yet to take back"),
        ("tunes", "turn, which needs simulated runs of full length (tune_rounds=0)"),
    ),
)
