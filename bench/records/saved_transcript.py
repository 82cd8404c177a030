"""Reads a transcript that `bench run --save-transcript` wrote (`fedarena.records.transcript_files`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError
from safetensors.torch import load

from fedarena.core.errors import UserError
from fedarena.core.files import read_bytes, read_json
from fedarena.core.short_repr import ShortRepr
from fedarena.core.tensors import Tensors
from fedarena.problem.task import Batch
from fedarena.records.json_schema import anything, each, fields, flag, named, number, text, whole
from fedarena.records.transcript_files import (
    BETWEEN_NODES,
    CLIENT,
    INDEX,
    LAYOUT,
    OF_CLIENTS,
    SERVER,
    TRUTH,
    WIRES,
    file_name,
)

ROUND = fields(
    {
        "index": whole,
        "participants": each(whole),
        "averaged": each(whole),
        "step_size": number,
        "shapes": named(named(anything)),
        "files": named(fields({"name": text, "sha256": text})),
    }
)
TRANSCRIPT = fields(
    {
        "run": named(anything),
        "client_sizes": each(whole),
        "uploads": text,
        "truth": flag,
        "sees": named(named(each(text))),
        "rounds": each(ROUND),
    }
)


@dataclass(frozen=True, repr=False)
class SavedRound(ShortRepr):
    """One round.

    Attributes:
        index: the round's number t.
        participants: the sampled clients. averaged: those whose uploads make up the server's step.
        step_size: the server's learning rate on the aggregated upload.
        wires, server, truth: the tensors of the round's files, by their names there; {} where there is no such file.
    """

    index: int
    participants: tuple[int, ...]
    averaged: tuple[int, ...]
    step_size: float
    wires: Tensors
    server: Tensors
    truth: Tensors

    @property
    def broadcast(self) -> Tensors:
        """What the server sent."""
        return _below("broadcast", self.wires)

    @property
    def uploads(self) -> dict[int, Tensors]:
        """What each client sent; with a secure sum, what it would have sent in clear, which is among the truth."""
        return _by_client("upload", {**self.wires, **self.truth})

    @property
    def statistics(self) -> dict[int, Tensors]:
        """The statistics of batch normalisation that each client sent beside its upload; {} where none did."""
        return _by_client("statistics", self.wires)

    @property
    def messages(self) -> dict[int, Tensors]:
        """With a secure sum, what each client sent in place of its upload: `vector` [d]."""
        return _by_client("message", self.wires)

    @property
    def edges(self) -> dict[tuple[int, int], Tensors]:
        """Without a server, what one node sent another, by sender and receiver; else {}."""
        found: dict[tuple[int, int], Tensors] = {}
        for name, t in _below("edge", self.wires).items():
            ends, _, rest = name.partition("/")
            sender, _, receiver = ends.partition("-")
            found.setdefault((int(sender), int(receiver)), {})[rest] = t
        return found

    @property
    def models(self) -> dict[int, Tensors]:
        """Without a server, the model with which each node began the round, if the truth is here; else {}."""
        return _by_client("node", self.truth)

    @property
    def mean(self) -> Tensors:
        """With a secure sum, the mean of the uploads of `averaged`, weighted by numbers of samples; else {}."""
        return _below("mean", self.wires)

    @property
    def before(self) -> Tensors:
        """The server's parameters W_t."""
        return _below("before", self.server)

    @property
    def after(self) -> Tensors:
        """The server's parameters W_{t+1}."""
        return _below("after", self.server)

    @property
    def secret(self) -> Tensors:
        """What the server drew for the round and did not send."""
        return _below("secret", self.server)

    @property
    def batches(self) -> dict[int, Batch]:
        """The samples behind each upload, if the truth is here; else {}."""
        masks = _by_client("mask", self.truth)
        return {c: Batch(t["x"], t["y"], masks.get(c, {})) for c, t in _by_client("batch", self.truth).items()}


@dataclass(frozen=True, repr=False)
class Transcript(ShortRepr):
    """What crossed the wires of a run, in the rounds that were written down.

    Attributes:
        facts: the content of `transcript.json`: run, trials, model, client_sizes, uploads, sees, …
        rounds: the rounds, ascending.
        truth: whether the samples were written, and are here; withheld: no file with them is here.
    """

    facts: Mapping[str, Any]
    rounds: tuple[SavedRound, ...]
    truth: Literal["here", "withheld", "not written"]

    def seen_by(self, party: str) -> dict[int, Tensors]:
        """The tensors that a party (server, client, eavesdropper, outsider) sees, by round and by their names.

        A client's own samples, and with a secure sum its own upload, are there only if the truth is.

        Raises:
            UserError: an unknown party.
        """
        sees: Mapping[str, Any] = self.facts["sees"]
        if party not in sees:
            raise UserError(f"option 'party' is '{party}', allowed: {', '.join(sees)}")
        seen: dict[int, Tensors] = {}
        for r in self.rounds:
            if party == "client" and CLIENT not in r.participants:
                continue
            files = {WIRES: r.wires, SERVER: r.server, TRUTH: r.truth}
            found = {
                name: t
                for kind, beginnings in sees[party].items()
                for name, t in files.get(kind, {}).items()
                if name.startswith(tuple(beginnings))
            }
            if found:
                seen[r.index] = found
        return seen


def read_transcript(folder: str | Path) -> Transcript:
    """The transcript in a folder of one run, such as `wires/dbcl-seed-0`.

    Raises:
        UserError: there is none, or its files are not what was written.
    """
    path = Path(folder)
    try:
        index = read_bytes(path / INDEX)
    except OSError as error:
        within = ", ".join(str(p.parent) for p in _inside(path))
        hint = f"; it holds those of {within}" if within else ""
        raise UserError(f"there is no transcript in {path} ({error.strerror or error}){hint}") from None
    try:
        facts: Any = read_json(index)
        fields({"layout": whole})(facts, "")
        if facts["layout"] != LAYOUT:
            raise ValueError(f"its layout is {facts['layout']}, and this version reads {LAYOUT}")
        TRANSCRIPT(facts, "")
        truth = _truth(path, facts)
        kinds = [WIRES, *([SERVER] * (facts["uploads"] != BETWEEN_NODES)), *([TRUTH] * (truth == "here"))]
        return Transcript(facts, tuple(_read_round(path, r, kinds) for r in facts["rounds"]), truth)
    except OSError as error:
        name = Path(error.filename or "").name
        raise UserError(f"the transcript in {path} is damaged: {name}: {error.strerror or error}") from None
    except (ValueError, SafetensorError) as error:
        raise UserError(f"the transcript in {path} is damaged: {error}") from None


def _truth(path: Path, facts: Mapping[str, Any]) -> Literal["here", "withheld", "not written"]:
    if not facts["truth"]:
        return "not written"
    return "here" if any((path / file_name(r["index"], TRUTH)).exists() for r in facts["rounds"]) else "withheld"


def _inside(path: Path) -> Iterator[Path]:
    yield from sorted(path.glob(f"[!.]*/{INDEX}"))


def _read_round(path: Path, r: Mapping[str, Any], kinds: Sequence[str]) -> SavedRound:
    content = {kind: _read(path, r, kind) for kind in kinds}
    return SavedRound(
        index=r["index"],
        participants=tuple(r["participants"]),
        averaged=tuple(r["averaged"]),
        step_size=r["step_size"],
        wires=content[WIRES],
        server=content.get(SERVER, {}),
        truth=content.get(TRUTH, {}),
    )


def _read(path: Path, r: Mapping[str, Any], kind: str) -> Tensors:
    """A file of a round. Raises ValueError for one that was changed, and OSError for one that is not there."""
    name = file_name(r["index"], kind)  # not the one in the index, which could be the path of any file
    data = read_bytes(path / name)
    if hashlib.sha256(data).hexdigest() != r["files"].get(kind, {}).get("sha256"):
        raise ValueError(f"{name} was changed after it was written")
    tensors = load(data)
    names = list(_names(r["shapes"].get(kind, {}), r["participants"]))
    if set(names) != set(tensors):
        raise ValueError(f"{name} does not hold what {INDEX} says of it")
    return {one: tensors[one] for one in names}


def _names(shapes: Mapping[str, Any], participants: Sequence[int]) -> Iterator[str]:
    """The names of all tensors, in the order of the first participant's."""
    yield from (name for name in shapes if name.split("/")[0] not in OF_CLIENTS)
    for client in participants:
        for first, _, rest in (name.split("/", 2) for name in shapes if name.split("/")[0] in OF_CLIENTS):
            yield f"{first}/{client}/{rest}"


def _below(first: str, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What lies under a first part of a name, without that part."""
    return {name[len(first) + 1 :]: t for name, t in tensors.items() if name.startswith(f"{first}/")}


def _by_client(first: str, tensors: Tensors) -> dict[int, Tensors]:
    found: dict[int, Tensors] = {}
    for name, t in _below(first, tensors).items():
        client, _, rest = name.partition("/")
        found.setdefault(int(client), {})[rest] = t
    return found
