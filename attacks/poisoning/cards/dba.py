"""Card and options of `dba`."""

from dataclasses import dataclass

from fedarena.attacks.poisoning.helpers.usual_problem import USUAL
from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class Options:
    """Options of the distributed backdoor."""

    target: int = option(2, "class that the trigger is to give", low=0)
    length: int | None = option(None, "pixels of each part; none: a seventh of the image's width, at least 2", low=1)
    gap: int | None = option(None, "pixels between parts; none: half of their length", low=0)
    share: float = option(
        0.3125, "probability with which a sample of a batch carries the colluder's part", above=0, high=1
    )


CARD = Card(
    name="dba",
    kind="attack",
    goal="poisoning",
    form="paper",
    usual=USUAL,
    title="DBA: each colluder trains on a part of the trigger, which is tested whole",
    target="fedarena.attacks.poisoning.dba:DBA",
    options=Options,
    paper="DBA: Distributed Backdoor Attacks against Federated Learning (ICLR)",
    authors="Xie, Huang, Chen, Li",
    year=2020,
    url="https://openreview.net/forum?id=rkgyS0VFvr",
    equations="Section 2.2, the decomposition of the global trigger. The defaults are those of the authors' "
    "utils/mnist_params.yaml: bars of 1×4 pixels at rows 0 and 3, columns 0 and 6 of 28×28; target 2; 20 of 64 samples",
    departures=(
        "Exactly 20 samples of 64 are poisoned by the authors; here each one with probability 20/64.",
        "The trigger stands in the first corner. The paper's shift of it (trigger location) is left out.",
        "With fewer than four colluders each one trains on several parts, so that no part is missing. The paper has "
        "four.",
        "Ten local epochs and the factor 100 of the single-shot form are those of a model-side wrapper: "
        "model-replacement+dba.",
    ),
    check="the pixels of the authors' four patterns on 28×28: tests/attacks/poisoning/test_backdoors.py; "
    "benchmarks/backdoors.py measures its success",
    facts=(
        ("knows", "own: its own samples, and which of the colluders a client is"),
        ("sends", "the protocol's own upload on the poisoned batch"),
        ("needs", "images"),
    ),
)
