"""A CNN of 5x5 convolutions, each with a ReLU and 2x2 max pooling, then dense layers: as of LeNet, with ReLUs."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from fedarena.models.architecture import Architecture, blank, image_shape
from fedarena.models.cards.cnn_pooled import Options
from fedarena.models.cnn import Convolution, conv_net
from fedarena.models.preprocess import head


class PooledCNN(Architecture):
    """Images of 28 pixels a side shrink to 24, 12, 8 and 4 with two convolutions."""

    options: Options

    def module(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
        o = self.options
        front, shape = head("cnn-pooled", input_shape, o.mean, o.std, size=None)
        # A convolution takes 4 pixels a side, and pooling leaves half of the rest: 6 pixels become 1, 16 become 6.
        image_shape("cnn-pooled", shape, smallest=5 * 2 ** len(o.channels) - 4)
        layers = conv_net(shape, [Convolution(c) for c in o.channels], o.widths, n_classes).named_children()
        return blank(lambda: nn.Sequential(OrderedDict([*front.items(), *layers])))
