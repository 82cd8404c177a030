"""What a network's graph is read from: the ways to write an operation, and what comes before the first layer."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers.scaling import MEAN, assert_masks_keep_outputs, net, randomised
from torch import nn

from fedarena.core.errors import UserError
from fedarena.models.scaling.positive_scaling import plan


@pytest.mark.parametrize(
    "head",
    [
        lambda h: F.relu(h).mean(MEAN),
        lambda h: torch.relu(h).mean(dim=[-1, -2]),
        lambda h: h.relu().mean(MEAN, keepdim=True).flatten(1),
        lambda h: torch.mean(F.leaky_relu(h, 0.3), MEAN),
        lambda h: (-torch.neg(h.neg())).relu().sum(MEAN),
        lambda h: torch.sum(F.relu(h), dim=3).mean(2),
        lambda h: F.relu(h).mean(3).mean(-1),
        lambda h: F.relu(0.5 * h / 3 * 7).mean(MEAN),
        lambda h: F.relu(h + h - h.mul(2) * 3).mean(MEAN),
        lambda h: sum([F.relu(h), h]).mean(MEAN),
        lambda h: torch.add(F.relu(h), h, alpha=-2).sub(h).add(h).mean(MEAN),
        lambda h: torch.sub(input=F.relu(h), other=h).mean(MEAN),
        lambda h: F.dropout(F.relu(h), training=False).clone().contiguous().mean(MEAN),
        lambda h: F.max_pool2d(h, 2).mean(MEAN),
        lambda h: torch.max_pool2d(h, 3, 1, 1).mean(MEAN),
        lambda h: F.avg_pool2d(h, 4).flatten(1),
        lambda h: F.adaptive_avg_pool2d(F.relu(h), 1).flatten(1),
        lambda h: F.adaptive_max_pool2d(h, 1).view(h.size(0), -1),
        lambda h: F.adaptive_max_pool2d(h, (1, 1)).view(-1, 3),
        lambda h: F.adaptive_max_pool2d(h, (1, 1)).reshape(h.shape[0], 3),
        lambda h: torch.reshape(F.adaptive_max_pool2d(h, (1, 1)), (-1, 3)),
        lambda h: F.max_pool1d(torch.flatten(F.relu(h), start_dim=2), h.dim() ** 2).flatten(1),
        lambda h: F.avg_pool1d(F.relu(h).flatten(2), 16).flatten(1),
        lambda h: F.adaptive_max_pool1d(F.relu(h).flatten(2), 1).flatten(1),
        lambda h: F.adaptive_avg_pool1d(F.relu(h).flatten(2), 1).flatten(1),
        lambda h: torch.max_pool1d(F.relu(h).flatten(2), 16).flatten(1),
    ],
)
def test_functions_and_methods(head):
    found = assert_masks_keep_outputs(net(lambda m, x: m.out(F.relu(m.fc(head(m.a(x))))), "b"), (2, 4, 4))
    assert found.sizes == (3, 3)


@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: torch.cat([a, b], 2),  # side by side in space, of layers that an addition ties
        lambda a, b: torch.cat((a, b), dim=-1),
        lambda a, b: torch.concat([a, b], 3),
        lambda a, b: torch.concatenate(tensors=[a, b], dim=2),
    ],
)
def test_concatenations_in_space_need_tied_channels(join):
    def forward(m, x):
        a, b = m.a(x), m.b(x)
        total = a + b
        joined = join(a, b)
        return m.out(F.relu(m.fc(F.relu(joined).mean(MEAN) + F.max_pool2d(joined, 2).mean(MEAN) + total.mean(MEAN))))

    assert_masks_keep_outputs(net(forward), (2, 4, 4))
    with pytest.raises(UserError, match=r"operation 'mean' mixes channels, allowed: means over positions"):
        plan(net(lambda m, x: m.out(m.fc(join(m.a(x), m.b(x)).mean(MEAN)))), (2, 4, 4))


@pytest.mark.parametrize(
    "pool",
    [nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveMaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Identity(), nn.Dropout2d()],
)
def test_layers_between(pool):
    features = 3 * (16 if isinstance(pool, nn.Identity | nn.Dropout2d) else 4)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(inplace=True), pool, nn.Flatten(), nn.Linear(features, 2)
    )
    assert assert_masks_keep_outputs(randomised(model).eval(), (1, 4, 4)).sizes == (3,)


@pytest.mark.parametrize("pool", [nn.MaxPool1d(2), nn.AvgPool1d(2), nn.AdaptiveMaxPool1d(2), nn.AdaptiveAvgPool1d(2)])
def test_layers_between_in_one_dimension(pool):
    model = nn.Sequential(nn.Conv1d(1, 3, 1), pool, nn.Conv1d(3, 2, 2), nn.Dropout1d(), nn.Flatten(), nn.Linear(2, 2))
    assert assert_masks_keep_outputs(randomised(model).eval(), (1, 4)).sizes == (3, 2)


def test_strides_dilation_and_padding():
    convolutions = [
        nn.Conv2d(1, 2, 3, stride=2, padding=2, dilation=2, bias=False),
        nn.Conv2d(2, 3, (1, 3), padding="same", padding_mode="circular"),
        nn.Conv2d(3, 2, 2, padding=1, padding_mode="reflect"),
    ]
    model = nn.Sequential(*(part for c in convolutions for part in (c, nn.LeakyReLU())), nn.Flatten(), nn.Linear(50, 2))
    assert assert_masks_keep_outputs(randomised(model), (1, 8, 8)).sizes == (2, 3, 2)


class Front(nn.Module):
    """No parameters, a branch on values that cannot be traced, and a state that it changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x.sigmoid() * x if x.sum() > 0 else x.transpose(2, 3)


def test_modules_before_the_first_layer_may_do_anything_and_are_left_alone():
    model = nn.Sequential(Front(), nn.BatchNorm2d(2, affine=False), nn.Softmax(1), nn.Flatten(), nn.Linear(8, 2))
    assert plan(model, (2, 2, 2)).sizes == ()
    assert float(model[0].seen) == 0
    assert int(model[1].num_batches_tracked) == 0
