"""Cards of other packages' attacks, read as data."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from fedarena.core import foreign_card, fresh_process, process_template, registry
from fedarena.core.card import Card
from fedarena.core.errors import UserError
from fedarena.core.method_caches import forget_methods
from fedarena.core.options import as_recorded, describe_options
from fedarena.core.registry import Entry, Registry, attack_options

BUILT_IN = registry.registries()["attack"].names()


def read_back(card: Card) -> Card:
    return foreign_card.from_plain(json.loads(json.dumps(foreign_card.to_plain(card))), attack_options)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_card_read_as_data_is_the_card(name: str) -> None:
    card = registry.find("attack", name)
    read = read_back(card)
    for field in fields(Card):
        if field.name not in ("options", "target"):
            assert getattr(read, field.name) == getattr(card, field.name)
    assert describe_options(read.options) == describe_options(card.options)
    assert as_recorded(read.options()) == as_recorded(card.options())
    assert read.options.__doc__ == card.options.__doc__


@pytest.mark.parametrize("name", BUILT_IN)
def test_options_read_as_data_refuse_what_the_options_refuse(name: str) -> None:
    card = registry.find("attack", name)
    read = read_back(card)
    for info in describe_options(card.options):
        for text in ("-3", "0", "0.5", "7", "true", "none", "x", "1,2"):
            assert outcome(read, info.name, text) == outcome(card, info.name, text)


def outcome(card: Card, option: str, text: str) -> Any:
    try:
        return as_recorded(card.parse({option: text}))
    except UserError as error:
        return str(error)


def test_options_read_as_data_are_the_attacks_own_in_another_process() -> None:
    card = registry.find("attack", "dlg")
    options = replace(read_back(card).options(), iterations=7)
    arrived = pickle.loads(pickle.dumps(options))
    assert type(arrived) is card.options
    assert arrived.iterations == 7


@pytest.fixture(params=[fresh_process.FORKS, False], ids=["forked", "started"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards are read by a process that is forked, and by one that is started."""
    if request.param:
        fresh_process.ask("fedarena.core.foreign_card", ("fedarena.attacks:NONE", ""))
    assert process_template.is_running() or not request.param
    monkeypatch.setattr(foreign_card, "is_running", lambda: request.param)


def entry(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> Registry:
    (folder / "sealed_card.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    forget_methods()  # of the same module in another test
    return Registry("attack", [Entry("mine", "sealed_card:CARD", "elsewhere")])


CARD = "from fedarena.core.card import Card\nCARD = Card(name='mine', kind='attack', title={title}, target='a:b')\n"
ODD_OPTIONS = """
from dataclasses import dataclass
from fedarena.core.options import option


@dataclass(frozen=True)
class Odd:
    many: int = option(1, "how many", choices=(1, object()))


"""
"""Options that no JSON can hold."""


@pytest.mark.usefixtures("_both_ways")
def test_reading_a_card_imports_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = entry(tmp_path, "print('hello')\n" + CARD.format(title="'t'"), monkeypatch).card("mine")
    assert (card.name, card.title) == ("mine", "t")
    assert "sealed_card" not in sys.modules
    with pytest.raises(UserError, match="cannot be loaded"):
        card.load()


@pytest.mark.usefixtures("_both_ways")
def test_nothing_is_printed_where_who_asked_has_ended() -> None:
    here, there = os.pipe()
    os.close(here)
    command = [
        sys.executable,
        "-m",
        "fedarena.core.foreign_card",
        "fedarena.attacks.reconstruction.cards.dlg:CARD",
        "dlg",
    ]
    ended = subprocess.run(command, stdout=there, stderr=subprocess.PIPE, text=True)
    os.close(there)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_cards_of_a_module_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is broken is no harm to the others."""
    said = tmp_path / "imports"
    source = f"print('once', file=open({str(said)!r}, 'a'))\n" + CARD.format(title="'t'")
    source += "OTHER = Card(name='other', kind='attack', title='u', target='a:b')\n"
    source += ODD_OPTIONS + "BROKEN = Card(name='broken', kind='attack', title='v', target='a:b', options=Odd)\n"
    known = entry(tmp_path, source, monkeypatch)
    both = Registry("attack", [known.entry("mine"), Entry("other", "sealed_card:OTHER", "elsewhere")])
    assert [both.card(name).title for name in both.names()] == ["t", "u"]
    assert said.read_text() == "once\n"
    with pytest.raises(UserError, match="holds what is no plain data"):
        Registry("attack", [Entry("broken", "sealed_card:BROKEN", "elsewhere")]).card("broken")


@pytest.mark.usefixtures("_both_ways")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os\nos._exit(5)\n", "cannot be loaded: its process ended with status 5"),
        ("raise RuntimeError('first\\nsecond')\n", "cannot be loaded: RuntimeError: first second"),
        ("CARD = 'text'\n", "is a str, not a fedarena.core.card.Card"),
        (ODD_OPTIONS + CARD.format(title="'t', options=Odd"), "holds what is no plain data"),
        (CARD.format(title="object()"), "cannot be loaded: TypeError: title is an object, allowed: str"),
        (CARD.format(title="'t'").replace("'mine'", "'other'"), "holds the card of attack 'other'"),
    ],
)
def test_a_card_that_cannot_be_read_says_why(
    source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError) as caught:
        entry(tmp_path, source, monkeypatch).card("mine")
    text = str(caught.value)
    assert text.startswith("attack 'mine' of elsewhere (sealed_card:CARD) ")
    assert reason in text
    assert "\n" not in text


def test_a_card_with_values_of_wrong_types_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = foreign_card.to_plain(registry.find("attack", "dlg"))
    monkeypatch.setattr(foreign_card, "_plain_card", lambda target, where: {**plain, "version": "many"})
    with pytest.raises(UserError, match=r"^here holds no card: version is a str, allowed: int"):
        foreign_card.read("somewhere:CARD", "here", attack_options)
