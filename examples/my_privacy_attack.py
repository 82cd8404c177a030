"""A privacy attack: which candidates were in a batch? Those whose own gradient points where the upload does."""

import torch
from torch.nn.functional import cosine_similarity, one_hot

from fedarena.contracts.inference import Inference, Scores, Watch
from fedarena.core.card import Card
from fedarena.core.tensors import flatten


class SameDirection(Inference):
    goal = "membership"

    def watch(self, schedule):  # the rounds that it wants to see
        return Watch.opening(25, schedule)

    def run(self, view, rng, progress):  # view: what the party may know; nothing else is here
        return [Scores(torch.tensor([*self.likeness(seen, view.n_classes)])) for seen in view.observations]

    def likeness(self, seen, n_classes):  # one number a candidate
        for x, y in zip(seen.candidates.x, one_hot(seen.candidates.y, n_classes).float(), strict=True):
            alone = seen.simulate(x.expand(seen.images, *x.shape), y.expand(seen.images, *y.shape))
            yield cosine_similarity(flatten(alone), flatten(seen.target), dim=0)


CARD = Card(name="same-direction", kind="attack", title="Membership by direction", target=SameDirection)
