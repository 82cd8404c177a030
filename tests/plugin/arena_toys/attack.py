"""The mean image: what a party would guess that reads nothing but its own data."""

import torch

from fedarena.contracts.inference import Inference, Reconstruction, Watch
from fedarena.core.card import Card


class MeanImage(Inference):
    """A client guesses the mean of its own images; server and eavesdropper, who have none, guess mid-grey."""

    def watch(self, schedule):
        """Rounds 0 and 1 are written down: a client sees the others' update only between two broadcasts."""
        return Watch(first=0, last=1, victims=(0,))

    def run(self, view, rng, progress):
        own = [batch.images()[0] for batch in view.own.values()]
        image = torch.cat(own).mean(0) if own else torch.full(view.input_shape, 0.5)
        guess = []
        for seen in view.observations:
            labels = torch.arange(seen.images) % view.n_classes
            guess.append(Reconstruction(image.expand(seen.images, *image.shape), labels, match=0.0, evaluations=0))
        return guess


CARD = Card(
    name="mean-image",
    kind="attack",
    title="The mean image (a toy)",
    target=MeanImage,
    facts=(("needs", "nothing: any view will do"),),
)
