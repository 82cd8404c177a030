"""`fedarena.testing.check`: each law catches what breaks it, and lets sound methods through."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path

import pytest
from helpers.broken_methods import BROKEN, SOUND, Masks, Middle
from helpers.paths import ROOT

import fedarena as fa
from fedarena.cli import main
from fedarena.core import registry
from fedarena.core.card import KINDS, Card
from fedarena.core.errors import UserError
from fedarena.testing import LawBroken, check, examine, laws

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CASES = [(law, card) for law, cards in BROKEN.items() for card in cards]


def test_every_law_is_broken_below() -> None:
    assert set(BROKEN) == set(laws())


@pytest.mark.parametrize(("law", "card"), CASES, ids=[f"{law}-{getattr(c.target, '__name__', '')}" for law, c in CASES])
def test_a_law_catches_what_breaks_it(law: str, card: Card) -> None:
    with pytest.raises(LawBroken) as told:
        check(card, laws=[law])
    assert told.value.law == law
    assert f"{card.kind} '{card.name}' breaks the law '{law}'" in str(told.value)
    assert told.value.figure in str(told.value)
    assert f"To do: {told.value.remedy}." in str(told.value)


@pytest.mark.parametrize("card", SOUND, ids=[f"{card.kind}-{card.target.__name__}" for card in SOUND])
def test_a_sound_method_keeps_all_other_laws(card: Card) -> None:
    broken = {outcome.law: outcome.reason for outcome in examine(card) if outcome.status == "broken"}
    assert set(broken) == ({"defense-acts"} if card.name == "plainly" else set()), broken


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_keeps_all_laws(path: Path) -> None:
    outcomes = check(path)
    assert {outcome.law for outcome in outcomes if outcome.status == "holds"}


def test_classes_names_and_cards_are_taken() -> None:
    wanted = ["stream-decides"]
    assert [o.method for o in check(Middle, laws=wanted)] == ["middle"]
    assert [o.method for o in check("median", laws=wanted)] == ["median"]
    assert [o.kind for o in check(Masks, laws=["vectors-stay"])] == ["secure"]
    assert [o.status for o in check(registry.find("aggregator", "flame"), laws=wanted, noise=0.5)] == ["holds"]


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("nowhere", {}, "unknown method 'nowhere'"),
        ("median", {"laws": ["all"]}, "unknown law 'all'"),
        ("flame", {"noise": -1.0}, "option 'noise' is -1.0, allowed: "),
        (3, {}, "a method is an int, allowed: a card, a class, a name, or a file with cards"),
        ("nowhere.py", {}, "option 'plugin' is .*nowhere.py, which cannot be read"),
    ],
)
def test_bad_input_is_told_in_one_line(method: object, given: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said) as told:
        check(method, **given)  # type: ignore[arg-type]
    assert "\n" not in str(told.value)


def test_laws_are_listed_by_kind() -> None:
    assert all(says and not says.endswith(".") for says in laws().values())
    assert {law for kind in KINDS for law in laws(kind)} == set(laws())
    assert "messages-hide" in laws("secure")
    assert "messages-hide" not in laws("defense")
    with pytest.raises(UserError, match="unknown kind 'rule', allowed: defense, "):
        laws("rule")


def test_the_names_are_offered_by_the_package() -> None:
    assert fa.testing.check is check
    assert "testing" in dir(fa)


def test_an_error_in_a_method_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "stumbling_rule.py"
    path.write_text(
        "from fedarena.contracts.aggregator import Aggregate, Aggregator\n"
        "from fedarena.core.card import Card\n"
        "from fedarena.core.tensors import flatten\n"
        "class Stumbling(Aggregator):\n"
        "    def __call__(self, x, call):\n"
        "        return Aggregate(flatten(x), None)\n"
        'CARD = Card(name="stumbling", kind="aggregator", title="It stumbles", target=Stumbling)\n'
    )
    with pytest.raises(LawBroken, match=r"it raises .* \(in __call__, stumbling_rule.py:6\)"):
        check(path, laws=["vector-fits"])


def test_the_command_prints_a_table_and_ends_with_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    example = str(ROOT / "examples" / "my_rule.py")
    assert main(["check", example, "--laws=stream-decides,unanimity-wins"]) == 0
    out = capsys.readouterr().out
    assert "1 holds, 1 n/a" in out
    assert main(["check", "foolsgold", "--laws=withstands-the-flipped"]) == 1
    assert "1 broken" in capsys.readouterr().out
    assert main(["check", "flame", "--laws=stream-decides", "--set=noise=0.5", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["status"] == "holds"
    assert main(["check", "flame", "--set=noise"]) == 2
    assert "option 'set' is 'noise', which is not OPTION=VALUE" in capsys.readouterr().err


def test_a_broken_law_is_in_the_json_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "foolsgold", "--laws=withstands-the-flipped", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["status"], "error" in found) == ("broken", False)
    assert "To do: " in found["reason"]


def test_a_broken_law_crosses_processes() -> None:
    told = LawBroken("three of four", "mend it", "a-law", "it says so", "rule 'mine'")
    for other in (copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert (str(other), other.figure, other.method) == (str(told), "three of four", "rule 'mine'")


def test_the_page_of_the_documentation_lists_every_law() -> None:
    page = (ROOT / "docs" / "check.md").read_text()
    shown = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", page, re.MULTILINE))
    assert shown == laws()
