"""Backdoors without a defense: how often their triggers succeed, and how long they outlive the attack.

    python benchmarks/backdoors.py [--seeds N,…] [--masked SHARE,…]

Twenty clients, four of them corrupted, share the embedded digits by a Dirichlet law of .5 and train an MLP with FedAvg
for 100 rounds of two local epochs. A client holds about 70 samples, so that colluders who train on their own take
batches of 16 and ten epochs at a rate of .1: with the defaults they would take six steps a round.

The first table has the success of each attack at the end of its window, rounds 30 to 50, and after the last round. The
second has the lifespan of Neurotoxin minus that of the same attack without a mask, paired by seed, with the 95 %
interval of Student's t. Where a backdoor does not die, its lifespan is the rounds that were left, a lower bound.

Exits with 1 where a seed's trigger succeeds on less than .9 at the end of the window, but for `window` alone, whose
colluders train as honest clients do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from fedarena.core import registry
from fedarena.core.rng import Rng
from fedarena.core.text.numbers import mean
from fedarena.federation import compose
from fedarena.federation import rounds as federation
from fedarena.federation.adversary import Adversary, knowledge_of
from fedarena.federation.integrity import success_rate
from fedarena.federation.spec import MethodSpec
from fedarena.goals.metrics.lifespan import lifespan
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

ENOUGH = 0.9
WINDOW = {"window.start": "0.3", "window.end": "0.5"}
TRIGGERS = ("dba", "pixel-trigger")
TRAINING = {"epochs": "10", "lr": "0.1", "batch_size": "16"}
FORMS: dict[str, dict[str, str]] = {
    "window": {},
    "window+model-replacement": TRAINING,
    "window+neurotoxin": TRAINING | {"neurotoxin.scale": "5"},
}
"""Form → options. Five is n/f, so that Neurotoxin's uploads weigh what those of model replacement do."""
WEAK = TRAINING | {"neurotoxin.scale": "1"}
"""In the second table an upload has an honest one's weight: with five, no backdoor dies in 50 rounds."""
LIVED = "pixel-trigger"
"""The trigger of the second table."""


@dataclass(frozen=True)
class Outcome:
    """What came of one run.

    Attributes:
        stopped, last: success at the end of the window and after the last round. accuracy: after the last round.
        lived: the lifespan. bound: whether it is a lower bound.
    """

    stopped: float
    last: float
    accuracy: float
    lived: float
    bound: bool


def problem() -> ProblemSpec:
    """The federation."""
    return ProblemSpec(
        "digits",
        model="mlp",
        partition="dirichlet",
        clients=20,
        corrupted=4,
        model_options=registry.find("model", "mlp").parse({"widths": "32"}),
        partition_options=registry.find("partition", "dirichlet").parse({"alpha": "0.5", "min_size": "16"}),
        schedule=Schedule(rounds=100, batch_size=16, lr=0.1, local_epochs=2, eval_every=2),
    )


def outcome(text: str, seed: int, **options: str) -> Outcome:
    """One federation under attack."""
    built = build(problem(), seed)
    defense = compose.make_defense(MethodSpec("fedavg"), built.task)
    attack = compose.make_poisoning(compose.parse_attack(text, WINDOW | options), knowledge_of(built, defense, "own"))
    run = federation.run(
        defense,
        built,
        Rng(seed).child("federation"),
        adversary=Adversary(attack, frozenset(built.corrupted), Rng(seed).child("attack")),
        probe=lambda params: success_rate(attack, built, params)["attack_success_rate"],
    )
    success = [[p.rounds, p.probed] for p in run.curve if p.probed is not None]
    told = lifespan(success, attack.ends)
    stopped = next(s for t, s in success if t == attack.ends)
    bound = bool(told["lifespan_is_bound"])
    return Outcome(stopped, success[-1][1], run.accuracy, told["lifespan"], bound)


def succeeds(seeds: Sequence[int]) -> bool:
    """Print the first table; whether every trigger succeeds on enough inputs when its attack stops."""
    print("| attack | success at the window's end, lowest | mean | after the last round | accuracy | lifespan |")
    print("|---|---|---|---|---|---|", flush=True)
    good = True
    for trigger in TRIGGERS:
        for form, options in FORMS.items():
            found = [outcome(f"{form}+{trigger}", seed, **options) for seed in seeds]
            low, bound = min(o.stopped for o in found), any(o.bound for o in found)
            good &= low >= ENOUGH or not options
            means = [fmean(getattr(o, name) for o in found) for name in ("stopped", "last", "accuracy")]
            text = " | ".join(f"{value:.2f}" for value in (low, *means))
            print(
                f"| {form}+{trigger} | {text} | {'≥ ' if bound else ''}{fmean(o.lived for o in found):.0f} |",
                flush=True,
            )
    return good


def lasts(seeds: Sequence[int], shares: Sequence[str]) -> None:
    """Print the second table."""
    name, options = f"window+neurotoxin+{LIVED}", WEAK
    plain = [outcome(name, seed, **options, masked="0") for seed in seeds]
    print(f"\nLifespan of {name}; without a mask: {', '.join(map(_lived, plain))} rounds by seed.\n")
    print("| masked | by seed | minus without | 95 % interval |")
    print("|---|---|---|---|", flush=True)
    for share in shares:
        found = [outcome(name, seed, **options, masked=share) for seed in seeds]
        more = mean([a.lived - b.lived for a, b in zip(found, plain, strict=True)])
        ends = "-" if more.half is None else f"{more.value - more.half:.1f} to {more.value + more.half:.1f}"
        print(f"| {share} | {', '.join(map(_lived, found))} | {more.value:+.1f} | {ends} |", flush=True)


def _lived(o: Outcome) -> str:
    return f"{'≥ ' if o.bound else ''}{o.lived:.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2,3,4", help="seeds (default: 0,1,2,3,4)")
    parser.add_argument("--masked", default="0.01,0.1,0.3", help="shares that Neurotoxin leaves alone")
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    good = succeeds(seeds)
    lasts(seeds, args.masked.split(","))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
