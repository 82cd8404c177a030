"""Card and options of `pairwise-masks`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of pairwise masks."""

    bits: int = option(64, "size of the integers that are sent in place of floats", choices=(32, 64))
    bound: float = option(
        16.0,
        "largest |value| that a client can send, weighted by its share of the samples; public. "
        "Values are rounded to multiples of about 2·clients·bound / 2^bits",
        low=1e-12,
        high=1e12,
    )
    dropout: float = option(
        0.0, "probability that a client drops after sharing keys, before or after its masked upload", low=0, below=1
    )
    threshold: float = option(
        2 / 3, "share of the clients whose answers unmask the sum; always more than half of them", low=0.5, high=1
    )
    neighbours: int = option(
        0,
        "clients that each client shares masks and secrets with, an even number; 0: all others. threshold is a share "
        "of these and the client",
        low=0,
        listed=False,
    )


CARD = Card(
    name="pairwise-masks",
    kind="secure",
    title="Secure aggregation: pairwise masks that cancel, with recovery from dropouts",
    target="fedarena.defenses.secure.pairwise:PairwiseMasks",
    options=Options,
    paper="Practical Secure Aggregation for Privacy-Preserving Machine Learning (CCS)",
    authors="Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal, Seth",
    year=2017,
    url="https://eprint.iacr.org/2017/281",
    equations="Figure 4, rounds 0, 1, 2 and 4",
    departures=(
        "The server is honest but curious. Round 3 of Figure 4 (signed agreement on who is alive) and the signatures "
        "of rounds 0 and 1 are left out, so that a server could put its own keys in place of clients'.",
        "The floats' step is a power of two and follows from a public bound, so that sums are exact.",
        "Keys, shares and masks come from the trial's seed, so that runs can be replayed; a deployment draws them from "
        "the operating system.",
        "Clients drop after sharing keys only, half of them before and half after the masked upload.",
        "neighbours: graph of Bell et al. (2020), Secure Single-Server Aggregation with (Poly)Logarithmic Overhead, "
        "Algorithm 2. Its server is honest but curious. Each client is joined to those next to it on a random circle. "
        "A client holds a share of its own secrets, too.",
    ),
    check="no number of the paper; tests/defenses/secure: sums exact to the last bit, uploads uniform, what colluders "
    "learn",
    facts=(
        (
            "up",
            "x + masks modulo 2^bits; beside it 64 bytes of keys, 86 of encrypted shares for each other client, "
            "37 for each client in the unmasking",
        ),
        ("down", "all keys, the shares for the client, who is alive: further bytes linear in the clients"),
        ("server knows", "the sum over the clients whose masked upload arrived"),
        (
            "malicious server chooses",
            "models, different ones for each client: where all but one add nothing, the sum is this one's upload",
        ),
        ("client knows", "nothing of others but public keys and shares; t of them together can unmask any upload"),
        (
            "eavesdropper knows",
            "of masked uploads alone, uniform integers; of all messages, the sum, as the server does",
        ),
        (
            "neighbours=k",
            "the server draws the graph each round. Of n clients C collude and D drop out; t of k + 1 shares give "
            "a secret. t colluders around a client unmask it: ≤ n·P[Hypergeometric(n−1, C, k) ≥ t]. Server and "
            "colluders learn sums of parts, down to one vector: ≤ n·((C + D)/n)^(k/2). The round fails: "
            "≤ n·P[Hypergeometric(n, D, k+1) > k+1−t]. See fedarena.defenses.secure.graph.risk.",
        ),
        ("fails", "when fewer than the threshold answer the unmasking, and for values beyond the bound"),
        (
            "built of",
            "X25519, HKDF-SHA256, ChaCha20, ChaCha20-Poly1305 (cryptography); Shamir's shares over 2^256 + 297",
        ),
    ),
)
