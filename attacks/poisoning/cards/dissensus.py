"""Card and options of `dissensus`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.tuning_options import TuningOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(TuningOptions):
    """Options of dissensus."""

    epsilon: float = option(
        1.5, "ε: with 1 a node's mixing changes nothing, with more it moves away from its neighbours", above=0
    )


CARD = Card(
    name="dissensus",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Dissensus: corrupted neighbours undo what honest ones say",
    target="fedarena.attacks.poisoning.dissensus:Dissensus",
    options=Options,
    paper="Byzantine-Robust Decentralized Learning via ClippedGossip (arXiv preprint)",
    authors="He, Karimireddy, Jaggi",
    year=2022,
    url="https://arxiv.org/abs/2202.01545",
    equations="the dissensus attack, x_i − ε Σ_k W_ik (x_k − x_i)/Σ_j W_ij from each corrupted neighbour",
    departures=(
        "The default ε = 1.5 is that of the authors' experiments (run.sh of their repository). Rules that cut long "
        "differences may lose more to a smaller one: tune=N lets the attacker choose.",
        "The paper's attacker hears what honest nodes send to each other (knows=omniscient). With knows=own the mean "
        "of what its own nodes would have sent stands for each honest message.",
        "Before a server, whose clients' weights are N_c, the same formula makes the mean (1 − ε) times its honest "
        "part.",
    ),
    check="no number of the paper; tests/attacks/poisoning/test_dissensus.py",
    facts=(
        ("knows", "omniscient: what all honest nodes send; own: what its own nodes would have sent; both: the graph"),
        ("sends", "to each honest neighbour something else; the same from every colluder"),
    ),
)
