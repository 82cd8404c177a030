"""Card and options of `dp-ftrl`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.defenses.dp_fedavg.card import CARD as OF_A_MEAN
from fedarena.defenses.dp_fedavg.card import Options as OfAMean


@dataclass(frozen=True)
class Options(OfAMean):
    """Options of client-level DP by tree aggregation: those of `dp-fedavg`, with z the noise of each node."""


CARD = Card(
    name="dp-ftrl",
    kind="defense",
    title="DP-FTRL: the noise of a binary tree on the sum of all rounds, for whole clients",
    target="fedarena.defenses.dp_ftrl.protocol:DPFTRL",
    options=Options,
    paper="Practical and Private (Deep) Learning without Sampling or Shuffling (ICML)",
    authors="Kairouz, McMahan, Song, Thakkar, Thakurta, Xu",
    year=2021,
    url="https://arxiv.org/abs/2103.00039",
    equations="Algorithm 1 without momentum; Honaker's estimate from below",
    departures=(
        "No momentum, and one tree over all rounds, without restarts.",
        "The server steps by the difference of two prefix sums. With a constant learning rate W is W_0 − η times the "
        "prefix sum; with another one the noises of former rounds cancel less.",
        "All data of one client are exchanged, so that a node moves by 2S/n for each round in which it took part; the "
        "paper has its data left out.",
        "The harness draws cohorts at random, and the paper lets a client take part once, or once between restarts. So "
        "ε counts a client's participations, Binomial(T, n/C), and takes the worst rounds for each number of them.",
        "Nothing is gained from drawing in secret; `dp-fedavg` gains from it. Where all take part in all rounds, "
        "Σ c² over a client's nodes is about 2T² in place of T.",
        "The server bounds uploads again, since corrupted clients need not. With a secure sum it cannot, and no client "
        "may drop out of one.",
    ),
    check="prefix sums by a naive tree, ε against dp-accounting, by canaries: tests/defenses/dp_ftrl",
    facts=(
        ("down", "W"),
        ("up", "u·min(1, S/‖u‖), u = ∂L/∂W or W − W_local"),
        ("server", "W_t = W_0 − η(Σ mean upload + N_t), N_t the noise of a tree's nodes, N(0, (zS/n)²I) each"),
        ("promise", "(ε, δ) to who sees the models, for all data of a client; none to who reads single uploads"),
        ("server knows", "W, every bounded upload, its own noise; with a secure sum the uploads' mean"),
        ("malicious server chooses", "the model that each client gets; it adds noise or none, and no client can tell"),
        ("client knows", "W in its rounds, its own data; from two W the others' mean upload, plus N_{t+1} − N_t"),
        ("eavesdropper knows", "both wires: single uploads in clear, without noise"),
    ),
    guarantees=OF_A_MEAN.guarantees,
    promises=OF_A_MEAN.promises,
)
