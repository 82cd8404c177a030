"""`bench run`: one defense against one attack, beside no defense."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import (
    add_device,
    add_problem_arguments,
    add_quiet,
    add_secret,
    data_dir,
    read_jobs,
    read_problem,
    read_secret,
    read_seeds,
    read_settings,
    read_words,
)
from fedarena.core.errors import UserError
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS

if TYPE_CHECKING:
    from fedarena.federation.spec import GroupSpec, TranscriptFolder
    from fedarena.records.results import GroupResult
    from fedarena.runs.pairing import Pairing

Report = Callable[[int, float, str], None]
"""(index of the training run, share done, what it is doing)."""


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
        help="a protocol, an aggregation rule, or both: dbcl, krum, dp-sgd+nnm+krum (see `bench list`); or a class of "
        "another library: flower:PATH.OF.STRATEGY, byzfl:CLASS (docs/interop.md)",
    )
    parser.add_argument(
        "--attack", required=True, help="an attack, for poisoning possibly wrapped: dlg, delayed+label-flip"
    )
    _add_threat(parser)
    add_problem_arguments(parser)
    parser.add_argument("--seeds", default="0", metavar="N,...", help="seeds, such as 0,1,2 (default: 0)")
    add_secret(parser)
    add_device(parser)
    parser.add_argument(
        "--jobs",
        metavar="N",
        help="worker processes (default: one a core, on a GPU as many as fit; no effect on results)",
    )
    parser.add_argument("--out", default="runs", metavar="FOLDER", help="records and pictures go here (default: runs)")
    parser.add_argument(
        "--save-transcript",
        metavar="FOLDER",
        help="what crossed the wires in the rounds that the attack reads goes here, as safetensors and JSON for other "
        "tools (docs/interop.md)",
    )
    parser.add_argument(
        "--with-truth",
        action="store_true",
        help="with --save-transcript: also the clients' samples, in files of their own, to judge a guess by",
    )
    parser.add_argument("--json", action="store_true", help='print {"records": [...]} and nothing else on stdout')
    add_quiet(parser)
    parser.set_defaults(run=run)


def _add_threat(parser: argparse.ArgumentParser) -> None:
    """Options that say who attacks, and what of the training."""
    parser.add_argument("--party", metavar="P,...", help=f"{', '.join(READERS)} (default: all that it applies to)")
    parser.add_argument("--form", metavar="F,...", help=f"{', '.join(FORMS)} (default: both)")
    parser.add_argument(
        "--knows", metavar="K,...", help=f"what corrupted clients know: {', '.join(KNOWLEDGE)} (default: the attack's)"
    )
    parser.add_argument(
        "--other-rounds",
        action="store_true",
        help="attack as many rounds elsewhere in the training, too, as suites do: a protocol may protect some rounds "
        "better than others",
    )


def run(args: argparse.Namespace) -> int:
    """Carry out the command; 1 if a trial failed, else 0."""
    pairing, groups = plan(args)
    jobs, folder = jobs_of(args), Path(args.out)
    with progress_bars(groups, args.quiet) as report:
        results = measure(groups, jobs, folder, report)
    from fedarena import goals
    from fedarena.cli.output.pairing import WIDTH, drawn, show, show_files
    from fedarena.cli.output.terminal import Terminal, stdout_width
    from fedarena.core.text.figures import save_png

    records = [record for result in results for record in result.records]
    defense, attack, goal = pairing.defense.label, pairing.attack.label, goals.of_attack(pairing.attack)
    picture = None
    if (figure := goal.figure(results, defense, attack)) is not None:
        picture = folder / f"{defense}-{attack}-{pairing.problem.dataset}.png".replace(":", "-")
        save_png(drawn(figure), picture)
    if args.json:
        print_json({"records": records})
    else:
        console = Terminal(width=stdout_width(WIDTH))
        show(console, goal.table(records, defense, attack), records, defense, attack)
        show_files(console, records, folder, picture, args.save_transcript)
    return 1 if any(r["status"] == "failed" for r in records) else 0


def jobs_of(args: argparse.Namespace) -> int:
    """The number of worker processes. Raises UserError."""
    from fedarena.runs.executors import usual_jobs

    return usual_jobs(args.device) if args.jobs is None else read_jobs(args.jobs)


def measure(groups: Sequence[GroupSpec], jobs: int, folder: Path | None, report: Report) -> list[GroupResult]:
    """Run the groups. Each trial's records and pictures are written at once, where there is a folder for them."""
    from fedarena.records.store import prepare, write
    from fedarena.runs.engine import run_groups

    if folder is None:
        return run_groups(groups, jobs, report)
    prepare(folder)
    return run_groups(groups, jobs, report, lambda records, pictures: write(records, pictures, folder))


def plan(args: argparse.Namespace) -> tuple[Pairing, list[GroupSpec]]:
    """The pairing that the arguments name, and its training runs. Raises UserError."""
    seeds, secret = read_seeds(args.seeds), read_secret(args.secret)
    from fedarena.federation import compose
    from fedarena.runs import pairing

    defenses, attacks = compose.defense_cards(args.defense), compose.attack_cards(args.attack)
    settings = read_settings(args, (*defenses, *attacks))
    attack = compose.parse(attacks, settings["attack"], settings)
    if secret is None:
        secret = token_hex(16) if compose.foreign("attack", attack) else ""
    planned = pairing.Pairing(
        defense=compose.parse(defenses, settings["defense"], settings),
        attack=attack,
        problem=read_problem(args, settings, (attacks[-1], defenses[0])),
        seeds=seeds,
        device=args.device,
        data_dir=data_dir(args),
        secret=secret,
        other_rounds=args.other_rounds,
    )
    wanted = pairing.Wanted(party=read_words(args.party), form=read_words(args.form), knows=read_words(args.knows))
    return planned, pairing.with_transcripts(pairing.plan(planned, wanted), _transcript_folder(args))


def _transcript_folder(args: argparse.Namespace) -> TranscriptFolder | None:
    """Where transcripts go; None: nowhere. Raises UserError."""
    from fedarena.federation.spec import TranscriptFolder

    if args.save_transcript is not None:
        return TranscriptFolder(Path(args.save_transcript), args.with_truth)
    if args.with_truth:
        raise UserError("option 'with-truth' does nothing without option 'save-transcript': give that one, too")
    return None


def name_of(group: GroupSpec) -> str:
    """The name of a run in its progress bar."""
    levels = [t.knows for t in group.threats if t.knows]
    under = f" under {group.attack.label} ({levels[0]})" if group.attack and levels else ""
    return f"{group.defense.label}{under}, seed {group.seed}"


class progress_bars:  # noqa: N801  (used like a function)
    """A progress bar for each training run on stderr; none when `quiet`."""

    def __init__(self, groups: Sequence[GroupSpec], quiet: bool) -> None:
        self.groups, self.quiet = groups, quiet

    def __enter__(self) -> Report:
        if self.quiet:
            return lambda i, share, text: None
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from fedarena.cli.output.terminal import Terminal

        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:3.0f} % {task.fields[what]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Terminal(file=sys.stderr),
        )
        names = [name_of(g) for g in self.groups]
        tasks = [self.bars.add_task(name, total=1.0, what="waiting") for name in names]
        self.bars.start()
        return lambda i, share, text: self.bars.update(tasks[i], completed=share, what=text)

    def __exit__(self, *exc: object) -> None:
        if not self.quiet:
            self.bars.stop()
