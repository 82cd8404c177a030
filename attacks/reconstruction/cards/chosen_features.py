"""Card and options of `chosen-features`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions, prior_option
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of the chosen features."""

    features: int | None = option(
        None, "m, directions that the first layer measures; none: as many as an upload has numbers", low=1
    )
    prior: str = prior_option("population")
    gain: float = option(1.0, "the largest value of a feature", above=0)
    draws: int = option(
        1, "messages that the server draws for a round, of which it sends the one that serves it best", low=1
    )
    steps: int = option(3, "times that the map is taken anew at the last guess, at most", low=1)


CARD = Card(
    name="chosen-features",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server makes few numbers of an upload tell most of a sample",
    target="fedarena.attacks.reconstruction.chosen_features:ChosenFeatures",
    options=Options,
    equations="of the module: ∂L/∂W_out = (p − y) h(x)ᵀ, where h are the leading principal components of samples",
    departures=(
        "Not from a paper. The model of affine-model leaves as many numbers of a sample as it has pixels. This one "
        "leaves those that tell samples apart, so that fewer numbers of an upload are enough.",
    ),
    check="eight loss differences identify digits, tests/attacks/reconstruction/test_chosen_features.py",
    facts=(
        ("reads", "what clients answer to a model whose output layer is 0"),
        ("model", "dense layers with biases, without a bottleneck; one sample behind an upload"),
        ("knows", "half of the held-out data, of which it takes the principal components"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch-size", "1")),
)
