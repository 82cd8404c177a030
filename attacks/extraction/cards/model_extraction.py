"""Card and options of `model-extraction`."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of model extraction."""

    rounds: int = option(
        5,
        "number of attacked rounds, spread evenly over the training, the last one included; a client that was not "
        "sampled in one takes the last round before in which it was",
        low=1,
    )
    history: int = option(
        20,
        "number of earlier rounds of which it stores what it saw: some defenses leak more over several, and a client "
        "may not have been sampled",
        low=0,
    )


CARD = Card(
    name="model-extraction",
    version=2,
    kind="attack",
    goal="extraction",
    title="Model extraction: the model that a broadcast gives away",
    target="fedarena.attacks.extraction.model_extraction:ModelExtractionAttack",
    options=Options,
    departures=(
        "Not from a paper: it reads what the protocol sends. The attacks that gave the goal its name (Tramèr et al., "
        "Stealing Machine Learning Models via Prediction APIs, USENIX Security 2016) had predictions alone.",
    ),
    equations="agreement = share of held-out inputs for which the stolen model predicts as the server's of that round; "
    "leak = (agreement − best constant prediction's) / (1 − the latter)",
    facts=(
        ("goal", "extraction: the server's model, by client and eavesdropper; the server holds its own"),
        ("reads", "the model that the defense derives from each broadcast"),
        ("FedAvg", "sends the model in clear: agreement is 1 there by construction, as for all that send W as it is"),
        (
            "against DBCL",
            "paper form: W·S·Sᵀ, the network that every client ran; adaptive form: the likeliest W given all stored "
            "sketches, by the filter of the smoother",
        ),
        (
            "against BAFFLE",
            "W of the round (what is deployed is an average over rounds); with downlink=scalars it is rebuilt if all "
            "broadcasts were stored",
        ),
        (
            "one class for all",
            "if the server's model always predicts it, untrained or broken, the leak is 0: any constant agrees with it",
        ),
        ("not done", "no further training of the stolen model on own data"),
    ),
)
