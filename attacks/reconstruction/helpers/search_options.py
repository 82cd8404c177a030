"""Options of attacks that search for the samples behind uploads."""

from dataclasses import dataclass

from fedarena.core.options import option


@dataclass(frozen=True)
class VictimOptions:
    """Which uploads are attacked (`fedarena.contracts.inference.Watch.spread`)."""

    victims: int = option(10, "uploads attacked, spread evenly over the window", low=1)
    start: int = option(0, "first round attacked", low=0)
    window: int = option(60, "rounds written down for parties that need several", low=2)


def prior_option(default: str) -> str:
    """An option `prior`: what stands in for what was not seen.

    `fedarena.attacks.reconstruction.helpers.image_distribution` has the Gaussian distribution.
    """
    prior: str = option(
        default,
        "prior for what was not seen: none, the sample of least norm; population, the Gaussian distribution of "
        "the attacker's own samples",
        choices=("none", "population"),
    )
    return prior


@dataclass(frozen=True)
class LeastSquaresOptions(VictimOptions):
    """How a squared distance is minimised (`fedarena.attacks.reconstruction.helpers.least_squares`)."""

    optimizer: str = option("lbfgs", "what minimises the distance", choices=("lbfgs", "adam"))
    iterations: int = option(3000, "batched gradient evaluations per victim and simulator, at most", low=1)
    lr: float = option(0.1, "learning rate", above=0, acts_with=("optimizer", "adam"))
    restarts: int = option(4, "starts per victim, run as one batch; the best match is kept", low=1)
    tv: float = option(0.0, "weight of the total variation of the candidate images", low=0)
    outside: float = option(0.0, "weight of the squared distance of the candidate's values from [0, 1]", low=0)
    prior: str = option(
        "population",
        "prior that chooses among samples that explain what was seen: population, how likely they are under the "
        "Gaussian distribution of the attacker's own samples; none, as in the papers",
        choices=("none", "population"),
        form="adaptive",
    )
    unlikely: float = option(
        1e-3,
        "weight of how unlikely candidates are under that distribution, ‖z‖²/d",
        low=0,
        acts_with=("prior", "population"),
        form="adaptive",
    )
    decades: int = option(
        0, "how often the search continues with a tenth of tv and of unlikely; needs one of them above 0", low=0, high=8
    )
    init: str = option(
        "dark",
        "starting images, or their coordinates under the prior: normal N(0, 1) as in the "
        "paper, uniform on [0, 1], dark uniform on [0, 0.1]",
        choices=("dark", "normal", "uniform"),
    )
    tolerance: float = option(3e-8, "relative squared distance at which the match is taken as exact", low=0)
    max_batch: int = option(8, "most samples behind one upload that are tried", low=1)
