"""Card and options of `spotlight`."""

from dataclasses import dataclass

from fedarena.attacks.reconstruction.cards.spear import Options as SpearOptions
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options(SpearOptions):
    """Options of the spotlight."""

    knows: str = option(
        "own",
        "what the corrupted clients know: own, their data and uploads; omniscient, every honest upload of the round "
        "too, which includes the victim's",
        choices=("own", "omniscient"),
    )
    plays: int = option(
        3,
        "federations that are played to choose among poisons, where honest uploads are not known",
        low=2,
        acts_with=("knows", "own"),
    )


CARD = Card(
    name="spotlight",
    kind="attack",
    goal="curious-poisoning",
    title="Corrupted clients make a robust rule broadcast their victim's upload",
    target="fedarena.attacks.reconstruction.spotlight:Spotlight",
    options=Options,
    version=2,
    equations="of the module: the poison whose step comes nearest to the victim's upload",
    departures=(
        "Not from a paper. Yue, Jin, Wong & Dai (arXiv 2506.11413) have a client raise its peers' part of the model by "
        "its own upload, and say that robust rules may help it. These poisons are ours.",
        "With knows=omniscient the victim's upload is known before the round: it bounds what steering a rule gives. "
        "Where a rule mixes uploads, a part of what is read is then what the attackers put there.",
    ),
    check="an omniscient pair makes Krum pick its victim, tests/attacks/reconstruction/test_spotlight.py",
    facts=(
        ("reads", "two consecutive broadcasts, as the protocol reads an upload of the victim (spear)"),
        ("sends", "uploads far away, around the victim's, or on either side of it in each number: what helps in play"),
        ("model", "a dense first layer with a bias, such as mlp"),
    ),
    usual=(
        ("model", "mlp"),
        ("lr", "0.05"),
        ("batch_size", "4"),
        ("clients", "11"),
        ("corrupted", "2"),
    ),
)
