"""Records as runs of MLflow: an experiment for each suite or pairing, a run for each record."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedarena.core.errors import UserError
from fedarena.core.files import prepare_folder, resolved
from fedarena.export.facts import Exported, curves, labels, metrics, outcome, parameters, title
from fedarena.interop.library import release
from fedarena.records.schema import Record

if TYPE_CHECKING:
    from mlflow import MlflowClient

KEY = "fedarena.key"
AT_ONCE = {"metrics": 1000, "params": 100}
"""How many entries MLflow takes in one call."""
LONGEST = 5000
"""Letters of a parameter or a tag at most; the artifact has the whole text."""


def export(items: Sequence[Exported], out: str | None) -> str:
    """Log the records that the store does not have yet. Returns what was done.

    Args:
        out: a tracking URI; or a folder, which gets `mlflow.db` and the artifacts; None: MLflow's own place.

    Raises:
        UserError: MLflow is missing, or refuses.
    """
    release("mlflow", "mlflow", "--to mlflow")
    from mlflow import MlflowClient, get_tracking_uri
    from mlflow.exceptions import MlflowException

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)  # the making of a database is no news
    uri, artifacts = (get_tracking_uri(), None) if out is None else _store(out)
    experiments = dict.fromkeys(item.experiment for item in items)
    new = 0
    try:
        client = MlflowClient(tracking_uri=uri)
        for experiment in experiments:
            number = _experiment(client, experiment, artifacts)
            there = _finished_keys(client, number)
            for item in items:
                if item.experiment == experiment and item.record["key"] not in there:
                    _log(client, number, item.record)
                    new += 1
    except MlflowException as error:
        raise UserError(_shown(f"MLflow at {uri} refuses: {str(error).splitlines()[0]}")) from None
    return outcome(new, items, "experiment", _shown(uri))


def _shown(text: str) -> str:
    """A text whose URIs have no user's name and password."""
    return re.sub(r"//[^/@\s]*@", "//", text)


def _store(out: str) -> tuple[str, str | None]:
    """The tracking URI, and where artifacts go if it is a folder. Raises UserError."""
    if re.match(r"[a-z][a-z0-9+.-]+:", out) or out == "databricks":
        return out, None
    folder = resolved(out)
    prepare_folder(folder)
    return f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()


def _experiment(client: MlflowClient, name: str, artifacts: str | None) -> str:
    """The experiment's number; it is made unless it is there. Raises UserError for a deleted one."""
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name, artifact_location=artifacts))
    if found.lifecycle_stage == "deleted":
        raise UserError(f"MLflow has '{name}' among its deleted experiments: restore it, or delete it for good")
    return str(found.experiment_id)


def _finished_keys(client: MlflowClient, experiment: str) -> set[str]:
    """The keys of the records that are there. What an export that was killed left is deleted."""
    keys, token = set(), None
    while True:
        page: Any = client.search_runs([experiment], max_results=1000, page_token=token)
        for run in page:
            key = run.data.tags.get(KEY)
            if key is not None and run.info.status == "RUNNING":
                client.delete_run(run.info.run_id)
            elif key is not None:
                keys.add(key)
        token = page.token
        if not token:
            return keys


def _log(client: MlflowClient, experiment: str, record: Record) -> None:
    """Log a record. Its run is finished when everything is there."""
    from mlflow.entities import Metric, Param

    now = int(1000 * time.time())
    tags = {name: value[:LONGEST] for name, value in labels(record).items()}
    run = client.create_run(experiment, start_time=now, tags=tags, run_name=title(record)).info.run_id
    numbers = [(name, value, 0) for name, value in metrics(record).items()]
    numbers += [(name, value, t) for name, points in curves(record).items() for t, value in points]
    entries: dict[str, list[Any]] = {
        "metrics": [Metric(_metric_name(name), value, now, step) for name, value, step in numbers],
        "params": [Param(name, value[:LONGEST]) for name, value in parameters(record).items()],
    }
    for kind, some in entries.items():
        for i in range(0, len(some), AT_ONCE[kind]):
            client.log_batch(run, **{kind: some[i : i + AT_ONCE[kind]]})
    client.log_text(run, json.dumps(record, indent=2) + "\n", "record.json")
    client.set_terminated(run, "FAILED" if record["status"] == "failed" else "FINISHED")


def _metric_name(name: str) -> str:
    """The name with the letters that MLflow takes."""
    return re.sub(r"[^\w\-. /]", "_", name)
