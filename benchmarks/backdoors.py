"""Backdoors: how often their triggers succeed, how long they outlive the attack, and which rules stop them.

    python benchmarks/backdoors.py [--tables success,lifespan,rules] [--seeds N,…]

Clients share the embedded digits by a Dirichlet law and train an MLP with FedAvg. A client of twenty holds about 70
samples, so that colluders who train on their own take batches of 16 and ten epochs at a rate of .1: with the defaults
they would take six steps a round. The window of an attack are the rounds 30 to 50.

- success: at the end of the window and after round 100, without a defense. DBA has its own federation, as its paper has
  it: four of the ten clients of a round attack, ten epochs at a rate of .05, without a factor.
- lifespan: Neurotoxin's minus that of the same attack without a mask, paired by seed, with the 95 % interval of
  Student's t, over 200 rounds after the attack, by the width of the network and the share that is masked. An upload has
  an honest one's weight: with five times as much no backdoor dies. Where a backdoor does not die, its lifespan is the
  rounds that were left, a lower bound.
- rules: success at the end of the window under FLAME, FoolsGold and FLDetector, in the plain form and in disguise.

Exits with 1 where, without a defense, a seed's trigger succeeds on less than .9 at the end of the window, but for
`window` alone, whose colluders train as honest clients do, and for A3FL and the rare samples of edge-case.
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
from fedarena.federation.triggered_inputs import success_rate, triggered_inputs
from fedarena.goals.metrics.lifespan import lifespan
from fedarena.problem.problem import build
from fedarena.problem.schedule import Schedule
from fedarena.problem.spec import ProblemSpec

Options = dict[str, str]

ENOUGH = 0.9
FIRST, AFTER = 30, 50
"""The attack acts from round FIRST on, and no more from round AFTER on."""
TRAINING: Options = {"epochs": "10", "lr": "0.1", "batch_size": "16"}


@dataclass(frozen=True)
class Federation:
    """Who trains what.

    Attributes:
        clients, rounds, epochs: their numbers; four clients are corrupted. alpha: of the Dirichlet law.
        width: of the MLP. rule: how the server aggregates.
    """

    clients: int = 20
    rounds: int = 100
    epochs: int = 2
    alpha: float = 0.5
    width: int = 32
    rule: str = "fedavg"

    def problem(self) -> ProblemSpec:
        """The problem."""
        return ProblemSpec(
            "digits",
            model="mlp",
            partition="dirichlet",
            clients=self.clients,
            corrupted=4,
            model_options=registry.find("model", "mlp").parse({"widths": str(self.width)}),
            partition_options=registry.find("partition", "dirichlet").parse(
                {"alpha": f"{self.alpha:g}", "min_size": "16"}
            ),
            schedule=Schedule(rounds=self.rounds, batch_size=16, lr=0.1, local_epochs=self.epochs, eval_every=2),
        )


TWENTY = Federation()
OF_DBA = Federation(clients=10, epochs=1)
MULTI_SHOT: Options = TRAINING | {"lr": "0.05", "model-replacement.alpha": "1", "model-replacement.scale": "1"}
"""DBA's colluders train plainly; model replacement with these options is no more than that."""
STRONG: Options = TRAINING | {"neurotoxin.scale": "5"}
"""Five is n/f, so that Neurotoxin's uploads weigh what those of model replacement do."""
PROJECTED: Options = TRAINING | {"model-replacement.alpha": "1", "model-replacement.ball": "1"}
"""The same by projection in place of a pull: PGD with replacement (Wang et al. 2020)."""
SUCCESS: tuple[tuple[str, Federation, Options], ...] = (
    ("window+dba", OF_DBA, {}),
    ("window+model-replacement+dba", OF_DBA, MULTI_SHOT),
    ("window+dba", TWENTY, {}),
    ("window+model-replacement+dba", TWENTY, TRAINING),
    ("window+neurotoxin+dba", TWENTY, STRONG),
    ("window+pixel-trigger", TWENTY, {}),
    ("window+model-replacement+pixel-trigger", TWENTY, TRAINING),
    ("window+neurotoxin+pixel-trigger", TWENTY, STRONG),
    ("window+model-replacement+a3fl", TWENTY, TRAINING),
    ("window+neurotoxin+a3fl", TWENTY, STRONG),
    ("window+model-replacement+edge-case", TWENTY, TRAINING),
    ("window+model-replacement+edge-case", TWENTY, PROJECTED),
)
WITHOUT_BAR = ("a3fl", "edge-case")
"""Triggers whose success is shown and held to nothing."""
LIVED = "window+neurotoxin+pixel-trigger"
WIDTHS, MASKED = (32, 128, 512), ("0.1", "0.3", "0.5")
MOVEMENT = "movement, 0.3"
"""The row whose mask follows the model's movement, as the text of the paper has it."""
RULES = ("fedavg", "flame", "foolsgold", "fldetector+mean")
DISGUISES = ("none", "cosine", "decorrelated")
ALPHAS = (0.5, 100.0)


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


def outcome(text: str, on: Federation, seed: int, options: Options) -> Outcome:
    """One federation under attack."""
    built = build(on.problem(), seed)
    defense = compose.make_defense(compose.parse_defense(on.rule), built.task)
    window = {"window.start": f"{FIRST / on.rounds:g}", "window.end": f"{AFTER / on.rounds:g}"}
    attack = compose.make_poisoning(compose.parse_attack(text, window | options), knowledge_of(built, defense, "own"))
    triggered = triggered_inputs(attack, built)
    run = federation.run(
        defense,
        built,
        Rng(seed).child("federation"),
        adversary=Adversary(attack, frozenset(built.corrupted), Rng(seed).child("attack")),
        probe=lambda models: success_rate(triggered, built, models)["attack_success_rate"],
    )
    success = [[p.rounds, p.probed] for p in run.curve if p.probed is not None]
    told = lifespan(success, attack.ends)
    stopped = next(s for t, s in success if t == attack.ends)
    bound = bool(told["lifespan_is_bound"])
    return Outcome(stopped, success[-1][1], run.accuracy, told["lifespan"], bound)


def succeeds(seeds: Sequence[int]) -> bool:
    """Print the table of success; whether every trigger succeeds on enough inputs when its attack stops."""
    print("| attack | clients | success at the window's end, lowest | mean | after round 100 | accuracy | lifespan |")
    print("|---|---|---|---|---|---|---|", flush=True)
    good = True
    for text, on, options in SUCCESS:
        found = [outcome(text, on, seed, options) for seed in seeds]
        low, bound = min(o.stopped for o in found), any(o.bound for o in found)
        good &= low >= ENOUGH or not options or text.endswith(WITHOUT_BAR)
        means = [fmean(getattr(o, name) for o in found) for name in ("stopped", "last", "accuracy")]
        numbers = " | ".join(f"{value:.2f}" for value in (low, *means))
        lived = f"{'≥ ' if bound else ''}{fmean(o.lived for o in found):.0f}"
        print(f"| {text} | {on.clients} | {numbers} | {lived} |", flush=True)
    return good


def lasts(seeds: Sequence[int]) -> None:
    """Print the table of lifespans."""
    print(f"\nLifespan of {LIVED}, in rounds.\n")
    print("| width | masked | by seed | minus without | 95 % interval |")
    print("|---|---|---|---|---|", flush=True)
    weak = TRAINING | {"neurotoxin.scale": "1"}
    for width in WIDTHS:
        on = Federation(rounds=250, width=width)
        plain = [outcome(LIVED, on, seed, weak | {"masked": "0"}) for seed in seeds]
        print(f"| {width} | 0 | {', '.join(map(_lived, plain))} | | |", flush=True)
        masks: dict[str, Options] = {share: {"masked": share} for share in MASKED}
        masks[MOVEMENT] = {"masked": "0.3", "reference": "movement"}
        for name, options in masks.items():
            found = [outcome(LIVED, on, seed, weak | options) for seed in seeds]
            more = mean([a.lived - b.lived for a, b in zip(found, plain, strict=True)])
            ends = "-" if more.half is None else f"{more.value - more.half:.1f} to {more.value + more.half:.1f}"
            print(f"| {width} | {name} | {', '.join(map(_lived, found))} | {more.value:+.1f} | {ends} |", flush=True)


def stopped_by_rules(seeds: Sequence[int]) -> None:
    """Print the table of rules and disguises."""
    print(f"\n| rule | Dirichlet | {' | '.join(DISGUISES)} | accuracy |")
    print(f"|---|---|{'---|' * len(DISGUISES)}---|", flush=True)
    for alpha in ALPHAS:
        for rule in RULES:
            on = Federation(alpha=alpha, width=64, rule=rule)
            text = "window+model-replacement+pixel-trigger"
            found = [[outcome(text, on, seed, TRAINING | {"disguise": d}) for seed in seeds] for d in DISGUISES]
            cells = [f"{fmean(o.stopped for o in row):.2f}" for row in found]
            accuracy = fmean(o.accuracy for o in found[0])
            print(f"| {rule} | {alpha:g} | {' | '.join(cells)} | {accuracy:.2f} |", flush=True)


def _lived(o: Outcome) -> str:
    return f"{'≥ ' if o.bound else ''}{o.lived:.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2,3,4", help="seeds (default: 0,1,2,3,4)")
    parser.add_argument("--tables", default="success,lifespan,rules", help="tables (default: all)")
    args = parser.parse_args()
    seeds, tables = [int(seed) for seed in args.seeds.split(",")], args.tables.split(",")
    good = succeeds(seeds) if "success" in tables else True
    if "lifespan" in tables:
        lasts(seeds)
    if "rules" in tables:
        stopped_by_rules(seeds)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
