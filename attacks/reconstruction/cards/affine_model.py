"""Card and options of `affine-model`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.helpers.search_options import VictimOptions, prior_option
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(VictimOptions):
    """Options of the affine model."""

    prior: str = prior_option("population")
    gain: float = option(1.0, "length of a row of the later layers' weights", above=0)
    draws: int = option(
        1, "messages that the server draws for a round, of which it sends the one that serves it best", low=1
    )
    steps: int = option(3, "times that the map is taken anew at the last guess, at most", low=1)


CARD = Card(
    name="affine-model",
    kind="attack",
    goal="active-reconstruction",
    title="A malicious server makes what a client sends an affine map of its sample",
    target="fedarena.attacks.reconstruction.affine_model:AffineModel",
    options=Options,
    version=2,
    equations="of the module: an upload is A x + c where no unit depends on the sample x",
    departures=(
        "Not from a paper. The server of imprint sets a first layer that sorts samples. This one makes it constant, so "
        "that every protocol with a linear client can be read, whatever its uploads are.",
    ),
    check="a sample comes back through every protocol at the centre, tests/attacks/reconstruction/test_affine_model.py",
    facts=(
        ("reads", "what clients answer to a model whose first layer is constant"),
        ("model", "a first layer with a bias, dense or convolutional; one sample behind an upload"),
        ("knows", "with prior=population half of the held-out data"),
    ),
    usual=(("model", "mlp"), ("lr", "0.05"), ("batch-size", "1")),
)
