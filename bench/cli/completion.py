"""`bench completion SHELL`: what makes a shell complete commands, options and names of methods.

A shell then starts `bench` with `_ARGCOMPLETE` set at each press of the tab key, and argcomplete answers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fedarena.core import registry
from fedarena.core.card import KINDS, Kind
from fedarena.core.options import describe_options
from fedarena.core.threat import EVERYONE, FORMS, KNOWLEDGE, READERS
from fedarena.reproduce.tables import TABLES

Completer = Callable[..., list[str]]

SHELLS = ("bash", "zsh", "fish")
SUITE, ANY = "suite", "any"
COMPLETED: dict[str, tuple[Kind | str, ...]] = {
    "defense": ("defense", "aggregator", "secure"),
    "attack": ("attack",),
    "dataset": ("dataset",),
    "model": ("model",),
    "partition": ("partition",),
    "suite": (SUITE,),
    "name": (ANY,),
    "method": (ANY,),
}
"""The name of an argument → the kinds of names that complete it."""
WORDS: dict[str, Callable[[], Sequence[str]]] = {
    "party": lambda: READERS,
    "form": lambda: FORMS,
    "knows": lambda: KNOWLEDGE,
    "threats": lambda: (*EVERYONE, *KNOWLEDGE),
    "laws": lambda: _laws(),
    "kind": lambda: KINDS,
    "table": lambda: [*TABLES],
    "archive": lambda: _fetched(),
}
"""The name of an argument → the words that complete it, several with commas."""
OR_FILE = ("method",)
"""Names of arguments that may be a file as well."""


def add_parser(subparsers: Any) -> None:
    """Add `completion`."""
    completing = subparsers.add_parser(
        "completion",
        help="print what makes a shell complete commands, options and names",
        description='In bash: eval "$(bench completion bash)"; in fish: bench completion fish | source.',
    )
    completing.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of: {', '.join(SHELLS)}")
    completing.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["bench"], shell=args.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and end the process; nothing where no shell asks."""
    import argcomplete

    for action in _actions(parser):
        if action.dest in COMPLETED:
            kinds = COMPLETED[action.dest]
            names = _going_on(partial(_names, kinds), "+")
            action.completer = _or_file(names) if action.dest in OR_FILE else names  # type: ignore[attr-defined]
        if action.dest in WORDS:
            action.completer = _going_on(WORDS[action.dest], ",")  # type: ignore[attr-defined]
        if action.dest == "set":
            action.completer = _settings  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser, and those of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _going_on(words: Callable[[], Sequence[str]], mark: str) -> Completer:
    """The words that go on with what is typed after the last mark; what is before it stays."""

    def going_on(prefix: str, **_: Any) -> list[str]:
        head, between, last = prefix.rpartition(mark)
        return [f"{head}{between}{word}" for word in words() if word.startswith(last)]

    return going_on


def _or_file(names: Completer) -> Completer:
    """The names, and files of Python."""
    from argcomplete.completers import FilesCompleter

    files = FilesCompleter(("py",))
    return lambda prefix, **given: [*names(prefix, **given), *files(prefix)]


def _settings(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """GROUP.OPTION= for `--set` of what is named on the line, and of the training; OPTION= for that of `check`."""
    if getattr(parsed_args, "method", None) is not None:
        return [f"{option}=" for option in _options_of(str(parsed_args.method))]
    parts = "+".join(filter(None, (getattr(parsed_args, kind, None) for kind in ("defense", "attack", "model"))))
    found = [f"{part}.{option}=" for part in parts.split("+") for option in _options_of(part)]
    from fedarena.problem.schedule import Schedule

    return [*found, *(f"training.{one.name}=" for one in describe_options(Schedule))]


def _options_of(name: str) -> list[str]:
    """The options of all methods of a name."""
    cards = [known.card(name) for known in registry.registries().values() if name in known]
    return [option.name for card in cards for option in describe_options(card.options)]


def _laws() -> list[str]:
    from fedarena.testing import laws

    return list(laws())


def _fetched() -> list[str]:
    from fedarena.datasets.fetch import fetchable

    return fetchable()


def _names(kinds: tuple[str, ...]) -> list[str]:
    if SUITE in kinds:
        from fedarena.runs.suite import suite

        return suite.names()
    methods = registry.registries()
    return sorted({name for kind, some in methods.items() if kind in kinds or ANY in kinds for name in some.names()})
