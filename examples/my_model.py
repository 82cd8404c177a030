"""A model: two dense layers, of any shape of inputs."""

from math import prod

from torch import nn

from fedarena.core.card import Card
from fedarena.models.architecture import Architecture, blank


class Small(Architecture):
    def module(self, input_shape, n_classes):
        d = prod(input_shape)
        return blank(lambda: nn.Sequential(nn.Flatten(), nn.Linear(d, 16), nn.ELU(), nn.Linear(16, n_classes)))


CARD = Card(name="small", kind="model", title="Sixteen units", target=Small)
