"""Records: one JSON object a trial, named by the hash of its fully resolved configuration.

Schema 6. Keys, in order:

    schema, key                   version of this layout; sha256 of the identity below, 20 hex digits
    trial                         key of the trial: the same without `reading`; and how many records the trial gave, one
                                  for each reading, without all of which it counts for nothing
    problem                       data set, its checksum and provenance, model, partition, clients, how many of
                                  them are corrupted when attacked, how many the server expects
    defense, attack, goal         what met what; goal is what an inference attack is after, attack `none` is a run in
                                  which everybody was honest
    party, form, knows, reading   who attacked, and how; `reading` is the way the party looked at what it saw, `knows`
                                  what corrupted clients know
    seed, status, reason          status is ok, n/a, diverged or failed; the last three carry a reason
    metrics                       what the judge measured
    series                        by name, what it measured round by round: [round, value]; and `roc`, of rankings:
                                  [false positive rate, true positive rate]
    scores                        leak and privacy, or integrity, in [0, 1]
    utility                       accuracy of the defended, unattacked model and of FedAvg on the same problem
    attacked                      of poisoned runs: accuracy by round, and what the server made of the uploads by round;
                                  from when on it may do harm, and strengths that follow from a formula of the attack's
    tuned                         of attacks that chose their strength: what they tried and chose, and as `ran_with`
                                  the attack's options of the run, where `options` holds those that were given
    marks                         what must stand beside every number, such as that something was simulated
    guarantees                    what the protocol promises, such as epsilon and delta
    cost                          bytes_up, bytes_down per client and round; seconds of the training, attack_seconds of
                                  the attack and its judgement; peak_bytes of a client: what comes down, what it
                                  keeps, its batch and all tensors of its step, as `--client-memory` limits them
    options, versions             every option, resolved; version of every method
    origins                       of methods that are not this package's own, who they come from
    environment                   package, Python and library versions, machine, commit
    sum                           in the file alone: sha256 of all of the above, 20 hex digits, so that a record that
                                  was changed after it was written is no record

The identity is everything that determines the result: problem, defense, attack, party, form, knows, reading,
seed, options, versions, device. Timings, memory and environment are not in it, and neither is the
number of workers.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import tempfile
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fedarena import __version__
from fedarena.core.errors import UserError

SCHEMA = 6
IDENTITY = (
    *("schema", "problem", "defense", "attack", "party", "form", "knows", "reading", "seed", "options", "versions"),
)
VOLATILE = ("cost.seconds", "cost.attack_seconds", "cost.relative_seconds", "environment", "sum")
"""What may differ between two runs of one configuration."""

STATUSES = ("ok", "n/a", "diverged", "failed")

Record = dict[str, Any]


def key_of(record: Mapping[str, Any]) -> str:
    """20 hex digits of the sha256 of the identity, in canonical JSON."""
    return digest({name: record[name] for name in IDENTITY}, 20)


def digest(value: Any, digits: int = 64) -> str:
    """The first hex digits of the sha256 of a value in canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:digits]


def read_json(data: str | bytes) -> Any:
    """JSON as this package writes it. Raises ValueError for anything else, such as NaN, and says so in plain words."""

    def refuse(word: str) -> Any:
        raise ValueError(f"it holds {word}, which is no number")

    try:
        return json.loads(data.decode() if isinstance(data, bytes) else data, parse_constant=refuse)
    except UnicodeDecodeError:
        raise ValueError("it is no text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON from line {error.lineno}, column {error.colno} on") from None
    except RecursionError:
        raise ValueError("its lists and tables are nested too deeply") from None


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces; refuses NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def save(record: Record, folder: Path) -> Path:
    """Write a record to `folder`/<key>.json, atomically.

    Raises:
        UserError: the folder cannot be written.
    """
    path = folder / f"{record['key']}.json"
    content = json.loads(json.dumps(record, allow_nan=False))  # as it is read again, lists for tuples
    content.pop("sum", None)
    write_atomically(path, json.dumps({**content, "sum": digest(content, 20)}, indent=2) + "\n")
    return path


def take_sum(record: Record) -> None:
    """Take the sum off a record that was read. Raises ValueError where the rest is not what was written."""
    if record.pop("sum", None) != digest(record, 20):
        raise ValueError("it was changed after it was written: its sum is that of another content")


def prepare_folder(folder: Path, option: str = "out") -> None:
    """Create the folder that an option names and prove that it can be written. Raises UserError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"option '{option}' is {folder}, which cannot be written ({reason}): give a writable folder"
        ) from None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write beside the target, then rename: a killed run leaves the old file or the new one. Raises UserError."""
    data = content.encode() if isinstance(content, str) else content
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(f"cannot write {path}: {error.strerror or error}") from None
        raise


@cache
def environment() -> dict[str, Any]:
    """Where a record was made."""
    libraries = ("torch", "numpy", "scipy", "scikit-learn", "torchmetrics", "dp-accounting")
    return {
        "fedarena": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in libraries},
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": os.cpu_count(),
    }


def _commit() -> str | None:
    """The commit of a source checkout, or None for an installed package."""
    here = Path(__file__).resolve().parent
    if not (here.parent / "pyproject.toml").exists():
        return None
    asked = subprocess.run(
        ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return asked.stdout.strip() or None


def describe(error: Exception) -> str:
    """Type, message and innermost place of an exception, in one line."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} (in {frame.name}, {Path(frame.filename).name}:{frame.lineno})"
