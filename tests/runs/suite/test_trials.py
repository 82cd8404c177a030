"""Which trials a suite's file stands for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from helpers.suite import POISON, PROPERTY, READ, TINY

from fedarena.core.errors import UserError
from fedarena.runs.suite.suite import FOLDER, Suite, load, names, parse
from fedarena.runs.suite.trials import Trial, trials_of
from fedarena.runs.trial import given_by, references, shared


def trials(text: str, seeds: tuple[int, ...] = (0,)) -> list[Trial]:
    return trials_of(suite(text), seeds)


def suite(text: str) -> Suite:
    return parse(text, Path("play.toml"))


def shape(found: list[Trial]) -> Counter[tuple[str, str, bool]]:
    """How many trials by defense and attack, and whether they are cells."""
    return Counter((t.spec.defense.label, t.spec.attack.label if t.spec.attack else "none", t.shown) for t in found)


def test_every_pair_party_and_form_once() -> None:
    found = trials(TINY)
    assert len({t.name for t in found}) == len(found) == 28
    assert {key: n for key, n in shape(found).items() if key[1] != "none"} == {
        **{("fedavg", a, True): 2 for a in ("last-layer-label", "dlg", "gradient-estimate")},
        **{("dbcl", a, True): 4 for a in ("last-layer-label", "dlg", "gradient-estimate")},
        **{(d, a, True): 1 for d in ("fedavg", "dbcl") for a in ("sign-flip", "pixel-trigger")},
    }
    # Honest runs of both problems; and again with the trigger, which are no cells.
    assert shape(found)["fedavg", "none", True] == shape(found)["dbcl", "none", True] == 2
    assert shape(found)["fedavg", "none", False] == shape(found)["dbcl", "none", False] == 1


def test_seeds_only_multiply() -> None:
    assert [t.name[:-1] for t in trials(TINY, (3, 5))] == 2 * [t.name[:-1] for t in trials(TINY)]


def test_whatever_is_measured_against_is_among_them() -> None:
    for text in (TINY, PROPERTY, *(path.read_text() for path in FOLDER.glob("*.toml"))):
        found = trials(text)
        given = {run for t in found for run in given_by(t.spec)}
        for t in found:
            assert set(references(t.spec)) <= given, t.name


def test_readers_of_one_run_share_it_and_poisoned_runs_do_not() -> None:
    specs = [t.spec for t in trials(TINY)]
    groups = [{(specs[i].defense.name, specs[i].attack is None) for i in found} for found in shared(specs)]
    sizes = sorted(len(found) for found in shared(specs))
    # four poisoned runs alone; two honest ones, each plain and with a trigger; two read by everybody
    assert sizes == [1, 1, 1, 1, 2, 2, 7, 13]
    assert all(len({defense for defense, _ in group}) == 1 for group in groups)


def test_undefended_there_are_no_two_forms() -> None:
    found = [t for t in trials(TINY) if t.spec.defense.name == "fedavg" and t.threat and not t.threat.knows]
    assert {t.spec.threats[0].form for t in found} == {"adaptive"}


def test_a_cell_that_counts_in_one_matrix_counts() -> None:
    matrix = '[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]\nattacks = ["dlg"]\n'
    for text in (f"{matrix}counts = false\n{matrix}", f"{matrix}{matrix}counts = false\n"):
        assert {t.counts for t in trials(READ + text) if t.threat} == {True}
    assert {t.counts for t in trials(f"{READ}{matrix}counts = false\n") if t.threat} == {False}


def test_a_fedavg_that_is_trained_otherwise_is_no_cell_and_no_baseline() -> None:
    text = f'{READ}[training.pbpfl]\nloss = "mse"\n'
    text += '[[matrix]]\nproblem = "read"\ndefenses = ["fedavg", "pbpfl"]\nattacks = ["dlg"]\n'
    calm = [t for t in trials(text) if t.spec.attack is None]
    assert [(t.spec.defense.name, t.spec.problem.schedule.loss, t.shown) for t in calm] == [
        ("fedavg", "cross-entropy", True),
        ("fedavg", "mse", False),
        ("pbpfl", "mse", True),
    ]


def test_a_matrix_limits_parties_forms_and_knowledge() -> None:
    text = READ + '[[matrix]]\nproblem = "read"\ndefenses = ["dbcl"]\nattacks = ["dlg"]\n'
    text += 'parties = ["client"]\nforms = ["paper"]\n'
    assert {(t.spec.threats[0].party, t.spec.threats[0].form) for t in trials(text) if t.threat} == {
        ("client", "paper")
    }
    text = POISON + '[[matrix]]\nproblem = "poison"\ndefenses = ["krum"]\nattacks = ["alie"]\nknows = ["omniscient"]\n'
    assert {t.spec.threats[0].knows for t in trials(text) if t.threat} == {"omniscient"}


@pytest.mark.parametrize(
    ("threats", "message"),
    [
        ('parties = ["outsider"]', "matrix 1: parties is outsider, of which dlg has none: it has server, client"),
        ('knows = ["omniscient"]', "matrix 1: knows is omniscient, of which sign-flip has none: it has own"),
        ('forms = ["adaptive"]', "matrix 1: forms is adaptive, of which sign-flip has none: it has paper"),
    ],
)
def test_an_attack_of_which_nothing_is_left_is_refused(threats: str, message: str) -> None:
    text = POISON + '[[matrix]]\nproblem = "poison"\ndefenses = ["krum"]\nattacks = ["dlg", "sign-flip"]\n' + threats
    with pytest.raises(UserError, match=message):
        trials(text)


def test_an_option_for_a_party_that_a_matrix_leaves_out_is_refused() -> None:
    matrix = '[[matrix]]\nproblem = "read"\ndefenses = ["fedavg"]\nattacks = ["model-inversion"]\n'
    text = f"{READ}[methods.model-inversion]\nblock = 2\n{matrix}"
    assert trials(text)
    with pytest.raises(UserError, match="matrix 1: attack model-inversion: option 'block' is 2, allowed with party"):
        trials(text + 'parties = ["server", "client"]')


def test_an_option_of_a_form_in_which_a_matrix_runs_nothing_is_refused() -> None:
    def text(defenses: str, forms: str = "") -> str:
        matrix = f'[[matrix]]\nproblem = "read"\ndefenses = [{defenses}]\nattacks = ["property-inference"]\n'
        return f'{READ}[methods.property-inference]\nrounds = 4\nclassifier = "ridge"\n{matrix}{forms}'

    paper = 'forms = ["paper"]'
    assert trials(text('"dbcl"'))
    assert trials(text('"fedavg"', paper)), "without a defense the form is the adaptive one, whatever is asked for"
    assert trials(text('"fedavg", "dbcl"', paper))
    message = "matrix 1: attack property-inference: option 'classifier' is ridge, allowed with form paper: best"
    with pytest.raises(UserError, match=message):
        trials(text('"dbcl"', paper))


@pytest.mark.parametrize("name", names())
def test_the_package_s_suites_can_be_run(name: str) -> None:
    found = trials_of(load(name), (0,))
    assert len({t.name for t in found}) == len(found) > 10
    assert any(t.threat and t.threat.knows for t in found)
    assert name == "memory" or any(t.threat and not t.threat.knows for t in found)  # nobody reads there


def test_a_problem_may_use_the_old_name_of_the_assumed_number() -> None:
    matrix = '[[matrix]]\nproblem = "p"\ndefenses = ["krum"]\nattacks = ["ipm"]\n'
    table = '[problems.p]\ndataset = "digits"\nclients = 6\n{}\n' + matrix
    path = Path("play.toml")
    old, new = (parse(table.format(f"{name} = 2"), path).problems for name in ("belief", "assumed_corrupted"))
    assert old == new
    with pytest.raises(UserError, match="has belief and assumed_corrupted, allowed: assumed_corrupted alone"):
        parse(table.format("belief = 2\nassumed_corrupted = 2"), path)
