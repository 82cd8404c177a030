"""Methods in a file of one's own: what is found without running it, and what is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import fedarena as fa
from fedarena.cli import main
from fedarena.core import plugin_file, registry
from fedarena.core.errors import UserError
from fedarena.federation.compose import defense_cards

pytestmark = pytest.mark.usefixtures("briefly_alone")

RULE = """
from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.core import card

class First(Aggregator):
    def __call__(self, x, call):
        return Aggregate(x[0], None)

ONE: card.Card = card.Card(name="first", kind="aggregator", title="The first upload", target=First)
TWO = card.Card(name="first-too", kind="aggregator", title="Likewise", target=First)
"""


def saved(folder: Path, text: str, name: str = "my_first.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_cards_are_found_without_running_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path, "raise RuntimeError\n" + RULE)
    found = plugin_file.claims_of(path)
    assert [(c.kind, c.name, c.target, c.file) for c in found] == [
        ("aggregator", "first", "my_first:ONE", "my_first.py"),
        ("aggregator", "first-too", "my_first:TWO", "my_first.py"),
    ]
    assert "my_first" not in sys.modules


def test_decorated_functions_are_found_without_running_the_file(tmp_path: Path) -> None:
    text = """
raise RuntimeError
@fa.rule("one", title="…")
def first(x, f): ...
@poisoning(name="two")
def second(own, rng): ...
@other("three")
def third(): ...
@fa.defense(NAME)
def fourth(upload): ...
fifth = fa.rule("five")(lambda x, f: x.mean(0))
from fedarena import privacy_attack as reader
@reader("six")
async def sixth(seen, view): ...
@fa.rule("seven")
class Seventh: ...
"""
    found = plugin_file.claims_of(saved(tmp_path, text))
    assert [(c.kind, c.name, c.target) for c in found] == [
        ("aggregator", "one", "my_first:first"),
        ("attack", "two", "my_first:second"),
        ("aggregator", "five", "my_first:fifth"),
        ("attack", "six", "my_first:sixth"),
        ("aggregator", "seven", "my_first:Seventh"),
    ]


def test_the_methods_of_a_file_are_listed_with_their_origin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "aggregator", f"--plugin={saved(tmp_path, RULE)}"]) == 0
    out = capsys.readouterr().out
    assert "first-too" in out
    assert "my_first.py" in out
    assert main(["show", "first", f"--plugin={tmp_path / 'my_first.py'}"]) == 0
    assert "The first upload" in capsys.readouterr().out
    assert registry.find("aggregator", "first").load().__name__ == "First"


def test_several_files_are_in_use_once_each(tmp_path: Path) -> None:
    one, other = saved(tmp_path, RULE), saved(tmp_path, RULE.replace("first", "second"), "my_second.py")
    plugin_file.use([str(one), str(other), str(one)])
    assert os.environ[plugin_file.VARIABLE].split(os.pathsep) == [str(one), str(other)]
    assert [c.name for c in plugin_file.claims()] == ["first", "first-too", "second", "second-too"]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def outcome(path: Path, jobs: int = 1, defense: str = "first", attack: str = "sign-flip", **more: Any) -> Any:
    results = fa.run(defense, attack, plugin=path, clients=4, corrupted=1, model="mlp", rounds=2, jobs=jobs, **more)
    return [record["metrics"] for record in results if record["defense"] == defense]


def test_a_file_that_was_edited_is_read_again_here_and_by_workers(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE)
    before = outcome(path)
    assert outcome(path, jobs=2) == before
    edit(path, "Aggregate(x[0]", "Aggregate(x[1]")  # of the same size, and in the same second
    after = outcome(path)
    assert after != before
    assert outcome(path, jobs=2) == after
    edit(path, "Aggregate(x[1]", "Aggregate(x[0]")
    assert outcome(path) == before


def test_a_rule_of_an_edited_file_is_the_new_one_outside_a_run(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE)
    plugin_file.use([str(path)])
    assert fa.aggregate("first", [[1.0], [2.0], [4.0]], f=0).tolist() == [1.0]
    edit(path, "Aggregate(x[0]", "Aggregate(x[2]")
    assert fa.aggregate("first", [[1.0], [2.0], [4.0]], f=0).tolist() == [4.0]


def test_an_attack_of_a_file_that_was_edited_is_the_new_one(tmp_path: Path) -> None:
    """Its code runs in other processes, some of which stay."""
    path = saved(tmp_path, "import fedarena as fa\n@fa.poisoning('push')\ndef push(own, rng):\n    return +8 * own\n")
    pairing = {"defense": "median", "attack": "push", "secret": "0" * 32}
    before = outcome(path, **pairing)
    assert outcome(path, **pairing) == before
    edit(path, "+8 *", "-9 *")
    assert outcome(path, **pairing) != before


def test_other_names_in_an_edited_file_are_known(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE.replace('"first"', '"krum"'))
    plugin_file.use([str(path)])
    with pytest.raises(UserError, match="claimed by"):
        registry.find("aggregator", "krum")
    edit(path, '"krum"', '"mended"')
    plugin_file.use([])
    assert registry.find("aggregator", "krum").title.startswith("Krum")
    assert registry.find("aggregator", "mended").title == "The first upload"


def test_an_edited_file_that_is_no_python_is_told_until_it_is_mended(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE)
    plugin_file.use([str(path)])
    edit(path, "return", "retrun")
    for _ in range(2):
        with pytest.raises(UserError, match=r"^option 'plugin' is my_first\.py, line 7: invalid syntax$"):
            plugin_file.use([str(path)])
    edit(path, "retrun", "return")
    plugin_file.use([str(path)])
    assert registry.find("aggregator", "first").load().__name__ == "First"


def test_a_file_that_is_gone_is_used_no_more(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE)
    plugin_file.use([str(path)])
    path.rename(tmp_path / "renamed.py")
    plugin_file.use([str(tmp_path / "renamed.py")])
    assert registry.find("aggregator", "first").load().__module__ == "renamed"


def test_a_rule_with_the_name_of_a_part_of_a_defense_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE.replace('"first", kind="aggregator"', '"krum", kind="defense"'))
    plugin_file.use([str(path)])
    with pytest.raises(UserError, match=r"defense 'krum' is claimed by .*: choose another name in my_first\.py"):
        defense_cards("nnm+krum")


def test_a_name_that_is_taken_is_claimed_twice(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE.replace('"first"', '"krum"'))
    plugin_file.use([str(path)])
    with pytest.raises(UserError, match=r"claimed by fedarena .* and my_first.py.*: choose another name in my_first"):
        registry.find("aggregator", "krum")


def test_an_error_names_the_user_s_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, RULE.replace("return Aggregate", "return Agregate"))
    short = ["--clients=4", "--corrupted=1", "--model=mlp", "--rounds=2", "--jobs=1", "--quiet", f"--out={tmp_path}"]
    assert main(["run", "--defense=first", "--attack=sign-flip", f"--plugin={path}", *short]) == 1
    told = capsys.readouterr().err
    assert told == "bench: a method failed: NameError: name 'Agregate' is not defined (in __call__, my_first.py:7)\n"


def test_a_file_that_breaks_when_it_is_loaded_names_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, RULE.replace("ONE: card", "LIST = [][1]\nONE: card"))
    assert main(["show", "first", f"--plugin={path}"]) == 2
    assert (
        "cannot be loaded: IndexError: list index out of range (in <module>, my_first.py:9)" in capsys.readouterr().err
    )


READER = """import fedarena as fa
@fa.privacy_attack("stumbling")
def guess(seen, view):
    return fa.metrics.reconstruction(seen, view)
"""
POISONER = """import fedarena as fa
import torch
@fa.poisoning("stumbling")
def craft(own, rng):
    return torch.nn.functional.linear(own, own[:, :1])
"""


@pytest.mark.parametrize(
    ("text", "more", "place"),
    [
        (READER, ["--party=server"], "(in guess, my_first.py:4)"),
        (POISONER, ["--clients=6", "--corrupted=2"], "(in craft, my_first.py:5)"),
    ],
)
def test_a_record_names_the_user_s_own_line(
    text: str, more: list[str], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The innermost line is in a library."""
    words = ["--model=mlp", "--rounds=2", "--jobs=1", "--quiet", f"--plugin={saved(tmp_path, text)}", *more]
    assert main(["run", "--defense=fedavg", "--attack=stumbling", f"--out={tmp_path}", *words, "--json"]) == 1
    reasons = [r["reason"] for r in json.loads(capsys.readouterr().out)["records"] if r["status"] == "failed"]
    assert reasons
    assert all(reason.endswith(place) for reason in reasons)
    assert main(["run", "--defense=fedavg", "--attack=stumbling", f"--out={tmp_path}", *words]) == 1
    assert place.replace(" ", "") in "".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("my_first.py", "x = (\n", "my_first.py, line 1: '(' was never closed"),
        ("my_first.py", "x = 1\n", "my_first.py, which has no card"),
        ("my-first.py", RULE, "it is no name of a module, rename it, such as my_first.py"),
        ("1st.py", RULE, "it is no name of a module, rename it, such as _1st.py"),
        ("torch.py", RULE, "torch.py, which cannot be imported: another module has this name, rename it"),
        ("my_first.py", "\0", "option 'plugin' is my_first.py: source code"),
        (
            "my_first.py",
            RULE.replace('gator"', 'gtor"'),
            "my_first.py, line 9: unknown kind 'aggregtor'; did you mean aggregator?",
        ),
        ("my_first.py", RULE.replace('"aggregator"', '"rule"'), "unknown kind 'rule'; did you mean aggregator?"),
        ("my_first.py", RULE.replace('"aggregator"', '"poisoning"'), "unknown kind 'poisoning'; did you mean attack?"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(
    name: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", f"--plugin={saved(tmp_path, text, name)}"]) == 2
    captured = capsys.readouterr().err
    assert captured.count("\n") == 1
    assert said in captured


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="which is not a file"):
        plugin_file.use([str(tmp_path)])
