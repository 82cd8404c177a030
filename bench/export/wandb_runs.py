"""Records as runs of Weights & Biases: a project for each suite or pairing, a run for each record."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fedarena.core.errors import UserError
from fedarena.core.files import prepare_folder
from fedarena.export.facts import Exported, curves, labels, metrics, outcome, parameters, title
from fedarena.interop.library import release

DONE = "fedarena-exported"
"""A file in the folder of a run that was exported as a whole."""


def export(items: Sequence[Exported], out: str | None) -> str:
    """Log the records that the folder does not have yet. Returns what was done.

    A run has the record's key as its id. So a second upload writes it anew, and no run is there twice.

    Args:
        out: the folder that gets `wandb/`; None: the working folder.

    Raises:
        UserError: wandb is missing, or refuses, as it does without an account unless WANDB_MODE is offline.
    """
    release("wandb", "wandb", "--to wandb")
    import wandb

    folder = Path(out or ".")
    prepare_folder(folder)
    new = [item for item in items if not any(folder.glob(f"wandb/*run-*-{item.record['key']}/{DONE}"))]
    try:
        for item in new:
            for unfinished in folder.glob(f"wandb/offline-run-*-{item.record['key']}"):
                shutil.rmtree(unfinished)  # of an export that was killed
            _log(item, folder)
    except wandb.errors.Error as error:
        text = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"wandb refuses: {text}; WANDB_MODE=offline needs no account") from None
    return outcome(len(new), items, "project", folder / "wandb")


def _log(item: Exported, folder: Path) -> None:
    """Log a record. What wandb would say of this machine is left out: the record says where it was measured."""
    import wandb

    record, tags = item.record, labels(item.record)
    quiet = wandb.Settings(
        console="off",
        silent=True,
        disable_code=True,
        disable_git=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    run = wandb.init(
        project=re.sub(r"[/\\#?%:]", "-", item.experiment)[:128],
        id=record["key"],
        name=title(record)[:128],
        dir=str(folder),
        config={**parameters(record), **tags},
        tags=[record["status"].replace("/", "")],
        reinit="create_new",
        settings=quiet,
    )
    by_round: dict[int, dict[str, float]] = defaultdict(dict)
    for name, points in curves(record).items():
        for t, value in points:
            by_round[t][name] = value
    for t in sorted(by_round):
        run.log(by_round[t], step=t)
    run.summary.update(metrics(record))
    file = Path(run.dir) / "record.json"
    file.write_text(json.dumps(record, indent=2) + "\n")
    run.save(str(file), base_path=run.dir, policy="now")
    run.finish(exit_code=1 if record["status"] == "failed" else 0)
    (Path(run.dir).parent / DONE).touch()
