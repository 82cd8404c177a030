"""What `bench suite` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fedarena.cli.output.rows import longest_word
from fedarena.cli.output.suite_progress import span
from fedarena.cli.output.terminal import Terminal, stdout_width
from fedarena.core.text.numbers import plural
from fedarena.records.schema import Record
from fedarena.records.store import Store
from fedarena.runs.suite.forecast import Forecast
from fedarena.runs.suite.plan import Plan, Planned
from fedarena.runs.suite.run import Outcome
from fedarena.runs.suite.suite import Suite


def show_plan(
    suite: Suite, plan: Plan, store: Store, expected: Forecast, folder: Path, doubts: Mapping[tuple[str, ...], str]
) -> None:
    """Print a line for each problem and attack: its defenses, its threats, and how much of it is there; then what is
    n/a and why.

    Args:
        doubts: why trials that are not measured will most likely be n/a, by name.
    """
    console = _console()
    seeds = ", ".join(map(str, plan.seeds))
    several = "seed" if len(plan.seeds) == 1 else f"{len(plan.seeds)} seeds:"
    console.print(f"[bold]{suite.title}[/bold] ({several} {seeds})")
    if suite.about:
        console.print(suite.about, markup=False, highlight=False)
    done = {t.key for t in plan.trials if t.key and store.trial(t.key)}
    reasons = {t.name: why for t in plan.trials if (why := _not_applicable(t, store, doubts))}
    console.print(_plan_table(plan, done, reasons))
    if reasons:
        _show_reasons(console, [t for t in plan.trials if t.name in reasons], reasons)
    for note in store.notes():
        console.print(note, markup=False, highlight=False)
    console.print(
        f"{plural(len(plan.trials), 'trial')}, {len(done)} of them in {folder}. {_rest(plan, expected)}",
        highlight=False,
    )


def _plan_table(plan: Plan, done: Collection[str], reasons: Collection[tuple[str, ...]]) -> Table:
    """A table with a line for each problem and attack.

    Args:
        done: the keys of the trials that are there.
        reasons: the names of the trials that are n/a.
    """
    shown, rows = "", []
    for problem, attack in dict.fromkeys((t.problem, t.attack) for t in plan.trials):
        trials = [t for t in plan.trials if (t.problem, t.attack) == (problem, attack)]
        away = sum(t.name in reasons for t in trials)
        row = (
            "" if problem == shown else problem,
            "(no attack)" if attack == "none" else attack.replace("+", "+\n"),
            str(len({t.defense for t in trials})),
            _threats(trials),
            str(len(trials)),
            str(sum(t.key in done for t in trials)),
            str(away) if away else "",
        )
        rows.append(row)
        shown = problem
    view = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    columns = ("problem", "attack", "defenses", "threats", "trials", "there", "n/a")
    for column, cells in zip(columns, zip(*rows, strict=True) if rows else [()] * len(columns), strict=True):
        justify: JustifyMethod = "right" if column in ("defenses", "trials", "there", "n/a") else "left"
        view.add_column(column, justify=justify, min_width=max(map(longest_word, (column, *cells))))
    for row in rows:
        view.add_row(*row)
    return view


def _threats(trials: Sequence[Planned]) -> str:
    """Who attacks, and in which forms: "server, client × both forms", "corrupted (own) × paper"."""
    trials = [t for t in trials if t.attack != "none"]
    if not trials:
        return ""
    knowledge = ", ".join(dict.fromkeys(t.knows for t in trials if t.knows))
    who = f"corrupted ({knowledge})" if knowledge else ", ".join(dict.fromkeys(t.party for t in trials))
    forms = dict.fromkeys(t.form for t in trials)
    return f"{who} × {'both forms' if len(forms) > 1 else next(iter(forms))}"


def _not_applicable(trial: Planned, store: Store, doubts: Mapping[tuple[str, ...], str]) -> tuple[str, str] | None:
    """(how it is known, why) a trial is n/a; None for most."""
    if trial.refused:
        return "cannot be run", trial.refused
    if trial.name in doubts:
        return "expected", doubts[trial.name]
    records = [r for r in store.trial(trial.key) if r["status"] == "n/a"]
    return ("measured", str(records[0]["reason"])) if records else None


def _show_reasons(
    console: Console, trials: Sequence[Planned], reasons: Mapping[tuple[str, ...], tuple[str, str]]
) -> None:
    """Print each reason with the attacks, defenses and threats that share it."""
    threats: dict[tuple[str, str, str, str], dict[Planned, None]] = {}
    for t in trials:
        threats.setdefault((*reasons[t.name], t.attack, t.defense), {})[t] = None
    defenses: dict[tuple[str, str, str, str], list[str]] = {}
    for (source, why, attack, defense), trials_of_reason in threats.items():
        defenses.setdefault((source, why, attack, _threats([*trials_of_reason])), []).append(defense)
    attacks: dict[tuple[str, str, str, str], list[str]] = {}
    for (source, why, attack, who), names in defenses.items():
        attacks.setdefault((source, why, ", ".join(names), who), []).append(attack)
    shown = ("", "")
    for (source, why, on, who), names in sorted(attacks.items()):
        if (source, why) != shown:
            console.print(Text.assemble((f"n/a, {source}: ", "bold"), why))
        shown = (source, why)
        console.print(Padding(Text(f"{', '.join(names)} on {on}{f': {who}' if who else ''}"), (0, 0, 0, 4)))
    console.print()


def _rest(plan: Plan, expected: Forecast) -> str:
    """What is left to do, and how long it may take."""
    refused = sum(bool(t.refused) for t in plan.trials)
    if refused == len(plan.trials):
        return "None of them can be run, for the reasons above."
    if not expected.missing:
        return f"{f'{refused} cannot be run; nothing else' if refused else 'Nothing'} is left to do."
    others = "other one" if expected.missing == 1 else f"{expected.missing} others"
    if expected.seconds is None:
        return f"Time for the {others}: not known before some are measured."
    text = f"The {others} may take {span(expected.seconds)} of one core"
    if not expected.own:
        return f"{text} ({expected.source})."
    known = f", {expected.measured} of them seen on another seed" if expected.measured else ""
    return f"{text}, without loading and training that they share (judged by {expected.source}{known})."


def show_outcome(suite: str, outcome: Outcome, records: Sequence[Record]) -> None:
    """What was done, what is missing and why, and what to do next."""
    console = _console()
    counts = Counter(r["status"] for r in records)
    statuses = ", ".join(f"{n:,} {status}" for status, n in sorted(counts.items(), key=lambda item: -item[1]))
    console.print(
        f"{plural(outcome.done, 'trial')} measured, {plural(outcome.there, 'was', 'were')} there. "
        f"Records of the suite, one for each reading of a trial: {statuses or 'none'}.",
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
        console.print(
            f"{plural(outcome.refused, 'trial')} cannot be run: see bench suite plan {suite}", highlight=False
        )
    for note in outcome.store.notes():
        console.print(note, markup=False, highlight=False)
    folder = outcome.store.folder
    console.print(f"Records: {folder / 'records'}. Next: bench leaderboard {folder}", markup=False, highlight=False)


def _console() -> Console:
    return Terminal(width=stdout_width(120))
