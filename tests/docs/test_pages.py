"""The documentation's pages: links lead somewhere, sentences are short, the front page too, the site is built."""

from __future__ import annotations

import re
from collections.abc import Iterable
from inspect import isfunction
from pathlib import Path

import pytest
from helpers.fresh_python import run_python
from helpers.pages import DOCS, GENERATED, PAGES, README, in_pictures, on_card, sentences
from helpers.paths import ROOT
from helpers.scripts import load_script

import fedarena as fa
from fedarena.core import registry
from fedarena.core.card import KINDS, Kind

MOST_WORDS = 35


@pytest.mark.parametrize("page", [*PAGES, *GENERATED], ids=lambda page: page.stem)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if target.startswith("http"):
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}, heading


@pytest.mark.parametrize("page", [README, *DOCS, *GENERATED], ids=lambda page: page.stem)
def test_no_sentence_is_long(page: Path) -> None:
    assert long(sentences(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_sentence_about_a_picture_is_long(page: Path) -> None:
    assert long(in_pictures(page)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_on_a_card_is_long(kind: Kind) -> None:
    methods = registry.registries()[kind]
    built_in = [name for name in methods.names() if methods.entry(name).origin == registry.BUILT_IN]
    found = {name: long(on_card(methods.card(name))) for name in built_in}
    assert {name: some for name, some in found.items() if some} == {}


def long(some: Iterable[str]) -> list[str]:
    return [sentence for sentence in some if len(sentence.split()) > MOST_WORDS]


def test_sentences_are_found() -> None:
    assert max(len(sentence.split()) for page in PAGES for sentence in in_pictures(page)) > MOST_WORDS // 2
    assert max(len(sentence.split()) for sentence in on_card(registry.find("defense", "baffle"))) > MOST_WORDS // 2
    assert max(len(sentence.split()) for page in DOCS for sentence in sentences(page)) > MOST_WORDS // 2
    assert sum(1 for page in DOCS for _ in sentences(page)) > 300


def test_the_front_page_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 150
    assert README.stat().st_size <= 8_000


def test_pages_of_methods_are_what_the_cards_say() -> None:
    pages = load_script("docs/make_methods.py").pages
    assert pages() == {path.name: path.read_text() for path in GENERATED}, "run: python docs/make_methods.py"


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs/reference.md").read_text()
    names = [f"testing.{name}" for name in fa.testing.__all__]
    names += [f"metrics.{name}" for name, one in vars(fa.metrics).items() if _is_public_function(name, one)]
    names += [name for name in fa.__all__ if name not in ("metrics", "testing")]
    assert [name for name in names if not re.search(rf"^.. auto\w+:: fedarena.{name}$", page, re.MULTILINE)] == []


def _is_public_function(name: str, one: object) -> bool:
    return isfunction(one) and one.__module__ == fa.metrics.__name__ and not name.startswith("_")


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: pip install '.[docs]'")
    code = "import sys; from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
    done = run_python(code, "-W", "--keep-going", "-q", "-c", "docs", ".", str(tmp_path), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "docs/index.html").is_file()
