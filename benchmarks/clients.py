"""Local work of many clients: the fast forms against a plain PyTorch loop over clients.

MLP 784-200-200-10 (stacked form) with 10 and with 50 clients; small CNNs (side by side), and DBCL's (tight loop).
"""

from __future__ import annotations

from side_by_side import Row, alternate, faster, main
from work import check, fedarena_round, federation, plain_round

CASES = (
    *(("mlp", 10, 2.0), ("mlp", 50, 2.0)),
    *(("cnn", 10, 1.5), ("lenet-dlg", 10, 1.2), ("cnn-two-stage", 10, 1.0), ("lenet-baffle", 10, 1.0)),
    ("cnn-mnist", 4, None),
)


def measure(repetitions: int) -> list[Row]:
    """One row a case."""
    rows = []
    for model, clients, bar in CASES:
        f = federation(model, clients)
        ours, plain = fedarena_round(f), plain_round(f)
        check(f, ours, model)
        spent = alternate({"fedarena": ours, "plain loop": plain}, repetitions)
        rows.append(faster(f"{model}, {clients} clients", "fedarena", "plain loop", spent, at_least=bar))
    return rows


if __name__ == "__main__":
    main(__doc__, measure)
