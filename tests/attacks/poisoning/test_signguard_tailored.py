"""The SignGuard-tailored attack: the norm and the signs of an honest upload, in the worst order."""

from __future__ import annotations

from itertools import permutations

import torch
from helpers.poisoning import knowledge, make, round_view, sent

from fedarena.attacks.poisoning.signguard_tailored import against
from fedarena.core.tensors import rows

OWN = torch.tensor([[1.0, -2.0, 0.0, 3.0, 0.5, 0.0, 0.0, -1.0], [0.5, -1.0, 1.0, 2.0, 0.0, 0.0, 0.25, -3.0]])


def test_norm_and_signs_are_those_of_the_own_upload() -> None:
    view = round_view(OWN)
    for order in ("reversed", "random"):
        out = sent(make("signguard-tailored", knowledge(), order=order), view)
        torch.testing.assert_close(out.norm(dim=1), OWN.norm(dim=1))
        for sign in (-1, 0, 1):
            assert (out.sign() == sign).sum(1).tolist() == (OWN.sign() == sign).sum(1).tolist()
        assert not torch.allclose(out, OWN)


def test_no_other_order_has_a_smaller_inner_product_with_the_mean() -> None:
    g, mean = torch.tensor([[2.0, -1.0, 0.5, 0.0, 3.0, -2.0]]), torch.tensor([0.3, -0.2, 0.9, 0.1, -0.7, 0.4])
    smallest = min(float(torch.tensor(p) @ mean) for p in permutations(g[0].tolist()))
    torch.testing.assert_close(against(g, mean)[0] @ mean, torch.tensor(smallest))


def test_with_all_uploads_known_it_goes_against_their_mean() -> None:
    honest = torch.tensor([[5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0]])
    view = round_view(OWN, honest)
    out = sent(make("signguard-tailored", knowledge("omniscient")), view)
    torch.testing.assert_close(out, rows(view.own).sort(dim=1).values)
