"""What `bench suite` prints."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from fedarena.cli.suite_progress import span
from fedarena.records import Record
from fedarena.store import Store
from fedarena.suite.forecast import Forecast
from fedarena.suite.plan import Plan
from fedarena.suite.run import Outcome
from fedarena.suite.suite import Suite


def show_plan(suite: Suite, plan: Plan, store: Store, expected: Forecast, folder: Path) -> None:
    """One line a problem and attack: against how many defenses, in which threats, and how much of it is there."""
    console = _console()
    console.print(f"[bold]{suite.title}[/bold] ({len(plan.seeds)} seeds: {', '.join(map(str, plan.seeds))})")
    if suite.about:
        console.print(suite.about, markup=False, highlight=False)
    view = Table(box=box.SIMPLE_HEAD)
    for column in ("problem", "attack", "defenses", "threats", "trials", "there", "n/a"):
        view.add_column(column)
    done = {t.key for t in plan.trials if t.key and store.trial(t.key)}
    refused: dict[str, list[str]] = {}
    for problem, attack in dict.fromkeys((t.problem, t.attack) for t in plan.trials):
        mine = [t for t in plan.trials if (t.problem, t.attack) == (problem, attack)]
        threats = dict.fromkeys(f"{t.knows or t.party} ({t.form})" for t in mine if t.attack != "none")
        away = [t for t in mine if t.refused]
        for t in away:
            refused.setdefault(t.refused, []).append(f"{t.attack} on {t.defense}")
        stopped = sum(any(r["status"] == "n/a" for r in store.trial(t.key)) for t in mine if t.key)
        view.add_row(
            problem,
            "(nobody attacks)" if attack == "none" else attack,
            str(len({t.defense for t in mine})),
            ", ".join(threats),
            str(len(mine)),
            str(sum(t.key in done for t in mine)),
            str(len(away) + stopped) if away or stopped else "",
        )
    console.print(view)
    for why, where in refused.items():
        console.print(f"n/a: {', '.join(dict.fromkeys(where))}: {why}", markup=False, highlight=False)
    for note in store.notes():
        console.print(note, markup=False, highlight=False)
    console.print(f"{len(plan.trials)} trials, {len(done)} of them in {folder}. {_time(expected)}", highlight=False)


def _time(expected: Forecast) -> str:
    if not expected.missing:
        return "Nothing is left to do."
    if expected.seconds is None:
        return f"Time for the {expected.missing} others: not known before some are measured."
    known = f", {expected.measured} of them seen on another seed" if expected.measured else ""
    return (
        f"The {expected.missing} others may take {span(expected.seconds)} of one core, without loading and training "
        f"that they share (judged by {expected.source}{known})."
        if expected.source.startswith("what")
        else f"The {expected.missing} others may take {span(expected.seconds)} of one core ({expected.source})."
    )


def show_outcome(asked: str, folder: Path, store: Store, outcome: Outcome, records: Sequence[Record]) -> None:
    """What was done, what is missing and why, and what to do next."""
    console = _console()
    counts = Counter(r["status"] for r in records)
    told = ", ".join(f"{n:,} {status}" for status, n in sorted(counts.items(), key=lambda item: -item[1]))
    console.print(
        f"{outcome.done:,} trials measured, {outcome.there:,} were there. Records of the suite: {told or 'none'}.",
        highlight=False,
    )
    failed: dict[str, list[str]] = {}
    for r in records:
        if r["status"] in ("failed", "diverged"):
            who = f"{r['attack']} on {r['defense']}, seed {r['seed']}"
            failed.setdefault(f"{r['status']}: {r['reason']}", []).append(who)
    for why, where in failed.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        console.print(f"{where[0]}{more}: {why}", markup=False, highlight=False)
    for where_, why in outcome.lost.items():
        console.print(f"not measured: {where_}: {why}", markup=False, highlight=False)
    if outcome.refused:
        console.print(f"{outcome.refused} trials cannot be run: see bench suite plan {asked}", highlight=False)
    for note in store.notes():
        console.print(note, markup=False, highlight=False)
    console.print(f"Records: {folder / 'records'}. Next: bench leaderboard {folder}", markup=False, highlight=False)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 120)
