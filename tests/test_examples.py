"""The files of examples/: each is short, and runs by `--plugin` and through the Python API."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.paths import ROOT
from helpers.plugin_files import forgotten
from helpers.repeatable import repeatable

import fedarena as fa
from fedarena.cli import main

EXAMPLES = ROOT / "examples"
MOST_LINES = {
    "my_defense": 15,
    "my_rule": 10,
    "my_privacy_attack": 20,
    "my_poisoning": 15,
    "my_dataset": 10,
    "my_model": 10,
    "short_rule": 15,
    "short_defense": 15,
    "short_privacy_attack": 15,
    "short_poisoning": 15,
}
SHORT: dict[str, dict[str, Any]] = {
    "my_rule": {"defense": "middle", "attack": "sign-flip", "model": "mlp", "clients": 6, "corrupted": 1},
    "my_defense": {"defense": "signs", "attack": "last-layer-label"},
    "my_privacy_attack": {"defense": "fedavg", "attack": "same-direction", "party": "server", "batch_size": 8},
    "my_poisoning": {"defense": "median", "attack": "backwards"},
    "my_dataset": {"defense": "fedavg", "attack": "last-layer-label", "dataset": "wines", "model": "mlp"},
    "my_model": {"defense": "fedavg", "attack": "last-layer-label", "model": "small"},
    "short_rule": {"defense": "short-middle", "attack": "sign-flip", "model": "mlp", "clients": 6, "corrupted": 1},
    "short_defense": {"defense": "short-signs", "attack": "last-layer-label"},
    "short_privacy_attack": {"defense": "fedavg", "attack": "short-labels", "party": "server", "batch_size": 8},
    "short_poisoning": {"defense": "median", "attack": "short-backwards"},
}
NEW = {
    "my_rule": "middle",
    "my_defense": "signs",
    "my_privacy_attack": "same-direction",
    "my_poisoning": "backwards",
    "short_rule": "short-middle",
    "short_defense": "short-signs",
    "short_privacy_attack": "short-labels",
    "short_poisoning": "short-backwards",
}
SECRET = "0123456789abcdef" * 2

pytestmark = pytest.mark.usefixtures("briefly_alone")


def test_every_example_is_tried() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SHORT) == set(MOST_LINES)


@pytest.mark.parametrize(("name", "most"), MOST_LINES.items())
def test_an_example_is_short(name: str, most: int) -> None:
    """Lines with code, imports and card included, without the docstring."""
    text = (EXAMPLES / f"{name}.py").read_text()
    docstring = ast.parse(text).body[0].end_lineno
    lines = [line for line in text.splitlines()[docstring:] if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= most


@pytest.mark.parametrize("name", SHORT)
def test_an_example_gives_the_same_records_in_the_shell_and_in_python(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"rounds": 6, "jobs": 1, "secret": SECRET, **SHORT[name]}
    plugin = EXAMPLES / f"{name}.py"
    words = [f"--{option.replace('_', '-')}={value}" for option, value in given.items()]
    with forgotten():
        assert main(["run", *words, "--json", "--quiet", f"--out={tmp_path}", f"--plugin={plugin}"]) == 0
        shell = json.loads(capsys.readouterr().out)["records"]
    with forgotten():
        python = fa.run(plugin=plugin, **given)
    assert repeatable(python) == repeatable(shell)
    assert all(record["status"] in ("ok", "n/a") for record in shell)
    assert any(record["status"] == "ok" for record in shell)
    if name in NEW:
        assert any(record["origins"].get(NEW[name]) == plugin.name for record in shell)


def test_two_workers_know_the_files_too() -> None:
    """Those of the first file do not know the second."""
    for name in ("my_rule", "short_rule"):
        given = {"rounds": 4, "secret": SECRET, **SHORT[name]}
        with forgotten():
            one, two = (fa.run(plugin=EXAMPLES / f"{name}.py", jobs=jobs, **given) for jobs in (1, 2))
        assert repeatable(one) == repeatable(two)
