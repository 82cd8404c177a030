"""A server that may only draw its numbers keeps the best of several draws."""

from __future__ import annotations

import pytest
from helpers import malicious

from fedarena.goals.metrics.reconstruction import reconstruction_metrics

SMALL = {"widths": "16"}


def test_a_protocol_that_draws_nothing_leaves_no_choice() -> None:
    why = malicious.reason("affine-model", options={"draws": "2"}, batch_size=1, model_options=SMALL)
    assert "draws nothing" in why


def test_the_best_draw_leaves_less_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sampled inputs of a layer (hash=uniform): of eight draws the best leaves less open than the mean draw."""
    from fedarena.attacks.reconstruction.helpers import best_draw

    judged: list[float] = []
    judge = best_draw.left_open

    def noted(*args: object) -> float:
        judged.append(judge(*args))  # type: ignore[arg-type]
        return judged[-1]

    monkeypatch.setattr(best_draw, "left_open", noted)
    options = {"draws": "8", "victims": "1"}
    made = {"defense_options": {"hash": "uniform"}, "batch_size": 1, "clients": 1, "model_options": SMALL}
    challenge = malicious.challenge("affine-model", "dbcl", options, **made)  # type: ignore[arg-type]
    metrics = reconstruction_metrics(malicious.answer("affine-model", challenge, options), challenge.answers)
    assert len(judged) == 8
    assert min(judged) < 0.95 * sum(judged) / 8
    assert 0 < min(judged) < 1
    assert metrics["label_accuracy"] == 1
