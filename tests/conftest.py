"""Shared fixtures: a subprocess that runs the real command, and the plug-in of tests/plugin, installed."""

from __future__ import annotations

import os

# One thread, as in every worker of the harness: on a busy machine a second OpenMP thread costs far more than
# it gives. Set before torch is imported, and inherited by the commands that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The width of whoever runs the tests, which pytest-xdist hands on, would fold the output that they read.
os.environ.pop("COLUMNS", None)

import gc
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Hashable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import pytest
from helpers.brief import call_briefly
from helpers.fresh_python import run_python
from helpers.paths import ROOT
from helpers.plugin_files import forgotten

from fedarena.cli import main
from fedarena.core.garbage import no_collection
from fedarena.core.method_caches import forget_methods
from fedarena.core.text import figures
from fedarena.goals import clean_run
from fedarena.goals.metrics import image_classifier
from fedarena.problem.alone import parties
from fedarena.runs import executors

LONG_FILES = (
    "test_laws.py",
    "test_planted.py",
    "test_degenerate_defenses.py",
    "test_every_method_acts.py",
    "test_control.py",
    "test_streams.py",
    "test_commands.py",
    "test_sealed_attack.py",
    "test_check.py",
    "test_api.py",
    "test_examples.py",
    "test_kills.py",
    "test_plugin_file.py",
    "test_batch_statistics.py",
    "test_packaged.py",
    "test_imprint.py",
    "test_spear.py",
    "test_fresh_process.py",
    "test_contributing.py",
    "test_membership_and_labels.py",
    "test_ranking_in_browser.py",
    "test_client_membership.py",
    "test_accountant.py",
    "test_sealed_poisoning.py",
    "test_every_option_acts.py",
    "test_inversion.py",
    "test_pages.py",
    "test_suite_run.py",
    "test_executors.py",
    "test_devices.py",
    "test_sampled_attackers.py",
    "test_suite_command.py",
    "test_rules_on_federations.py",
)
"""The files that take longest, the longest first."""


def pytest_configure(config: pytest.Config) -> None:
    """Give each process of pytest-xdist whole files, in the order of `pytest_collection_modifyitems`.

    By itself `-n` would divide a file among processes, each of which would compute the file's fixtures, and
    `--dist loadfile` would begin with the files of most tests.
    """
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, and never look through all that they hold for any later.

    Rewritten modules and twelve thousand tests are millions of objects, none of which is ever freed.
    """
    with no_collection():
        found = yield
    gc.freeze()
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no process works at the last of them while the others wait."""
    rank = {name: i for i, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Methods of its own that a test uses are unknown to the next, which may count the known ones."""
    with forgotten():
        yield


Bench = Callable[..., "subprocess.CompletedProcess[str]"]
"""bench(*args, path=None): run the command in a folder of its own, with `path` in front of PYTHONPATH."""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The command `bench` in a subprocess."""

    def call(*args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
        code = "import sys; from fedarena.cli import main; sys.exit(main(sys.argv[1:]))"
        return run_python(code, *args, cwd=tmp_path, path=path)

    return call


def install_plugin(source: Path, folder: Path) -> Path:
    """Build a distribution from a copy of `source` and install it below `folder`; returns what to put on the path."""
    copy, site = folder / "source", folder / "site"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    done = subprocess.run([*pip, "--target", str(site), str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forests of property inference have a fifth of their trees, and take a fifth of the time."""
    monkeypatch.setattr("fedarena.attacks.property.helpers.forest.TREES", 20)


_lightly_trained = lru_cache(image_classifier._trained.__wrapped__)


@pytest.fixture
def quick_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classifier that judges pictures of classes has had a fifth of its lessons, which take five seconds."""
    monkeypatch.setattr(image_classifier, "LESSONS", image_classifier.LESSONS // 5)
    monkeypatch.setattr(image_classifier, "_trained", _lightly_trained)


_KNOWN_BRIEFLY: dict[Hashable, float | None] = {}


@pytest.fixture
def briefly_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and servers that train alone take a tenth of the steps, in this process and in its workers."""
    monkeypatch.setattr(parties, "STEPS", parties.STEPS // 10)
    monkeypatch.setattr(parties, "MOST_STEPS", parties.STEPS)
    monkeypatch.setattr(clean_run, "KNOWN", _KNOWN_BRIEFLY)
    monkeypatch.setattr(executors, "_call", partial(call_briefly, parties.STEPS, executors._call))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are composed and not drawn, which takes as long as a short run."""
    monkeypatch.setattr(figures, "save_png", lambda figure, path: None)


_save_png = figures.save_png


@pytest.fixture
def drawn(undrawn: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are drawn in this test of a file where they are not."""
    monkeypatch.setattr(figures, "save_png", _save_png)


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the distribution `arena-toys` of tests/plugin is installed."""
    return install_plugin(ROOT / "tests" / "plugin", tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def bench_with_plugin(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """The command `bench` in this process, where the plug-in of tests/plugin is installed for the time of a test."""
    monkeypatch.syspath_prepend(str(plugin))
    monkeypatch.chdir(tmp_path)
    forget_methods()

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = main(args)
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(args, code, printed.out, printed.err)

    yield call
    forget_methods()
    for name in [name for name in sys.modules if name.split(".")[0] == "arena_toys"]:
        del sys.modules[name]
