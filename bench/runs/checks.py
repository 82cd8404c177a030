"""A check before training: do the uploads fit into the secure sum?"""

from __future__ import annotations

import math
from dataclasses import replace

from fedarena.contracts.defense import Defense
from fedarena.contracts.transcript import weights
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import rows
from fedarena.federation import rounds
from fedarena.problem.problem import Problem


def require_summable(defense: Defense, problem: Problem, seed: int) -> None:
    """Raise UserError where the uploads of the first round cannot be summed as the options of the secure sum say.

    It is the very round that a run with this seed begins with when everybody is honest. Nothing is played where there
    is nothing to refuse: without a secure sum, or with one that takes vectors of any size and any length.
    """
    secure = defense.secure
    if secure is None or (secure.repeat == 1 and math.isinf(secure.limit)):
        return
    one = replace(problem.task.schedule, rounds=1, eval_every=0)
    brief = replace(problem, task=replace(problem.task, schedule=one))
    try:
        played = rounds.run(defense, brief, Rng(seed).child("federation"), watch=(0,)).rounds
    except UserError:
        raise
    except Exception:  # a method's own mistake, which the run itself will make a record of
        return
    for r in played:  # none, where too few clients were left
        shares = weights(problem.task.sizes, r.participants).to(problem.device)
        secure.require_room(rows(r.ups) * (shares / shares.sum())[:, None])
