"""Taking away: does what was seen get shorter without the candidate's own share of it?"""

import torch.nn.functional as F

from fedarena.contracts.inference import Inference, Scores, Watch
from fedarena.core.card import Card


class TakingAway(Inference):
    """score(x) = (‖v‖² − ‖v − a(x)/n‖²)/‖v‖², with v what was seen of n samples and a(x) what x alone would give."""

    goal = "membership"

    def watch(self, schedule):
        """The first 25 rounds: every one of them is a question of its own, and together they give an interval."""
        return Watch.opening(25, schedule)

    def run(self, view, rng, progress):
        return [Scores(seen.candidates.x.new_tensor(list(scores(seen, view.n_classes)))) for seen in view.observations]


def scores(seen, n_classes):
    """One number a candidate, members and outsiders shuffled; a simulator takes n samples, so it gets n copies."""
    labels = F.one_hot(seen.candidates.y, n_classes).to(seen.candidates.x)
    whole = squared(seen.target)
    for x, y in zip(seen.candidates.x, labels, strict=True):
        alone = seen.simulate(x.expand(seen.images, *x.shape), y.expand(seen.images, *y.shape))
        left = {name: v - alone[name] / seen.images for name, v in seen.target.items()}
        yield (whole - squared(left)) / whole


def squared(tensors):
    return float(sum(t.double().square().sum() for t in tensors.values()))


CARD = Card(
    name="taking-away",
    kind="attack",
    title="Membership by what is left without the candidate (a toy)",
    target=TakingAway,
    usual=(("batch_size", "4"),),
    facts=(("goal", "membership"), ("needs", "a simulator of what was observed: any view has one")),
)
