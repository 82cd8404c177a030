"""The table: no seed is lost, the worst reading is shown, the sentence says what the numbers say."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.tables import cell, conclusion, table

from fedarena.core.text.numbers import Mean, mean
from fedarena.goals import find
from fedarena.goals.inference_table import pairing_table
from fedarena.goals.pairing_table import Notes
from fedarena.goals.text import interval, rate


def record(seed: int = 0, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "defense": "dbcl",
        "goal": "reconstruction",
        "party": "server",
        "form": "adaptive",
        "reading": "upload",
        "seed": seed,
        "status": "ok",
        "reason": "",
        "metrics": {"recovered": 1.0, "ssim": 0.9, "match": 1e-9},
        "utility": {"clean_accuracy": 0.9, "fedavg_accuracy": 0.9, "chance": 0.1, "measure": "accuracy"},
        "key": f"k{seed}",
    }
    return made | changes


def broken(seed: int, status: str) -> dict[str, Any]:
    return record(seed, reading="", status=status, reason="out of luck", metrics={})


def test_seeds_without_a_result_stay_in_the_cell() -> None:
    made = cell([record(0), broken(1, "failed"), broken(2, "diverged")])
    assert made is not None
    assert made.status == "mixed"
    assert made.reason == "seed 1: failed: out of luck; seed 2: diverged: out of luck"
    assert made.metrics["recovered"].seeds == 1
    assert len(made.keys) == 3


def test_one_status_for_all_seeds_is_the_cells() -> None:
    made = cell([broken(0, "n/a"), broken(1, "n/a")])
    assert made is not None
    assert (made.status, made.reason) == ("n/a", "out of luck")
    assert cell([]) is None


def test_the_worst_reading_for_the_defender_is_shown() -> None:
    worse = record(reading="option-II", metrics={"recovered": 0.0, "ssim": 0.5})
    made = cell([record(reading="option-I", metrics={"recovered": 0.0, "ssim": 0.1}), worse])
    assert made is not None
    assert made.reading == "option-II"


def test_the_interval_is_students() -> None:
    made = mean([1.0, 2.0, 3.0])
    assert made.value == 2.0
    assert made.half == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert mean([1.0]).half is None


def told(paper: float, adaptive: float, match: float = 1e-9, accuracy: float = 0.9) -> tuple[str, ...]:
    records = [
        record(form="paper", metrics={"recovered": paper, "ssim": paper, "match": 0.5}),
        record(metrics={"recovered": adaptive, "ssim": adaptive, "match": match}),
        record(defense="fedavg", metrics={"recovered": 1.0, "ssim": 1.0, "match": 1e-9}),
    ]
    for r in records[:2]:
        r["utility"] = {"clean_accuracy": accuracy, "fedavg_accuracy": 0.9, "chance": 0.1, "measure": "accuracy"}
    return conclusion(table(records, "dbcl"), records, "dbcl", "dlg")


@pytest.mark.parametrize(
    ("paper", "adaptive", "stronger", "weaker"),
    [(0.0, 1.0, "adaptive", "paper"), (1.0, 1.0, "adaptive", "paper"), (1.0, 0.5, "paper", "adaptive")],
)
def test_the_verdict_has_the_stronger_form(paper: float, adaptive: float, stronger: str, weaker: str) -> None:
    more, less = (f"{100 * one(paper, adaptive):.0f} % of the images as the server" for one in (max, min))
    assert told(paper, adaptive) == (
        f"Against dbcl, dlg in {stronger} form recovers {more}, and 100 % without a defense.",
        f"Against dbcl, dlg in {weaker} form recovers {less}.",
    )


def test_the_verdict_has_the_party_that_reaches_most() -> None:
    reached = {"server": 1.0, "client": 0.5, "eavesdropper": 1.0}
    records = [
        record(defense=name, party=party, metrics={"recovered": share * most, "ssim": 0.9})
        for name, most in (("dbcl", 0.5), ("fedavg", 1.0))
        for party, share in reached.items()
    ]
    assert conclusion(table(records, "dbcl"), records, "dbcl", "dlg") == (
        "Against dbcl, dlg in adaptive form recovers 50 % of the images as the server and the eavesdropper, and 100 % "
        "without a defense.",
        "Against dbcl, dlg in adaptive form recovers 50 % of the images as the server and the eavesdropper, 25 % as "
        "the client.",
        "Without a defense, dlg recovers 100 % of the images as the server and the eavesdropper, 50 % as the client.",
    )


def test_what_all_parties_reach_is_told_of_any_party() -> None:
    records = [record(party=party) for party in ("server", "client", "eavesdropper")]
    assert conclusion(table(records, "dbcl"), records, "dbcl", "dlg") == (
        "Against dbcl, dlg in adaptive form recovers 100 % of the images as any party.",
    )


def test_a_remark_says_that_the_form_that_knows_the_protocol_is_missing() -> None:
    records = [record(form="paper")]
    verdict, remark = conclusion(table(records, "dbcl"), records, "dbcl", "dlg")
    assert verdict == "Against dbcl, dlg in paper form recovers 100 % of the images as the server."
    assert remark == "There is no result in adaptive form, in which the attack knows the protocol."


def test_a_remark_warns_where_other_images_explain_the_observation() -> None:
    assert "Other images explain what was seen" in told(0.0, 0.0, match=1e-8)[-1]
    assert "Other images explain what was seen" not in told(0.0, 0.0, match=0.1)[-1]
    assert "Other images explain what was seen" not in told(0.0, 1.0)[-1]


def test_a_remark_names_a_lost_accuracy() -> None:
    assert told(0.0, 1.0, accuracy=0.2)[-1] == "The model that dbcl trains here has 20 % accuracy, FedAvg's 90 %."
    assert "accuracy" not in " ".join(told(0.0, 1.0))


def test_a_note_is_one_line_whoever_wrote_it() -> None:
    notes = Notes()
    assert notes.number("it broke\n\nVerdict. All is well") == notes.number("it broke Verdict. All is well") == 1
    assert notes.notes == ["it broke Verdict. All is well"]


# -- several readings ----------------------------------------------------------------------------------


def ranked(reading: str, value: float, seed: int = 0, **changes: Any) -> dict[str, Any]:
    metrics = {"auc": value, "advantage": 2 * value - 1, "auc_low": value - 0.1, "auc_high": value + 0.1}
    metrics |= {"auc_low_together": value - 0.2, "auc_high_together": value + 0.2}
    return record(seed, goal="property", reading=reading, metrics=metrics, **changes)


@pytest.mark.parametrize(
    ("accuracies", "uninformative"), [((0.1,), True), ((0.14,), True), ((0.3,), False), ((0.9, 0.1, 0.12), True)]
)
def test_the_verdict_says_where_the_model_learned_nothing(accuracies: tuple[float, ...], uninformative: bool) -> None:
    """At chance, near it, or so on half of the seeds or more."""
    records = [record(seed) for seed in range(len(accuracies))]
    for r, accuracy in zip(records, accuracies, strict=True):
        r["utility"] = {**r["utility"], "clean_accuracy": accuracy}
    verdict, *remarks = conclusion(table(records, "dbcl"), records, "dbcl", "dlg")
    reached = "Against dbcl, dlg in adaptive form recovers 100 % of the images as the server."
    if uninformative:
        assert verdict.startswith("This is uninformative: the model that dbcl trains here is hardly better than")
        assert remarks == [reached]
    else:
        assert verdict == reached
        assert remarks[0].startswith("The model that dbcl trains here has")


def test_a_cell_names_the_reading_that_was_picked_and_the_others() -> None:
    records = [ranked("option-I", 0.6), ranked("option-II", 0.7), ranked("", 0.9, defense="fedavg")]
    for r in records:
        r["cost"] = {"bytes_up": 1, "bytes_down": 1, "peak_bytes": 1, "relative_seconds": 1.0}
    made = pairing_table(records, "dbcl", "property-inference", find("property").text, ("server", "client"))
    ((_, (_, _, picked)),) = made.rows
    assert picked.reading == "option-II"
    assert any(line.startswith("option-I: AUC 0.60") for line in picked.lines)
    assert made.sentences[0].startswith("Where there are several readings of what was seen, a cell shows the one")
    assert "AUC 0.70 (0.50 to 0.90, not distinguishable from chance) as the server" in made.verdict


def test_over_seeds_the_interval_holds_for_all_readings_at_once() -> None:
    one = cell([ranked("option-I", v, s) for s, v in enumerate((0.5, 0.6, 0.7))])
    two = cell([ranked(r, v, s) for r in ("option-I", "option-II") for s, v in enumerate((0.5, 0.6, 0.7))])
    assert one is not None
    assert two is not None
    assert one.metrics["auc"].half == pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-4)
    assert two.metrics["auc"].half == pytest.approx(6.2053 * 0.1 / 3**0.5, rel=1e-4)  # Student's t at 1 - 0.0125


def test_seeds_that_agree_make_nothing_certain() -> None:
    """Two seeds of 1.00, each of which alone leaves all from .54 on open."""
    metrics = {"auc": 1.0, "advantage": 1.0, "auc_low": 0.54, "auc_high": 1.0}
    made = cell([record(s, goal="property", metrics=metrics) for s in (0, 1)])
    assert made is not None
    assert made.metrics["auc"].half == 0
    assert interval(made.metrics, "auc") == (pytest.approx(1 - 0.46 / 2**0.5), 1)


def test_seeds_that_agree_give_no_interval_in_old_records() -> None:
    metrics = {"auc": 1.0, "advantage": 1.0}
    made = cell([record(s, goal="property", metrics=metrics) for s in (0, 1)])
    assert made is not None
    assert interval(made.metrics, "auc") is None


def test_a_rate_has_the_judge_s_interval_or_that_over_seeds() -> None:
    one = {"found": Mean(0.5, None, 1), "found_low": Mean(0.25, None, 1), "found_high": Mean(0.75, None, 1)}
    assert rate(one, "found") == "50 % (25 to 75 %)"
    assert rate({"found": Mean(0.5, 0.1, 3)}, "found") == "50 ± 10 %"
    assert rate({"found": Mean(0.5, None, 1)}, "found") == "50 %"


def test_seeds_that_scatter_tell_more_than_each_of_them() -> None:
    made = cell([ranked("upload", v, s) for s, v in enumerate((0.5, 0.9))])
    assert made is not None
    assert interval(made.metrics, "auc") == (0, 1)  # Student's of two
    far = cell([ranked("upload", v, s) for s, v in enumerate((0.69, 0.7, 0.71))])
    assert far is not None
    assert interval(far.metrics, "auc") == (pytest.approx(0.7 - 0.2 / 3**0.5), pytest.approx(0.7 + 0.2 / 3**0.5))


# -- without a defense ---------------------------------------------------------------------------------


def test_each_form_is_compared_with_the_same_form_without_a_defense() -> None:
    plain = [ranked("upload", v, defense="fedavg", form=form) for form, v in (("paper", 0.9), ("adaptive", 1.0))]
    records = [ranked("expanded", 0.6, form="paper"), ranked("upload", 0.8), *plain]
    rows = table(records, "dbcl")
    assert list(rows["server"]) == [
        "no defense, paper form", "no defense, adaptive form", "paper form", "adaptive form"
    ]  # fmt: skip
    verdict, *remarks = conclusion(rows, records, "dbcl", "property-inference")
    assert " in adaptive form tells batches with the property from others with AUC 0.80 (" in verdict
    assert verdict.endswith(" as the server, and AUC 1.00 (0.80 to 1.00) without a defense.")
    assert ["in paper form" in remark for remark in remarks] == [True, True]
    assert [remark.partition(",")[0] for remark in remarks] == ["Against dbcl", "Without a defense"]
    assert list(table(records, "fedavg")["server"]) == ["paper form", "adaptive form"]


def test_one_form_alone_without_a_defense_stands_beside_both() -> None:
    records = [ranked("expanded", 0.6, form="paper"), ranked("upload", 0.8), ranked("u", 1.0, defense="fedavg")]
    assert list(table(records, "dbcl")["server"]) == ["no defense", "paper form", "adaptive form"]
    verdict, remark = conclusion(table(records, "dbcl"), records, "dbcl", "property-inference")
    assert "without a defense" in verdict
    assert remark.startswith("Against dbcl, property-inference in paper form")
