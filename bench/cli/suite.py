"""`bench suite`: plan and run whole matrices of trials."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import (
    add_data_dir,
    add_json,
    add_plugin,
    add_quiet,
    add_secret,
    data_dir,
    read_jobs,
    read_secret,
    read_seeds,
)
from fedarena.core.errors import UserError

if TYPE_CHECKING:
    from fedarena.records.store import Store
    from fedarena.runs.executors import Executor
    from fedarena.runs.suite.plan import Plan
    from fedarena.runs.suite.run import Outcome
    from fedarena.runs.suite.suite import Suite


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its three verbs."""
    parser = commands.add_parser("suite", help="plan and run a whole matrix of defenses and attacks")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="the suites that come with the package")
    add_json(listing)
    listing.set_defaults(run=run_list)
    planning = verbs.add_parser(
        "plan",
        help="what a suite would run",
        description="Say what a suite would run: its cells, what cannot be run or cannot start and why, what is in the "
        "folder already, and how long the rest may take. Measures nothing.",
    )
    running = verbs.add_parser(
        "run",
        help="run what is missing of a suite",
        description="Measure what is missing in the folder. Interrupted or killed, it goes on where it stopped.",
    )
    for verb in (planning, running):
        verb.add_argument("suite", metavar="SUITE", help="a name that `bench suite list` prints, or a .toml file")
        verb.add_argument("--seeds", metavar="N,...", help="seeds in place of the suite's own")
        add_secret(verb)
        add_data_dir(verb)
        add_plugin(verb)
        verb.add_argument("--out", metavar="FOLDER", help="records go here (default: runs/SUITE)")
        add_json(verb)
        add_quiet(verb)
    running.add_argument("--jobs", metavar="N", help="work at once (default: one a core; no effect on results)")
    running.add_argument(
        "--engine", default="local", choices=("local", "ray"), help="processes of this machine, or a Ray cluster"
    )
    running.add_argument("--address", metavar="A", help="of the Ray cluster's head, such as auto or HOST:6379")
    running.add_argument("--fresh", action="store_true", help="measure everything again, whatever is in the folder")
    planning.set_defaults(run=run_plan)
    running.set_defaults(run=run_run)


def run_list(args: argparse.Namespace) -> int:
    """Print every suite."""
    from fedarena.runs.suite.suite import load, names

    suites = [load(name) for name in names()]
    if args.json:
        print_json({"suites": [_facts(suite) for suite in suites]})
        return 0
    from rich import box
    from rich.table import Table

    from fedarena.cli.output.terminal import Terminal, stdout_width

    table = Table(box=box.SIMPLE_HEAD)
    for column in ("suite", "what it is", "data", "seeds", "minutes on two cores"):
        table.add_column(column)
    for suite in suites:
        data = ", ".join(dict.fromkeys(p.named["dataset"] for p in suite.problems.values()))
        minutes = "-" if suite.minutes is None else f"{suite.minutes:g}"
        table.add_row(suite.name, f"{suite.title}. {suite.about}", data, str(len(suite.seeds)), minutes)
    Terminal(width=stdout_width(120)).print(table)
    return 0


def _facts(suite: Suite) -> dict[str, Any]:
    facts = ("name", "title", "about", "seeds", "minutes")
    return {name: getattr(suite, name) for name in facts} | {"problems": [*suite.problems]}


def run_plan(args: argparse.Namespace) -> int:
    """Print the plan. Raises UserError after printing if no trial can be run."""
    from fedarena.cli.output.suite import show_plan
    from fedarena.records.store import Store
    from fedarena.runs.suite.forecast import forecast
    from fedarena.runs.suite.plan import require_trials

    suite, folder, plan = _read(args)
    store = Store(folder)
    expected = forecast(suite, plan, store)
    doubts = _doubts(args, suite, plan, store)
    if args.json:
        trials = [
            vars(t) | {"name": [*t.name], "there": bool(store.trial(t.key)), "expected": doubts.get(t.name, "")}
            for t in plan.trials
        ]
        facts = _facts(suite) | {"seeds": plan.seeds, "digest": plan.digest}
        print_json(facts | {"trials": trials, "expected_seconds": expected.seconds}, indent=1)
    else:
        show_plan(suite, plan, store, expected, folder, doubts)
    require_trials(plan)
    return 0


def _doubts(args: argparse.Namespace, suite: Suite, plan: Plan, store: Store) -> dict[tuple[str, ...], str]:
    """Name → reason of the trials without records that will probably be n/a."""
    open_ones = {t.name for t in plan.trials if not t.refused and not store.trial(t.key)}
    if not open_ones:
        return {}
    from fedarena.cli.output.suite_progress import progress
    from fedarena.runs.suite.expected import expected
    from fedarena.runs.suite.trials import trials_of

    trials = [t for t in trials_of(suite, plan.seeds, data_dir(args), plan.secret) if t.name in open_ones]
    with progress(args.quiet, "checking which attacks can start") as report_progress:
        return expected(trials, lambda share, text: report_progress(round(100 * share), 100, text, None))


def run_run(args: argparse.Namespace) -> int:
    """Run the suite; 1 if a trial failed or was given up, otherwise 0. Raises UserError if no trial can be run."""
    return _close(args, *measure(args))


def measure(
    args: argparse.Namespace, listener: Callable[[float, str], object] | None = None
) -> tuple[Suite, Plan, Path, Outcome]:
    """Run what is missing of the suite. Raises UserError if no trial can be run.

    Args:
        listener: called with the share of the trials that is done, and the one that was done last. What it raises ends
            the run.
    """
    if args.address is not None and args.engine != "ray":
        raise UserError("option 'address' is given, but the engine is local: add --engine ray, or leave it out")
    jobs = None if args.jobs is None else read_jobs(args.jobs)
    from fedarena.cli.output.suite_progress import progress
    from fedarena.runs.executors import executor
    from fedarena.runs.suite.plan import require_trials
    from fedarena.runs.suite.run import run_suite

    with ExitStack() as stack:

        @cache
        def open_executor() -> Executor:
            return stack.enter_context(executor(args.engine, jobs, args.address))

        suite, folder, plan = _read(args, lambda: open_executor().warm())
        require_trials(plan)
        with progress(args.quiet, "trials") as bar:

            def told(done: int, total: int, text: str, left: float | None) -> None:
                bar(done, total, text, left)
                if listener is not None:
                    listener(done / total, text)

            outcome = run_suite(suite, plan, folder, data_dir(args), open_executor, args.fresh, told, _warn)
    return suite, plan, folder, outcome


def _warn(note: str) -> None:
    print(note, file=sys.stderr)


def _close(args: argparse.Namespace, suite: Suite, plan: Plan, folder: Path, outcome: Outcome) -> int:
    store = outcome.store
    store.refresh()  # other processes may have finished trials meanwhile
    records = [r for t in plan.trials if not t.refused for r in store.trial(t.key)]
    counts = Counter(r["status"] for r in records)
    if args.json:
        facts = {"suite": suite.name, "folder": str(folder), "measured": outcome.done, "there": outcome.there}
        print_json({**facts, "refused": outcome.refused, "lost": outcome.lost, "records": counts}, indent=1)
    else:
        from fedarena.cli.output.suite import show_outcome

        show_outcome(args.suite, outcome, records)
    return 1 if outcome.lost or counts["failed"] else 0


def _read(args: argparse.Namespace, before: Callable[[], object] = lambda: None) -> tuple[Suite, Path, Plan]:
    """Suite, folder and plan.

    Args:
        before: called first if the plan must be made, which takes seconds.
    """
    from fedarena.cli.output.suite_progress import progress
    from fedarena.runs.suite.run import plan_of
    from fedarena.runs.suite.suite import load

    suite = load(args.suite)
    seeds = suite.seeds if args.seeds is None else read_seeds(args.seeds)
    folder = Path(args.out) if args.out else Path("runs") / suite.name
    if folder.exists() and not folder.is_dir():
        raise UserError(f"option 'out' is {folder}, which is not a folder")
    with progress(args.quiet, "checking what can be run") as report_progress:

        def looked(share: float, text: str) -> None:
            report_progress(round(100 * share), 100, text, None)

        plan = plan_of(suite, seeds, folder, data_dir(args), before, looked, read_secret(args.secret))
    return suite, folder, plan
