"""The symmetry of ReLU networks under positive factors of their hidden units.

relu(r·z) = r·relu(z) for r > 0, so that a network keeps its function when the incoming weights and the bias of a
hidden unit are multiplied by r and its outgoing weights divided by r. PBPFL (Feng, Yang, Fang, Xia & Tang 2020,
"Practical and Bilateral Privacy-preserving Federated Learning", Sections 3.1.1 and 3.1.2) masks a model by random
factors; a canonical form removes any such mask:

    W ↦ R∘W, R_ij = r_i^(rows)/r_j^(columns)          `ScalingPlan.factors`
    canonical(R∘W) = canonical(W)                       `canonical`

Which parameters belong to which unit is read off the network's graph, never off its name
(`fedarena.models.scaling.graph`). Channels of convolutions are units. Units that an addition joins have one factor.
"""

from __future__ import annotations

from torch import Tensor, nn

from fedarena.core.tensors import Tensors
from fedarena.models.scaling import graph as scaling_graph
from fedarena.models.scaling.plan import Run, ScaledLayer, ScalingPlan, from_layers, spread

__all__ = ["Run", "ScaledLayer", "ScalingPlan", "canonical", "plan", "scales"]


def plan(model: nn.Module, input_shape: tuple[int, ...]) -> ScalingPlan:
    """How positive factors act on a network. The values of its parameters are not used.

    Dense and convolutional layers, each used once; ReLU and LeakyReLU; max and average pooling; means over positions;
    dropout (the identity in evaluation); flattening, concatenation, addition and subtraction of activations, and
    their multiplication by a number. Modules without parameters that see the input alone may do anything.

    Args:
        model: maps [n, *input_shape] to the output [n, outputs] of a dense layer; torch.fx must be able to trace it.

    Raises:
        UserError: a part of the model does not keep its function under factors; the first such part is named.
    """
    return from_layers(*scaling_graph.read(model, input_shape))


def scales(plan: ScalingPlan, params: Tensors) -> list[Tensor]:
    """s by which `canonical` divides the rows, [sizes[g]] for every group g: params = factors(s)∘canonical.

    s_i is the length of the row of weights into unit i, times s_j of its columns, and of the bias. Of the layers that
    write to a unit (an addition ties them) the first counts in which this length is not 0; neighbouring rows of it that
    are tied to one another count together. A dead unit, whose length is 0 in all of them, keeps s_i = 1, and weights
    from it do not count in the lengths of others, because its activation is 0.
    """
    like = params[f"{plan.layers[0].name}.weight"]
    lengths = [like.new_zeros(size) for size in plan.sizes]
    for layer in plan.layers:
        weight = params[f"{layer.name}.weight"]
        squares = weight.square().flatten(2).sum(2) if layer.kernel else weight.square()
        length = squares @ spread(layer.columns, lengths, like).square()
        if layer.bias:
            length = length + params[f"{layer.name}.bias"].square()
        parts = length.sqrt().split([run.channels * run.spatial for run in layer.rows])
        for run, part in zip(layer.rows, parts, strict=True):
            if run.group is not None:
                known = lengths[run.group]
                own = part.reshape(run.channels, run.spatial).square().sum(1).sqrt()
                lengths[run.group] = own.where(known == 0, known)
    return [length.where(length != 0, 1.0) for length in lengths]


def canonical(plan: ScalingPlan, params: Tensors) -> Tensors:
    """The same function with incoming weights, bias included, of length 1 for every hidden unit; see `scales`.

    All networks that are positive rescalings of one another have the same canonical form, up to rounding, except for
    the weights from dead units, on which no function depends.
    """
    factors = plan.factors(scales(plan, params))
    return {name: p / factors[name].to(p) for name, p in params.items()}
