"""The smallest inputs on which commands once failed, found by fuzzing; each is taken well now."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from typing import Any

import pytest
from fuzz.case import BOARD, RESULTS, SUITE, Ground, tried
from fuzz.changes import Bytes, Change
from fuzz.command_lines import CommandLine
from fuzz.data_files import Array, DataFile
from fuzz.judge import BLOCKED
from fuzz.plugins import HEAD, METHODS, OF_CLASS, PluginFile
from fuzz.results import ChangedBoard, ChangedResults
from fuzz.suite_files import SuiteFile

TABLE, PAGE = ("leaderboard", RESULTS), ("leaderboard", RESULTS, "--out", "made.html")
GATE = ("compare", RESULTS, RESULTS, "--markdown", "made.md", "--junit", "made.xml")
PLAN = ("suite", "plan", SUITE, "--quiet", "--out", "o")
RUN = ("run", "--jobs", "1", "--quiet", "--out", BLOCKED)
CLEAN_RUN, PICTURE = "a clean run of FedAvg", "pictures"
"""Files of results that have another name on each day that a version changes."""


def lines() -> list[CommandLine]:
    """Line breaks, links to themselves and sizes that no machine has, in command lines."""
    small = ("--defense", "fedavg", "--attack", "alie", "--model", "mlp", "--set", "model.widths=4", "--rounds", "2")
    large = ("--defense", "pbpfl", "--attack", "property-inference", "--model", "lenet-baffle", "--clients", "6")
    return [
        CommandLine((*RUN, *small, "--clients=\n")),
        CommandLine((*RUN, *large, "--set", "attack.rounds=2", "--set", "model.size=2147483648")),
        CommandLine(("compare", BOARD, BOARD, "\n")),
        CommandLine(("reproduce", "\n", "--json")),
        CommandLine(("report", RESULTS, "--out", "loop")),
        CommandLine(("list", "--plugin", "loop")),
        CommandLine(("check", "loop.py")),
    ]


def suites() -> list[SuiteFile]:
    """Nesting, line breaks and numbers without end in a suite's file."""
    clients = ("problems", "read", "clients")
    return [
        SuiteFile(PLAN, raw=("a = " + "{b = " * 1500 + "1" + "}" * 1500,)),
        SuiteFile(PLAN, raw=("a = " + "[" * 3000,)),
        SuiteFile(PLAN, raw=("a = " + "9" * 5000,)),
        *(SuiteFile(PLAN, changes=(Change(clients, "put", value),)) for value in ("a\nb", 10**23, 2**63 - 1, -1)),
        SuiteFile(PLAN, "a number that is not finite", changes=(Change(("minutes",), "put", float("nan")),)),
    ]


def plans() -> list[ChangedResults]:
    """Values of wrong types in a plan."""
    wrong: list[tuple[int, str, Any, tuple[str, ...]]] = [
        (1, "defense", [{}], (*TABLE, "--format", "md")),
        (1, "defense", False, TABLE),
        (1, "defense", {"a": 1}, GATE),
        (2, "goal", "1148130695274254524232833201177681984022", TABLE),
        (0, "defense", True, TABLE),
        (1, "seed", float("nan"), TABLE),
        (2, "goal", "\ud800", TABLE),
        (2, "seed", "<script>alert(1)</script>", PAGE),
        (1, "goal", "1.5", PAGE),
        (2, "goal", [None], TABLE),
        (0, "seed", [{}], (*TABLE, "--format", "csv")),
        (2, "knows", [None], TABLE),
        (1, "defense", -1, (*TABLE, "--format", "md")),
        (1, "refused", [[]], PAGE),
        (0, "problem", 1e-320, PAGE),
    ]
    cases = [(("trials", trial, name), value, argv) for trial, name, value, argv in wrong]
    cases += [(("suite",), [[]], GATE), (("title",), {"a": 1}, ("report", RESULTS, "--out", "rep"))]
    changed = [ChangedResults(argv, file="plan.json", changes=(Change(p, "put", v),)) for p, v, argv in cases]
    formless = tuple(Change(("trials", i, "form"), "put", "") for i in range(11))
    report = ChangedResults(("report", RESULTS), file="plan.json", changes=formless)
    return [*changed, report, ChangedResults(TABLE, file="plan.json", special="pipe")]


def folders() -> list[ChangedResults]:
    """Pipes, names that are no UTF-8, broken pictures, and records that say something else."""
    data = Change(("problem", "data"), "put", [])
    seed = Change(("seed",), "put", 2**63)
    letter = Change(("series", "control_relative_l2"), "put", [0.5, 1.0, "\ud800"])
    return [
        ChangedResults(PAGE, file=CLEAN_RUN, special="pipe"),
        ChangedResults(GATE, file=CLEAN_RUN, special="no-utf-8"),
        ChangedResults(GATE, file=CLEAN_RUN, changes=(letter,), signed=True),
        *(
            ChangedResults(("leaderboard", RESULTS, "--out", "made.json"), file=CLEAN_RUN, changes=(one,), signed=True)
            for one in (data, seed)
        ),
        *(
            ChangedResults(argv, file=PICTURE, arrays=(Array("|u1", shape), Array("|u1", shape)))
            for shape in ((0, 1, 8, 8), (2, 0, 8, 8), (2, 1, 0, 0))
            for argv in (PAGE, ("report", RESULTS))
        ),
        *(ChangedResults(PAGE, file=PICTURE, bytes=(Bytes("flip", at / 12, 0x55),)) for at in range(2, 10)),
    ]


def boards() -> list[ChangedBoard]:
    """A board whose suite is a path: nothing is written elsewhere. One whose attacks have a form that no figure has."""
    paths = ("../../../evil", "/evil", "..", "a/b", "\x1b[2J")
    named = [ChangedBoard(("report", BOARD), changes=(Change(("suite",), "put", path),)) for path in paths]
    forms = tuple(Change(("cells", i, "form"), "put", "odd") for i in range(6))
    return [*named, ChangedBoard(("report", BOARD), changes=forms)]


def data() -> list[DataFile]:
    """A header that claims terabytes, and a pickle."""
    name, y = "mnist.npz", Array("<i8", (3,))
    x = Array("|u1", (3, 28, 28))
    argv = ("data", "verify", "mnist", "--data-dir", "data")
    claims = Array("|u1", (3, 28, 28), claim=(10**12, 28, 28))
    arrays = [(claims, y, x, y), (Array("|O", (3,)), y, x, y)]
    plain = zipfile.ZIP_DEFLATED
    made = [DataFile(argv, "a false file", name=name, arrays=some, method=plain) for some in arrays]
    return [*made, DataFile(argv, "a pipe", name=name, special="pipe")]


def plugins() -> list[PluginFile]:
    """Cards of wrong types, exceptions that no `except Exception` catches, and answers that are none."""
    card = "CARD = Card(name='mine', kind='aggregator', target='my_methods:Rule', {})\n"
    fields = ("title='t', usual=3", "title='t', facts=7", "title=5", "title='t', promises='x', version='2'")
    odd = [
        "class Odd(BaseException): ...\nraise Odd('x')\n",
        "raise GeneratorExit\n",
        "raise SystemExit(3)\n",
        "class Dumb(Exception):\n    def __str__(self):\n        raise ValueError\n\n\nraise Dumb\n",
    ]
    texts = [*(HEAD + card.format(field) for field in fields), *(HEAD + one + card.format("title='t'") for one in odd)]
    shown = [
        PluginFile((*argv, "--plugin", "my_methods.py"), text=t)
        for t in texts
        for argv in (("list",), ("show", "mine"))
    ]
    answers = [
        ("secure", "pairwise-masks", "threshold", "return None"),
        ("defense", "fedavg", "in_round", "return [good()]"),
        ("model", "mlp", "__init__", "return good(), good()"),
        ("aggregator", "krum", "__call__", "raise Odd('x')"),
    ]
    explain = ("explain", "mine", "last-layer-label", "--clients", "4", "--plugin", "my_methods.py")
    model = ("explain", "fedavg", "last-layer-label", "--model", "mine", "--plugin", "my_methods.py")
    for kind, base, name, body in answers:
        text = HEAD + METHODS.format(kind=kind, base=base) + OF_CLASS.format(name=name, body=body)
        text += f"CARD = Card(name='mine', kind={kind!r}, title='t', target=Mine, options=BASE.options)\n"
        shown.append(PluginFile(model if kind == "model" else explain, text=text))
    return shown


def named(case: Any, ground: Ground) -> Any:
    """The case with the name of the file that it means."""
    results = ground.folder / RESULTS
    if getattr(case, "file", "") == PICTURE:
        return replace(case, file=f"pictures/{min(path.name for path in (results / 'pictures').iterdir())}")
    if getattr(case, "file", "") == CLEAN_RUN:
        clean = [path for path in (results / "records").iterdir() if '"attack": "none"' in path.read_text()]
        fedavg = [path.name for path in clean if '"defense": "fedavg"' in path.read_text()]
        return replace(case, file=f"records/{min(fedavg)}")
    return case


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "cases", [lines, suites, plans, folders, boards, data, plugins], ids=lambda cases: cases.__name__
)
def test_inputs_that_once_failed_are_taken_well(cases: Any, ground: Ground) -> None:
    told = []
    for case in cases():
        faults, _ = tried(named(case, ground), ground)
        told += [f"{fault.sort}: {fault.told}\n{case!r}\n{fault.more[-1500:]}"[:4000] for fault in faults]
    assert not told, "\n\n".join(told)
