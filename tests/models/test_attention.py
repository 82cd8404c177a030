"""The transformer block: known answers, PyTorch's own layer, and the derivatives that attacks need."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from fedarena.models.attention import Attention, Block, Positions, layer_norm


def block(causal: bool = True) -> Block:
    torch.manual_seed(0)
    return Block(width=8, heads=2, hidden=16, causal=causal)


def tokens(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_agrees_with_pytorchs_own_layer(causal: bool) -> None:
    ours = block(causal).attention
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.q.weight, ours.k.weight, ours.v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.q.bias, ours.k.bias, ours.v.bias]))
        theirs.out_proj.weight.copy_(ours.o.weight)
        theirs.out_proj.bias.copy_(ours.o.bias)
    x = tokens(3, 5, 8)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    torch.testing.assert_close(ours(x), theirs(x, x, x, attn_mask=mask, need_weights=False)[0])


@pytest.mark.parametrize("causal", [False, True])
def test_the_block_agrees_with_pytorchs_own_encoder_layer(causal: bool) -> None:
    ours = block(causal)
    theirs = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    attention = theirs.self_attn
    with torch.no_grad():
        attention.in_proj_weight.copy_(torch.cat([getattr(ours.attention, n).weight for n in "qkv"]))
        attention.in_proj_bias.copy_(torch.cat([getattr(ours.attention, n).bias for n in "qkv"]))
    for mine, other in ((ours.attention.o, attention.out_proj), (ours.mlp.up, theirs.linear1)):
        other.load_state_dict(mine.state_dict())
    theirs.linear2.load_state_dict(ours.mlp.down.state_dict())
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    torch.testing.assert_close(ours(tokens(3, 5, 8)), theirs(tokens(3, 5, 8), src_mask=mask))


def test_a_causal_block_does_not_look_ahead() -> None:
    x = tokens(1, 5, 8)
    changed = torch.cat([x[:, :3], -x[:, 3:]], 1)
    for causal in (True, False):
        before, after = block(causal)(x)[:, :3], block(causal)(changed)[:, :3]
        assert torch.equal(before, after) == causal


def test_gradients_of_single_samples_under_vmap_are_those_of_a_loop() -> None:
    module, x = block(), tokens(4, 5, 8)
    params = {name: p.detach() for name, p in module.named_parameters()}

    def loss(params: dict[str, torch.Tensor], one: torch.Tensor) -> torch.Tensor:
        return functional_call(module, params, (one[None],)).square().sum()

    at_once = vmap(grad(loss), (None, 0))(params, x)
    for i, one in enumerate(x):
        for name, g in grad(loss)(params, one).items():
            torch.testing.assert_close(at_once[name][i], g, rtol=1e-4, atol=1e-5)


def test_the_block_has_second_derivatives() -> None:
    module = block().double()
    params = {name: p.detach() for name, p in module.named_parameters()}

    def slope(x: torch.Tensor) -> torch.Tensor:
        """One number of the gradient with respect to the weights, as a function of the inputs."""
        grads = grad(lambda p: functional_call(module, p, (x,)).square().sum())(params)
        return sum(g.square().sum() for g in grads.values())

    x, step = tokens(2, 3, 8).double(), 1e-6
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    numeric = (slope(x + step * direction) - slope(x - step * direction)) / (2 * step)
    torch.testing.assert_close((grad(slope)(x) * direction).sum(), numeric, rtol=1e-5, atol=0)
    each = vmap(grad(lambda one: slope(one[None])))(x)
    torch.testing.assert_close(each[0], grad(lambda one: slope(one[None]))(x[0]))


def test_a_position_adds_a_vector_of_its_own_to_its_token() -> None:
    positions, x = Positions(5, 8), tokens(2, 5, 8)
    torch.testing.assert_close(positions(x), x + positions.table.weight.T)


def test_the_norm_standardises_each_token_by_itself() -> None:
    z = layer_norm(8)(7 + 3 * tokens(2, 5, 8))
    torch.testing.assert_close(z.mean(-1), torch.zeros(2, 5), atol=1e-6, rtol=0)
    torch.testing.assert_close(z.square().mean(-1), torch.ones(2, 5), atol=1e-3, rtol=0)


def test_a_maker_of_dense_layers_makes_the_projections() -> None:
    made = Attention(8, 2, causal=False, dense=lambda a, b: nn.Linear(a, b, bias=False))
    assert sorted(n for n, _ in made.named_parameters()) == ["k.weight", "o.weight", "q.weight", "v.weight"]
