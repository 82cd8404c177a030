"""Plug-in files: cards of wrong types, code that raises or ends the process, targets that are no methods."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fuzz import odd
from fuzz.case import Case, Ground
from fuzz.changes import Bytes, byte_changes
from fuzz.judge import BLOCKED
from hypothesis import strategies as st

from fedarena.core.card import KINDS, Card

FILE = "my_methods.py"
HEAD = "from dataclasses import dataclass\n\nimport fedarena as fa\nfrom fedarena.core.card import Card\nfrom fedarena.core.options import option\n"
AT_IMPORT = (
    *(
        "",
        "",
        "",
        "",
        "print('hello')",
       
        "raise ValueError('no\\nmore')",
        "raise SystemExit(3)",
        "raise SystemExit",
    ),
    *(
                "class Odd(BaseException): ...\nraise Odd('x')",
        "raise GeneratorExit",
        "import sys; sys.exit('bye')",
    ),
    *(
        "import nonesuch",
        "1 / 0",
        "def f(): f()\nf()",
        "open('made', 'w').write('x')",
        "import os; os.chdir('/')",
        "x = (",
    ),
    *(
        "raise Exception('\\x1b[2J\\x07')",
        "raise UnicodeDecodeError('utf-8', b'', 0, 1, '\\udcff')",
        "raise type('E\\n', (Exception,), {})",
    ),
    *(
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "import sys; sys.stdout.close()",
        "import sys; sys.stdout = None",
    ),
    *(
        "__name__ = 3",
        "del __builtins__",
        "import sys; sys.modules[__name__] = None",
        "raise StopIteration",
        "raise MemoryError",
    ),
)
TARGETS = (
    *(
        "Rule",
        "Rule",
        "object",
        "int",
        "None",
        "3",
        "print",
        "lambda *a, **k: None",
        "lambda x: x",
        "'nonesuch:X'",
        "':'",
        "''",
    ),
    *(
        "'fedarena.attacks:CARDS'",
        "'os:system'",
        "'my_methods:CARD'",
        "type('X', (), {})",
        "Exception",
        "[]",
        "Raises",
        "Ends",
        "Odd",
    ),
)
METHODS = """
from fedarena.contracts.aggregator import Aggregate, Aggregator


class Rule(Aggregator):
    def __call__(self, x, call):
        used = x.new_full((len(x),), 1 / len(x))
        return Aggregate(used @ x, used)


class Raises(Rule):
    def __init__(self, *args, **given):
        raise ValueError("two\\nlines \\x1b[2J")


class Ends(Rule):
    def __init__(self, *args, **given):
        raise SystemExit(4)


class Odd(Rule):
    def check(self, n, f):
        raise KeyError("\\x07")
"""
OPTIONS = (
    "@dataclass(frozen=True)\nclass Options:\n    a: float = option(0.5, 'an option', low=0)\n",
    "@dataclass\nclass Options:\n    a: float = option(0.5, 'an option')\n",
    "@dataclass(frozen=True)\nclass Options:\n    a: float = 3\n",
    "@dataclass(frozen=True)\nclass Options:\n    a: float = option('x', 'an option')\n",
    "@dataclass(frozen=True)\nclass Options:\n    a: dict = option({}, 'x')\n",
    "@dataclass(frozen=True)\nclass Options:\n    a: float = option(float('nan'), 3)\n",
    "@dataclass(frozen=True)\nclass Options:\n    a: float = option(0.5, None, low='x')\n",
    "@dataclass(frozen=True)\nclass Options:\n    a: 'Nonesuch' = option(0.5, 'x')\n",
    "Options = 3\n",
    "Options = int\n",
)
SHORT = (
    "@fa.rule('mine')\ndef mine(x):\n    return {}\n",
    "@fa.rule('mine')\nclass Mine: ...\n",
    "@fa.defense('mine')\ndef mine(x):\n    return {}\n",
    "@fa.poisoning('mine')\ndef mine(x):\n    return {}\n",
    "@fa.privacy_attack('mine')\ndef mine(x):\n    return {}\n",
    "@fa.rule('mine')\ndef mine(*, a, b=print):\n    return {}\n",
    "@fa.rule('mine', 3, x=4)\ndef mine(x):\n    return {}\n",
    "@fa.rule({})\ndef mine(x):\n    return x\n",
)
ARGV = (
    *(("list",), ("list", "--json"), ("show", "mine"), ("show", "mine", "--json"), ("check", "mine")),
    ("run", "--defense", "mine", "--attack", "sign-flip", "--clients", "4", "--quiet", "--jobs", "1", "--out", BLOCKED),
    *(
        ("run", "--defense", "fedavg", "--attack", "mine", "--quiet", "--jobs", "1", "--out", BLOCKED),
        ("explain", "mine", "dlg"),
    ),
    ("run", "--defense", "fedavg", "--attack", "dlg", "--dataset", "mine", "--quiet", "--jobs", "1", "--out", BLOCKED),
    ("run", "--defense", "fedavg", "--attack", "dlg", "--model", "mine", "--quiet", "--jobs", "1", "--out", BLOCKED),
    (
        "run",
        "--defense",
        "fedavg",
        "--attack",
        "dlg",
        "--partition",
        "mine",
        "--quiet",
        "--jobs",
        "1",
        "--out",
        BLOCKED,
    ),
    ("data", "verify", "mine"),
)
OF_CARD = tuple(field.name for field in fields(Card))
VALUES = (
    *(
        "3",
        "-1",
        "None",
        "True",
        "1.5",
        "float('nan')",
        "b'x'",
        "object()",
        "()",
        "[]",
        "{}",
        "set()",
        "(1,)",
        "((1, 2),)",
        "('a',)",
    ),
    *(
        "'\\x1b[2J'",
        "'a\\nb'",
        "''",
        "'x' * 9999",
        "'\\udcff'",
        "(('a', 'b'),)",
        "(('a', 'b', 'c'),)",
        "((),)",
        "'mine'",
        "'dlg'",
    ),
    *(
        "(('model', 'nonesuch'),)",
        "(('clients', '-1'),)",
        "(('clients', 'nan'),)",
        "(('nonesuch', '1'),)",
        "'[/]'",
        "lambda: 0",
        "1/0",
    ),
)


@dataclass(frozen=True)
class PluginFile(Case):
    """A command with `--plugin`. `text` is the file; `bytes` are changes of it."""

    text: str = ""
    bytes: tuple[Bytes, ...] = ()

    printed = "hello\n"

    def lay(self, folder: Path, ground: Ground) -> None:
        content = self.text.encode("utf-8", "surrogatepass")
        for change in self.bytes:
            content = change.apply(content)
        (folder / FILE).write_bytes(content)


@st.composite
def cases(draw: Any) -> PluginFile:
    """Commands with plug-ins."""
    argv = draw(st.sampled_from(ARGV))
    argv = argv if argv[0] == "data" else (*argv, "--plugin", FILE)
    first = draw(st.sampled_from(AT_IMPORT)) if draw(st.integers(0, 3)) == 0 else ""
    if draw(st.integers(0, 4)) == 0:
        text = HEAD + first + "\n" + draw(st.sampled_from(SHORT))
    else:
        text = HEAD + METHODS + first + "\n" + _card(draw)
    broken = tuple(draw(st.lists(byte_changes, min_size=1, max_size=2))) if draw(st.integers(0, 9)) == 0 else ()
    return PluginFile(argv, "", text=text, bytes=broken)


def _card(draw: Any) -> str:
    """The lines of a card, and of its options."""
    kind = draw(st.sampled_from([*KINDS, "aggregator", "aggregator", "nonesuch"]))
    given = {"name": "'mine'", "kind": repr(kind), "title": "'Mine'", "target": draw(st.sampled_from(TARGETS) if draw(st.booleans()) else st.sampled_from(("Rule", "Raises", "Ends", "Odd")))}
    options = draw(st.sampled_from([*[""] * 8, OPTIONS[0], *OPTIONS]))
    if options:
        given["options"] = "Options"
    for name in draw(st.lists(st.sampled_from([*OF_CARD, "nonesuch"]), max_size=2)):
        if name not in ("kind",):
            given[name] = draw(st.one_of(st.sampled_from(VALUES), odd.texts(nul=True).map(repr)))
    return f"{options}CARD = Card({', '.join(f'{name}={value}' for name, value in given.items())})\n"
