"""Feature skew: every client holds data of one domain (BAFFLE's OfficeHome: 4 domains, 10 clients each)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedarena.core.errors import UserError
from fedarena.core.options import NoOptions
from fedarena.datasets.dataset import Labels, Shards, check_clients


@dataclass(frozen=True)
class ByDomain:
    """The partition; it gets domains [N] in place of classes."""

    by: ClassVar[str] = "domains"

    def __call__(self, domains: Labels, n_clients: int, rng: np.random.Generator, options: NoOptions) -> Shards:
        """Clients take turns: client c holds domain c mod D, so that domains differ by at most one client.

        A domain's samples are shuffled and cut into as many shards, whose sizes differ by at most one. Domains of
        different sizes give clients of different sizes.

        Raises:
            UserError: fewer clients than domains, or a domain with fewer samples than clients.
        """
        check_clients(domains, n_clients)
        present = np.unique(domains)
        if n_clients < len(present):
            raise UserError(
                f"option 'clients' is {n_clients}, but partition domains gives every client data of one of "
                f"{len(present)} domains, allowed: {len(present)} or more"
            )
        shards: Shards = [np.empty(0, np.int64)] * n_clients
        for turn, domain in enumerate(present):
            members, clients = rng.permutation(np.flatnonzero(domains == domain)), range(turn, n_clients, len(present))
            if len(members) < len(clients):
                raise UserError(
                    f"option 'clients' is {n_clients}, of which {len(clients)} would share domain {domain}, but that "
                    f"has only {len(members)} training samples: use fewer clients"
                )
            for client, shard in zip(clients, np.array_split(members, len(clients)), strict=True):
                shards[client] = shard
        return shards


split = ByDomain()
