"""Texts: ROUGE against the examples of its paper, by hand and by brute force; words at their places."""

from itertools import combinations

import pytest
import torch
import torch.nn.functional as F
from helpers.victims import victims
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedarena.contracts.inference import Reconstruction
from fedarena.goals.metrics import reconstruction as judge
from fedarena.goals.metrics.text_similarity import longest_common, rouge_l, rouge_n, text_metrics

POLICE, KILLED, THE, GUNMAN, KILL = range(1, 6)
REFERENCE = [POLICE, KILLED, THE, GUNMAN]
TEXTS = st.lists(st.integers(1, 4), max_size=6)


def one_hot(*codes: list[int]) -> Tensor:
    return F.one_hot(torch.tensor(codes), 6).float()


def test_rouge_l_is_that_of_the_papers_example() -> None:
    """Lin 2004, Section 3.1: S2 and S3 have 3/4 and 2/4, and the same ROUGE-2."""
    s2, s3 = [POLICE, KILL, THE, GUNMAN], [THE, GUNMAN, KILL, POLICE]
    assert rouge_l(s2, REFERENCE) == 0.75
    assert rouge_l(s3, REFERENCE) == 0.5
    assert rouge_n(s2, REFERENCE, 2) == rouge_n(s3, REFERENCE, 2) == pytest.approx(1 / 3)


def test_repeated_words_match_as_often_as_both_have_them() -> None:
    assert rouge_n([THE, THE, THE], [THE, THE, GUNMAN], 1) == pytest.approx(2 * 2 / 6)
    assert rouge_n([THE, GUNMAN], [THE, GUNMAN, THE, GUNMAN], 2) == pytest.approx(2 * 1 / 4)


def test_texts_of_different_length_weigh_precision_and_recall_alike() -> None:
    """Precision 2/2, recall 2/4: F1 is 2/3."""
    assert rouge_n([POLICE, GUNMAN], REFERENCE, 1) == rouge_l([POLICE, GUNMAN], REFERENCE) == pytest.approx(2 / 3)


def test_a_text_without_n_grams_agrees_with_nothing() -> None:
    assert rouge_n([], REFERENCE, 1) == rouge_l([], []) == rouge_n([THE], [THE], 2) == 0.0


@settings(max_examples=50, deadline=None)
@given(TEXTS, TEXTS)
def test_the_longest_common_subsequence_is_that_of_all_subsequences(a: list[int], b: list[int]) -> None:
    def all_of(text: list[int]) -> set[tuple[int, ...]]:
        return {part for n in range(len(text) + 1) for part in combinations(text, n)}

    assert longest_common(a, b) == max(map(len, all_of(a) & all_of(b)))


def test_words_are_counted_at_their_places_and_padding_is_none() -> None:
    original = one_hot([1, 2, 3, 0], [4, 5, 0, 0])
    guess = one_hot([1, 3, 2, 0], [4, 5, 0, 1])
    found = text_metrics(0.3 * guess, original)
    assert found["token_accuracy"] == pytest.approx(3 / 5)
    assert found["exact"] == 0.0
    assert found["rouge_1"] == pytest.approx((1 + 2 * 2 / 5) / 2)
    assert text_metrics(original, original) == dict.fromkeys(found, 1.0)


def test_a_grey_guess_names_no_word() -> None:
    assert set(text_metrics(torch.full((1, 4, 6), 0.5), one_hot([1, 2, 3, 0])).values()) == {0.0}


@pytest.mark.parametrize("texts", [True, False])
def test_the_judge_counts_words_of_texts_alone(texts: bool) -> None:
    x, y = one_hot([1, 2, 3, 0], [4, 5, 0, 0]), torch.tensor([0, 1])
    among = victims([(x, y)], others=one_hot([2, 2, 2, 2]), threshold=0.01)
    among = judge.Victims(among.truths, among.decoys, among.threshold, texts=texts)
    if not texts:
        x = x.flatten(1)
        among = judge.Victims(((x, y),), victims([(x, y)]).decoys, 0.01)
    found = judge.reconstruction_metrics([Reconstruction(x.flip(0), y, 0.0, 1)], among)
    assert found["recovered"] == found["identified"] == 1.0
    assert "ssim" not in found
    for name in ("token_accuracy", "exact", "exact_low", "rouge_1", "rouge_2", "rouge_l"):
        assert (name in found) == texts
