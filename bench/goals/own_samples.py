"""Samples that a curious client holds itself: what it says of them it need not have read from anybody."""

from __future__ import annotations

import torch
from torch import Tensor

from fedarena.core.threat import NotApplicable, Threat
from fedarena.problem.problem import Problem


def of_others(problem: Problem, threat: Threat, client: int) -> Tensor:
    """Indices of a client's training samples, without those that the attacker holds as well."""
    shard = problem.shards[client]
    if not threat.visibility.own or client == threat.client:
        return shard
    return shard[~torch.isin(shard, problem.shards[threat.client].to(shard.device))]


def classes_of_others(problem: Problem, threat: Threat) -> Tensor:
    """The labels of all training samples of clients other than the attacker; of all clients for other parties."""
    if not threat.visibility.own or len(problem.shards) < 2:
        return problem.y
    return torch.cat([problem.y[s] for c, s in enumerate(problem.shards) if c != threat.client])


def why_all_own(problem: Problem, threat: Threat) -> NotApplicable | None:
    """Why there is nothing to find out: the attacker holds every sample of every other client. None if it does not."""
    others = [c for c in range(len(problem.shards)) if c != threat.client]
    if not threat.visibility.own or not others or any(len(of_others(problem, threat, c)) for c in others):
        return None
    return NotApplicable("the client holds every sample that the others train on: there is nothing to be found out")
