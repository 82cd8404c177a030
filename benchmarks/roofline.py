"""Where the time of a client's step goes, and what is left to be won, beside the machine's own rate of products.

One step of plain SGD on a batch of ten random images, as a plain PyTorch loop takes it, on one thread. Its time is in
convolutions and matrix products, in other operations on tensors (activations, pooling, normalisation, the optimiser),
or outside of both: Python, autograd and dispatch, which is what a faster form can save by taking clients together.
*at the least* is what the products would take at the rate of a large matrix product on this machine. *ours* is a step
of one round of `fedavg` with four clients. *channels last* is the plain step with another order of pixels in memory,
which changes the last bits of results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from side_by_side import machine
from tabulate import tabulate
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from work import BATCH, LR, SHAPE, STEPS, Federation, fedarena_round, federation

CLIENTS = 4
COLOUR = (3, 32, 32)
CASES = (
    ("mlp", SHAPE),
    ("lenet-dlg", SHAPE),
    ("cnn-two-stage", SHAPE),
    ("cnn-mnist", SHAPE),
    ("lenet-baffle", SHAPE),
    ("cnn-cifar10", COLOUR),
    ("resnet", COLOUR),
)
PRODUCTS = ("convolution", "mm", "bmm", "baddbmm")
"""Words of the names of operations that are products."""


@dataclass(frozen=True)
class Row:
    """One network.

    Attributes:
        megaflops: of a step's products, forward and backward; a multiplication and an addition are two.
        plain_ms, ours_ms, last_ms: CPU milliseconds of a step: the plain loop's, ours, and with channels last.
        least_ms: what the products take at the machine's rate.
        products, others, outside: shares of the plain step's time.
    """

    model: str
    megaflops: float
    plain_ms: float
    ours_ms: float
    last_ms: float
    least_ms: float
    products: float
    others: float
    outside: float


def timed(run: Callable[[], object], repetitions: int) -> float:
    """Median CPU seconds, after two runs that do not count."""
    run(), run()
    spent = []
    for _ in range(repetitions):
        began = time.process_time()
        run()
        spent.append(time.process_time() - began)
    return statistics.median(spent)


def rate_of_products(repetitions: int) -> float:
    """Floating-point operations a second of the fastest of three square matrix products."""
    rates = []
    for n in (256, 512, 1024):
        a, b = torch.rand(n, n), torch.rand(n, n)
        rates.append(2 * n**3 / timed(lambda a=a, b=b: a @ b, repetitions))  # type: ignore[misc]
    return max(rates)


def measured(name: str, shape: tuple[int, ...], rate: float, repetitions: int) -> Row:
    """One network's row."""
    f = federation(name, CLIENTS, shape)
    step = plain_step(f, torch.contiguous_format)
    with FlopCounterMode(display=False) as counter:
        step()
    plain = timed(step, repetitions)
    products, others = shares(step)
    ours = timed(fedarena_round(f), max(3, repetitions // 5)) / (CLIENTS * STEPS)
    flops = counter.get_total_flops()
    return Row(
        model=name,
        megaflops=flops / 1e6,
        plain_ms=plain * 1e3,
        ours_ms=ours * 1e3,
        last_ms=timed(plain_step(f, torch.channels_last), repetitions) * 1e3,
        least_ms=flops / rate * 1e3,
        products=products,
        others=others,
        outside=max(0.0, 1 - products - others),
    )


def plain_step(f: Federation, order: torch.memory_format) -> Callable[[], None]:
    """A step of the plain loop on one batch, with an order of pixels in memory."""
    model = f.model().to(memory_format=order)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), LR)
    x, y = f.x[0, :BATCH].contiguous(memory_format=order), f.y[0, :BATCH]

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def shares(step: Callable[[], None], times: int = 30) -> tuple[float, float]:
    """The shares of a step's time in products and in other operations, as the profiler sees them."""
    step()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        began = time.perf_counter()  # the profiler counts so, too
        for _ in range(times):
            step()
        whole = (time.perf_counter() - began) * 1e6
    own = {event.key: event.self_cpu_time_total for event in seen.key_averages() if event.key.startswith("aten::")}
    products = sum(spent for name, spent in own.items() if any(word in name for word in PRODUCTS))
    return products / whole, (sum(own.values()) - products) / whole


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=25, help="steps of each network (default: 25)")
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rate = rate_of_products(given.repetitions)
    rows = [measured(name, shape, rate, given.repetitions) for name, shape in CASES]
    if given.json:
        print(json.dumps({"machine": machine(), "gigaflops": rate / 1e9, "rows": [asdict(r) for r in rows]}, indent=2))
        return
    print(", ".join(f"{k} {v}" for k, v in machine().items()) + f"; products at {rate / 1e9:.0f} gigaflops\n")
    cells = [
        (
            r.model,
            f"{r.megaflops:.1f}",
            f"{r.plain_ms:.2f}",
            f"{r.ours_ms:.2f}",
            f"{r.last_ms:.2f}",
            f"{r.least_ms:.2f}",
            f"{r.products:.0%}",
            f"{r.others:.0%}",
            f"{r.outside:.0%}",
        )
        for r in rows
    ]
    times = ("plain ms", "ours ms", "channels last ms", "at the least ms")
    heads = ("network", "megaflops", *times, "products", "other operations", "outside")
    print(tabulate(cells, headers=heads, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
