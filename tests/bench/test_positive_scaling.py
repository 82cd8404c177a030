"""Positive scalings of hidden units: the function stays, one canonical form, and what breaks them is named."""

from __future__ import annotations

import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_play import apart, drawn, networks, outputs, parameters, randomised, times
from torch import nn

from fedarena.errors import UserError
from fedarena.models import CARDS
from fedarena.positive_scaling import Run, canonical, plan, scales
from fedarena.registry import find
from fedarena.rng import Rng

TOLERANCE = 1e-10


class Net(nn.Module):
    """Convolutions `a` and `b` [n, 2, 4, 4] → [n, 3, 4, 4], dense `fc` 3 → 3 and `out` 3 → 2; its forward is given."""

    def __init__(self, forward):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(2, 3, 3, padding=1)
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 2)
        self._forward = forward

    def forward(self, x):
        return self._forward(self, x)


def net(forward, *unused):
    """`Net` without the layers `unused`."""
    made = Net(forward)
    for name in unused:
        delattr(made, name)
    return randomised(made)


def check(model, shape, seed=0):
    """Plan a model; masked, it must give the plain outputs, and all of its masks have one canonical form."""
    found, params = plan(model, shape), parameters(model)
    plain, r = outputs(model, params, shape), drawn(found.sizes, seed)
    factors = found.factors(r)
    assert set(factors) == set(params)
    for name, p in params.items():
        assert torch.broadcast_shapes(factors[name].shape, p.shape) == p.shape
    masked = times(factors, params)
    assert apart({"out": outputs(model, masked, shape)}, {"out": plain}) < TOLERANCE
    form = canonical(found, params)
    assert apart({"out": outputs(model, form, shape)}, {"out": plain}) < TOLERANCE
    assert apart(canonical(found, masked), form) < TOLERANCE
    assert apart(canonical(found, form), form) < TOLERANCE
    assert apart(times(found.factors(scales(found, params)), form), params) < TOLERANCE
    return found


# -- the law ---------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(network=networks(), seed=st.integers(0, 1000))
def test_any_network_keeps_its_function_and_its_canonical_form(network, seed):
    model, shape = network
    check(model, shape, seed)


@settings(max_examples=50, deadline=None)
@given(network=networks(), seed=st.integers(0, 1000))
def test_every_factor_acts(network, seed):
    """Doubling the factor of one channel halves or doubles some entries of R and leaves the others."""
    found = plan(*network)
    r = drawn(found.sizes, seed)
    before = found.factors(r)
    for group, size in enumerate(found.sizes):
        for channel in range(size):
            changed = [t.clone() for t in r]
            changed[group][channel] *= 2
            ratios = {q for n, R in found.factors(changed).items() for q in (R / before[n]).flatten().tolist()}
            assert 2 in ratios
            assert ratios <= {0.5, 1, 2}


def test_hidden_activations_carry_the_factors():
    """Eq. 10: ŷ^(l) = r^(l) ∘ y^(l)."""
    model = randomised(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), seed=1)
    found, params = plan(model, (5,)), parameters(model)
    r = drawn(found.sizes)
    masked = times(found.factors(r), params)
    for depth, factor in ((2, r[0]), (4, r[1])):
        part = model[:depth]
        names = [name for name, _ in part.named_parameters()]
        plain, hat = (outputs(part, {n: p[n] for n in names}, (5,), n=99) for p in (params, masked))
        assert int((plain > 0).any(0).sum()) >= 2
        torch.testing.assert_close(hat, factor * plain, rtol=TOLERANCE, atol=0)


def test_feature_maps_carry_the_factors():
    """Eq. 16: the factor of a channel at all of its pixels."""
    model = randomised(
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3, 2), nn.Flatten(), nn.Linear(4, 2))
    )
    found, params = plan(model, (2, 5, 5)), parameters(model)
    r = drawn(found.sizes)
    masked = times(found.factors(r), params)
    names = [name for name, _ in model[:3].named_parameters()]
    plain, hat = (outputs(model[:3], {n: p[n] for n in names}, (2, 5, 5)) for p in (params, masked))
    torch.testing.assert_close(hat, r[1].reshape(4, 1, 1) * plain, rtol=TOLERANCE, atol=0)


# -- the plan of networks written out --------------------------------------------------------------


def runs(layer):
    return [[(run.group, run.channels, run.spatial) for run in side] for side in (layer.rows, layer.columns)]


def test_factors_of_a_convolutional_network_by_hand():
    """Eqs. 7, 13 and 14, entry by entry; columns of the dense layer are channel by channel."""
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3), nn.ReLU(), nn.Linear(3, 2))
    found = check(randomised(model), (1, 4, 4))
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

    found = check(randomised(Skip()), (1, 4))
    assert found.sizes == (2, 3)
    assert found.layers[-1].columns == (Run(None, 4), Run(0, 2, 4), Run(1, 3, 4))


def test_an_added_skip_ties_its_groups():
    found = check(net(lambda m, x: m.out(F.relu(m.fc(m.a(x).mean((2, 3)) + m.b(x).mean((2, 3)))))), (2, 4, 4))
    assert found.sizes == (3, 3)
    assert found.layers[0].rows == found.layers[1].rows == (Run(0, 3),)
    assert [layer.bias for layer in found.layers] == [True] * 4


def test_the_output_layer_is_last_wherever_it_runs():
    def forward(m, x):
        out = m.out(m.a(x).mean((2, 3)))
        m.fc(m.b(x).mean((2, 3)))
        return out

    found = check(net(forward), (2, 4, 4))
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
    found = check(randomised(Wide((2, 3, 5), lambda a, b, c: torch.cat([a, b], 1) + c)), (2,))
    assert found.sizes == (2, 3)
    assert found.layers[2].rows == found.layers[3].columns == (Run(0, 2), Run(1, 3))


def test_concatenations_with_other_boundaries_are_cut_at_all_of_them():
    """[a₁ a₂ b₁ b₂ b₃] + [c₁ d₁ d₂ d₃ d₄]."""
    found = check(randomised(Wide((2, 3, 1, 4), lambda a, b, c, d: torch.cat([a, b], 1) + torch.cat([c, d], 1))), (2,))
    assert found.sizes == (1, 1, 3)
    assert [layer.rows for layer in found.layers[:4]] == [
        (Run(0, 1), Run(1, 1)),
        (Run(2, 3),),
        (Run(0, 1),),
        (Run(1, 1), Run(2, 3)),
    ]


def test_a_shift_ties_channel_by_channel():
    """[a₁ a₂ b₁ b₂ b₃] + [b₁ b₂ b₃ a₁ a₂] leads from a₁ through all five."""
    found = check(randomised(Wide((2, 3), lambda a, b: torch.cat([a, b], 1) + torch.cat([b, a], 1))), (2,))
    assert found.sizes == (1,)
    assert [layer.rows for layer in found.layers[:2]] == [(Run(0, 1, 2),), (Run(0, 1, 3),)]
    assert found.layers[-1].columns == (Run(0, 1, 5),)


# -- the ways to write an operation ----------------------------------------------------------------

MEAN = (2, 3)


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
    found = check(net(lambda m, x: m.out(F.relu(m.fc(head(m.a(x))))), "b"), (2, 4, 4))
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
        return m.out(F.relu(m.fc(F.relu(join(a, b)).mean(MEAN) + total.mean(MEAN))))

    check(net(forward), (2, 4, 4))
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
    assert check(randomised(model).eval(), (1, 4, 4)).sizes == (3,)


@pytest.mark.parametrize("pool", [nn.MaxPool1d(2), nn.AvgPool1d(2), nn.AdaptiveMaxPool1d(2), nn.AdaptiveAvgPool1d(2)])
def test_layers_between_in_one_dimension(pool):
    model = nn.Sequential(nn.Conv1d(1, 3, 1), pool, nn.Conv1d(3, 2, 2), nn.Dropout1d(), nn.Flatten(), nn.Linear(2, 2))
    assert check(randomised(model).eval(), (1, 4)).sizes == (3, 2)


def test_strides_dilation_and_padding():
    convolutions = [
        nn.Conv2d(1, 2, 3, stride=2, padding=2, dilation=2, bias=False),
        nn.Conv2d(2, 3, (1, 3), padding="same", padding_mode="circular"),
        nn.Conv2d(3, 2, 2, padding=1, padding_mode="reflect"),
    ]
    model = nn.Sequential(*(part for c in convolutions for part in (c, nn.LeakyReLU())), nn.Flatten(), nn.Linear(50, 2))
    assert check(randomised(model), (1, 8, 8)).sizes == (2, 3, 2)


# -- what comes before the first layer -------------------------------------------------------------


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


def test_a_model_without_hidden_units_is_its_own_canonical_form():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).double()
    found, params = plan(model, (2, 2)), parameters(model)
    assert found.factors([])["1.weight"].tolist() == torch.ones(2, 4).tolist()
    assert apart(canonical(found, params), params) == 0


def test_values_and_device_of_parameters_do_not_matter():
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    assert plan(model, (1, 4, 4)).sizes == (2,)


# -- the canonical form ----------------------------------------------------------------------------


def rows(params, name):
    """Lengths of the rows of a layer, bias included."""
    squares = params[f"{name}.weight"].flatten(1).square().sum(1)
    return (squares + params[f"{name}.bias"].square()).sqrt()


def test_canonical_rows_have_length_one():
    model = net(lambda m, x: m.out(F.relu(m.fc((F.relu(m.a(x)) + m.b(x)).mean(MEAN)))))
    found, params = plan(model, (2, 4, 4)), parameters(model)
    form = canonical(found, params)
    torch.testing.assert_close(rows(form, "a"), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rows(form, "fc"), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(form["b.bias"], params["b.bias"] / rows(params, "a"))  # tied to `a`, which counts
    torch.testing.assert_close(scales(found, params)[0], rows(params, "a"))


def test_a_dead_unit_keeps_its_factor():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    found = plan(randomised(model), (3,))
    params = parameters(model)
    params["0.weight"][1], params["0.bias"][1] = 0, 0
    params["2.weight"][2], params["2.bias"][2] = torch.tensor([0.0, 5.0, 0.0, 0.0]), 0  # reads nothing but a dead unit
    found_scales = scales(found, params)
    assert found_scales[0][1] == 1
    assert found_scales[1][2] == 1
    masked = times(found.factors(drawn(found.sizes)), params)
    forms = [canonical(found, p) for p in (params, masked)]
    plain = outputs(model, params, (3,))
    for form in forms:
        assert apart({"out": outputs(model, form, (3,))}, {"out": plain}) < TOLERANCE
        form["2.weight"][:, 1], form["4.weight"][:, 2] = 0, 0  # from dead units
    assert apart(*forms) < TOLERANCE


def test_a_channel_dead_in_one_layer_takes_its_length_from_the_next_that_writes_it():
    found_model = net(lambda m, x: m.out(F.relu(m.fc((F.relu(m.a(x)) + m.b(x)).mean(MEAN)))))
    found, params = plan(found_model, (2, 4, 4)), parameters(found_model)
    params["a.weight"][1], params["a.bias"][1] = 0, 0
    assert scales(found, params)[0][1] == pytest.approx(float(rows(params, "b")[1]))
    masked = times(found.factors(drawn(found.sizes)), params)
    assert apart(canonical(found, masked), canonical(found, params)) < TOLERANCE


def test_single_precision():
    model = net(lambda m, x: m.out(F.relu(m.fc(F.relu(m.a(x)).mean(MEAN)))), "b").float()
    found, params = plan(model, (2, 4, 4)), parameters(model)
    masked = times(found.factors([0.1 + t.clamp(max=10).float() for t in drawn(found.sizes)]), params)
    form = canonical(found, masked)
    assert {p.dtype for p in form.values()} == {torch.float32}
    assert apart(form, canonical(found, params)) < 1e-5


# -- refusals --------------------------------------------------------------------------------------


class Own(nn.ReLU):
    """A ReLU no more."""

    def forward(self, x):
        return torch.exp(x)


class Scaled(nn.Module):
    """A parameter of its own."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out, self.gain = nn.Linear(2, 2), nn.Linear(2, 2), nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.out(self.gain * self.hidden(x))


class Shared(nn.Module):
    """Two layers, one weight."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.out(self.two(self.one(x)))


def between(*parts, last=3):
    """Dense layer, what is in question, dense layer."""
    return nn.Sequential(nn.Linear(2, 3), *parts, nn.Linear(last, 2))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (between(nn.Sigmoid()), r"^layer '1' \(Sigmoid\) does not keep the masks, allowed: Linear, Conv1d"),
        (between(nn.GELU()), r"'1' \(GELU\) does not keep"),
        (between(nn.Hardswish()), r"'1' \(Hardswish\) does not keep"),
        (between(nn.ReLU6()), r"'1' \(ReLU6\) does not keep"),
        (between(nn.PReLU()), r"'1' \(PReLU\) does not keep"),
        (between(nn.Softmax(1)), r"'1' \(Softmax\) does not keep"),
        (between(nn.BatchNorm1d(3)), r"'1' \(BatchNorm1d\) does not keep"),
        (between(nn.GroupNorm(1, 3, affine=False)), r"'1' \(GroupNorm\) does not keep"),
        (between(nn.Sequential(nn.ReLU(), nn.LayerNorm(3))), r"'1\.1' \(LayerNorm\) does not keep"),
        (between(Own()), r"does not keep|operation 'exp"),
        (nn.Sequential(nn.BatchNorm1d(2), *between()), r"'0' \(BatchNorm1d\) does not keep"),
        (nn.Sequential(nn.Bilinear(2, 2, 2)), r"cannot trace|'0' \(Bilinear\)"),
        (between(nn.MaxPool1d(1)), r"'1' \(MaxPool1d\) gets samples of 1 axes, allowed: 2"),
        (between(nn.Conv1d(3, 3, 1)), r"'1' \(Conv1d\) gets samples of 1 axes, allowed: 2"),
        (between(last=4), r"'1' \(Linear\) does not take inputs of 3: "),
        (between(nn.Flatten(0)), r"'1' \(Flatten\) changes the batch's axis"),
        (Scaled(), r"parameter 'gain' is used outside of a layer"),
        (Shared(), r"layer 'two' \(Linear\) is used twice or shares its parameters, allowed: layers used once"),
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU()), r"output is not that of a layer of class Linear"),
        (nn.Sequential(nn.Flatten()), r"output is not that of a layer of class Linear"),
    ],
)
def test_what_breaks_the_masks_is_named(model, message):
    with pytest.raises(UserError, match=message):
        plan(model, (2,))


def refused(forward, message, *unused):
    with pytest.raises(UserError, match=message):
        plan(net(forward, *unused), (2, 4, 4))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (lambda a, b: torch.sigmoid(a), r"operation 'sigmoid' does not keep the masks"),
        (lambda a, b: a.tanh(), r"operation 'tanh' does not keep"),
        (lambda a, b: a * b, r"operation 'mul' does not keep"),
        (lambda a, b: a / b, r"operation 'truediv' does not keep"),
        (lambda a, b: 1 / a, r"operation 'truediv' does not keep"),
        (lambda a, b: a**2, r"operation 'pow"),
        (lambda a, b: a + 1, r"operation 'add' ties the channels of layer 'a' to the network's input or a constant"),
        (lambda a, b: 0.5 - b, r"operation 'sub' ties the channels of layer 'b' to the network's input or a constant"),
        (lambda a, b: a.sum(1, keepdim=True) + b, r"operation 'sum_1' mixes channels"),
        (lambda a, b: a.mean(), r"operation 'mean' goes over the batch"),
        (lambda a, b: a.mean((0, 2)), r"operation 'mean' goes over the batch"),
        (lambda a, b: a.transpose(1, 2), r"operation 'transpose' does not keep"),
        (lambda a, b: a.view(-1, 3), r"operation 'view' changes the batch's axis"),
        (lambda a, b: torch.cat([a, b]), r"operation 'cat' changes the batch's axis"),
        (
            lambda a, b: F.max_pool2d(torch.cat([a, b], 2), 2),
            r"operation 'max_pool2d' reads positions of one channel that",
        ),
        (
            lambda a, b: F.max_pool2d(a, 2, return_indices=True)[0],
            r"operation 'max_pool2d_with_indices' does not keep",
        ),
        (lambda a, b: F.max_pool1d(a, 2), r"operation 'max_pool1d' gets samples of 3 axes, allowed: 2"),
    ],
)
def test_operations_that_break_the_masks_are_named(head, message):
    refused(lambda m, x: m.out(m.fc(F.adaptive_avg_pool2d(head(m.a(x), m.b(x)), 1).flatten(1))), message)


def test_additions_of_the_input_are_named():
    message = r"operation 'add' ties the channels of layer 'a' to the network's input or a constant, which no mask"
    refused(lambda m, x: m.out(m.fc((m.a(x) + x[:, :1]).mean(MEAN))), message, "b")
    refused(lambda m, x: m.out(m.fc((x.mean(1, keepdim=True) + m.a(x)).mean(MEAN))), message, "b")
    both = r"operation 'add' ties the channels of layer 'b' to the network's input or a constant"
    refused(lambda m, x: m.out(m.fc((torch.cat([m.a(x), x], 1)[:, :3] + m.b(x)).mean(MEAN))), "operation 'getitem'")
    refused(lambda m, x: m.out(m.fc((torch.cat([x, m.a(x)], 1) + torch.cat([m.b(x), x], 1)).mean(MEAN))), both)


def test_other_uses_of_layers_are_named():
    fc = r"layer 'fc' \(Linear\)"
    refused(lambda m, x: m.out(m.fc(m.fc(m.a(x).mean(MEAN)))), f"{fc} is used twice", "b")
    refused(
        lambda m, x: m.out(m.a(x).mean(MEAN)), r"parameter 'fc.weight' belongs to no layer that the model uses", "b"
    )
    refused(
        lambda m, x: m.out(m.fc(m.a(x).mean(MEAN))) * 2, "the model's output is not that of a layer of class Linear"
    )
    refused(lambda m, x: m.a(x), "the model's output is not that of a layer of class Linear")
    refused(lambda m, x: F.linear(x, m.out.weight), "parameter 'out.weight' is used outside of a layer")

    def added(m, x):
        h = m.a(x).mean(MEAN)
        out = m.out(h)
        m.fc(h).sum(1, keepdim=True)
        return out

    refused(added, r"operation 'sum_1' mixes channels")


def test_an_output_that_is_added_to_something_is_named():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.three = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x):
            h, out = self.one(x), self.two(x)
            self.three(h + out)
            return out

    with pytest.raises(UserError, match=r"layer 'two' is the output, and added to another layer's"):
        plan(Both(), (2,))


def test_grouped_convolutions_are_named():
    model = nn.Sequential(nn.Conv2d(2, 4, 1, groups=2), nn.Flatten(), nn.Linear(16, 2))
    with pytest.raises(UserError, match=r"layer '0' \(Conv2d\) has groups=2, allowed: 1"):
        plan(model, (2, 2, 2))


def test_pools_that_return_indices_are_named():
    class Indices(nn.Sequential):
        def forward(self, x):
            return self[2](self[1](self[0](x))[0].flatten(1))

    model = Indices(nn.Conv2d(2, 4, 1), nn.MaxPool2d(2, return_indices=True), nn.Linear(4, 2))
    with pytest.raises(UserError, match=r"layer '1' \(MaxPool2d\) returns more than one tensor, allowed: one"):
        plan(model, (2, 2, 2))


def test_dense_layers_along_pixels_are_named():
    model = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Linear(2, 3), nn.Flatten(), nn.Linear(24, 2))
    with pytest.raises(UserError, match=r"layer '1' \(Linear\) gets samples of 3 axes, allowed: 1"):
        plan(model, (2, 2, 2))


def test_code_that_cannot_be_traced_is_named():
    message = (
        r"^torch.fx cannot trace the model \(symbolically traced variables cannot be used as inputs to control flow"
    )
    refused(lambda m, x: m.out(m.fc(m.a(x).mean(MEAN))) if m.a(x).sum() > 0 else x, message, "b")


# -- the models at hand ----------------------------------------------------------------------------


def shipped(name, options):
    card, shape = find("model", name), (3, 32, 32)
    architecture = card.load()(card.parse(options))
    module = architecture.module(shape, 10)
    return module, architecture.init(module, Rng(0).torch()), shape


@pytest.mark.parametrize("name", sorted(CARDS))
def test_shipped_models_plan_or_say_which_layer_is_in_the_way(name):
    module, _, shape = shipped(name, {"weights": "random", "size": "32"} if name == "mobilenet-head" else {})
    try:
        found = plan(module, shape)
    except UserError as error:
        said = re.match(r"layer '(.*)' \((.*)\) does not keep the masks", str(error))
        assert said
        assert type(module.get_submodule(said[1])).__name__ == said[2]
    else:
        assert {name for layer in found.layers for name in (f"{layer.name}.weight", f"{layer.name}.bias")} >= {
            name for name, _ in module.named_parameters()
        }


@pytest.mark.parametrize(
    ("name", "options", "groups"),
    [
        ("cnn-cifar10", {}, (32, 64, 128, 200)),
        ("cnn-mnist", {}, (32, 64, 512)),
        ("lenet-baffle", {"activation": "relu", "norm": "none", "mean": "0.5"}, (16, 64)),
        ("mlp", {}, (200, 200)),
        ("mlp-two-stage", {"activation": "relu", "blur": "1", "size": "8"}, (32,)),
        ("wrn-10-2", {"activation": "relu", "norm": "none"}, (16, 32, 32, 64, 64, 128, 128)),
    ],
)
def test_shipped_models_keep_their_function(name, options, groups):
    module, params, shape = shipped(name, options)
    found, params = plan(module, shape), {n: p.double() for n, p in params.items()}
    assert found.sizes == groups
    masked = times(found.factors(drawn(found.sizes)), params)
    plain, hat = (outputs(module.double(), p, shape) for p in (params, masked))
    assert apart({"out": hat}, {"out": plain}) < TOLERANCE


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cnn-two-stage", {"activation": "relu"}, r"layer 'norm1' \(GroupNorm\)"),
        ("lenet-baffle", {"activation": "hardswish", "norm": "none"}, r"layer 'act1' \(Hardswish\)"),
        ("lenet-baffle", {"activation": "relu", "norm": "batch"}, r"layer 'norm1' \(BatchNorm2d\)"),
        ("lenet-dlg", {}, r"layer 'act1' \(Sigmoid\)"),
        ("mlp", {"activation": "tanh"}, r"layer 'act1' \(Tanh\)"),
        ("mlp-two-stage", {"activation": "elu"}, r"layer 'act1' \(ELU\)"),
        ("wrn-10-2", {"activation": "relu"}, r"layer 'block1\.before\.norm' \(GroupNorm\)"),
    ],
)
def test_options_that_do_not_keep_masks_are_named(name, options, message):
    module, _, shape = shipped(name, options)
    with pytest.raises(UserError, match=message):
        plan(module, shape)


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
    assert check(randomised(model), (1, 3, 3)).sizes == sizes
