"""Command lines made from the argument parsers and the registry, so that a new command, option or method is drawn too.

Most words are sensible, so that a line gets far; now and then one is odd. What would train for long is stopped by the
file that `--out` names, after all checks; some runs are so small that they go to their end.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from fuzz import odd
from fuzz.case import BOARD, RESULTS, SUITE, Case, Ground
from fuzz.judge import BLOCKED
from hypothesis import strategies as st

from fedarena.cli import parser
from fedarena.cli.completion import COMPLETED, WORDS
from fedarena.core import registry
from fedarena.core.options import scalar, to_text
from fedarena.problem.schedule import Schedule

PLUGIN = "my_mean.py"
PLUGIN_TEXT = 'import fedarena as fa\n\n\n@fa.rule("my-mean")\ndef mine(x):\n    return x.mean(0)\n'
PLACES = (
    RESULTS,
    BOARD,
    SUITE,
    PLUGIN,
    "data",
    "missing",
    "pipe",
    "loop",
    BLOCKED,
    "new/folder",
    "odd\udcff",
    "file.md",
)
COSTLY = ("attack", "defense", "aggregator", "secure")
"""Kinds of methods whose laws take seconds to check."""
CHEAP_LAWS = ("card-cites", "defaults-parse", "bad-options-refused", "answers-are-judged")
ALL_CHEAP = {
    "run": ("--jobs", "1"),
    "explain": (),
    "suite plan": ("--quiet",),
    "suite run": ("--quiet", "--jobs", "1", "--out", BLOCKED),
    "reproduce": ("--out", BLOCKED, "--jobs", "1", "--quiet"),
    "check": ("--laws", ",".join(CHEAP_LAWS[:2])),
}
"""Command → the words at its end that keep it short."""
SMALL = (
    "--attack",
    "last-layer-label",
    "--model",
    "mlp",
    "--set",
    "model.widths=4",
    "--rounds",
    "2",
    "--clients",
    "3",
    "--dataset",
    "digits",
    "--quiet",
)
"""What makes a run small enough to go to its end."""
COUNTS = (
    "clients",
    "corrupted",
    "assumed_corrupted",
    "rounds",
    "batch_size",
    "local_epochs",
    "jobs",
    "seeds",
    "timeout",
)
"""Arguments below 0 that make no sense."""


@dataclass(frozen=True)
class CommandLine(Case):
    """A command line in a folder with results, a board, a suite, a plug-in, a pipe and a link to itself."""

    def lay(self, folder: Path, ground: Ground) -> None:
        if any(RESULTS in word for word in self.argv):
            shutil.copytree(ground.folder / RESULTS, folder / RESULTS)
        for name in (BOARD, SUITE):
            shutil.copy(ground.folder / name, folder / name)
        (folder / PLUGIN).write_text(PLUGIN_TEXT)
        os.mkfifo(folder / "pipe")
        (folder / "loop").symlink_to("loop")

    def given(self) -> Sequence[str]:
        paths = [part for word in self.argv for part in (word, word.rpartition("=")[2]) if part]
        return [
            os.path.abspath(os.path.join("/nowhere/case", path)) for path in paths if path.startswith(("/", "~"))
        ] + ["/nowhere" for path in paths if ".." in path]

    def wrong(self, outcome: Any, folder: Path) -> str:
        return "" if "--help" in self.argv or "-h" in self.argv else super().wrong(outcome, folder)


@dataclass(frozen=True)
class Leaf:
    """A command with its words and its arguments."""

    words: tuple[str, ...]
    arguments: tuple[argparse.Action, ...]


@cache
def leaves() -> tuple[Leaf, ...]:
    """All commands."""
    return tuple(_leaves(parser(), ()))


def _leaves(of: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[Leaf]:
    nested = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested or not nested[0].required:
        yield Leaf(words, tuple(action for action in of._actions if action not in nested))
    for action in nested:
        for name, inner in action.choices.items():
            yield from _leaves(inner, (*words, name))


@cache
def _names(kind: str) -> tuple[str, ...]:
    return tuple(registry.registries()[kind].names())


def _words_for(action: argparse.Action, command: str) -> st.SearchStrategy[str]:
    """Sensible values of an argument."""
    hint = str(action.metavar or "")
    if action.choices:
        return st.sampled_from([str(choice) for choice in action.choices])
    if action.dest == "method":
        return st.sampled_from(
            [*(n for kind in registry.registries() if kind not in COSTLY for n in _names(kind)), PLUGIN]
        )
    if action.dest == "suite" and command != "suite list":
        return st.sampled_from([SUITE] * 4 + [RESULTS, BOARD, "nonesuch"])
    if action.dest in COMPLETED:
        names = [
            name for kind in COMPLETED[action.dest] for name in (_names(kind) if kind in registry.registries() else ())
        ]
        single = st.sampled_from(names or ["fedavg", "training", "dlg"])
        composed = st.lists(single, min_size=2, max_size=3, unique=True).map("+".join)
        return st.integers(0, 9).flatmap(
            lambda i: composed if i == 0 and action.dest in ("defense", "attack") else single
        )
    if action.dest in WORDS and action.dest != "table":
        return st.lists(st.sampled_from([*WORDS[action.dest]()]), min_size=1, max_size=2).map(",".join)
    if action.dest == "plugin":
        return st.just(PLUGIN)
    if action.dest == "data_dir":
        return st.just("data")
    if any(word in hint for word in ("FOLDER", "FILE", "DIR", "PATH", "SUITE", "RUNS", "BASE", "NEW", "BOARD")):
        return st.sampled_from([RESULTS, BOARD] * 3 + [*PLACES])
    if action.dest in ("weights", "effect"):
        pairs = st.tuples(
            st.sampled_from(["utility", "integrity", "privacy", "mean"]), st.sampled_from(["1", "0.1", "2"])
        )
        return st.lists(pairs.map("=".join), min_size=1, max_size=3).map(",".join)
    if action.dest == "secret":
        return st.sampled_from(["0123456789abcdef" * 2, "none"])
    return st.sampled_from(["1", "2", "3"] if _numeric(action) else ["read", "poison", "shard", "resampled"])


def _numeric(action: argparse.Action) -> bool:
    """Whether the values of an argument are numbers."""
    return str(action.metavar or "").split(",")[0] in ("N", "MINUTES", "S", "RATE") or "=" in str(action.metavar or "")


def senseless(action: argparse.Action, text: str) -> str:
    """What of a value makes no sense; empty where nothing can be said."""
    if action.dest == "set" or not (_numeric(action) or action.dest in COUNTS):
        return ""
    if odd.not_finite(text):
        return f"option '{action.dest}' with a number that is not finite"
    return f"option '{action.dest}' below 0" if action.dest in COUNTS and odd.negative(text) else ""


@st.composite
def _setting(draw: Any, chosen: dict[str, str], likely: Sequence[str] = (), plays: bool = False) -> tuple[str, str]:
    """--set's GROUP.OPTION=VALUE for the methods of a line, and what of it makes no sense.

    Args:
        likely: values that numbers have in place of odd ones.
        plays: whether the command would take as many steps as it is told to, so that it is told few.
    """
    groups: dict[str, Any] = {"training": Schedule}
    for kind in ("defense", "attack", "model", "partition", "dataset"):
        for part in chosen.get(kind, "").split("+"):
            for of in registry.beside(kind):  # type: ignore[arg-type]
                if part in _names(of):
                    groups[kind if of == kind else part] = registry.find(of, part).options
    group = draw(st.sampled_from(sorted(groups)))
    known = fields(groups[group])
    if not known or (not likely and draw(st.integers(0, 19)) == 0):
        return f"{draw(st.one_of(st.just(group), odd.texts()))}.{draw(odd.texts())}={draw(odd.texts())}", ""
    field = draw(st.sampled_from(known))
    kind_of = scalar(get_type_hints(groups[group])[field.name])
    near = [to_text(field.default), *(str(one) for one in field.metadata["choices"] or ())]
    near += [
        str(field.metadata[bound]) for bound in ("low", "high", "above", "below") if field.metadata[bound] is not None
    ]
    others = st.sampled_from(likely) if likely else odd.numbers
    if kind_of not in (int, float):
        others = odd.texts() if not likely else st.sampled_from([*near, "true", "false", "none", "1,2", "3,1,2"])
    value = draw(st.sampled_from(near) if draw(st.booleans()) else others)
    if plays and kind_of is int and any(len(word) > 3 for word in value.split(",")):
        value = "3"
    why = f"{group}.{field.name} that is not finite" if kind_of in (int, float) and odd.not_finite(value) else ""
    return f"{group}.{field.name}={value}", why


@st.composite
def _value(draw: Any, action: argparse.Action, command: str, oddly: int) -> str:
    """A value of an argument, odd in `oddly` of a hundred cases."""
    if draw(st.integers(0, 99)) < oddly:
        return str(draw(st.one_of(odd.numbers, odd.texts()) if _numeric(action) else odd.texts()))
    return str(draw(_words_for(action, command)))


def _said(action: argparse.Action, value: str) -> list[str]:
    """An option as words. A value that looks like an option stands behind an equals sign."""
    flag = action.option_strings[-1]
    return [f"{flag}={value}"] if value.startswith("-") and flag.startswith("--") else [flag, value]


def _chance(action: argparse.Action) -> int:
    """In how many of a hundred lines an option is given."""
    if action.required:
        return 98
    return 1 if {"-h", "--version"} & {*action.option_strings} else 12


LIKELY = (
    "nan",
    "inf",
    "-inf",
    "1",
    "2",
    "3",
    "5",
    "0.5",
    "0.1",
    "1e-9",
    "100",
    "1e5",
    "1e308",
    "1e-320",
    "2147483647",
    "2147483648",
    "9007199254740991",
)
"""Numbers that many options allow, some of which no machine can compute with."""


@st.composite
def _deep(draw: Any) -> CommandLine:
    """A line of sensible words but for values of options: what it asks for is built, and two rounds may be played."""
    chosen = {kind: draw(st.sampled_from(_names(kind))) for kind in ("attack", "model", "partition")}
    chosen["defense"] = draw(st.sampled_from([*_names("defense"), *_names("aggregator"), *_names("secure")]))
    words = [
        "--dataset",
        draw(st.sampled_from(["digits", "digits", "digits", "breast-cancer", "diabetes", "clinic-notes"])),
    ]
    words += ["--clients", draw(st.sampled_from(["2", "4", "6", "9"]))]
    for kind in ("model", "partition"):
        if draw(st.integers(0, 3)) == 0:
            words += [f"--{kind}", chosen[kind]]
        else:
            del chosen[kind]
    why = ""
    explains, out = draw(st.booleans()), draw(st.sampled_from([BLOCKED] * 7 + ["o"]))
    if out == "o":
        chosen["attack"] = "last-layer-label"
    for _ in range(draw(st.integers(1, 3))):
        text, reason = draw(_setting(chosen, LIKELY, explains or out == "o"))
        words += ["--set", text]
        why = why or reason
    if explains:
        return CommandLine(("explain", chosen["defense"], chosen["attack"], *words), why)
    few = SMALL if out == "o" else ()
    named = ("--defense", chosen["defense"], "--attack", chosen["attack"])
    return CommandLine(("run", *named, *words, "--quiet", "--jobs", "1", "--out", out, *few), why)


@st.composite
def _broad(draw: Any) -> CommandLine:
    """A line of any command."""
    leaf = draw(st.sampled_from([leaf for leaf in leaves() for _ in range(1 + len(leaf.arguments) // 3)]))
    command, oddly = " ".join(leaf.words), draw(st.sampled_from([0, 0, 4, 4, 12, 30]))
    words, why, chosen = list(leaf.words), [], {}
    for action in leaf.arguments:
        if not action.option_strings:
            many = {"?": (0, 1), "+": (1, 2), "*": (0, 2)}.get(str(action.nargs), (1, 1))
            for _ in range(draw(st.integers(*many))):
                value = draw(_value(action, command, oddly))
                chosen[action.dest] = value
                words.append(value)
            continue
        if draw(st.integers(0, 99)) >= _chance(action):
            continue
        if action.nargs == 0:
            words.append(action.option_strings[-1])
        elif action.dest != "set":
            value = draw(_value(action, command, oddly))
            chosen[action.dest] = value
            words += _said(action, value)
            why.append(senseless(action, value))
    small = command == "run" and draw(st.integers(0, 19)) == 0
    sets = any(action.dest == "set" for action in leaf.arguments)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2])) if sets else 0):
        text, reason = draw(_setting(chosen, (), command == "explain" or small))
        words += ["--set", text]
        why.append(reason)
    if command == "run":
        words += SMALL if small else ("--out", BLOCKED, "--quiet")
    words += ALL_CHEAP.get(command, ())
    if draw(st.integers(0, 49)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(odd.texts()))
    return CommandLine(tuple(words), next(filter(None, why), "") if not small else "")


def cases() -> st.SearchStrategy[CommandLine]:
    """Command lines."""
    return st.one_of(_broad(), _deep())
