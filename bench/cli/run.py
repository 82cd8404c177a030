"""`bench run`: one defense against one attack, beside no defense."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena import registry
from fedarena.cli.problem_args import (
    add_problem_arguments,
    data_dir,
    read_choices,
    read_integer,
    read_problem,
    read_seeds,
    read_settings,
)
from fedarena.threat import FORMS, PARTIES

if TYPE_CHECKING:
    from fedarena.spec import GroupSpec
    from fedarena.trial import GroupResult


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="run one defense against one attack",
        description="Run a defense against an attack as every party and in every form that applies, beside no "
        "defense; print the table, write the records and a picture.",
    )
    parser.add_argument("--defense", required=True, help="defense (see `bench list defense`)")
    parser.add_argument("--attack", required=True, help="attack (see `bench list attack`)")
    parser.add_argument("--party", metavar="P,...", help=f"{', '.join(PARTIES)} (default: all)")
    parser.add_argument("--form", metavar="F,...", help=f"{', '.join(FORMS)} (default: both)")
    add_problem_arguments(parser)
    parser.add_argument("--seeds", default="0", metavar="N,...", help="seeds, such as 0,1,2 (default: 0)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where to compute (default: cpu)")
    parser.add_argument("--jobs", metavar="N", help="worker processes (default: one a core; no effect on results)")
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="records and pictures go here (default: runs)")
    parser.add_argument("--json", action="store_true", help='print {"records": [...]} and nothing else on stdout')
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command. 1 when a trial failed, else 0."""
    groups = plan(args)
    folder = Path(args.out)
    from fedarena.engine import cores, run_groups
    from fedarena.records import prepare_folder, save

    jobs = cores() if args.jobs is None else read_integer("jobs", args.jobs, 1)
    prepare_folder(folder)
    prepare_folder(folder / "records")
    with progress_bars(groups, args.quiet) as report:
        results = run_groups(groups, jobs, report, finished=lambda record: save(record, folder / "records"))
    records = [record for result in results for record in result.records]
    picture = draw(results, args, folder)
    if args.json:
        print(json.dumps({"records": records}, indent=2, allow_nan=False))
    else:
        from fedarena.cli.run_output import show

        show(records, args.defense, args.attack, folder, picture)
    return 1 if any(r["status"] == "failed" for r in records) else 0


def plan(args: argparse.Namespace) -> list[GroupSpec]:
    """The training runs that the arguments ask for; FedAvg's always among them. Raises UserError."""
    defense, attack = registry.find("defense", args.defense), registry.find("attack", args.attack)
    parties = read_choices("party", args.party, PARTIES)
    forms = read_choices("form", args.form, FORMS)
    seeds = read_seeds(args.seeds)
    settings = read_settings(args)
    options = defense.parse(settings["defense"]), attack.parse(settings["attack"])
    problem = read_problem(args, settings)
    folder = data_dir(args)
    from fedarena.problem import build
    from fedarena.spec import GroupSpec, MethodSpec, threats

    # What cannot run is refused before anything is started.
    defense.load()(options[0], build(problem, seeds[0], folder, args.device).task)
    attack.load()(options[1]).watch(problem.schedule)
    defended, attacked = MethodSpec(defense.name, options[0]), MethodSpec(attack.name, options[1])
    groups = []
    for seed in seeds:
        groups.append(GroupSpec(problem, defended, attacked, threats(parties, forms), seed, args.device, folder))
        if defense.name != "fedavg":
            plain = threats(parties, ("adaptive",))
            groups.append(GroupSpec(problem, MethodSpec("fedavg"), attacked, plain, seed, args.device, folder))
    return groups


def draw(results: Sequence[GroupResult], args: argparse.Namespace, folder: Path) -> Path | None:
    """Originals and reconstructions of the first seed, by party; None when nothing was reconstructed."""
    from fedarena.figures import Strip, gallery
    from fedarena.summary import COLUMNS, table

    first = results[0].spec.seed
    records = [r for result in results for r in result.records if r["seed"] == first]
    pictures = {g.key: g for result in results for g in result.galleries}
    strips: list[Strip] = []
    for party, cells in table(records, args.defense).items():
        shown = [(name, cells[name]) for name in COLUMNS]
        originals = [pictures[c.keys[0]].originals for _, c in shown if c is not None and c.keys[0] in pictures]
        if not originals:
            continue
        strips.append(Strip(f"{party}: originals", originals[0], gap=bool(strips)))
        for name, c in shown:
            if c is not None:
                images = pictures[c.keys[0]].guesses if c.keys[0] in pictures else None
                strips.append(Strip(name, images, f"{c.status}: {c.reason}"))
    if not strips or strips[0].images is None or strips[0].images.dim() != 4:
        return None
    path = folder / f"{args.defense}-{args.attack}-{args.dataset}.png"
    gallery(strips, f"{args.defense} against {args.attack} on {args.dataset}, seed {first}", path)
    return path


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
        names = [f"{g.defense.name}, seed {g.seed}" for g in self.groups]
        tasks = [self.bars.add_task(name, total=1.0, what="waiting") for name in names]
        self.bars.start()
        return lambda i, share, text: self.bars.update(tasks[i], completed=share, what=text)

    def __exit__(self, *exc: object) -> None:
        if not self.quiet:
            self.bars.stop()
