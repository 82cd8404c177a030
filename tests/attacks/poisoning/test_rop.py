"""ROP: where it starts, the angle at which it leaves, and the server's step that it reads off broadcasts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from helpers.poisoning import knowledge, make, problem
from torch import Tensor
from torch.nn.functional import cosine_similarity

from fedarena.attacks.poisoning.helpers.alie_strength import z_max
from fedarena.attacks.poisoning.rop import turned
from fedarena.contracts.poisoning import RoundView
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, flatten, rows, shaped
from fedarena.core.threat import NotApplicable
from fedarena.federation import compose
from fedarena.federation.adversary import knowledge_of, why_not

LAST = 0.03
"""What each parameter of the server's last step was."""


def views() -> tuple[RoundView, RoundView]:
    """Two rounds; between them the server stepped against `LAST` in every parameter."""
    p, on = problem(), knowledge("omniscient")
    ups, _ = on.defense.clients(p.init, [p.batch(c, Rng(c)) for c in range(10)], [{}] * 10, [{}] * 10)
    first = RoundView(
        round=0,
        participants=10,
        size=3,
        down=dict(p.init),
        own={n: x[:3] for n, x in ups.items()},
        honest={n: x[3:] for n, x in ups.items()},
        honest_clients=tuple(range(7)),
    )
    moved = {n: x - on.defense.step_size * LAST for n, x in p.init.items()}
    return first, replace(first, round=1, down=moved)


def second(**options: float) -> tuple[Tensor, Tensor, Tensor]:
    """The upload of the second round, the mean of the honest ones, and the server's last step."""
    attack = make("rop", knowledge("omniscient", clients=20, corrupted=8), **options)
    first, then = views()
    _, memory = attack.craft(first, {}, Rng(0))
    out, _ = attack.craft(then, memory, Rng(0))
    mean = rows(first.honest).mean(0)
    return rows(out)[0], mean, torch.full_like(mean, LAST)


def test_it_starts_from_the_last_step_and_leaves_at_a_right_angle() -> None:
    upload, mean, last = second()
    perturbation = upload - last
    towards = 0.9 * last + 0.1 * mean
    z = z_max(20, 8)
    assert z is not None
    assert float(perturbation.norm()) == pytest.approx(z, rel=1e-3)
    assert float(cosine_similarity(perturbation, towards, dim=0)) == pytest.approx(0, abs=1e-3)
    # At 270° it goes against the ones.
    assert float(perturbation.sum()) < 0


@pytest.mark.parametrize(("angle", "cosine"), [(0.0, 1.0), (180.0, -1.0), (60.0, 0.5)])
def test_the_angle_is_the_one_asked_for(angle: float, cosine: float) -> None:
    r = torch.linspace(-1, 2, 50)
    assert float(cosine_similarity(turned(r, angle), r, dim=0)) == pytest.approx(cosine, abs=1e-5)


def test_pi_moves_the_start_to_the_honest_mean() -> None:
    upload, mean, last = second(pi=0.0, z=1e-6)
    torch.testing.assert_close(upload, mean, atol=1e-5, rtol=0)
    upload, mean, last = second(pi=0.25, z=1e-6)
    torch.testing.assert_close(upload, 0.25 * last + 0.75 * mean, atol=1e-5, rtol=0)


def test_in_the_first_round_there_is_no_last_step() -> None:
    first, _ = views()
    out, memory = make("rop", knowledge("omniscient"), z=1.0).craft(first, {}, Rng(0))
    mean = rows(first.honest).mean(0)
    torch.testing.assert_close(rows(out)[0], turned(mean, 270.0))
    kept: Tensors = shaped(flatten({n.removeprefix("before."): x for n, x in memory.items()}), dict(first.down))
    assert all(torch.equal(kept[n], x) for n, x in first.down.items())


def test_it_needs_a_strength_and_broadcasts_in_clear() -> None:
    few = knowledge("omniscient", clients=20, corrupted=1)
    assert isinstance(why_not(make("rop", few)), NotApplicable)
    assert why_not(make("rop", few, z=0.5)) is None
    p = problem()
    for name in ("dbcl", "baffle"):
        on = knowledge_of(p, compose.make_defense(compose.parse_defense(name), p.task), "omniscient")
        reason = why_not(make("rop", on, z=0.5))
        assert reason is not None
        assert "do not show it in clear" in reason.reason
