"""Writes what crossed the wires of a run as files that need nothing of this package: safetensors and JSON.

A run has a folder of its own, with these files for each round that was written down:

    round-0003.safetensors          what crossed the wires, which is what an eavesdropper reads
    round-0003.server.safetensors   what the server keeps to itself
    round-0003.truth.safetensors    the samples, only if they are asked for

Tensors are named by what they are:

    broadcast/NAME                  what the server sent
    upload/CLIENT/NAME              what a client sent; of a secure sum, which hides it, among the truth
    statistics/CLIENT/NAME          the statistics of batch normalisation that it sent beside it, if it did
    message/CLIENT/vector           with a secure sum, what the client sent in place of it [d]
    mean/NAME                       with a secure sum, the survivors' mean, which follows from all messages
    before/NAME, after/NAME         the server's parameters W_t and W_{t+1}
    secret/NAME                     what the server drew for the round
    batch/CLIENT/x, batch/CLIENT/y  the samples [steps, b, ...] behind an upload
    mask/CLIENT/NAME                what the model's layers drew for them, such as masks of dropout

Without a server there is no file of the server, and that of the wires holds what crossed all edges. An eavesdropper
reads one of them.

    broadcast/NAME                  in the first round, the public model
    edge/SENDER-RECEIVER/NAME       what one node sent another
    node/CLIENT/NAME                the model with which a node began the round, among the truth
    half/CLIENT/NAME                the node's model after its own steps, among the truth; so is `upload`

`transcript.json` says who took part, what the shapes are, and which tensors each party sees. Its shapes are in the
order of the tensors, which safetensors does not keep. It does not hold the run's secret.
`fedarena.records.saved_transcript` reads the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from fedarena.contracts.transcript import Round, cut
from fedarena.core.errors import UserError
from fedarena.core.files import prepare_folder, write_atomically
from fedarena.core.tensors import Tensors, row
from fedarena.core.threat import EVERYONE, VISIBILITY, Threat
from fedarena.federation.finished_run import FinishedRun
from fedarena.federation.spec import GroupSpec, TranscriptFolder
from fedarena.records.record_of import environment, identity_of
from fedarena.records.trial_key import trial_key

LAYOUT = 1
"""The version of the files' layout."""
WIRES, SERVER, TRUTH = "wires", "server", "truth"
"""The files of a round: what crossed, what the server keeps, and what nobody but the harness has."""
INDEX = "transcript.json"
BETWEEN_NODES = "between neighbours"
"""What `transcript.json` calls the uploads of a run without a server, which has no file of the server."""
OF_CLIENTS = ("upload", "statistics", "message", "batch", "mask", "node", "half")
"""The first parts of names whose second part is a client."""
CLIENT = Threat("client", "adaptive").client
"""The client that is curious where a party `client` attacks."""


def folder_of(spec: GroupSpec, place: TranscriptFolder) -> Path:
    """The folder of a run."""
    return place.folder / f"{spec.defense.label}-seed-{spec.seed}".replace(":", "-")


def require_new(groups: Sequence[GroupSpec], place: TranscriptFolder) -> None:
    """Raise UserError where a run's folder is there already, or none can be made."""
    prepare_folder(place.folder, "save-transcript")
    for path in dict.fromkeys(folder_of(group, place) for group in groups):
        if path.exists():
            raise UserError(f"option 'save-transcript' is {place.folder}, where {path.name} is already: name another")


def file_name(index: int, kind: str) -> str:
    """The name of a file of a round."""
    return f"round-{index:04d}{'' if kind == WIRES else f'.{kind}'}.safetensors"


def write_transcript(finished: FinishedRun, readers: Sequence[GroupSpec], place: TranscriptFolder) -> Path:
    """Write the rounds of a run that were written down, all of them or none, and return their folder.

    Args:
        readers: the groups whose attacks read the run.

    Raises:
        UserError: the folder cannot be written.
    """
    path = folder_of(finished.spec, place)
    temporary = Path(tempfile.mkdtemp(dir=place.folder, prefix=f".{path.name}."))
    try:
        rounds = [_write_round(finished, r, temporary, place.truth) for r in finished.run.rounds]
        text = json.dumps(_index(finished, readers, place.truth, rounds), indent=2, allow_nan=False)
        write_atomically(temporary / INDEX, text + "\n")
        os.chmod(temporary, 0o755)
        os.rename(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def _write_round(finished: FinishedRun, r: Round, folder: Path, truth: bool) -> dict[str, Any]:
    """Write the files of a round, and return what `transcript.json` says of it."""
    contents = {WIRES: crossed(r)}
    if not r.models:
        contents[SERVER] = kept(r)
    if truth:
        contents[TRUTH] = hidden(r)
    files = {}
    for kind, tensors in contents.items():
        apart = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
        name, data = file_name(r.index, kind), save(apart, {"round": str(r.index)})
        (folder / name).write_bytes(data)  # the folder gets its name when all are there, and sums tell lost bytes
        files[kind] = {"name": name, "sha256": hashlib.sha256(data).hexdigest()}
    return {
        "index": r.index,
        "participants": list(r.participants),
        "averaged": list(r.averaged or r.participants),
        "step_size": finished.problem.task.schedule.in_round(r.index).step_size,
        "files": files,
        "shapes": {kind: _shapes(tensors, r.participants[0]) for kind, tensors in contents.items()},
    }


def crossed(r: Round) -> Tensors:
    """What crossed the wires of a round. Uploads that a secure sum hides, or that stay with a node, did not."""
    found = _named("broadcast", r.down)
    if r.models:
        edges = [_named(f"edge/{i}-{j}", message) for (i, j), message in r.messages.items()]
        return found | {name: t for edge in edges for name, t in edge.items()}
    if r.wire is None:
        return found | _uploads(r) | _by_client("statistics", r, r.statistics)
    messages = {f"message/{client}/vector": r.wire[i] for i, client in enumerate(r.participants)}
    return found | messages | _named("mean", r.mean or {})


def kept(r: Round) -> Tensors:
    """What the server keeps to itself."""
    return _named("before", r.params) | _named("after", r.after) | _named("secret", r.secret)


def hidden(r: Round) -> Tensors:
    """What nobody but the harness has: all samples, and uploads that did not cross."""
    found = {} if r.wire is None and not r.models else _uploads(r)
    for i, client in enumerate(r.participants if r.models else ()):
        found |= _named(f"node/{client}", row(r.models, i)) | _named(f"half/{client}", row(r.halves, i))
    for client, batch in zip(r.participants, r.batches, strict=True):
        found |= {f"batch/{client}/x": batch.x, f"batch/{client}/y": batch.y}
        found |= _named(f"mask/{client}", batch.masks)
    return found


def _uploads(r: Round) -> Tensors:
    return _by_client("upload", r, r.ups)


def _by_client(what: str, r: Round, stacked: Tensors) -> Tensors:
    """Tensors stacked over the participants, each client's under a name of its own."""
    parts = [_named(f"{what}/{client}", row(stacked, i)) for i, client in enumerate(r.participants)]
    return {name: t for part in parts for name, t in part.items()}


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> Tensors:
    return {f"{prefix}/{name}": t for name, t in tensors.items()}


def _shapes(tensors: Tensors, first: int) -> dict[str, Any]:
    """Type and shape by name, in order. Of what each client has, the first participant's stand for all."""
    shown = {n: t for n, t in tensors.items() if n.split("/")[0] not in OF_CLIENTS or n.split("/")[1] == str(first)}
    return {name: [str(t.dtype).removeprefix("torch."), list(t.shape)] for name, t in shown.items()}


def _index(
    finished: FinishedRun, readers: Sequence[GroupSpec], truth: bool, rounds: list[dict[str, Any]]
) -> dict[str, Any]:
    """The content of `transcript.json`."""
    spec, task, data = finished.spec, finished.problem.task, finished.problem.provenance
    identities = [(t, identity_of(reader, t, data)) for reader in readers for t in reader.threats]
    identity = identity_of(spec, None, data)
    summed = finished.defense.secure is not None
    alone = next((r for r in finished.run.rounds if r.models), None)
    uploads = "summed securely" if summed else BETWEEN_NODES if alone else "in clear"
    return {
        "layout": LAYOUT,
        "run": {name: identity[name] for name in ("defense", "attack", "seed", "problem", "options", "versions")},
        "trials": [{"key": trial_key(one), "party": t.party, "form": t.form} for t, one in identities],
        "model": {
            "architecture": str(task.model),
            "parameters": {name: list(p.shape) for name, p in task.model.named_parameters()},
            "input_shape": list(task.input_shape),
            "classes": task.n_classes,
            "loss": task.schedule.loss,
        },
        "client_sizes": list(task.sizes),
        "uploads": uploads,
        "truth": truth,
        "sees": {party: _seen_of_edges(party, alone) if alone else _seen_by(party, summed) for party in EVERYONE},
        "rounds": rounds,
        "warnings": [*finished.warnings(), *([finished.run.not_replayed] if finished.run.not_replayed else [])],
        "environment": environment(),
    }


def _seen_by(party: Any, summed: bool) -> dict[str, list[str]]:
    """The beginnings of the names that a party sees, by file. A client sees the rounds in which it takes part."""
    visible, own = VISIBILITY[party], f"upload/{CLIENT}/"
    wires = ["broadcast/"] if visible.down else []
    truth = []
    if visible.ups:
        wires += ["message/", "mean/"] if summed else ["upload/", "statistics/"]
    if visible.own:
        wires += [] if summed else [own]
        truth = [f"batch/{CLIENT}/", f"mask/{CLIENT}/", *([own] if summed else [])]
    return {WIRES: wires, SERVER: ["before/", "after/", "secret/"] if visible.state else [], TRUTH: truth}


def _seen_of_edges(party: Any, r: Round) -> dict[str, list[str]]:
    """The same without a server: a client has its own edges and model, and those of who colludes with it."""
    view = cut([r], Threat(party, "adaptive")).get(r.index)
    if view is None:
        return {WIRES: [], TRUTH: []}
    edges = [f"edge/{i}-{j}/" for i, j in view.messages]
    own = [f"{what}/{CLIENT}/" for what in ("batch", "mask", "node", "upload")] if view.own_batch else []
    return {WIRES: ["broadcast/", *edges], TRUTH: [*own, *(f"half/{i}/" for i in view.halves)]}
