"""How many samples at a time a client of BAFFLE can evaluate within its memory."""

from __future__ import annotations

import torch

from fedarena.defenses.baffle import forward_passes as forwards
from fedarena.defenses.baffle.card import Options
from fedarena.defenses.baffle.check_options import FORMATS
from fedarena.problem.task import Batch, Task


def rows_that_fit(options: Options, task: Task) -> int | None:
    """How many samples of a batch are evaluated at a time; None (as many as are fast) if memory has no limit.

    Raises:
        UserError: not even one sample fits.
    """
    schedule = task.schedule
    if schedule.client_memory is None:
        return None
    w = {name: p.detach() for name, p in task.model.named_parameters()}
    n, place = sum(p.numel() for p in w.values()), next(iter(w.values())).device
    x = torch.zeros(1, schedule.batch_size, *task.input_shape, device=place)
    batch = Batch(x, torch.zeros(1, schedule.batch_size, dtype=torch.int64, device=place))
    further = 16 * options.directions + 64  # the K results, the seed
    if not schedule.fedsgd:
        further += 40 * n  # W_local twice, ĝ and the direction behind it, Adam's moments and its step
        further += 8 * n if options.optimizer_state == "kept" else 0  # those of the round before
    elif options.downlink == "scalars":
        # The model of the round before, ĝ or the direction behind it; the optimiser's moments, old and new.
        further += (24 if schedule.server_optimizer == "adam" else 8) * n
    limit = int(schedule.client_memory * 1e6)
    return forwards.client_rows(task, w, batch, options.scheme, FORMATS[options.precision], limit, further)
