"""How a training set is split among clients.

A partition is a function `split(labels, n_clients, rng, options)`:

    labels      classes [N], int64; numbers [N], float32, of a regression
    n_clients   number of clients
    rng         numpy generator; all randomness comes from it
    options     the options object of its card
    returns     one array of indices into `labels` for each client, none empty; disjoint and together all of
                0 … N − 1, except for `copies`, which repeats an error of PBPFL's code, and for `few` and
                `class-groups`, which leave samples out

A callable with an attribute `by = "domains"` divides by domain: it gets the domains [N] of the samples in place of
their classes, and data without domains are refused before it is called. One that needs classes refuses a
regression's numbers (`check.check_classes`).
"""

CARDS: dict[str, str] = {
    "pathological": "fedarena.datasets.partitions.cards:PATHOLOGICAL",
    "similarity": "fedarena.datasets.partitions.cards:SIMILARITY",
    "sorted": "fedarena.datasets.partitions.cards:SORTED",
    "algorithm4": "fedarena.datasets.partitions.cards:ALGORITHM4",
    "class-groups": "fedarena.datasets.partitions.cards:CLASS_GROUPS",
    "copies": "fedarena.datasets.partitions.cards:COPIES",
    "dirichlet": "fedarena.datasets.partitions.cards:DIRICHLET",
    "domains": "fedarena.datasets.partitions.cards:DOMAINS",
    "few": "fedarena.datasets.partitions.cards:FEW",
    "iid": "fedarena.datasets.partitions.cards:IID",
}
