"""Groups of clients that hold different classes, as on the dumbbell of He, Karimireddy and Jaggi (2022).

Clients in order form g groups of equal size, or of sizes that differ by one, and the classes in order are shared out
among them. Within a group samples are dealt uniformly.
"""

from __future__ import annotations

import numpy as np

from fedarena.core.errors import UserError
from fedarena.datasets.dataset import Labels, Shards, check_classes, check_clients
from fedarena.datasets.partitions.cards import ClassGroupsOptions


def split(labels: Labels, n_clients: int, rng: np.random.Generator, options: ClassGroupsOptions) -> Shards:
    """A random permutation of each group's samples, cut into equal shards; all shards of all groups have one size.

    Raises:
        UserError: numbers in place of classes, more groups than clients or classes, or fewer samples in a group than
            its clients are to get.
    """
    check_classes(labels, "class-groups")
    check_clients(labels, n_clients)
    classes, groups = np.unique(labels), options.groups
    if groups > min(n_clients, len(classes)):
        raise UserError(
            f"option 'partition.groups' is {groups}, allowed: at most the number of clients, {n_clients}, and that of "
            f"classes, {len(classes)}"
        )
    sizes = [len(group) for group in np.array_split(np.arange(n_clients), groups)]
    members = [rng.permutation(np.flatnonzero(np.isin(labels, own))) for own in np.array_split(classes, groups)]
    most = min(len(own) // size for own, size in zip(members, sizes, strict=True))
    samples = options.samples or most
    if not 1 <= samples <= most:
        name, value = ("partition.samples", samples) if samples else ("clients", n_clients)
        allowed = f"at most {most}" if samples else "as many as each get a training sample of their group's classes"
        raise UserError(f"option '{name}' is {value}, allowed with {groups} groups of classes: {allowed}")
    parts = zip(members, sizes, strict=True)
    return [shard for own, size in parts for shard in np.split(own[: size * samples], size)]
