"""Files of suites: a valid one with one or more changes of a type, a value, a key or the nesting, or of bytes."""

from __future__ import annotations

import json
import math
import shutil
import tomllib
from dataclasses import dataclass, fields
from typing import Any

from fuzz import odd
from fuzz.case import RESULTS, SUITE, Case, Ground
from fuzz.changes import MARK, Bytes, Change, byte_changes, changes, found, paths
from fuzz.judge import BLOCKED
from hypothesis import strategies as st

from fedarena.core import registry
from fedarena.core.threat import FORMS, KNOWLEDGE, READERS
from fedarena.problem.schedule import Schedule

COUNTS = ("clients", "corrupted", "assumed_corrupted", "rounds", "batch_size", "minutes", "seeds")
RAW = (
    "nan",
    "inf",
    "-inf",
    "+inf",
    "0x10",
    "1e400",
    "9" * 5000,
    "1979-05-27",
    "07:32:00",
    '"""a\nb"""',
    "[" * 900,
    "{a=" * 600,
)
ARGV = (
    *(("suite", "plan", SUITE, "--quiet", "--out", "o"), ("suite", "plan", SUITE, "--quiet", "--out", "o", "--json")),
    *(
        ("suite", "plan", SUITE, "--quiet", "--out", RESULTS),
        ("suite", "run", SUITE, "--quiet", "--jobs", "1", "--out", f"{BLOCKED}/o"),
    ),
)
NAMES = tuple(sorted({name for known in registry.registries().values() for name in known.names()}))
WORDS = (*NAMES, *READERS, *FORMS, *KNOWLEDGE, "read", "poison", "krum+nnm", "delayed+sign-flip", "dbcl+pairwise-masks")
OPTIONS = tuple(
    sorted({f.name for name in NAMES for card in registry.find_any(name) for f in fields(card.options)})
    + sorted(f.name for f in fields(Schedule))
)
values: st.SearchStrategy[Any] = st.one_of(
    odd.values,
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.integers(-3, 20),
    st.sampled_from([-1, -1.5, math.nan, math.inf, -math.inf, 2**63 - 1, 2**31, 10**23, 0.0, 1e-320]),
)


@dataclass(frozen=True)
class SuiteFile(Case):
    """`bench suite` with a changed file."""

    changes: tuple[Change, ...] = ()
    raw: tuple[str, ...] = ()
    bytes: tuple[Bytes, ...] = ()

    def lay(self, folder: Any, ground: Ground) -> None:
        document = tomllib.loads((ground.folder / SUITE).read_text())
        for change in self.changes:
            document = change.apply(document)
        content = (toml(document) + "".join(f"\n{line}" for line in self.raw)).encode("utf-8", "surrogatepass")
        for change in self.bytes:
            content = change.apply(content)
        (folder / SUITE).write_bytes(content)
        if RESULTS in self.argv:
            shutil.copytree(ground.folder / RESULTS, folder / RESULTS)


def toml(value: Any, top: bool = True) -> str:
    """A document as TOML with inline tables, as far as TOML can say it; what it cannot say makes the file bad."""
    if isinstance(value, dict) and top:
        return "\n".join(f"{json.dumps(name)} = {toml(one, False)}" for name, one in value.items())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(one, False)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(one, False) for one in value) + "]"
    if isinstance(value, str):
        raw = value.removeprefix(MARK)
        return raw if raw != value else json.dumps(value, ensure_ascii=max(value, default="") > "\ud7ff")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value)


def nonsense(document: Any) -> str:
    """What of a suite's file makes no sense."""
    for path in paths(document):
        value, name = found(document, path), next((part for part in reversed(path) if isinstance(part, str)), "")
        if isinstance(value, float) and not math.isfinite(value):
            return f"a number that is not finite in {path[0]}"
        if name in COUNTS and type(value) in (int, float) and value < 0:
            return f"{name} below 0"
    return ""


@st.composite
def cases(draw: Any, base: Any) -> SuiteFile:
    """Changed files. `base` is the unchanged document."""
    argv = draw(st.sampled_from(ARGV))
    some = tuple(
        draw(st.lists(changes(base, values, st.sampled_from(WORDS), st.sampled_from(OPTIONS)), min_size=1, max_size=3))
    )
    raw = draw(
        st.sampled_from([(f"extra = {text}",) for text in RAW]) if draw(st.integers(0, 19)) == 0 else st.just(())
    )
    broken = tuple(draw(st.lists(byte_changes, max_size=2))) if draw(st.integers(0, 19)) == 0 else ()
    document = json.loads(json.dumps(base))
    for change in some:
        document = change.apply(document)
    return SuiteFile(argv, "" if raw or broken else nonsense(document), changes=some, raw=raw, bytes=broken)
