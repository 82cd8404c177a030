"""The plan of networks written out: whose factor each row and column has."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers.scaling import assert_masks_keep_outputs, net, parameters, randomised, rows
from torch import nn

from fedarena.models.scaling.graph import Layer
from fedarena.models.scaling.plan import from_layers
from fedarena.models.scaling.positive_scaling import Run, plan, scales
from fedarena.models.scaling.units import FIXED, Units


def runs(layer):
    return [[(run.group, run.channels, run.spatial) for run in side] for side in (layer.rows, layer.columns)]


def test_factors_of_a_convolutional_network_by_hand():
    """Eqs. 7, 13 and 14, entry by entry; columns of the dense layer are channel by channel."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3), nn.ReLU(), nn.Linear(3, 2))
    found = assert_masks_keep_outputs(randomised(model), (1, 4, 4))
    assert found.sizes == (2, 3)
    assert [layer.name for layer in found.layers] == ["0", "3", "5"]
    assert [runs(layer) for layer in found.layers] == [
        [[(0, 2, 1)], [(None, 1, 1)]],
        [[(1, 3, 1)], [(0, 2, 4)]],
        [[(None, 2, 1)], [(1, 3, 1)]],
    ]
    a, b = torch.tensor([2.0, 4.0]), torch.tensor([3.0, 5.0, 7.0])
    R = found.factors([a, b])
    torch.testing.assert_close(R["0.weight"], a.reshape(2, 1, 1, 1))
    torch.testing.assert_close(R["0.bias"], a)
    for i in range(3):
        for j in range(8):
            assert float(R["3.weight"][i, j]) == pytest.approx(float(b[i] / a[j // 4]))
    torch.testing.assert_close(R["3.bias"], b)
    torch.testing.assert_close(R["5.weight"], (1 / b).expand(2, 3))
    torch.testing.assert_close(R["5.bias"], torch.ones(2))


def test_a_concatenated_skip_reads_both_groups():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv1d(1, 2, 1), nn.Conv1d(2, 3, 1)
            self.out = nn.Linear((1 + 2 + 3) * 4, 2)

        def forward(self, x):
            h = F.relu(self.a(x))
            return self.out(torch.cat([x, h, F.relu(self.b(h))], 1).flatten(1))

    found = assert_masks_keep_outputs(randomised(Skip()), (1, 4))
    assert found.sizes == (2, 3)
    assert found.layers[-1].columns == (Run(None, 4), Run(0, 2, 4), Run(1, 3, 4))


def test_an_added_skip_ties_its_groups():
    found = assert_masks_keep_outputs(
        net(lambda m, x: m.out(F.relu(m.fc(m.a(x).mean((2, 3)) + m.b(x).mean((2, 3)))))), (2, 4, 4)
    )
    assert found.sizes == (3, 3)
    assert found.layers[0].rows == found.layers[1].rows == (Run(0, 3),)
    assert [layer.bias for layer in found.layers] == [True] * 4


def test_the_output_layer_is_last_wherever_it_runs():
    def forward(m, x):
        out = m.out(m.a(x).mean((2, 3)))
        m.fc(m.b(x).mean((2, 3)))
        return out

    found = assert_masks_keep_outputs(net(forward), (2, 4, 4))
    assert [layer.name for layer in found.layers] == ["a", "b", "fc", "out"]


class Wide(nn.Module):
    """Dense layers on x [n, 2] with the given numbers of units, joined to 5 channels, ReLU and an output layer."""

    def __init__(self, widths, join):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, n) for n in widths)
        self.out = nn.Linear(5, 2)
        self.join = join

    def forward(self, x):
        return self.out(F.relu(self.join(*(layer(x) for layer in self.layers))))


def test_a_concatenation_added_to_one_layer_cuts_its_channels():
    found = assert_masks_keep_outputs(randomised(Wide((2, 3, 5), lambda a, b, c: torch.cat([a, b], 1) + c)), (2,))
    assert found.sizes == (2, 3)
    assert found.layers[2].rows == found.layers[3].columns == (Run(0, 2), Run(1, 3))


def test_concatenations_with_other_boundaries_are_cut_at_all_of_them():
    """[a₁ a₂ b₁ b₂ b₃] + [c₁ d₁ d₂ d₃ d₄]."""
    found = assert_masks_keep_outputs(
        randomised(Wide((2, 3, 1, 4), lambda a, b, c, d: torch.cat([a, b], 1) + torch.cat([c, d], 1))), (2,)
    )
    assert found.sizes == (1, 1, 3)
    assert [layer.rows for layer in found.layers[:4]] == [
        (Run(0, 1), Run(1, 1)),
        (Run(2, 3),),
        (Run(0, 1),),
        (Run(1, 1), Run(2, 3)),
    ]


def test_a_shift_ties_channel_by_channel():
    """[a₁ a₂ b₁ b₂ b₃] + [b₁ b₂ b₃ a₁ a₂] leads from a₁ through all five."""
    model = randomised(Wide((2, 3), lambda a, b: torch.cat([a, b], 1) + torch.cat([b, a], 1)))
    found, params = assert_masks_keep_outputs(model, (2,)), parameters(model)
    assert found.sizes == (1,)
    assert [layer.rows for layer in found.layers[:2]] == [(Run(0, 1, 2),), (Run(0, 1, 3),)]
    assert found.layers[-1].columns == (Run(0, 1, 5),)
    length = rows(params, "layers.0").square().sum().sqrt()  # both rows of the first layer
    assert float(scales(found, params)[0]) == pytest.approx(float(length))


def test_a_group_may_be_written_twice_by_one_layer():
    """[c₁ c₂ c₃ c₄] + [a₁ a₂ a₁ a₂], c first; then b."""

    def join(c, a, b):
        return torch.cat([torch.cat([a, a], 1) + c, b], 1)

    found = assert_masks_keep_outputs(randomised(Wide((4, 2, 1), join)), (2,))
    assert found.sizes == (2, 1)
    assert found.layers[0].rows == (Run(0, 2), Run(0, 2))


class Residual(nn.Module):
    """relu(x + conv(relu(conv(x)))), or the two side by side; the skip is an Identity."""

    def __init__(self, channels, concat):
        super().__init__()
        self.one, self.two = nn.Conv2d(channels, 3, 3, padding=1), nn.Conv2d(3, 2 if concat else channels, 1)
        self.skip, self.concat = nn.Identity(), concat

    def forward(self, x):
        branch, kept = self.two(F.relu(self.one(x))), self.skip(x)
        return F.relu(torch.cat([kept, branch], 1) if self.concat else kept + branch)


@pytest.mark.parametrize(("concat", "features", "sizes"), [(False, 4, (4, 3, 3)), (True, 8, (4, 3, 2, 3, 2))])
def test_residual_blocks(concat, features, sizes):
    """Identity skips that are added tie all blocks of a stage; concatenated ones leave every block its own group."""
    blocks = Residual(4, concat), Residual(6 if concat else 4, concat)
    model = nn.Sequential(nn.Conv2d(1, 4, 1), nn.ReLU(), *blocks, nn.Flatten(), nn.Linear(features * 9, 2))
    assert assert_masks_keep_outputs(randomised(model), (1, 3, 3)).sizes == sizes


def units_after(*layers):
    """Layers of one column, each with as many rows as its list is long; rows with one number are tied."""
    units, made, first = Units(), [], {}
    for name, row_names in layers:
        rows = units.new(len(row_names), name)
        made.append(Layer(name, nn.Linear(1, len(rows)), rows, torch.tensor([FIXED])))
        for row, key in zip(rows, row_names, strict=True):
            units.tie(row, first.setdefault(key, row), "a test")
    return from_layers(made, units)


@pytest.mark.parametrize(
    ("layers", "sizes", "rows"),
    [
        (("abc", "bc"), (1, 2), [[(0, 1, 1), (1, 2, 1)], [(1, 2, 1)]]),
        (("abc", "ab"), (2, 1), [[(0, 2, 1), (1, 1, 1)], [(0, 2, 1)]]),
        (("abc", "abc"), (3,), [[(0, 3, 1)], [(0, 3, 1)]]),
        (("ab", "ba"), (1, 1), [[(0, 1, 1), (1, 1, 1)], [(1, 1, 1), (0, 1, 1)]]),
        (("aab",), (1, 1), [[(0, 1, 2), (1, 1, 1)]]),
        (("aabb",), (2,), [[(0, 2, 2)]]),
        (("abab",), (2,), [[(0, 2, 1), (0, 2, 1)]]),
    ],
)
def test_groups_are_the_longest_runs_that_stay_together(layers, sizes, rows):
    found = units_after(*((str(i), names) for i, names in enumerate(layers)))
    assert found.sizes == sizes
    assert [[(run.group, run.channels, run.spatial) for run in layer.rows] for layer in found.layers] == rows


def test_values_and_device_of_parameters_do_not_matter():
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    assert plan(model, (1, 4, 4)).sizes == (2,)
