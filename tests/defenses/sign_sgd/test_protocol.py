"""signSGD: an upload against a loop, its bytes, descent, and what a party learns that goes through the signs."""

from __future__ import annotations

import pytest
import torch
from helpers.changed_uploads import make, read, sent_and_plain
from torch.func import grad, vmap

from fedarena.core.tensors import flatten, row
from fedarena.defenses.sign_sgd.protocol import LENGTH_BYTES, scaled_signs


def test_an_upload_is_that_of_the_loop():
    _, ups, plain = sent_and_plain(make("sign-sgd"))
    for name, tensors in plain.items():
        for sent, g in zip(ups[name], tensors, strict=True):
            length = sum(abs(e) for e in g.flatten().tolist()) / g.numel()
            wanted = [length if e >= 0 else -length for e in g.flatten().tolist()]
            assert sent.flatten().tolist() == pytest.approx(wanted, rel=1e-5)


def test_a_message_has_one_bit_an_entry_and_a_length_a_tensor():
    defense = make("sign-sgd")
    _, ups, _ = sent_and_plain(defense)
    assert defense.sent_bytes(ups) == 3 * (-(-defense.entries // 8) + LENGTH_BYTES * len(ups))


def test_an_upload_is_a_descent_direction():
    """⟨T(g), g⟩ = ‖g‖₁²/d for each tensor, by Karimireddy et al., Lemma 8."""
    _, ups, plain = sent_and_plain(make("sign-sgd"))
    for name, tensors in plain.items():
        for sent, g in zip(ups[name], tensors, strict=True):
            assert float((sent * g).sum()) == pytest.approx(float(g.abs().sum() ** 2 / g.numel()), rel=1e-4)


def test_derivatives_pass_through_the_signs_alone_and_in_batches():
    w, t = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([[0.5, -1.0, 0.0], [-0.2, 0.1, -3.0]])

    def of_one(t):
        return (w * scaled_signs(t.sin())).sum()

    wanted = w * t.cos()
    torch.testing.assert_close(vmap(grad(of_one))(t), wanted)
    torch.testing.assert_close(torch.stack([grad(of_one)(one) for one in t]), wanted)


def test_the_adaptive_form_matches_signs_and_the_paper_form_does_not():
    defense = make("sign-sgd", batch_size=1)
    (paper,), (adaptive,) = read(defense, "server", "paper"), read(defense, "server", "adaptive")
    x, y = torch.rand(1, 12, generator=torch.Generator().manual_seed(3)), torch.eye(3)[:1]
    simulated, plain = adaptive.observations[0].simulate(x, y), paper.observations[0].simulate(x, y)
    assert torch.equal(flatten(simulated), flatten({name: scaled_signs(t) for name, t in plain.items()}))
    assert {len(t.unique()) for t in row({name: t[None] for name, t in simulated.items()}, 0).values()} <= {1, 2}
