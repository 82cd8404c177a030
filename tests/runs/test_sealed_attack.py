"""Attacks of other packages: what they cannot see, and what becomes of them when they break."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import malicious
from helpers.cheats import EARLY, POINTS, READ
from helpers.paths import ROOT
from helpers.plugins import installed
from joblib.externals.loky import get_reusable_executor

from fedarena.core import registry
from fedarena.core.threat import Threat
from fedarena.federation import compose
from fedarena.federation.spec import GroupSpec, MethodSpec
from fedarena.records.schema import Record
from fedarena.runs.engine import run_groups

SECRET = "0123456789abcdef" * 2


@pytest.fixture(autouse=True)
def _plugins(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", {**POINTS, "attacks": {**POINTS["attacks"], **EARLY}}):
        yield


def group(attack: str, secret: str = SECRET, options: dict[str, str] | None = None) -> GroupSpec:
    method = compose.parse_attack(attack, options)
    threats = (Threat("server", "paper"),)
    return GroupSpec(READ, defense=MethodSpec("fedavg"), attack=method, threats=threats, seed=3, secret=secret)


def record(attack: str, secret: str = SECRET, options: dict[str, str] | None = None, jobs: int = 1) -> Record:
    (one,) = run_groups([group(attack, secret, options)], jobs)[0].records
    return one


def measured(one: Record) -> dict[str, Any]:
    return {name: one[name] for name in ("status", "reason", "metrics", "series", "scores")}  # type: ignore[literal-required]


def unprotected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plug-ins are trusted like built-in methods."""
    monkeypatch.setattr(compose, "foreign", lambda kind, method: [])
    monkeypatch.setattr(registry.Entry, "seals", lambda entry, kind: False)


def test_an_attack_that_walks_callers_scores_like_a_blind_guess() -> None:
    assert measured(record("walker")) == measured(record("blind"))


def test_the_same_attack_finds_the_truth_in_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    unprotected(monkeypatch)
    assert record("walker")["metrics"]["identified"] == 1.0


def test_an_attack_that_tries_seeds_needs_a_run_without_a_secret() -> None:
    assert record("guesser", secret="")["metrics"]["identified"] == 1.0
    assert measured(record("guesser")) == measured(record("blind"))


def test_what_an_attack_patches_dies_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedarena.goals.metrics import reconstruction

    honest = record("dlg", options={"iterations": "3", "restarts": "1"})
    monkeypatch.setattr(reconstruction, "reconstruction_metrics", reconstruction.reconstruction_metrics)
    assert measured(record("patcher")) == measured(record("blind"))
    assert measured(record("dlg", options={"iterations": "3", "restarts": "1"})) == measured(honest)
    unprotected(monkeypatch)
    assert record("patcher")["metrics"]["identified"] == 1.0
    assert record("dlg", options={"iterations": "3", "restarts": "1"})["metrics"]["identified"] == 1.0


def test_what_an_attack_patches_when_imported_dies_with_its_process() -> None:
    from fedarena.goals.metrics import reconstruction

    judge = reconstruction.reconstruction_metrics
    early = record("early")
    assert early["status"] == "ok"
    assert early["metrics"]["identified"] < 1.0
    assert reconstruction.reconstruction_metrics is judge
    assert "helpers.early_cheats" not in sys.modules


MEDDLER = """
from fedarena.contracts.inference import Inference, Watch
from fedarena.core.card import Card
from fedarena.federation import compose

make = compose.make_inference

def narrowed(spec):
    made = make(spec)
    made.watch = lambda schedule: Watch(0, 0, (0,))
    return made

compose.make_inference = narrowed

class Meddler(Inference):
    def run(self, view, rng, progress):
        raise RuntimeError("there is nothing more to do")

CARD = Card(name="meddler", kind="attack", title="Patches what other attacks are asked with", target=Meddler)
"""


def test_an_attack_changes_no_answer_of_another_package_s(tmp_path: Path) -> None:
    """What other attacks watch is asked in a process that another package's code has not touched."""
    alone = measured(record("dlg-copy", options={"victims": "3", "iterations": "2", "restarts": "1"}))
    with installed(tmp_path / "other", {"attacks": {"meddler": "meddler:CARD"}}, "meddlers") as place:
        (place / "meddler.py").write_text(MEDDLER)
        assert record("meddler")["status"] == "failed"
        after = measured(record("dlg-copy", options={"victims": "3", "iterations": "2", "restarts": "1"}))
    assert alone["metrics"]["images"] == 3
    assert after == alone


def test_an_honest_attack_gives_what_it_gives_in_the_harness() -> None:
    """Here and where workers run it."""
    get_reusable_executor().shutdown(kill_workers=True)  # workers of earlier tests do not know the copy
    options = {"victims": "2", "iterations": "10", "restarts": "2"}
    built_in = record("dlg", options=options)
    plug_ins = [record("dlg-copy", options=options, jobs=jobs) for jobs in (1, 2)]
    get_reusable_executor().shutdown(kill_workers=True)  # its workers know the copy
    for plug_in in plug_ins:
        assert measured(plug_in) == measured(built_in)
        assert plug_in["status"] == "ok"
        assert plug_in["cost"]["attack_seconds"] > 0


CRAFTERS = """
from fedarena.attacks.reconstruction.cards.inconsistent_models import Options
from fedarena.attacks.reconstruction.inconsistent_models import InconsistentModels
from fedarena.contracts.active_inference import ActiveInference
from fedarena.contracts.inference import Inference
from fedarena.core.card import Card
from fedarena.core.threat import NotApplicable

class Copy(InconsistentModels):
    name = "copy"

class Reluctant(ActiveInference):
    def craft(self, opportunity, rng):
        return NotApplicable("it would rather not")

    def run(self, view, rng, progress):
        return []

class Craftless(Inference):
    goal = "active-reconstruction"

    def run(self, view, rng, progress):
        return []

def card(name, target, **more):
    return Card(name=name, kind="attack", title="A malicious server", target=target, **more)

COPY = card("crafts", Copy, options=Options)
RELUCTANT = card("reluctant", Reluctant)
CRAFTLESS = card("craftless", Craftless)
"""


@pytest.fixture
def _crafters(tmp_path: Path) -> Iterator[None]:
    points = {name: f"crafters:{card}" for name, card in (("crafts", "COPY"), ("reluctant", "RELUCTANT"))}
    with installed(
        tmp_path / "crafters", {"attacks": points | {"craftless": "crafters:CRAFTLESS"}}, "crafters"
    ) as place:
        (place / "crafters.py").write_text(CRAFTERS)
        yield


@pytest.mark.usefixtures("_crafters")
def test_a_malicious_server_of_another_package_gets_what_ours_gets() -> None:
    """It crafts in a process of its own, a message for the victim and another one for all others."""

    def played(name: str) -> Record:
        made = malicious.spec(name, clients=3, model_options={"widths": "64"})
        return run_groups([replace(made, secret=SECRET)], 1)[0].records[0]

    ours, theirs = played("inconsistent-models"), played("crafts")
    assert theirs["status"] == "ok"
    assert measured(theirs) == measured(ours)
    assert theirs["metrics"]["identified"] > 0.5


@pytest.mark.usefixtures("_crafters")
@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [("reluctant", "n/a", "it would rather not"), ("craftless", "failed", "shapes rounds, but is no ActiveInference")],
)
def test_a_malicious_server_that_crafts_nothing_says_why(name: str, status: str, reason: str) -> None:
    made = malicious.spec("imprint", model_options={"widths": "64"})
    one = replace(made, secret=SECRET, attack=compose.parse_attack(name))
    record = run_groups([one], 1)[0].records[0]
    assert record["status"] == status
    assert reason in record["reason"]


POISONERS = """
from fedarena.attacks.reconstruction.cards.spotlight import Options
from fedarena.attacks.reconstruction.spotlight import Spotlight
from fedarena.contracts.inference import Inference
from fedarena.core.card import Card

class Copy(Spotlight):
    name = "copy"

class Harmless(Inference):
    goal = "curious-poisoning"

    def run(self, view, rng, progress):
        return []

def card(name, target, **more):
    return Card(name=name, kind="attack", title="Corrupted clients that read", target=target, **more)

COPY = card("poisons", Copy, options=Options)
HARMLESS = card("harmless", Harmless)
"""


@pytest.fixture
def _poisoners(tmp_path: Path) -> Iterator[None]:
    points = {"poisons": "poisoners:COPY", "harmless": "poisoners:HARMLESS"}
    with installed(tmp_path / "poisoners", {"attacks": points}, "poisoners") as place:
        (place / "poisoners.py").write_text(POISONERS)
        yield


def poisoned(name: str, options: dict[str, str]) -> Record:
    problem = replace(READ, clients=7, corrupted=2, schedule=replace(READ.schedule, rounds=4, batch_size=1))
    attack, threats = compose.parse_attack(name, options), (Threat("corrupted-clients", "adaptive"),)
    one = GroupSpec(problem, defense=MethodSpec("fedavg"), attack=attack, threats=threats, seed=3, secret=SECRET)
    return run_groups([one, replace(one, defense=compose.parse_defense("krum"))], 1)[-1].records[0]


@pytest.mark.usefixtures("_poisoners")
def test_corrupted_clients_of_another_package_get_what_ours_get() -> None:
    """They craft in a process of its own, where they know no more than they may."""
    options = {"victims": "2", "knows": "omniscient"}
    ours, theirs = poisoned("spotlight", options), poisoned("poisons", options)
    assert theirs["status"] == "ok"
    assert measured(theirs) == measured(ours)
    without = poisoned("harmless", {})
    assert without["status"] == "failed"
    assert "poisons rounds, but is no CuriousPoisoning" in without["reason"]


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("raise", "ArithmeticError: too hard (in run, cheats.py:"),
        ("exit", "its process ended with status 3 and gave no answer"),
        ("kill", "its process was ended by SIGKILL and gave no answer"),
        ("close", "its process closed its line and gave no answer"),
        ("time", "the attack's answer is none: its time is nan"),
        ("clock", "the attack's answer is none: its time is 99999"),
        ("garble", "its process sent what is no message"),
        ("type", "Broken.run (cheats.py:"),
    ],
)
def test_an_attack_that_breaks_says_why(way: str, reason: str) -> None:
    broken = record("broken", options={"way": way})
    assert broken["status"] == "failed"
    assert broken["reason"].startswith(reason)
    assert not broken["scores"]


def test_progress_of_an_attack_arrives(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[float, str]] = []
    run_groups([group("blind")], 1, lambda i, share, text: told.append((share, text)))
    assert ("server, paper form") in {text for _, text in told}
    printed = capfd.readouterr()
    assert "the attack prints" not in printed.out
    assert "the attack prints" in printed.err


def test_progress_that_is_no_share_is_told_as_one() -> None:
    told: list[float] = []
    asked = group("broken", options={"way": "progress"})
    (result,) = run_groups([asked], 1, lambda i, share, text: told.append(share))
    assert result.records[0]["status"] == "ok"
    assert told[-1] == 1.0  # the last is 7
    assert all(0 <= share <= 1 for share in told)


def test_no_process_outlives_a_killed_parent(tmp_path: Path) -> None:
    note = tmp_path / "number"
    code = (
        f"import sys; sys.path[:0] = {[str(tmp_path / 'site'), str(ROOT / 'tests')]!r}\n"
        "from runs import test_sealed_attack as t\n"
        f"t.record('broken', options={{'way': 'sleep', 'note': {str(note)!r}}})"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    wait_until(lambda: note.exists() and note.read_text() != "")
    child = int(note.read_text())
    assert child != parent.pid
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not alive(child))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def wait_until(holds: Any, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_process_of_an_attack_is_handed_no_truth_no_seed_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    from fedarena.core import fresh_process

    sent: list[bytes] = []
    ask = fresh_process.ask
    monkeypatch.setattr(
        "fedarena.runs.sealed_attack.ask",
        lambda module, given, *more: sent.append(repr(given).encode()) or ask(module, given, *more),
    )
    record("blind")
    (request,) = sent
    assert SECRET.encode() not in request
    assert b"GroupSpec" not in request
    assert b"Victims" not in request
    assert str(replace(group("blind")).root).encode() not in request
    assert os.environ.get("SECRET") is None
