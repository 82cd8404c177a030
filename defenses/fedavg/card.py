"""Card of `fedavg`."""

from fedarena.core.card import Card

CARD = Card(
    name="fedavg",
    kind="defense",
    title="No defense: FedSGD / FedAvg",
    target="fedarena.defenses.fedavg.protocol:FedAvg",
    paper="Communication-Efficient Learning of Deep Networks from Decentralized Data (AISTATS)",
    authors="McMahan, Moore, Ramage, Hampson, Agüera y Arcas",
    year=2017,
    url="https://arxiv.org/abs/1602.05629",
    equations="Algorithm 1; FedSGD as its special case of one full step",
    departures=("Local epochs take full batches only: in each round, N_c mod b random samples are left out.",),
    facts=(
        ("down", "W"),
        ("up", "∂L/∂W (FedSGD) or W − W_local (FedAvg)"),
        (
            "with client momentum",
            "up is m ← β·m + c·∂L/∂W, a mixture of rounds. Attacks in paper form take m as a gradient. Those in "
            "adaptive form match m_t − β·m_t' = c·∂L/∂W if they saw the upload before, else m_t itself.",
        ),
        (
            "with training.batch_statistics",
            "beside the gradient the mean and variance that each layer of batch normalisation took of the batch. Real "
            "clients upload running statistics, from which the server computes these. The server's step does not use "
            "them. Attacks in adaptive form have them; a secure sum and local epochs are refused.",
        ),
        ("server knows", "W, every upload"),
        ("malicious server chooses", "the model that each client gets"),
        (
            "client knows",
            "W in its rounds, its own data; if no rule replaces the mean, the others' mean upload from two "
            "consecutive W",
        ),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
    ),
)
