"""Card and options of `dp-sgd`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option

ACCOUNTING = (
    "what bounds ε where search=exact looks for σ; renyi: Rényi accounting, as in the two-stage paper; "
    "tight: the smaller of that bound and the one by privacy loss distributions (PLD)"
)


@dataclass(frozen=True)
class Options:
    """Options of DP-SGD with local noise."""

    epsilon: float | None = option(
        2.0,
        "target ε of each client over all rounds, for Poisson batches and one sample more or less; none: no noise",
        above=0,
        high=1e6,
    )
    # Below 1e-12, what a composed distribution of losses loses in float64 is no longer small beside δ.
    delta: float | None = option(None, "δ; none: N^-1.1, N the samples of the smallest client", low=1e-12, below=1)
    noise: float | None = option(
        None, "noise multiplier σ, with epsilon=none; none: the one that reaches epsilon", low=1e-9, high=1e6
    )
    search: str = option(
        "exact",
        "how σ is found; exact: the smallest that reaches epsilon; code: as the two-stage paper's code does, which "
        "stops within 0.01 of epsilon, on either side",
        choices=("exact", "code"),
    )
    accounting: str = option("tight", ACCOUNTING, choices=("tight", "renyi"))
    bound: str = option("clip", "clip: shorten long gradients; normalise: one length", choices=("clip", "normalise"))
    clip: float = option(1.0, "C, the length that no sample's gradient exceeds", above=0)
    offset: float = option(
        0.0,
        "o: a gradient is divided by its length + o, so that one as short as rounding errors stays short; the "
        "two-stage paper's code adds 1e-6",
        low=0,
        acts_with=("bound", "normalise"),
        listed=False,
    )
    momentum: float = option(0.0, "β, share of the client's last upload in each sample's gradient", low=0, below=1)
    sampling: str = option(
        "poisson",
        "poisson: each sample with probability b/N, as the accounting has it; fixed: b samples",
        choices=("poisson", "fixed"),
    )
    base_epsilon: float | None = option(
        None,
        "scale the learning rate by σ(base_epsilon)/σ, so that one tuned there serves every ε; none: do not",
        above=0,
        high=1e6,
    )


GUARANTEES = (
    ("sigma", "noise multiplier σ"),
    ("delta", "δ"),
    ("q", "sampling rate"),
    ("epsilon_add_remove", "ε for one sample more or less, Rényi bound,"),
    ("epsilon_add_remove_tight", "the same, tight,"),
    ("epsilon_replace_one", "ε for one sample exchanged, tight,"),
    ("epsilon_replace_one_fixed", "ε for one sample exchanged, batches of fixed size, Rényi bound,"),
    ("epsilon_sensitivity_2", "for one exchanged as the two-stage paper's proof bounds it,"),
    ("target_by_pld", "ε that σ was found for by privacy loss distributions"),
    ("target_by_renyi", "ε that σ was found for by Rényi accounting"),
    ("target_by_papers_code", "ε that σ was found for as in the two-stage paper's code"),
)
"""How `fedarena.defenses.dp_sgd.protocol.DPSGD.guarantees` are printed one by one."""

SMALLEST = "The noise multiplier σ = {sigma} is the smallest that reaches ε = {target} for one sample more or less"
PROMISES = (
    (
        "over {rounds} rounds of Poisson batches (rate q = {q}), ε for one sample more or less (add/remove) "
        "is {epsilon_add_remove_tight}, and ε for one sample exchanged (replace-one) is "
        "{epsilon_replace_one}, at δ = {delta}. Both are by Rényi accounting or by privacy loss distributions (PLD), "
        "whichever gives less.",
        "over {rounds} rounds of batches of fixed size (share q = {q}), ε for one sample of a client exchanged "
        "(replace-one) is {epsilon_replace_one_fixed} by Rényi accounting, at δ = {delta}.",
        "nothing, for no noise is added (σ = {sigma}).",
    ),
    (
        SMALLEST.replace("{target}", "{target_by_pld}") + " with Poisson batches, by privacy loss distributions (PLD).",
        SMALLEST.replace("{target}", "{target_by_renyi}") + " with Poisson batches, by Rényi accounting alone.",
        "The noise multiplier σ = {sigma} is the one at which the search of the two-stage paper's code stops for ε = "
        "{target_by_papers_code} with Poisson batches, by Rényi accounting.",
        "The options give the noise multiplier σ = {sigma}, whatever ε (at δ = {delta}) that comes to.",
    ),
)
"""The same in two sentences."""

LARGE_DELTA = (
    "δ = {delta:.2g} is 1/{smallest} or more, where {smallest} are the samples of the smallest client: a protocol that "
    "publishes one sample of that client keeps this promise too"
)
"""The warning about a δ that protects nobody."""

CARD = Card(
    name="dp-sgd",
    kind="defense",
    title="DP-SGD with noise added by each client",
    target="fedarena.defenses.dp_sgd.protocol:DPSGD",
    options=Options,
    version=2,
    paper="Deep Learning with Differential Privacy (CCS)",
    authors="Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang",
    year=2016,
    url="https://arxiv.org/abs/1607.00133",
    equations="Algorithm 1, run by every client on its own samples; Poisson sampling",
    departures=(
        "Every client runs the algorithm by itself and adds its own noise; no server is trusted with a gradient.",
        "σ is the smallest that reaches ε by Rényi accounting or by privacy loss distributions (PLD), whichever needs "
        "less noise, in place of the moments accountant. With accounting=renyi it is Rényi accounting alone. In a "
        "record `guarantees` names which of them σ comes from.",
    ),
    check="σ of the two-stage paper's 15 settings to 0.01 % with search=code, to 6 % with accounting=renyi: "
    "tests/defenses/dp_sgd/test_accountant.py; ε from below, by canaries: tests/defenses/dp_sgd/test_audit.py",
    facts=(
        ("down", "W"),
        ("up", "g = (1/b)(Σ clipped gradients + N(0, σ²C²))"),
        ("server knows", "W, every g; each is private by itself"),
        (
            "malicious server chooses",
            "the model at which clients work; clipping and noise are the clients' own, and ε holds for any model",
        ),
        ("client knows", "W in its rounds, its own data and noise"),
        ("eavesdropper knows", "both wires, which is all that the server knows"),
        ("privacy unit", "one sample of one client; rounds that a client sits out are not counted in its favour"),
    ),
    guarantees=GUARANTEES,
    promises=PROMISES,
)
