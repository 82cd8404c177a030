"""Card and options of `membership-inference`."""

from dataclasses import dataclass

from fedarena.attacks.membership.cards.usual import FEW_SAMPLES
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of membership inference on a released model."""

    statistic: str = option(
        "lira",
        "what ranks the candidates: lira, their confidence by that of models that never saw them; loss, their loss",
        choices=("lira", "loss"),
    )
    shadows: int = option(
        16, "shadow models, each trained on samples of the attacker's own", low=2, acts_with=("statistic", "lira")
    )
    variance: str = option(
        "global",
        "the spread of the shadows' confidences, one for all candidates or one for each",
        choices=("global", "example"),
        acts_with=("statistic", "lira"),
    )


CARD = Card(
    name="membership-inference",
    aliases=("lira", "yeom", "loss-threshold"),
    kind="attack",
    goal="training-membership",
    title="LiRA and the loss threshold: who was in the training set of a released model",
    target="fedarena.attacks.membership.membership_inference:MembershipInference",
    options=Options,
    paper="Membership Inference Attacks From First Principles (IEEE S&P)",
    authors="Carlini, Chien, Nasr, Song, Terzis, Tramèr",
    year=2022,
    url="https://arxiv.org/abs/2112.03570",
    equations="Algorithm 1 in its offline form: 1 − Pr[Z > φ], Z ~ N(μ_out, σ²_out); statistic=loss: Yeom, "
    "Giacomelli, Fredrikson, Jha 2018 (arXiv:1709.01604), Adversary 1",
    departures=(
        "Each candidate is one query; the authors also query flipped and shifted copies of images.",
        "Shadows are trained on bootstrap samples of four fifths of what the attacker holds, as many as the clients "
        "hold together, and never on a candidate. The authors' shadows hold half of all samples, candidates among "
        "them. Where the attacker holds less than the clients, a shadow sees fewer distinct samples than the target.",
        "16 shadows and one variance for all candidates; the authors train 64 to 256, find that fewer than 64 need "
        "the common variance, and use one for each candidate with more: variance=example.",
        "Models trained for squared errors have no confidence p: φ is −log of the loss there.",
        "The loss threshold is not chosen: the ranking is judged at all thresholds.",
    ),
    check="finds more members at 1 % false positives than the loss does, on models that overfit; `bench reproduce "
    "membership/lira`",
    facts=(
        ("goal", "training-membership: half of the candidates are in a client's data set, half are held out"),
        ("judged", "at 1 % false positives, too: with few held-out candidates, such as 144, that allows one of them"),
        ("asks", "for confidences alone: a model in clear gives it no more than one that answers queries"),
        ("holds", "statistic=lira: half of the held-out samples, no candidate among them; a client also its own shard"),
        ("paper form", "shadows are trained by FedSGD or local steps as one client that holds all samples"),
        ("adaptive form", "shadows are trained through the very protocol, noise and rules included"),
        (
            "members",
            "samples of a participant's data set; with FedSGD and few rounds one may never have been in a batch",
        ),
        ("model", "succeeds only on models that overfit, as the usual problem's does"),
    ),
    usual=FEW_SAMPLES,
)
