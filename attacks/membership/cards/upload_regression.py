"""Card and options of `upload-regression`."""

from dataclasses import dataclass

from fedarena.attacks.membership.cards.usual import FEW_SAMPLES
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the regression of uploads on candidates."""

    rounds: int = option(30, "rounds of the training that are read, drawn by the harness", low=1)
    ridge: float = option(0.1, "λ, beside candidates and uploads of length 1", above=0.0)


CARD = Card(
    name="upload-regression",
    kind="attack",
    goal="client-membership",
    title="Membership in a client's data set by regression of its uploads on all candidates at once",
    target="fedarena.attacks.membership.upload_regression:UploadRegression",
    options=Options,
    departures=(
        "Not from a paper: ridge regression in place of the usual cosine with a candidate's own contribution. "
        "An upload is the mean of its samples' contributions, and those of a class are much alike. "
        "Leemann, Pawelczyk and Kasneci (2023) whiten one upload by the covariance of gradients instead.",
        "Where a client has few samples, all of them are candidates. So the attacker knows what may be in a batch, and "
        "not what is. ε bounds attackers that know more than that.",
    ),
    equations="score(x, c) = Σ_t w_t(x), w_t = argmin_w ‖v_tc − Σ_x w(x) a_t(x)‖² + λ‖w‖², v_tc and a_t(x) of length 1",
    facts=(
        ("goal", "client-membership: half of the candidates are in the client's data set, half are held out"),
        ("reads", "every client's uploads, or their mean, in rounds of the whole training"),
    ),
    usual=(*FEW_SAMPLES, ("model.widths", "64")),
)
