"""What positive factors would not pass through unchanged is refused, and named."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers.scaling import MEAN, net
from torch import nn

from fedarena.core.errors import UserError
from fedarena.models.scaling.positive_scaling import plan


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
    with pytest.raises(UserError, match=message) as caught:
        plan(model, (2,))
    assert "\n" not in str(caught.value)


def expect_refusal(forward, message, *unused):
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
        (lambda a, b: a.view(1, 3, -1, 4), r"operation 'view' changes the batch's axis"),
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
    expect_refusal(lambda m, x: m.out(m.fc(F.adaptive_avg_pool2d(head(m.a(x), m.b(x)), 1).flatten(1))), message)


def test_additions_of_the_input_are_named():
    message = r"operation 'add' ties the channels of layer 'a' to the network's input or a constant, which no mask"
    expect_refusal(lambda m, x: m.out(m.fc((m.a(x) + x[:, :1]).mean(MEAN))), message, "b")
    expect_refusal(lambda m, x: m.out(m.fc((x.mean(1, keepdim=True) + m.a(x)).mean(MEAN))), message, "b")
    both = r"operation 'add' ties the channels of layer 'b' to the network's input or a constant"
    expect_refusal(
        lambda m, x: m.out(m.fc((torch.cat([m.a(x), x], 1)[:, :3] + m.b(x)).mean(MEAN))), "operation 'getitem'"
    )
    expect_refusal(lambda m, x: m.out(m.fc((torch.cat([x, m.a(x)], 1) + torch.cat([m.b(x), x], 1)).mean(MEAN))), both)


def test_other_uses_of_layers_are_named():
    fc = r"layer 'fc' \(Linear\)"
    expect_refusal(lambda m, x: m.out(m.fc(m.fc(m.a(x).mean(MEAN)))), f"{fc} is used twice", "b")
    expect_refusal(
        lambda m, x: m.out(m.a(x).mean(MEAN)), r"parameter 'fc.weight' belongs to no layer that the model uses", "b"
    )
    expect_refusal(
        lambda m, x: m.out(m.fc(m.a(x).mean(MEAN))) * 2, "the model's output is not that of a layer of class Linear"
    )
    expect_refusal(lambda m, x: m.a(x), "the model's output is not that of a layer of class Linear")
    expect_refusal(lambda m, x: F.linear(x, m.out.weight), "parameter 'out.weight' is used outside of a layer")

    def added(m, x):
        h = m.a(x).mean(MEAN)
        out = m.out(h)
        m.fc(h).sum(1, keepdim=True)
        return out

    expect_refusal(added, r"operation 'sum_1' mixes channels")


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
    expect_refusal(lambda m, x: m.out(m.fc(m.a(x).mean(MEAN))) if m.a(x).sum() > 0 else x, message, "b")


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_are_named(register):
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    getattr(model[0], register)(lambda module, *given: torch.sigmoid(given[-1]) if len(given) == 2 else None)
    with pytest.raises(UserError, match=r"layer '0' \(Linear\) has hooks, allowed: "):
        plan(model, (2,))


class Switch(nn.Module):
    """Another network in evaluation than in training."""

    def __init__(self, other: str) -> None:
        super().__init__()
        self.first, self.second, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)
        self.other = other

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layers = (self.second, self.first) if self.other == "order" and not self.training else (self.first, self.second)
        below = layers[0](x).relu()
        above = layers[1](below)
        if self.training or self.other == "order":
            return self.out(above.relu())
        return self.out(above.relu() + below if self.other == "skip" else above.sigmoid())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("other", ["order", "skip", "sigmoid"])
def test_networks_that_are_others_in_evaluation(other: str, training: bool) -> None:
    model = Switch(other).train(training)
    why = "operation 'sigmoid'" if other == "sigmoid" else "other units in evaluation than in training"
    with pytest.raises(UserError, match=why):
        plan(model, (6,))
    assert model.training == training
