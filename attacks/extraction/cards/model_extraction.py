"""Card and options of `model-extraction`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of model extraction."""

    rounds: int = option(
        5,
        "at how many rounds it looks, spread evenly over the training, the last one always among them; a client that "
        "was not sampled then, at the last one before in which it was",
        low=1,
    )
    history: int = option(
        20,
        "how many rounds before each of them it has kept what it saw of: several say more about some defenses, and a "
        "client may not have been sampled",
        low=0,
    )


CARD = Card(
    name="model-extraction",
    version=2,
    kind="attack",
    title="Model extraction: the model that a broadcast gives away",
    target="fedarena.attacks.extraction.model_extraction:ModelExtractionAttack",
    options=Options,
    departures=(
        "Not from a paper: it reads what the protocol sends, where the attacks that gave the goal its name (Tramèr et "
        "al., Stealing Machine Learning Models via Prediction APIs, USENIX Security 2016) had predictions alone.",
    ),
    equations="agreement = share of held-out inputs for which the stolen model predicts as the server's of that round; "
    "leak = (agreement − best constant prediction's) / (1 − the latter)",
    facts=(
        ("goal", "extraction: the server's model, by client and eavesdropper; the server holds its own"),
        ("reads", "what the defense says can be made of each broadcast"),
        ("FedAvg", "sends the model in clear: agreement is 1 there by construction, as for all that send W as it is"),
        (
            "against DBCL",
            "paper form: W·S·Sᵀ, the network that every client ran; adaptive form: the likeliest W given all sketches "
            "kept, by the filter of the smoother",
        ),
        (
            "against BAFFLE",
            "W of the round (what is deployed is an average over rounds); with downlink=scalars it is rebuilt if all "
            "broadcasts were kept",
        ),
        (
            "one class for all",
            "of a server whose model names it, untrained or broken, nothing is counted as taken: any constant agrees",
        ),
        ("not done", "no training on own data from there"),
    ),
)
