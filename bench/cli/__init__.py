"""The command `bench`."""

from __future__ import annotations

import argparse
import difflib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from importlib import import_module
from typing import Any, NoReturn

from fedarena.cli.version import ShowVersion
from fedarena.core.errors import ClusterGone, UserError, WorkerDied, describe, lacks_memory, packages_of
from fedarena.core.interrupts import heeded_interrupts
from fedarena.core.streams import open_streams
from fedarena.core.text.printable import one_line


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, like all other bad input, and takes no abbreviated options."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see `{self.prog} --help`)")


COMMANDS = {
    "run": "run",
    "list": "methods",
    "show": "methods",
    "explain": "explain",
    "check": "check",
    "data": "data",
    "suite": "suite",
    "reproduce": "reproduce",
    "leaderboard": "leaderboard",
    "report": "report",
    "compare": "compare",
    "export": "export",
    "completion": "completion",
}
"""Command → its module in this package, in the order in which `bench --help` lists them."""


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The argument parser of `bench`; building it imports nothing heavy.

    Args:
        command: one of `COMMANDS`, whose arguments alone are registered; None registers those of all commands.
    """
    top = Parser(
        prog="bench",
        description="Defenses of federated learning meet attacks, limited to what they would really see.",
        epilog="Start with: bench run --defense dbcl --attack dlg",
    )
    top.add_argument("--version", action=ShowVersion)
    commands: Any = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in dict.fromkeys(COMMANDS.values() if command is None else [COMMANDS[command]]):
        import_module(f"fedarena.cli.{module}").add_parser(commands)
    return top


def read_args(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command, whose plug-in files are in use from now on. Raises UserError."""
    top = parser(words[0] if words and words[0] in COMMANDS else None)
    args, unknown = top.parse_known_args(words)
    if unknown:
        prog, flags = _flags(top, words)
        raise UserError(f"unrecognized arguments: {' '.join(unknown)}{_near(unknown[0], flags)} (see `{prog} --help`)")
    if "plugin" in args:
        from fedarena.core import plugin_file

        plugin_file.use(args.plugin or ())
    return args


def _flags(of: argparse.ArgumentParser, words: Sequence[str]) -> tuple[str, list[str]]:
    """What a command is called, and its flags, at the end of the subcommands that are named."""
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction) and words and words[0] in action.choices:
            return _flags(action.choices[words[0]], words[1:])
    return of.prog, [flag for action in of._actions for flag in action.option_strings]


def _near(unknown: str, flags: Sequence[str]) -> str:
    """What somebody meant who gave a flag that does not exist, as the end of a message; "" where nothing is near."""
    from fedarena.problem.schedule import Schedule

    flag, name = unknown.partition("=")[0], unknown.partition("=")[0].removeprefix("--").replace("-", "_")
    if "--set" in flags and name in {field.name for field in fields(Schedule)}:
        return f"; it is --set training.{name}=VALUE"
    close = difflib.get_close_matches(flag, flags, 2, cutoff=0.75)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def of_a_plugin(error: BaseException) -> str:
    """What went wrong, with the line, if it did so in a plug-in file or in a method of another package; else ""."""
    from fedarena.core import plugin_file, registry

    told: list[str] = [*getattr(error, "__notes__", ()), describe(error)]
    if not packages_of(error).isdisjoint(registry.foreign_packages()):
        return told[-1]
    files = {claim.file for claim in plugin_file.claims()}
    return next((text for text in told if any(f", {file}:" in text for file in files)), "")


def beside_others(error: BaseException, args: argparse.Namespace | None) -> str:
    """What went wrong, if a method of another package takes part: what it answered may be the cause. Otherwise "".

    The harness's own lines fail at answers that no check foresees, such as None in place of a number.
    """
    from fedarena.core import registry

    words = {part for value in vars(args or argparse.Namespace()).values() for part in str(value).split("+")}
    known = [entry for methods in registry.registries().values() for word in words for entry in methods.claims(word)]
    others = sorted({f"{entry.name} of {entry.origin}" for entry in known if entry.foreign})
    return f"{describe(error)}, where {' and '.join(others)} took part" if others else ""


def unforeseen(error: BaseException, args: argparse.Namespace | None) -> tuple[str, int]:
    """What went wrong in a way that has no class of its own, and the exit code; "" for a fault of this package."""
    if told := of_a_plugin(error) or beside_others(error, args):
        return f"a method failed: {told}", 1
    if lacks_memory(error):
        hint = "what was written is complete, a smaller model, smaller batches or fewer --jobs take less"
        return f"it does not fit in memory: {describe(error)}; {hint}", 1
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 2
    return "", 1


def _carried_out(args: argparse.Namespace) -> int:
    """The command's exit code. A method that would end the process fails instead."""
    from fedarena.cli.output.json_output import json_alone

    try:
        with json_alone() if getattr(args, "json", False) else nullcontext():
            code: int = args.run(args)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich ends the process where nobody reads any more
            raise BrokenPipeError from None
        raise RuntimeError(f"sys.exit({error.code!r}) was called").with_traceback(error.__traceback__) from None
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 1 done but something failed, 2 bad input (one line on stderr), 130 interrupted.

    Args:
        argv: its words. None: those of this process, which ends afterwards, and is not interrupted while it does.
    """
    # Trials are the unit of parallelism; a second OpenMP thread on a busy machine costs far more than it gives.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    open_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a letter shows a question mark
    if "_ARGCOMPLETE" in os.environ:
        from fedarena.cli.completion import complete

        complete(parser())
    args = None
    try:
        with heeded_interrupts(ends=argv is None):
            args = read_args(sys.argv[1:] if argv is None else list(argv))
            code = _carried_out(args)
            sys.stdout.flush()
        return code
    except UserError as error:
        print(f"bench: {one_line(str(error))}", file=sys.stderr)
        return 2
    except WorkerDied as error:
        text = f"a run was given up, {error}; what was written is complete, fewer --jobs take less memory"
        print(f"bench: {one_line(text)}", file=sys.stderr)
        return 1
    except ClusterGone as error:
        text = f"{error}; what was written is complete, and the same command goes on from there"
        print(f"bench: {one_line(text)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted; what was written is complete", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except SystemExit:  # after --help and --version
        raise
    except BaseException as error:
        text, code = unforeseen(error, args)
        if not text:
            raise
        print(f"bench: {one_line(text)}", file=sys.stderr)
        return code
