"""Card and options of `model-replacement`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.local_options import LocalOptions
from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(LocalOptions):
    """Options of model replacement."""

    alpha: float = option(0.5, "weight of the loss against that of the distance to the broadcast", above=0, high=1)
    scale: float | None = option(
        None,
        "factor on the upload; none: n/f of the round, which replaces the mean",
        above=0,
        acts_with=("disguise", "none"),
    )
    disguise: str = option(
        "none",
        "cosine: cosine and length are those of honest uploads; decorrelated: colluders differ as honest clients do",
        choices=("none", "cosine", "decorrelated"),
    )


CARD = Card(
    name="model-replacement",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="Model replacement: a backdoored model, scaled so that it takes the mean's place (model-replacement+ATTACK)",
    target="fedarena.attacks.poisoning.model_replacement:ModelReplacement",
    options=Options,
    paper="How To Backdoor Federated Learning (AISTATS)",
    authors="Bagdasaryan, Veit, Hua, Estrin, Shmatikov",
    year=2020,
    url="https://arxiv.org/abs/1807.00459",
    equations="Section 4.2, Eqs. 3 and 4: replacement and constrain-and-scale; Algorithm 1",
    departures=(
        "The anomaly term is ‖X − G‖² over all parameters. The paper leaves it open and names a cosine as one choice.",
        "alpha = 0.5 is FLPoison's; epochs = 6 and lr = 0.05 are BackFed's. Steps are plain SGD at a constant rate; "
        "Algorithm 1 lowers it, and stops once the loss is small.",
        "The factor n/f counts uploads. Where the server weighs them by samples, the mean is replaced up to that.",
        "The paper attacks in one round, by one client, close to convergence; here in every round, or in those of "
        "window+model-replacement+ATTACK.",
        "ball is the projection of Wang et al. 2020 (PGD with and without replacement, edge-case backdoors).",
        "disguise is of this package: forms against rules that compare directions (FLAME) or colluders (FoolsGold). "
        "Its lengths make scale idle.",
    ),
    check="the replaced model by hand, with FedSGD and with local epochs: "
    "tests/attacks/poisoning/test_local_backdoors.py; benchmarks/backdoors.py measures its success",
    facts=(
        ("knows", "own: its own samples and the broadcast"),
        ("needs", "a broadcast that shows the model, and uploads that are its changes"),
        ("wraps", "an attack on samples, as in model-replacement+dba"),
    ),
)
