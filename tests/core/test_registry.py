"""Names, claims on names, and third parties' plug-ins."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path

import pytest

from fedarena.cli import main
from fedarena.cli.methods import listed
from fedarena.core import registry
from fedarena.core.card import KINDS, Card
from fedarena.core.errors import UserError
from fedarena.core.registry import Entry, Registry
from fedarena.problem.schedule import Schedule


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """An importable module `foreign_cards` that holds cards of all sorts."""
    module = types.ModuleType("foreign_cards")
    module.GOOD = Card(name="shield", kind="defense", title="a shield", target=object)
    module.ATTACK = Card(name="shield", kind="attack", title="not a shield", target=object)
    module.OTHER = Card(name="sword", kind="defense", title="another name", target=object)
    module.TEXT = "not a card"
    monkeypatch.setitem(sys.modules, "foreign_cards", module)
    return module


def refusal(entries: list[Entry], name: str) -> str:
    with pytest.raises(UserError) as caught:
        Registry("defense", entries).card(name)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_card_of_a_known_name(foreign: types.ModuleType) -> None:
    methods = Registry("defense", [Entry("shield", "foreign_cards:GOOD", "elsewhere")])
    assert methods.names() == ["shield"]
    assert methods.card("shield") is foreign.GOOD


def test_unknown_name_offers_the_closest() -> None:
    entries = [Entry(n, f"x:{n}", "fedarena") for n in ("dbcl", "fedavg", "baffle")]
    assert "unknown defense 'fedavgg'; did you mean fedavg?" in refusal(entries, "fedavgg")
    assert "it knows: baffle, dbcl, fedavg" in refusal(entries, "zzzzzz")


def test_another_name_leads_to_the_method_and_broken_cards_do_not_matter(foreign: types.ModuleType) -> None:
    foreign.KNOWN = Card(name="armour", kind="defense", title="t", target=object, aliases=("cuirass",))
    entries = [Entry("armour", "foreign_cards:KNOWN", "x"), Entry("broken", "foreign_cards:MISSING", "x")]
    assert refusal(entries, "Cuirass") == "unknown defense 'Cuirass'; did you mean armour?"


def test_no_alias_is_a_name_or_stands_for_two_methods() -> None:
    cards = [r.card(n) for r in registry.registries().values() for n in r.names() if len(r.claims(n)) == 1]
    aliases = [alias for card in cards for alias in card.aliases]
    assert "lira" in aliases
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & {card.name for card in cards}


def test_contested_name_is_an_error_that_names_both(foreign: types.ModuleType) -> None:
    entries = [Entry("shield", "foreign_cards:GOOD", "fedarena"), Entry("shield", "foreign_cards:OTHER", "rival")]
    text = refusal(entries, "shield")
    assert "fedarena (foreign_cards:GOOD)" in text
    assert "rival (foreign_cards:OTHER)" in text
    (row,) = listed(Registry("defense", entries))
    assert (row["status"], row["origin"]) == ("contested", "fedarena and rival")


def test_contested_name_leaves_the_others_usable(foreign: types.ModuleType) -> None:
    claims = [
        Entry("fedavg", "x:A", "fedarena"),
        Entry("fedavg", "y:B", "rival"),
        Entry("shield", "foreign_cards:GOOD", "z"),
    ]
    assert Registry("defense", claims).card("shield") is foreign.GOOD


def test_the_same_claim_found_twice_is_one_claim(foreign: types.ModuleType) -> None:
    entry = Entry("shield", "foreign_cards:GOOD", "elsewhere")
    assert Registry("defense", [entry, Entry(**vars(entry))]).card("shield") is foreign.GOOD


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_module_anywhere:CARD", "ModuleNotFoundError"),
        ("foreign_cards:MISSING", "AttributeError"),
        ("foreign_cards:TEXT", "is a str, not a fedarena.core.card.Card"),
        ("foreign_cards:ATTACK", "holds the card of attack 'shield'"),
        ("foreign_cards:OTHER", "holds the card of defense 'sword'"),
        ("raises_many_lines:CARD", "RuntimeError: first second"),
        ("quits:CARD", "SystemExit: 3"),
    ],
)
def test_broken_plugin_says_why_and_is_listed(
    target: str, reason: str, foreign: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raises_many_lines.py").write_text("raise RuntimeError('first\\nsecond')")
    (tmp_path / "quits.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    entries = [Entry("shield", target, "elsewhere")]
    text = refusal(entries, "shield")
    assert reason in text
    assert f"of elsewhere ({target})" in text
    (row,) = listed(Registry("defense", entries))
    assert (row["status"], row["reason"]) == ("broken", text)


def test_implementation_that_cannot_be_imported_is_a_user_error() -> None:
    card = Card(name="shield", kind="defense", title="a shield", target="no_such_module_anywhere:Shield")
    with pytest.raises(UserError, match=r"defense 'shield' \(no_such_module_anywhere:Shield\) cannot be loaded"):
        card.load()


def test_plugins_are_asked_for_every_kind_and_join_the_built_in_ones() -> None:
    asked: list[str] = []

    def plugins(group: str) -> list[Entry]:
        asked.append(group)
        return [Entry("extra", "x:y", "elsewhere")]

    built = registry.build(plugins)
    assert asked == [f"fedarena.{kind}s" for kind in KINDS]
    assert all("extra" in methods.names() for methods in built.values())
    assert {"fedavg", "dbcl"} <= set(built["defense"].names())


def test_find_any_returns_every_kind_and_refuses_unknown_names() -> None:
    assert [card.kind for card in registry.find_any("dbcl")] == ["defense"]
    with pytest.raises(UserError, match="unknown method 'dbcll'; did you mean dbcl"):
        registry.find_any("dbcll")


# -- the real plug-in of tests/plugin ----------------------------------------------------------------


def test_installed_plugin_is_listed_with_its_origin(bench, plugin: Path) -> None:
    done = bench("list", "--json", path=plugin)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    for kind, name in (("defense", "noisy"), ("attack", "mean-image"), ("dataset", "stripes")):
        (row,) = [r for r in rows[kind] if r["name"] == name]
        assert (row["status"], row["origin"]) == ("ok", "arena-toys"), row
    assert {"fedavg", "dbcl"} <= {r["name"] for r in rows["defense"]}


def test_plugin_is_unknown_where_it_is_not_installed(bench) -> None:
    done = bench("show", "noisy")
    assert done.returncode == 2
    assert done.stderr.startswith("bench: unknown method 'noisy'")
    assert len(done.stderr.splitlines()) == 1


def test_installed_plugin_is_shown_with_its_options(bench, plugin: Path) -> None:
    done = bench("show", "noisy", path=plugin)
    assert done.returncode == 0, done.stderr
    assert "arena-toys (a plug-in)" in done.stdout
    assert "defense.sigma" in done.stdout


def test_broken_installed_plugin_is_listed_and_does_not_stop_the_others(bench, tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "broken_toys-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fedarena.defenses]\nbroken = broken_toys:CARD\nfedavg = broken_toys:CARD\n"
    )
    done = bench("list", "defense", "--json", path=site)
    assert done.returncode == 0, done.stderr
    status = {row["name"]: row["status"] for row in json.loads(done.stdout)["defense"]}
    assert (status["broken"], status["fedavg"], status["dbcl"]) == ("broken", "contested", "ok")
    table = bench("list", "defense", path=site)
    assert table.returncode == 0
    assert "ModuleNotFoundError" in table.stdout


def test_unknown_kind_is_refused(bench) -> None:
    done = bench("list", "defence")
    assert done.returncode == 2
    assert (
        done.stderr
        == "bench: unknown kind 'defence', allowed: defense, aggregator, secure, attack, dataset, model, partition\n"
    )


def test_show_training_lists_the_schedule(bench) -> None:
    done = bench("show", "training", "--json")
    assert done.returncode == 0, done.stderr
    (card,) = json.loads(done.stdout)["cards"]
    assert f"--set training.rounds={Schedule().rounds}" in {option["set"] for option in card["options"]}


@pytest.mark.parametrize("name", ["multi-krum", "pairwise-masks"])
def test_the_hint_for_a_part_of_a_defense_is_a_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", name]) == 0
    (hint,) = re.findall(r"^To change one: bench (run .*)$", capsys.readouterr().out, re.MULTILINE)
    quick = ("--attack", "last-layer-label", "--party", "server", "--clients", "5", "--rounds", "2", "--jobs", "1")
    monkeypatch.chdir(tmp_path)
    assert main([*hint.split(), *quick, "--quiet"]) == 0, capsys.readouterr().err
