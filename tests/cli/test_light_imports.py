"""Looking around is instant: help, list and show import no numerical library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "torchvision", "torchmetrics", "sklearn", "pandas", "scipy.stats", "matplotlib", "joblib")

CODE = """
import sys
from fedarena.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as done:
    code = done.code
import json
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""


def run(*args: str, cwd: Path) -> tuple[str, set[str]]:
    """What a command printed, and the modules that it had imported when it ended."""
    env = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run([sys.executable, "-c", CODE, *args], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return done.stdout, set(modules)


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("--help", "COMMAND"),
        ("run --help", "--defense"),
        ("list", "fedavg"),
        ("list defense --json", '"name": "dbcl"'),
        ("show dbcl", "defense.ratio"),
        ("show dlg", "attack."),
        ("show training --json", "training.rounds"),
    ],
)
def test_no_numerical_library_is_imported(line: str, printed: str, tmp_path: Path) -> None:
    output, modules = run(*line.split(), cwd=tmp_path)
    assert printed in output
    assert not modules & set(HEAVY)


def test_help_needs_no_rich(tmp_path: Path) -> None:
    assert "rich" not in run("--help", cwd=tmp_path)[1]
    assert "rich" in run("list", cwd=tmp_path)[1]  # so the line above can fail


def test_a_run_does_not_import_torch_s_compiler(tmp_path: Path) -> None:
    """It takes as long as torch itself, in every process. Here memory is counted, and gradients are vectorised."""
    line = "run --defense=dp-sgd --attack=last-layer-label --rounds=2 --clients=4 --model=mlp --jobs=1 --json --quiet"
    output, modules = run(*line.split(), cwd=tmp_path)
    assert json.loads(output)["records"]
    assert "torch" in modules
    assert "torch._dynamo" not in modules
