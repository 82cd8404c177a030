"""Positive scalings of hidden units: the function stays, one canonical form, and what breaks them is named."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_play import MEAN, apart, drawn, net, networks, outputs, parameters, randomised, times
from torch import nn

from fedarena.errors import UserError
from fedarena.positive_scaling import Run, canonical, plan, scales
from fedarena.scaling_graph import Layer
from fedarena.scaling_plan import from_layers
from fedarena.scaling_units import FIXED, Units

TOLERANCE = 1e-10


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


def rows(params, name):
    """Lengths of the rows of a layer, bias included."""
    squares = params[f"{name}.weight"].flatten(1).square().sum(1)
    return (squares + params[f"{name}.bias"].square()).sqrt()


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
    model = randomised(Wide((2, 3), lambda a, b: torch.cat([a, b], 1) + torch.cat([b, a], 1)))
    found, params = check(model, (2,)), parameters(model)
    assert found.sizes == (1,)
    assert [layer.rows for layer in found.layers[:2]] == [(Run(0, 1, 2),), (Run(0, 1, 3),)]
    assert found.layers[-1].columns == (Run(0, 1, 5),)
    length = rows(params, "layers.0").square().sum().sqrt()  # both rows of the first layer
    assert float(scales(found, params)[0]) == pytest.approx(float(length))


def test_a_group_may_be_written_twice_by_one_layer():
    """[c₁ c₂ c₃ c₄] + [a₁ a₂ a₁ a₂], c first; then b."""

    def join(c, a, b):
        return torch.cat([torch.cat([a, a], 1) + c, b], 1)

    found = check(randomised(Wide((4, 2, 1), join)), (2,))
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
    assert check(randomised(model), (1, 3, 3)).sizes == sizes


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


# -- the ways to write an operation ----------------------------------------------------------------


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
        joined = join(a, b)
        return m.out(F.relu(m.fc(F.relu(joined).mean(MEAN) + F.max_pool2d(joined, 2).mean(MEAN) + total.mean(MEAN))))

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
