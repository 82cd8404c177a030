"""The judge of labels against brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedarena.contracts.inference import Labels
from fedarena.goals.metrics.labels import best_prior, label_metrics, prior_label_metrics


def labels(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


@given(
    batches=st.lists(
        st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 3), min_size=n, max_size=n)] * 2)),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=50, deadline=None)
def test_the_order_within_a_batch_does_not_matter_and_multiplicity_does(batches: list) -> None:
    guesses, truths = [labels(*g) for g, _ in batches], [labels(*t) for _, t in batches]
    metrics = label_metrics([Labels(g) for g in guesses], truths, [len(t) for t in truths])
    shared = sum(sum((Counter(g) & Counter(t)).values()) for g, t in batches)
    assert metrics["labels"] == sum(len(t) for _, t in batches)
    assert metrics["label_accuracy"] == pytest.approx(shared / metrics["labels"])


def test_the_prior_of_one_sample_is_the_most_frequent_class() -> None:
    pool = labels(0, 1, 1, 2)
    assert best_prior(1, torch.tensor([0.25, 0.5, 0.25])).tolist() == [1]
    assert prior_label_metrics([labels(1), labels(0)], [1, 1], pool) == {"prior_label_accuracy": 0.5}


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (1 / 3, 1 / 3, 1 / 3), (0.9, 0.1, 0.0)])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_guess_has_more_in_common_on_average(shares: tuple[float, ...], n: int) -> None:
    def expected(guess: tuple[int, ...]) -> float:
        total = 0.0
        for truth in product(range(3), repeat=n):
            chance = 1.0
            for c in truth:
                chance *= shares[c]
            total += chance * sum((Counter(guess) & Counter(truth)).values())
        return total

    best = max(expected(g) for g in combinations_with_replacement(range(3), n))
    assert expected(tuple(best_prior(n, torch.tensor(shares)).tolist())) == pytest.approx(best)


def test_the_prior_counts_the_labels_that_could_be_named_as_the_judge_does() -> None:
    """A client that draws its samples by chance: 1, 5 and 0 where two were to be named."""
    pool, sizes = labels(0, 1, 1, 2), [2, 2, 2]
    truths = [labels(1), labels(1, 1, 0, 1, 2), labels()]
    shares = pool.bincount() / 4
    known = [Labels(best_prior(n, shares)) for n in sizes]
    prior = prior_label_metrics(truths, sizes, pool)["prior_label_accuracy"]
    assert label_metrics(known, truths, sizes)["label_accuracy"] == prior


def test_a_large_batch_is_guessed_well_by_frequencies_alone() -> None:
    """So that reading its labels is not taken for a leak."""
    generator = torch.Generator().manual_seed(0)
    pool = torch.randint(10, (5000,), generator=generator)
    truth = torch.randint(10, (700,), generator=generator)
    assert prior_label_metrics([truth], [700], pool)["prior_label_accuracy"] > 0.9


def test_a_client_that_drew_fewer_samples() -> None:
    metrics = label_metrics([Labels(labels(0, 1, 2, 2)), Labels(labels(0, 0, 0, 0))], [labels(2, 2), labels()], [4, 4])
    ends = {"label_accuracy_low": pytest.approx(0.025**0.5), "label_accuracy_high": 1.0}
    assert metrics == {"label_accuracy": 1.0, "labels": 2.0, **ends}


def test_of_several_readings_the_interval_that_holds_for_all_stands_beside() -> None:
    metrics = label_metrics([Labels(labels(0, 1))], [labels(0, 2)], [2], readings=4)
    assert metrics["label_accuracy_low_together"] < metrics["label_accuracy_low"] < 0.5
    assert metrics["label_accuracy_high_together"] > metrics["label_accuracy_high"] > 0.5


def test_answers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="1 of 2 observations"):
        label_metrics([Labels(labels(0))], [labels(0), labels(0)], [1, 1])
    with pytest.raises(ValueError, match="for 2 samples"):
        label_metrics([Labels(labels(0, 1, 2))], [labels(0, 1)], [2])


@given(size=st.integers(1, 4), truth=st.lists(st.integers(0, 3), max_size=7))
def test_whoever_names_all_that_it_was_asked_for_scores_full_marks(size: int, truth: list[int]) -> None:
    """Also where a client held more samples than it was asked for, or fewer."""
    named = (truth + [0] * size)[:size]
    metrics = label_metrics([Labels(labels(*named))], [labels(*truth)], [size])
    assert metrics["label_accuracy"] == (1 if truth else 0)
    assert metrics["labels"] == min(size, len(truth))
