"""CONTRIBUTING.md's example is the plug-in of tests/plugin, and that one is built, installed and run here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLUGIN = ROOT / "tests" / "plugin"
BLOCK = re.compile(r"^`(?P<path>\S+)`\n\n```\w+\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_page_shows_the_plugin_to_the_letter() -> None:
    shown = {match["path"]: match["code"] for match in BLOCK.finditer(PAGE)}
    files = [p for p in PLUGIN.rglob("*") if p.suffix in (".py", ".toml") and p.name != "__init__.py"]
    assert shown == {str(p.relative_to(PLUGIN)): p.read_text(encoding="utf-8") for p in files}
    assert len(shown) == 4


@pytest.fixture(scope="module")
def command() -> list[str]:
    """The page's `bench run` line."""
    (line,) = re.findall(r"^    bench (run .*)$", PAGE, re.MULTILINE)
    return str(line).split()


def test_the_page_s_command_runs_the_plugin_end_to_end(bench, plugin: Path, command: list[str]) -> None:
    done = bench(*command, "--rounds", "3", "--jobs", "2", "--json", "--quiet", path=plugin)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {(r["defense"], r["attack"], r["problem"]["dataset"]) for r in records} == {
        ("noisy", "mean-image", "stripes"),
        ("fedavg", "mean-image", "stripes"),
    }
    assert {r["status"] for r in records} == {"ok"}
    assert {r["party"] for r in records} == {"server", "client", "eavesdropper"}
    noisy = [r for r in records if r["defense"] == "noisy"]
    assert {r["options"]["defense"]["sigma"] for r in noisy} == {0.1}
    server = {r["defense"]: r for r in records if (r["party"], r["form"]) == ("server", "adaptive")}
    assert server["fedavg"]["metrics"]["cosine"] > 0.999
    assert server["noisy"]["metrics"]["cosine"] < 0.9  # the noise is really on the wire
    assert all(0 <= r["metrics"]["mse"] < 0.25 for r in records)


def test_the_plugin_s_methods_work_on_built_in_ones(bench, plugin: Path) -> None:
    line = "run --defense dbcl --attack mean-image --dataset digits --rounds 2 --jobs 1 --json --quiet"
    done = bench(*line.split(), path=plugin)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)["records"]
    assert {r["defense"] for r in records} == {"dbcl", "fedavg"}
    assert "ok" in {r["status"] for r in records}


def test_the_tree_on_the_page_is_the_tree() -> None:
    named = re.findall(r"^    (\w+)/ +→ (\S+)", PAGE, re.MULTILINE)
    assert {package for _, package in named} == {
        "fedarena",
        "fedarena.attacks",
        "fedarena.defenses",
        "fedarena.datasets",
    }
    assert all((ROOT / folder / "__init__.py").exists() for folder, _ in named)
