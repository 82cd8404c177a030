"""Plug-in files: cards of wrong types, code that raises or ends the process, targets that are no methods."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from fuzz import odd
from fuzz.case import Case, Ground
from fuzz.changes import Bytes, byte_changes
from fuzz.judge import BLOCKED
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.core.card import KINDS, Card, Kind
from fedarena.datasets.dataset import Dataset

FILE = "my_methods.py"
HEAD = (
    "from dataclasses import dataclass\n\nimport fedarena as fa\n"
    "from fedarena.core.card import Card\nfrom fedarena.core.options import option\n"
)
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
        "Base",
    ),
    *("'fedarena.attacks:CARDS'", "'os:system'", "'my_methods:CARD'", "type('X', (), {})", "Exception", "[]"),
)
BASES = {
    "defense": ("fedavg", "dbcl", "dp-sgd"),
    "aggregator": ("krum", "median"),
    "secure": ("zero-sum", "pairwise-masks"),
    "attack": ("sign-flip", "dlg", "last-layer-label"),
    "model": ("mlp",),
    "partition": ("iid", "dirichlet"),
    "dataset": ("digits",),
}
"""Kind → methods that a plug-in's own is made from."""
BODIES = (
    *(
        "return None",
        "return {}",
        "return 3",
        "return -1",
        "return float('nan')",
        "return ()",
        "return [None] * 3",
        "return object()",
    ),
    *("return 'x\\x1b[2J'", "return torch.zeros(0)", "return torch.full((3,), float('nan'))", "return np.array([1.5])"),
    *(
        "return good(), good()",
        "return [good()]",
        "return {'a\\n': good()}",
        "raise ValueError('two\\nlines \\x1b[2J')",
    ),
    *(
        "raise SystemExit(3)",
        "raise Odd('x')",
        "1 / 0",
        "raise KeyError('\\x07')",
        "return work(*args, **given)",
        "return print",
    ),
    *(
        "raise fa.UserError('a\\nb')",
        "raise MemoryError",
        "return good",
        "return 10**400",
        "return True",
        "yield 3",
        "raise Dumb",
    ),
)
"""What a method of a plug-in does in place of what it should; `good` does that."""
METHODS = """
import numpy as np
import torch

from fedarena.core import registry

BASE = registry.find({kind!r}, {base!r})
Base = BASE.load()


class Odd(BaseException): ...


class Dumb(Exception):
    def __str__(self):
        raise ValueError


def work(*args, **given):
    return work(*args, **given)

"""
OF_CLASS = """
class Mine(Base):
    def {name}(self, *args, **given):
        good = lambda: super(Mine, self).{name}(*args, **given)
        {body}

"""
OF_FUNCTION = """
def Mine({parameters}):
    args, given = (), {{}}
    good = lambda: Base({parameters_given})
    {body}

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
SMALL = ("--model", "mlp", "--set", "model.widths=4", "--rounds", "2", "--clients", "4")
READS = ("--attack", "last-layer-label", "--form", "paper", "--party", "server")
ARGV: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(
        ("defense", "aggregator", "secure"),
        (
            ("run", "--defense", "mine", "--attack", "sign-flip", "--corrupted", "1", *SMALL),
            ("run", "--defense", "mine", *READS, *SMALL),
            ("explain", "mine", "last-layer-label", *SMALL),
        ),
    ),
    "attack": (("run", "--defense", "fedavg", "--attack", "mine", *SMALL), ("explain", "fedavg", "mine", *SMALL)),
    "model": (
        ("run", "--defense", "fedavg", *READS, "--model", "mine"),
        ("explain", "fedavg", "dlg", "--model", "mine"),
    ),
    "partition": (("run", "--defense", "fedavg", *READS, *SMALL, "--partition", "mine"),),
    "dataset": (("run", "--defense", "fedavg", *READS, *SMALL, "--dataset", "mine"),),
}
SHOWS = (("list",), ("list", "--json"), ("show", "mine"), ("show", "mine", "--json"))
FOR_ALL = (*SHOWS, *SHOWS, *SHOWS, ("check", "mine"))
"""Commands for a method of any kind. The last takes seconds."""
OF_DATA = (
    *(
        "None",
        "-1",
        "0",
        "3",
        "float('nan')",
        "'x\\x1b[2J'",
        "np.zeros(0)",
        "np.zeros((5, 1, 8, 8))",
        "np.full((9, 1, 8, 8), np.nan)",
    ),
    *(
        "np.full(9, -1)",
        "np.full(9, 10**9)",
        "[]",
        "good().x_train[:3]",
        "good().y_train[:3]",
        "good().x_train - 99",
        "10**30",
        "('a',)",
    ),
    *(
        "good().x_train.astype(object)",
        "good().x_train.astype('f2')",
        "good().y_train.astype('f4')",
        "torch.zeros(3)",
        "float('inf')",
    ),
)
"""Odd values of a data set's fields."""
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


@cache
def _overridable(base: Any) -> tuple[str, ...]:
    """The functions of a class that a subclass may change."""
    names = [name for name in dir(base) if callable(getattr(base, name)) and not name.startswith("_")]
    return (*names, "__init__", *(["__call__"] if hasattr(base, "__call__") else []))  # noqa: B004


@st.composite
def cases(draw: Any) -> PluginFile:
    """Commands with plug-ins."""
    kind = draw(st.sampled_from([kind for kind in KINDS for _ in range(1 if kind == "attack" else 3)]))
    argv = draw(st.sampled_from(ARGV[kind]) if draw(st.integers(0, 2)) else st.sampled_from(FOR_ALL))
    if argv[0] == "run":
        argv = (*argv, "--quiet", "--jobs", "1", "--out", draw(st.sampled_from([BLOCKED, BLOCKED, "o"])))
    first = draw(st.sampled_from(AT_IMPORT)) if draw(st.integers(0, 7)) == 0 else ""
    if draw(st.integers(0, 9)) == 0:
        text = HEAD + first + "\n" + draw(st.sampled_from(SHORT))
    else:
        text = HEAD + _method(draw, kind) + first + "\n" + _card(draw, kind)
    broken = tuple(draw(st.lists(byte_changes, min_size=1, max_size=2))) if draw(st.integers(0, 19)) == 0 else ()
    return PluginFile((*argv, "--plugin", FILE), "", text=text, bytes=broken)


def _method(draw: Any, kind: Kind) -> str:
    """The lines of a method."""
    base, body = draw(st.sampled_from(BASES[kind])), draw(st.sampled_from(BODIES))
    text = METHODS.format(kind=kind, base=base)
    made = registry.find(kind, base).load()
    if isinstance(made, type):
        return text + OF_CLASS.format(name=draw(st.sampled_from(_overridable(made))), body=body)
    if kind == "dataset" and draw(st.booleans()):
        field = draw(st.sampled_from(sorted(Dataset.__dataclass_fields__)))
        body = f"import dataclasses; return dataclasses.replace(good(), {field}={draw(st.sampled_from(OF_DATA))})"
    parameters = "data_dir=None" if kind == "dataset" else "labels, n_clients, rng, options"
    given = "data_dir" if kind == "dataset" else "labels, n_clients, rng, options"
    return text + OF_FUNCTION.format(parameters=parameters, parameters_given=given, body=body)


def _card(draw: Any, kind: Kind) -> str:
    """The lines of a card, and of its options."""
    given = {"name": "'mine'", "kind": repr(kind), "title": "'Mine'", "target": "Mine", "options": "BASE.options"}
    given |= {"goal": "BASE.goal", "form": "BASE.form", "usual": "BASE.usual"}
    options, how = "", draw(st.integers(0, 5))
    if how == 0:
        given["target"] = draw(st.sampled_from(TARGETS))
    if how == 1:
        options, given["options"] = draw(st.sampled_from(OPTIONS)), "Options"
    if how == 2:
        name = draw(st.sampled_from([*OF_CARD, "nonesuch"]))
        given[name] = draw(st.one_of(st.sampled_from(VALUES), odd.texts(nul=True).map(repr)))
    return f"{options}CARD = Card({', '.join(f'{name}={value}' for name, value in given.items())})\n"
