"""`bench run`: one defense against one attack, beside no defense."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena.cli.common_args import add_device, add_quiet
from fedarena.cli.problem_args import (
    add_problem_arguments,
    data_dir,
    read_choices,
    read_problem,
    read_seeds,
    read_settings,
)
from fedarena.core.errors import UserError
from fedarena.core.threat import EVERYONE, FORMS, KNOWLEDGE, Form, Knowledge, Threat
from fedarena.problem.defaults import read_integer

if TYPE_CHECKING:
    from fedarena.core.card import Card
    from fedarena.federation.spec import GroupSpec


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="run one defense against one attack",
        description="Run a defense against an attack as every party and in every form that applies, beside no "
        "defense; print the table, write the records and a picture.",
    )
    parser.add_argument(
        "--defense",
        required=True,
        help="a protocol, an aggregation rule, or both: dbcl, krum, dp-sgd+nnm+krum (see `bench list`)",
    )
    parser.add_argument(
        "--attack", required=True, help="an attack, for poisoning possibly wrapped: dlg, delayed+label-flip"
    )
    parser.add_argument("--party", metavar="P,...", help=f"{', '.join(EVERYONE)} (default: all that it applies to)")
    parser.add_argument("--form", metavar="F,...", help=f"{', '.join(FORMS)} (default: both)")
    parser.add_argument(
        "--knows", metavar="K,...", help=f"what corrupted clients know: {', '.join(KNOWLEDGE)} (default: the attack's)"
    )
    add_problem_arguments(parser)
    parser.add_argument("--seeds", default="0", metavar="N,...", help="seeds, such as 0,1,2 (default: 0)")
    add_device(parser)
    parser.add_argument("--jobs", metavar="N", help="worker processes (default: one a core; no effect on results)")
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="records and pictures go here (default: runs)")
    parser.add_argument("--json", action="store_true", help='print {"records": [...]} and nothing else on stdout')
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command. 1 when a trial failed, else 0."""
    groups = plan(args)
    folder = Path(args.out)
    from fedarena import goals
    from fedarena.core.files import prepare_folder
    from fedarena.records.store import write
    from fedarena.runs.engine import run_groups
    from fedarena.runs.executors import cores

    jobs = cores() if args.jobs is None else read_integer("jobs", args.jobs, 1)
    prepare_folder(folder)
    prepare_folder(folder / "records")
    with progress_bars(groups, args.quiet) as report:
        results = run_groups(groups, jobs, report, lambda records, pictures: write(records, pictures, folder))
    records = [record for result in results for record in result.records]
    defense, attack = next((g.defense.label, g.attack.label) for g in groups if g.attack is not None)
    poisoned = any(record["knows"] for record in records)
    name = f"{defense}-{attack}-{groups[0].problem.dataset}.png"
    if poisoned:
        from fedarena.cli.output.poisoning import draw_curves, show_poisoning

        picture: Path | None = draw_curves(records, defense, attack, folder / name)
    else:
        picture = goals.find(records[0]["goal"]).draw(results, defense, attack, folder / name)
    if args.json:
        print(json.dumps({"records": records}, indent=2, allow_nan=False))
    elif poisoned:
        show_poisoning(records, defense, attack, folder, picture)
    else:
        from fedarena.cli.output.run import show

        show(records, defense, attack, folder, picture)
    return 1 if any(r["status"] == "failed" for r in records) else 0


def plan(args: argparse.Namespace) -> list[GroupSpec]:
    """The training runs that the arguments ask for; the undefended ones always among them. Raises UserError."""
    seeds = read_seeds(args.seeds)
    from fedarena import goals
    from fedarena.contracts.poisoning import Poisoning
    from fedarena.core.options import check_acting
    from fedarena.federation import compose
    from fedarena.federation.spec import GroupSpec, MethodSpec, threats
    from fedarena.problem.problem import build
    from fedarena.runs.checks import require_runnable, require_summable

    defenses, attacks = compose.defense_cards(args.defense), compose.attack_cards(args.attack)
    settings = read_settings(args, (*defenses, *attacks))
    defense = compose.parse(defenses, settings["defense"], settings)
    attack = compose.parse(attacks, settings["attack"], settings)
    made = compose.attack_class(attack)
    problem = read_problem(args, settings, (attacks[-1], defenses[0]))
    folder = data_dir(args)

    def check(seed: int) -> None:
        built = build(problem, seed, folder, args.device, compose.auxiliary(defense))
        protocol = compose.make_defense(defense, built.task)
        require_runnable(problem, built, protocol, attack)
        require_summable(protocol, built, seed)

    # What cannot run is refused before anything is started. Each seed has shards of its own.
    check(seeds[0])
    for seed in seeds[1:]:
        try:
            check(seed)
        except UserError as error:
            raise UserError(f"seed {seed}: {error}") from None

    def group(method: MethodSpec, attacked: MethodSpec | None, whom: tuple[Threat, ...], seed: int) -> GroupSpec:
        return GroupSpec(problem, method, attacked, whom, seed, args.device, folder)

    methods = list(dict.fromkeys((defense, MethodSpec(compose.PLAIN))))
    if issubclass(made, Poisoning):
        whom = poisoning_threats(args, attacks, compose.knowledge_levels(attack))
        clean = [replace(group(m, None, (), seed), probe=attack) for seed in seeds for m in methods]
        return clean + [group(m, attack, (threat,), seed) for seed in seeds for m in methods for threat in whom]
    for name in ("knows", "corrupted"):
        if getattr(args, name) is not None:
            raise UserError(f"option '{name}' is given, but {attack.label} reads and poisons nothing: leave it out")
    goal = goals.find(made.goal)
    parties = read_choices("party", args.party, goal.parties)
    forms = read_choices("form", args.form, FORMS)
    check_acting(attack.options, f"attack {attack.name}", parties, forms)
    return [
        group(m, attack, threats(parties, forms if m is defense else goal.undefended_in(forms)), seed)
        for seed in seeds
        for m in methods
    ]


def poisoning_threats(
    args: argparse.Namespace, cards: Sequence[Card], allowed: tuple[Knowledge, ...]
) -> tuple[Threat, ...]:
    """The corrupted clients, with each knowledge that is asked for. Raises UserError."""
    name = cards[-1].name
    for flag in ("party", "form"):
        if getattr(args, flag) is not None:
            raise UserError(f"option '{flag}' is given, but {name} acts as corrupted clients: see --knows")
    knows = read_choices("knows", args.knows, KNOWLEDGE) if args.knows is not None else allowed
    for one in knows:
        if one not in allowed:
            raise UserError(f"option 'knows' is '{one}', allowed for {name}: {', '.join(allowed)}")
    form: Form = "adaptive" if any(card.form == "adaptive" for card in cards) else "paper"
    return tuple(Threat("client", form, knows=one) for one in knows)


def name_of(group: GroupSpec) -> str:
    """What a progress bar calls a run."""
    knows = [t.knows for t in group.threats if t.knows]
    under = f" under {group.attack.label} ({knows[0]})" if group.attack and knows else ""
    return f"{group.defense.label}{under}, seed {group.seed}"


class progress_bars:  # noqa: N801  (used like a function)
    """A bar for each training run on stderr; silent when told so."""

    def __init__(self, groups: Sequence[GroupSpec], quiet: bool) -> None:
        self.groups, self.quiet = groups, quiet

    def __enter__(self) -> Callable[[int, float, str], None]:
        if self.quiet:
            return lambda i, share, text: None
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f} % {task.fields[what]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
        )
        names = [name_of(g) for g in self.groups]
        tasks = [self.bars.add_task(name, total=1.0, what="waiting") for name in names]
        self.bars.start()
        return lambda i, share, text: self.bars.update(tasks[i], completed=share, what=text)

    def __exit__(self, *exc: object) -> None:
        if not self.quiet:
            self.bars.stop()
