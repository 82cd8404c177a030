"""Card and options of `dp-fedavg`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of client-level DP with the server's noise."""

    epsilon: float | None = option(
        8.0, "target ε of each client over all rounds, for all its data exchanged; none: no noise", above=0, high=1e6
    )
    # What a composed Gaussian loses of a smaller δ in float64 is no longer small beside it.
    delta: float | None = option(None, "δ; none: C^-1.1, C the number of clients", low=1e-12, below=1)
    noise: float | None = option(
        None, "noise multiplier z, with epsilon=none; none: the one that reaches epsilon", low=1e-9, high=1e6
    )
    clip: float = option(1.0, "S, the length that no client's upload exceeds", above=0)


CARD = Card(
    name="dp-fedavg",
    kind="defense",
    title="DP-FedAvg: bounded uploads and the server's noise, for whole clients",
    target="fedarena.defenses.dp_fedavg.protocol:DPFedAvg",
    options=Options,
    paper="Learning Differentially Private Recurrent Language Models (ICLR)",
    authors="McMahan, Ramage, Talwar, Zhang",
    year=2018,
    url="https://arxiv.org/abs/1710.06963",
    equations="Algorithm 1 with flat clipping and a cohort of fixed size",
    departures=(
        "A round has a fixed number of clients, drawn without replacement, and not each with probability q. So the "
        "neighbour of a federation is one in which all data of one client are exchanged, and the mean moves by 2S/n.",
        "All clients weigh the same: with weights by samples the bound of a change would depend on who is drawn.",
        "z is the smallest that reaches ε: exact where all clients take part. Where some do, ε is bounded by Rényi "
        "accounting, and by its value if all did. The paper has the moments accountant.",
        "The server bounds uploads again, since corrupted clients need not. With a secure sum it cannot.",
    ),
    check="ε against dp-accounting, by canaries in the mean, one round by hand: tests/defenses/dp_fedavg",
    facts=(
        ("down", "W"),
        ("up", "u·min(1, S/‖u‖), u = ∂L/∂W or W − W_local"),
        ("server", "W ← W − η((1/n) Σ uploads + N(0, (zS/n)²I))"),
        ("promise", "(ε, δ) to who sees the models, for all data of a client; none to who reads single uploads"),
        ("server knows", "W, every bounded upload, its own noise; with a secure sum the uploads' mean"),
        ("malicious server chooses", "the model that each client gets; it adds noise or none, and no client can tell"),
        ("client knows", "W in its rounds, its own data; from two consecutive W the others' mean upload, with noise"),
        ("eavesdropper knows", "both wires: single uploads in clear, without noise"),
    ),
    guarantees=(
        ("noise_multiplier", "noise multiplier z"),
        ("delta", "δ"),
        ("cohort", "share of the clients in a round"),
        ("epsilon_client", "ε for all data of one client exchanged, exact,"),
        ("epsilon_client_drawn", "ε for all data of one client exchanged, drawn cohorts, a bound,"),
        ("target", "ε that z was found for"),
    ),
    promises=(
        (
            "to who sees the models of all {rounds} rounds, ε for all data of one client exchanged is "
            "{epsilon_client}, at δ = {delta}. Every client takes part in each round.",
            "to who sees the models of all {rounds} rounds, ε for all data of one client exchanged is "
            "{epsilon_client_drawn} at most, at δ = {delta}. A share of {cohort} takes part in a round.",
            "nothing, for no noise is added (z = {noise_multiplier}).",
        ),
        (
            "The noise multiplier z = {noise_multiplier} is the smallest that reaches ε = {target}. Who reads single "
            "uploads, as the server does, is promised nothing.",
            "The options give the noise multiplier z = {noise_multiplier}, whatever ε (at δ = {delta}) that comes to. "
            "Who reads single uploads, as the server does, is promised nothing.",
        ),
    ),
)
