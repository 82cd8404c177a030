"""Methods in a file of one's own: what is found without running it, and what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.plugin_files import forgotten

from fedarena.cli import main
from fedarena.core import plugin_file, registry
from fedarena.core.errors import UserError

RULE = """
from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.core import card

class First(Aggregator):
    def __call__(self, x, call):
        return Aggregate(x[0], None)

ONE: card.Card = card.Card(name="first", kind="aggregator", title="The first upload", target=First)
TWO = card.Card(name="first-too", kind="aggregator", title="Likewise", target=First)
"""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


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


def test_a_name_that_is_taken_is_claimed_twice(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE.replace('"first"', '"krum"'))
    plugin_file.use([str(path)])
    registry.registries.cache_clear()
    with pytest.raises(UserError, match=r"claimed by fedarena .* and my_first.py"):
        registry.find("aggregator", "krum")


def test_an_error_names_the_user_s_own_line(tmp_path: Path) -> None:
    path = saved(tmp_path, RULE.replace("return Aggregate", "return Agregate"))
    short = ["--clients=4", "--corrupted=1", "--model=mlp", "--rounds=2", "--jobs=1", "--quiet", f"--out={tmp_path}"]
    with pytest.raises(NameError, match="'Agregate' is not defined") as raised:
        main(["run", "--defense=first", "--attack=sign-flip", f"--plugin={path}", *short])
    assert "my_first.py:7" in raised.value.__notes__[-1]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("my_first.py", "x = (\n", "my_first.py, line 1: '(' was never closed"),
        ("my_first.py", "x = 1\n", "my_first.py, which has no card"),
        ("my-first.py", RULE, "my-first.py, which cannot be imported: it is no name of a module"),
        ("torch.py", RULE, "torch.py, which cannot be imported: another module has this name"),
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
