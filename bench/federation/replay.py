"""Replays calls of defenses that are not this package's, to see that their results follow from what they were given.

A rule could look up in its callers who is corrupted. So some calls are repeated in a fresh process, which has nothing
but what the contract gives. The results must be the same, bit for bit. Those of a user's own objects, which no other
process has, are repeated at once: hidden state shows there, too.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from fedarena.core.errors import ToldByProcess, describe
from fedarena.core.fresh_process import ask
from fedarena.core.global_generators import generators_of
from fedarena.core.request_loop import Say
from fedarena.federation import compose
from fedarena.federation.spec import MethodSpec
from fedarena.problem.task import Task

Result = TypeVar("Result")

FIRST = 10
"""One call is of the first rounds, and one is of the rest."""


@dataclass(eq=False)
class Replays:
    """The calls of one defense that are replayed; none by default.

    Attributes:
        names: the parts that are not this package's. watched: the calls (`_call_of`) that these parts decide.
        here: whether a part is an object of the user's session.
        spec: the defense. task: what it is made with, as a pickle from before it was made.
        chosen: from which rounds on the next call is replayed.
        calls: what was called in which round, what it was given as a pickle, and the digest of its result.
        repeated: the digests of the same calls here.
    """

    names: str = ""
    here: bool = False
    watched: frozenset[str] = frozenset()
    spec: MethodSpec = field(default_factory=lambda: MethodSpec(""))
    task: bytes = b""
    chosen: frozenset[int] = frozenset()
    calls: list[tuple[int, str, bytes, str]] = field(default_factory=list)
    repeated: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of_defense(cls, spec: MethodSpec, task: Task) -> Replays:
        """The server's or the nodes' steps, and secure sums."""
        parts = compose.added("defense", spec)
        if not parts:
            return cls()
        kinds, rounds = {kind for kind, _ in parts}, task.schedule.rounds
        steps, sums = {"aggregate", "mix"} if kinds - {"secure"} else set(), {"sum", "sum without messages"}
        # By the operating system's randomness, so that no method can know them.
        chosen = {secrets.randbelow(min(FIRST, rounds))}
        if rounds > FIRST:
            chosen.add(FIRST + secrets.randbelow(rounds - FIRST))
        return cls(
            names=", ".join(claim.name for _, claim in parts),
            here=not all(claim.foreign for _, claim in parts),
            watched=frozenset(steps | (sums if "secure" in kinds else set())),
            spec=spec,
            task=pickle.dumps(task),
            chosen=frozenset(chosen),
        )

    def call(self, t: int, what: str, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function in round t, whose last argument is a stream; remember the call if it is to be replayed."""
        if what not in self.watched or not self._due(t, what):
            return _called(function, args)
        given = pickle.dumps(args)
        result = _called(function, args)
        self.calls.append((t, what, given, digest(result)))
        if self.here:
            self.repeated.append((digest(_called(function, pickle.loads(given))), ""))
        return result

    def _due(self, t: int, what: str) -> bool:
        """Whether a call is the first since a chosen round, or of the same round as the first one."""
        rounds = [known for known, other, *_ in self.calls if other == what]
        return t in rounds or any(start <= t and not any(start <= known for known in rounds) for start in self.chosen)

    def complaint(self, device: str) -> str:
        """The first call whose result does not follow from what it was given; empty where there is none."""
        if not self.calls:
            return ""
        try:
            given = [call[:3] for call in self.calls]
            told = self.repeated or json.loads(
                ask("fedarena.federation.replay", (self.spec.bare, self.task, given), device)
            )
        except ToldByProcess as error:
            return f"{self.names} cannot be replayed: {error}"
        for (t, what, _, expected), (found, why) in zip(self.calls, told, strict=True):
            if found != expected:
                return (
                    f"{self.names}: the result of {what} in round {t} does not follow from what it was given: "
                    f"it looked elsewhere, or it keeps hidden state{f' ({why})' if why else ''}"
                )
        return ""


NO_REPLAYS = Replays()
"""For methods that are not replayed."""


def _called(function: Callable[..., Result], args: tuple[Any, ...]) -> Result:
    """What a function returns. What it draws from global generators follows from its last argument, a stream."""
    with generators_of(args[-1]):
        return function(*args)


def digest(result: Any) -> str:
    """A hash of every bit of a result made of tensors, numbers and texts."""
    sha = hashlib.sha256()
    _add(result, sha.update)
    return sha.hexdigest()


def _add(value: Any, update: Callable[[bytes], object]) -> None:
    if isinstance(value, Tensor):
        update(repr((value.dtype, tuple(value.shape))).encode())
        update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        return
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        value = [part for pair in value.items() for part in pair]
    if not isinstance(value, list | tuple):
        update(repr(value).encode())
        return
    update(f"[{len(value)}".encode())
    for one in value:
        _add(one, update)


def _call_of(defense: Any, t: int, what: str) -> Callable[..., Any]:
    """The function of a defense that was called."""
    calls: dict[str, Callable[[], Callable[..., Any]]] = {
        "aggregate": lambda: defense.in_round(t).aggregate,
        "mix": lambda: defense.in_round(t).mix,
        "sum": lambda: defense.secure,
        "sum without messages": lambda: defense.secure.without_messages,
    }
    return calls[what]()


def _replay(spec: MethodSpec, task: bytes, t: int, what: str, given: bytes) -> tuple[str, str]:
    """The digest of the result and no error, or none and the error."""
    try:
        defense = compose.make_defense(spec, pickle.loads(task))
        return digest(_called(_call_of(defense, t, what), pickle.loads(given))), ""
    except Exception as error:
        return "", describe(error)


def work(request: Any, say: Say) -> bytes:
    spec, task, calls = request
    return json.dumps([_replay(spec, task, *call) for call in calls]).encode()
