"""`bench explain`: who sees what, before anything runs."""

from __future__ import annotations

import argparse
from typing import Any

from fedarena.cli.output.json_output import print_json
from fedarena.cli.problem_args import add_json, add_problem_arguments, data_dir, read_problem, read_settings


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "explain",
        help="who sees what, before anything runs",
        description="Play two rounds without an attack, and say what crosses the wires, what each party "
        "sees of it, and what the attack would be given.",
    )
    parser.add_argument("defense", help="defense")
    parser.add_argument("attack", help="attack")
    add_problem_arguments(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry out the command."""
    found = facts(args)
    if args.json:
        print_json(found)
    else:
        _show(found)
    return 0


def facts(args: argparse.Namespace) -> dict[str, Any]:
    """Who sees what. Raises UserError."""
    from fedarena.federation import compose

    defenses, attacks = compose.defense_cards(args.defense), compose.attack_cards(args.attack)
    settings = read_settings(args, (*defenses, *attacks))
    defense = compose.parse(defenses, settings["defense"], settings)
    attack = compose.parse(attacks, settings["attack"], settings)
    problem = read_problem(args, settings, (attacks[-1], defenses[0]))
    folder = data_dir(args)
    from fedarena.runs.explain import explain

    return explain(problem, defense, attack, folder)


def _show(facts: dict[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    from fedarena.cli.output.terminal import Terminal

    console = Terminal()
    for method in facts["methods"]:
        console.print(f"[bold]{method['name']}[/bold]: {method['title']}", highlight=False)
    console.print()
    wires = Table(box=box.SIMPLE_HEAD, title="what crosses the wires, one client, one round", title_justify="left")
    for column in ("wire", "tensor", "shape", "bytes", "plain model has"):
        wires.add_column(column, justify="right" if column == "bytes" else "left")
    for row in facts["wires"]:
        wires.add_row(*(str(row[k]) for k in ("wire", "tensor", "shape", "bytes", "plain")))
    console.print(wires)
    for wire, total in facts["bytes"].items():
        console.print(f"  {wire}: {total:,} bytes", highlight=False)
    parties = Table(box=box.SIMPLE_HEAD, title="\nwho sees what", title_justify="left", show_lines=True)
    for column in ("party", "form or knowledge", "sees", "the attack is given"):
        parties.add_column(column)
    for row in facts["parties"]:
        parties.add_row(row["party"], row["form"], row["sees"], row["given"])
    console.print(parties)
    console.print(f"  the server: {facts['server']}", highlight=False)
    for name, value in facts["guarantees"].items():
        console.print(f"  {name}: {value:.4g}", highlight=False)
    for label, text in facts["facts"]:
        console.print(f"  {label}: {text}", highlight=False)
