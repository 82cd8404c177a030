"""SPEAR: a batch of n samples is read off the gradient of a dense first layer with a bias and ReLUs, exactly.

The gradient of the layer Z = W X + b has rank n: G = [∂L/∂W, ∂L/∂b] = D M, where D = ∂L/∂Z [units, n] belongs to the
units and M [n, d + 1] has the rows [x_k, 1]. A singular value decomposition gives G = L R with the same n dimensions,
and so D = L Q and M = Q⁻¹ R for an unknown invertible Q. ReLUs tell it: in each column of D the units that are
inactive for the sample are 0 (Dimitrov et al. 2024, Algorithms 1 and 2).

1. Draw n − 1 units. If all are inactive for one sample, the vector q with L q = 0 at them is that sample's column of Q.
2. Keep a q with more zeros in L q than those n − 1. A wrong direction has hardly any.
3. Of what was kept take n independent directions, those with most zeros first.
4. Then M = Q⁻¹ R up to the length of each row, which its last entry, 1, tells.

The chance of a draw falls exponentially with n. Two additions are ours. Units that are active for few samples have
short rows in G, and are likelier to be inactive together. So each draw takes its units from the shortest rows alone, of
which every draw considers another number. And where single units show k samples of the batch (`analytic`), their rows
of Q⁻¹ are known, and all other columns of Q are orthogonal to them. So most draws are made in subspaces of
n − k + 1 dimensions. Behind a protocol the rows of M are affine in the samples
(`helpers/first_layer.py`). Steps on a whole batch change only D, so that an update of several local epochs is read
as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from fedarena.attacks.reconstruction.analytic import Analytic, Readable
from fedarena.attacks.reconstruction.cards.spear import Options
from fedarena.attacks.reconstruction.helpers.first_layer import apart
from fedarena.contracts.inference import Reconstruction
from fedarena.core.rng import Rng

CHUNK = 1000
"""Draws at once."""
ROUNDING = 1e-6
"""Error of an entry of the gradient, as a share of its longest row: that of sums in float32."""
LOOSE, TIGHT = (1e-3, 40), (1e-4, 4)
"""Up to which share of a column's usual entry, and how many standard errors of it, one counts as 0: before its
direction is fitted to those, and after. A direction that was drawn from few units has larger errors."""
VANISHING = 1e-4
"""Up to which share of a unit's row its part in a subspace counts as 0."""
SURPLUS = 2
"""Zeros that a direction must have beyond those of the units that were drawn for it."""
SAME = 1e-4
"""1 − cos² up to which two directions are one."""
INDEPENDENT = 1e-4
"""Least squared distance of a direction of length 1 from the span of those that were taken before it."""
KEPT = 40
"""Directions that are kept for each sample, those with most zeros."""
IN_RANGE = 0.01
"""How far the pixels of an exact sample may lie outside [0, 1]."""
EXACT = 1e-12
"""Relative squared distance between what exact samples would have given and what was seen, above float32's error."""


class Spear(Analytic):
    """The attack; see the module's docstring and `fedarena.attacks.reconstruction.cards.spear.Options`."""

    options: Options
    name = "spear"

    def batch(self, readable: Readable, rows: Tensor, rng: Rng) -> Reconstruction:
        """The exact samples. If they cannot be had, SPEAR's guess or that of `analytic`, whichever explains more."""
        others, n = apart(rows, readable.seen.images), readable.seen.images
        usual = readable.guess(*others)
        if n > self.options.max_batch or usual.match < EXACT:
            return usual

        def exact(samples: Tensor) -> bool:
            return bool(in_range(readable, samples).all()) and readable.guess(*split(samples)).match < EXACT

        g = factors(rows, n, readable.seen.noise_std)
        known = [torch.linalg.svd(group, full_matrices=False).Vh[0] for group in others[0]]
        found = disaggregated(g, known, self.options, exact, rng.torch())
        if found is None:
            return usual
        guess = readable.guess(*filled_up(found[in_range(readable, found)], *others))
        return min(guess, usual, key=lambda guess: guess.match)


def split(samples: Tensor) -> tuple[list[Tensor], Tensor]:
    """The samples' rows [n, s + 1] as groups of one."""
    return list(samples[:, None]), samples[:0]


def in_range(readable: Readable, samples: Tensor) -> Tensor:
    """Which samples have all their pixels in [0, 1], but for errors."""
    x = torch.stack([readable.sample(row) for row in samples[:, None]])
    return ((x > -IN_RANGE) & (x < 1 + IN_RANGE)).all(1)


def filled_up(samples: Tensor, groups: list[Tensor], rest: Tensor) -> tuple[list[Tensor], Tensor]:
    """The samples' rows, and from groups and single rows those that are not of the same samples."""

    def new(rows: Tensor) -> Tensor:
        return ((F.normalize(rows, dim=1) @ F.normalize(samples, dim=1).T).square() < 1 - SAME).all(1)

    return [*samples[:, None], *(group for group in groups if new(group[:1]))], rest[new(rest)]


@dataclass(frozen=True)
class Factors:
    """G = L R.

    Attributes:
        left: L [units, n], with orthonormal columns, without units that are inactive for all samples.
        right: R [n, s + 1].
        error: standard deviation of the error of an entry of L in each of its dimensions [n].
    """

    left: Tensor
    right: Tensor
    error: Tensor

    def zeros(self, q: Tensor, tolerance: tuple[float, int]) -> Tensor:
        """Which entries of the columns L q are 0, [k, units] for q [k, n]. None are, where errors are too large."""
        (share, errors), usual = tolerance, len(self.left) ** -0.5
        error = errors * (q * self.error).norm(dim=1, keepdim=True)
        zeros: Tensor = ((q @ self.left.T).abs() <= error.clamp_min(share * usual)) & (error < 0.2 * usual)
        return zeros


def factors(rows: Tensor, n: int, noise_std: float) -> Factors:
    """The factors of rank n of G [units, s + 1], or of a smaller rank if errors hide the other dimensions."""
    lengths = rows.norm(dim=1)
    error = max(noise_std, ROUNDING * float(lengths.max()))
    active = rows[lengths > 2 * error * rows.shape[1] ** 0.5]
    left, sizes, right = torch.linalg.svd(active, full_matrices=False)
    noise = error * (active.shape[0] ** 0.5 + active.shape[1] ** 0.5)
    n = min(n, int((sizes > noise).sum()))
    return Factors(left[:, :n], sizes[:n, None] * right[:n], error / sizes[:n])


def disaggregated(
    g: Factors, known: list[Tensor], o: Options, exact: Callable[[Tensor], bool], rng: torch.Generator
) -> Tensor | None:
    """The rows [x_k, 1] of M, [n, s + 1]; None if too few directions are found.

    Args:
        known: rows [s + 1] of M that were found otherwise, up to their lengths.
        exact: whether rows are surely right, so that no more directions need to be drawn.
    """
    n = g.left.shape[1]
    if n < 2:
        return None
    bases = [torch.eye(n).to(g.left)]
    if known:
        bases += subspaces(torch.stack(known) @ torch.linalg.pinv(g.right))
    q, zeros = g.left.new_zeros(0, n), torch.zeros(0, dtype=torch.int64, device=g.left.device)
    samples = None
    for turn, begun in enumerate(range(0, o.draws, CHUNK)):
        drawn = directions(g, bases[turn % len(bases)], min(CHUNK, o.draws - begun), o.sparsity, rng)
        before = q
        q, zeros = distinct(torch.cat([q, drawn]), torch.cat([zeros, g.zeros(drawn, TIGHT).sum(1)]), KEPT * n)
        if torch.equal(q, before) or len(taken := independent(q)) < n:
            continue
        rows = torch.linalg.solve(q[taken].T, g.right)
        changed = samples is None or not torch.allclose(samples, rows / rows[:, -1:])
        samples = rows / rows[:, -1:]
        if changed and exact(samples):
            break
    return samples


def subspaces(known: Tensor) -> list[Tensor]:
    """Orthonormal bases [n, n'] of where the columns of Q lie, if k rows of Q⁻¹ are known, [k, n].

    A column of Q is orthogonal to all rows of Q⁻¹ but its own. So there is one subspace for each known row, without the
    others. All columns that belong to no known row lie in each of them.
    """
    k = len(known)
    others = (torch.cat([known[:j], known[j + 1 :]]) for j in range(k))
    return [torch.linalg.svd(rows).Vh[k - 1 :].T for rows in others]


def directions(g: Factors, basis: Tensor, draws: int, sparsity: float, rng: torch.Generator) -> Tensor:
    """Directions q [k, n] within a subspace that make more units 0 than those drawn for them, and a share of all.

    The share counts in proper subspaces only. Of similar samples of one class few units tell which is which.
    """
    left = g.left @ basis
    counts = left.norm(dim=1) > VANISHING * g.left.norm(dim=1)  # the others are 0 in the whole subspace
    lengths = (left[counts] @ (basis.T @ g.right)).norm(dim=1)
    left = F.normalize(left[counts], dim=1)
    units, n = left.shape
    proper = n < len(basis)
    wanted = max(n - 1 + SURPLUS + int((~counts).sum()), int(sparsity * len(counts)) if proper else 0)
    if units < n - 1 + SURPLUS:
        return g.left.new_zeros(0, len(basis))
    which = drawn_units(lengths, draws, n - 1, rng)
    return fitted(g, least(left[which]) @ basis.T, wanted)


def drawn_units(lengths: Tensor, draws: int, count: int, rng: torch.Generator) -> Tensor:
    """So many different units for each draw [draws, count], from those with the shortest rows.

    How many of them a draw considers is random, with a uniform logarithm between `count` + SURPLUS and all.
    """
    units, least_pool = len(lengths), count + SURPLUS
    pool = (least_pool * (units / least_pool) ** torch.rand(draws, 1, generator=rng)).ceil()
    keys = torch.where(torch.arange(units) < pool, torch.rand(draws, units, generator=rng), -1.0)
    return lengths.argsort()[keys.topk(count, dim=1).indices.to(lengths.device)]


def least(rows: Tensor) -> Tensor:
    """The directions [..., n] along which rows [..., k, n] are shortest together."""
    directions: Tensor = torch.linalg.eigh(rows.mT @ rows).eigenvectors[..., 0]
    return directions


def fitted(g: Factors, q: Tensor, wanted: int) -> Tensor:
    """The directions with at least so many zeros, each fitted to all of them."""
    zeros = g.zeros(q, LOOSE)
    zeros = zeros[zeros.sum(1) >= wanted]
    if not len(zeros):
        return q[:0]
    q = least(g.left * zeros[..., None])
    return q[g.zeros(q, TIGHT).sum(1) >= wanted]


def distinct(q: Tensor, zeros: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Different directions [k, n] and their numbers of zeros [k], those with most zeros first, at most so many."""
    order = zeros.argsort(descending=True, stable=True)
    q, zeros = q[order], zeros[order]
    alike = (q @ q.T).square() > 1 - SAME
    first = ~alike.tril(-1).any(1)
    return q[first][:most], zeros[first][:most]


def independent(q: Tensor) -> list[int]:
    """Which directions [k, n] are independent of those before them."""
    n = q.shape[1]
    taken: list[int] = []
    basis = q.new_zeros(0, n)
    for i, direction in enumerate(q):
        rest = direction - basis.T @ (basis @ direction)
        if float(rest.square().sum()) > INDEPENDENT:
            taken.append(i)
            basis = torch.cat([basis, F.normalize(rest, dim=0)[None]])
        if len(taken) == n:
            break
    return taken
