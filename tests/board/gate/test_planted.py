"""Faults planted in the code itself and measured with real trainings: what the gate finds of them, and what it cannot.

Each fault is planted in the real classes. Only trials that it can touch are measured again; records of the others are
those of the sound code, which is what measuring them again would give.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from fedarena.attacks.poisoning.alie import ALIE
from fedarena.attacks.poisoning.sign_flip import SignFlip
from fedarena.attacks.reconstruction.analytic import Analytic
from fedarena.board.gate.compare import compare
from fedarena.board.gate.comparison import Comparison, Rules
from fedarena.board.gate.inert import NO_ATTACK, NO_DEFENSE
from fedarena.board.gate.wording import localized, verdict
from fedarena.board.load import load_board
from fedarena.cli import main
from fedarena.contracts.aggregator import Aggregator
from fedarena.contracts.defense import Defense, Direction
from fedarena.contracts.inference import Guess, Reconstruction
from fedarena.contracts.observation import Reading
from fedarena.contracts.poisoning import RoundView
from fedarena.core.errors import UserError
from fedarena.core.rng import Rng
from fedarena.core.tensors import Tensors, scale
from fedarena.core.threat import VISIBILITY, NotApplicable, Threat, Visibility
from fedarena.defenses.aggregators import krum
from fedarena.defenses.aggregators.geometry import Geometry
from fedarena.defenses.aggregators.mean import Mean
from fedarena.defenses.aggregators.median import Median
from fedarena.defenses.dbcl import protocol as dbcl
from fedarena.defenses.dp_sgd import accountant
from fedarena.defenses.dp_sgd.protocol import DPSGD
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.defenses.pbpfl import protocol as pbpfl
from fedarena.runs.executors import InProcess
from fedarena.runs.suite.plan import Plan, Planned
from fedarena.runs.suite.run import plan_of, run_suite
from fedarena.runs.suite.suite import Suite, load

SUITE = Path(__file__).parent / "planted.toml"
WEAKER_DEFENSE, WEAKER_ATTACK = "weaker defense, or stronger attack", "weaker attack, or stronger defense"

Touches = Callable[[Planned], bool]


@dataclass(frozen=True)
class Measured:
    """The sound code's board: what was run, and the folder."""

    suite: Suite
    plan: Plan
    folder: Path


def measure(suite: Suite, plan: Plan, folder: Path) -> None:
    """What is missing in a folder, in this process."""
    assert run_suite(suite, plan, folder, None, InProcess).lost == {}


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Measured once."""
    folder, suite = tmp_path_factory.mktemp("sound"), load(str(SUITE))
    plan = plan_of(suite, suite.seeds, folder, None)
    measure(suite, plan, folder)
    return Measured(suite, plan, folder)


@dataclass(frozen=True)
class Gate:
    """Measures what a fault touches, and compares with the sound code's board."""

    sound: Measured
    new: Path

    def __call__(self, touches: Touches, passes: bool = False) -> Comparison:
        """The comparison; `bench compare` must exit with 0 where the gate is to be passed, else with 1."""
        again = {t.key for t in self.sound.plan.trials if touches(t)}
        assert again
        shutil.copytree(self.sound.folder, self.new)
        for path in (self.new / "records").glob("*.json"):
            if any(f'"{key}"' in path.read_text() for key in again):
                path.unlink()
        measure(self.sound.suite, self.sound.plan, self.new)
        assert main(["compare", str(self.sound.folder), str(self.new)]) == (0 if passes else 1)
        return self.compare()

    def compare(self, rules: Rules | None = None) -> Comparison:
        """The boards again."""
        return compare(load_board(self.sound.folder), load_board(self.new), rules)


@pytest.fixture
def gate(sound: Measured, tmp_path: Path) -> Gate:
    """For one fault."""
    return Gate(sound, tmp_path / "new")


def findings(c: Comparison) -> dict[str, list[str]]:
    """Place → findings."""
    return {item.name: item.findings for item in c.findings}


def of(defense: str) -> Touches:
    """Trials of a defense."""
    return lambda t: t.defense == defense


def by(attack: str) -> Touches:
    """Trials of an attack."""
    return lambda t: t.attack == attack


def assert_located(c: Comparison, name: str) -> None:
    """Every finding is of this method, and the gate says that nothing else changed."""
    assert c.findings
    assert all(
        name in item.name.split(" · ") or item.name.startswith((f"defense {name} ", f"attack {name} "))
        for item in c.findings
    )
    (line,) = localized(c)
    assert f"only of {name}" in line


# -- nothing changed -----------------------------------------------------------------------------------


def test_the_same_code_again_is_identical(gate: Gate) -> None:
    found = gate(of("krum"), passes=True)
    assert verdict(found) == f"Passed: all {found.counts['identical']} scores are identical."
    assert localized(found) == []


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["a", "b"])
def test_other_random_streams_are_noise(gate: Gate, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    drawn = Rng.integer

    def integer(self: Rng, bits: int = 64) -> int:
        if self.path[:1] == ("digits",):  # which samples are for testing belongs to the data, not to a run
            return drawn(self, bits)
        text = repr((prefix, self.seed, self.path)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> (64 - bits)

    monkeypatch.setattr(Rng, "integer", integer)
    found = gate(lambda t: True, passes=True)
    assert found.counts["noise"] > found.counts["identical"]


# -- defenses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "name", "defense"),
    [(dbcl, "DBCL", "dbcl"), pytest.param(pbpfl, "PBPFL", "pbpfl", marks=pytest.mark.slow)],
)
def test_a_defense_that_became_fedavg_is_found(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, defense: str
) -> None:
    monkeypatch.setattr(module, name, FedAvg)
    found = gate(of(defense))
    assert_located(found, defense)
    assert findings(found)[f"upload · {defense} · analytic · client, paper"] == [WEAKER_DEFENSE]
    assert any(i.group == "mean" and i.findings == [WEAKER_DEFENSE] for i in found.findings)
    if defense == "dbcl":  # PBPFL learns by another loss, so that FedAvg in its place is not FedAvg's run
        assert all(NO_DEFENSE in findings(found)[f"{problem} · dbcl · clean run"] for problem in ("upload", "poison"))


@pytest.mark.parametrize(
    ("rule", "name"), [(krum.Krum, "krum"), pytest.param(Median, "median", marks=pytest.mark.slow)]
)
def test_a_rule_that_became_the_mean_is_found(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, rule: type[Aggregator], name: str
) -> None:
    monkeypatch.setattr(rule, "__call__", Mean.__call__)
    found = gate(of(name))
    assert_located(found, name)
    if name == "krum":  # three flipped uploads of twelve leave the median no more than the mean
        assert findings(found)[f"poison · {name} · sign-flip · corrupted clients (own), paper"] == [WEAKER_DEFENSE]
    assert NO_DEFENSE in findings(found)[f"poison · {name} · clean run"]


def test_krum_with_one_neighbour_too_many_is_localized(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not found as a loss, and it is none that matters: another honest upload wins in some rounds, and no score moves
    by 0.1. That only Krum's scores changed is reported all the same, and with --exact it is a finding."""

    def ranking(found: Geometry, f: int) -> npt.NDArray[np.intp]:
        squared = found.squared
        sums = np.sort(squared, axis=1)[:, : len(squared) - f].sum(axis=1)
        return np.lexsort((squared.sum(axis=1), sums))

    monkeypatch.setattr(krum, "ranking", ranking)
    found = gate(of("krum"), passes=True)
    assert found.counts["noise"] > 1
    assert "only of krum" in localized(found)[0]
    exact = gate.compare(Rules(exact=True))
    assert_located(exact, "krum")
    assert exact.counts["changed"] == found.counts["noise"] == len(exact.findings)
    assert main(["compare", str(gate.sound.folder), str(gate.new), "--exact"]) == 1


def test_a_third_of_the_promised_noise_is_found(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """In single cells and in the mean over them. Half of the noise is at the edge of what three seeds show."""
    draw = DPSGD.draw
    monkeypatch.setattr(DPSGD, "draw", lambda self, rng: {n: z / 3 for n, z in draw(self, rng).items()})
    found = gate(of("dp-sgd"))
    assert_located(found, "dp-sgd")
    assert {f for i in found.findings for f in i.findings} == {WEAKER_DEFENSE}
    assert any(i.name.startswith("defense dp-sgd · privacy") for i in found.findings if i.group == "mean")


def test_an_accountant_that_assumes_twice_the_noise_is_found(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target ε stays. What gives it away is σ, the ε of the other accountants, and which of them σ comes from: what
    an honest run promises, which alone is measured again."""
    epsilon = accountant.epsilon
    monkeypatch.setattr(accountant, "epsilon", lambda sigma, *given: epsilon(2 * sigma, *given))
    for name in ("noise", "noise_tight", "add_remove"):  # without what was found before
        monkeypatch.setattr(accountant, name, cache(getattr(accountant, name).__wrapped__))
    found = gate(lambda t: t.defense == "dp-sgd" and t.attack == "none")
    assert found.findings
    assert all("dp-sgd" in item.name for item in found.findings)
    promises = findings(found)["upload · dp-sgd · clean run"]
    assert any("another guarantee: sigma" in words for words in promises)
    assert any("another guarantee: epsilon_replace_one" in words for words in promises)
    assert any("another guarantee: target_by_pld 2 →" in words for words in promises)
    assert any("another guarantee: target_by_renyi" in words and "→ 2" in words for words in promises)


# -- attacks -------------------------------------------------------------------------------------------


def test_an_inference_attack_that_answers_black_images_is_found(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Analytic.run

    def blank(self: Analytic, *given: Any) -> Guess | NotApplicable:
        found = run(self, *given)
        if isinstance(found, NotApplicable):
            return found
        return [Reconstruction(torch.zeros_like(g.images), g.labels, g.match, g.evaluations) for g in found]

    monkeypatch.setattr(Analytic, "run", blank)
    found = gate(by("analytic"))
    assert_located(found, "analytic")
    assert findings(found)["upload · fedavg · analytic · server, adaptive"] == [WEAKER_ATTACK]


@pytest.mark.parametrize(("attack", "name"), [(SignFlip, "sign-flip"), (ALIE, "alie")])
def test_corrupted_clients_that_became_honest_are_found(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, attack: type[SignFlip | ALIE], name: str
) -> None:
    """ALIE does next to nothing here, so that no score moves by more than its noise; that it does nothing at all is
    found by equality."""
    monkeypatch.setattr(attack, "craft", lambda self, view, memory, rng: (view.own, memory))
    found = gate(by(name))
    assert_located(found, name)
    cells = [i for i in found.items if i.group == "cell" and f"· {name} ·" in i.name]
    assert cells
    assert all(NO_ATTACK in i.findings for i in cells)
    words = findings(found)[f"poison · fedavg · {name} · corrupted clients (own), paper"]
    assert (WEAKER_ATTACK in words) is (name == "sign-flip")


@pytest.mark.parametrize(("share", "found"), [(0.05, True), (0.9, False)])
def test_corrupted_clients_that_become_honest_after_some_rounds_are_found(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, share: float, found: bool
) -> None:
    """After a twentieth of the rounds it is found. After nine tenths it is not: by then models are ruined, and what
    they learn again in the rest is too little to be proven by three seeds. Whose scores changed is reported."""
    craft = SignFlip.craft

    def tired(self: SignFlip, view: RoundView, memory: Tensors, rng: Rng) -> tuple[Tensors, Tensors]:
        if view.round >= share * self.knowledge.task.schedule.rounds:
            return view.own, memory
        return craft(self, view, memory, rng)

    monkeypatch.setattr(SignFlip, "craft", tired)
    compared = gate(by("sign-flip"), passes=not found)
    assert re.search("only of (sign-flip|median)", localized(compared)[0])
    if found:
        assert_located(compared, "sign-flip")
        assert {w for i in compared.findings for w in i.findings} == {WEAKER_ATTACK}
    else:
        assert gate.compare(Rules(exact=True)).findings


# -- views ---------------------------------------------------------------------------------------------

ALL = Visibility(down=True, ups=True, state=True, own=True)


@pytest.mark.parametrize(
    ("protocol", "defense", "party"), [(dbcl.DBCL, "dbcl", "eavesdropper"), (pbpfl.PBPFL, "pbpfl", "server")]
)
def test_a_client_that_sees_what_others_see_is_found(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, protocol: type[Defense], defense: str, party: Any
) -> None:
    """Every upload with DBCL; with PBPFL the secret of the round besides.

    An eavesdropper's estimate of DBCL's gradient is worse than that of a client, who smooths. So one score rises, and
    the mean over cells stays."""
    readings = protocol.readings

    def leaking(of: Defense, threat: Threat, seen: Any, victims: Sequence[int]) -> Sequence[Reading] | NotApplicable:
        found: Sequence[Reading] | NotApplicable = readings(of, replace(threat, party=party), seen, victims)
        return found

    monkeypatch.setitem(VISIBILITY, "client", ALL)
    monkeypatch.setattr(protocol, "readings", leaking)
    found = gate(lambda t: t.defense == defense and t.party == "client" and not t.knows)
    assert_located(found, defense)
    single = [i for i in found.findings if i.group == "cell"]
    assert all("client" in i.name for i in single)
    assert [WEAKER_DEFENSE] in [i.findings for i in single]
    if defense == "pbpfl":
        assert any(i.group == "mean" and i.findings == [WEAKER_DEFENSE] for i in found.findings)
        words = findings(found)["upload · pbpfl · analytic · client, adaptive"]
        assert words == ["something leaks now: n/a → ok with a score of 0.000"]


def test_a_leak_that_no_attack_uses_is_not_found(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is handed everything, and no reading looks at it: no attack gets more, and no score can tell."""
    monkeypatch.setitem(VISIBILITY, "client", ALL)
    found = gate(lambda t: t.defense == "dbcl" and t.party == "client" and not t.knows, passes=True)
    assert verdict(found).startswith("Passed: all ")


# -- what everything is measured against ---------------------------------------------------------------


@pytest.mark.slow
def test_a_reference_that_gains_nothing_is_refused(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """FedAvg's steps are a third of what they should be. Its utility is 1 for all that, and others' would rise; but
    the suite says that FedAvg is no better than clients that train alone."""
    direction = FedAvg.direction

    def faint(self: FedAvg, *given: Any) -> Direction:
        found = direction(self, *given)
        plain = type(self) is FedAvg and self.rule is None
        return replace(found, step=scale(1 / 3, found.step)) if plain else found

    monkeypatch.setattr(FedAvg, "direction", faint)
    with pytest.raises(UserError, match="problem poison measures nothing: FedAvg reaches"):
        gate(lambda t: t.problem == "poison")
