"""How similar two texts are: the words that a guess names at their places, and ROUGE (Lin 2004).

A text is a one-hot code [length, words] of its words; of a guess the largest entry names the word, and the first of
several. The code `PADDING` fills a text up behind its last word, and is no word.

    token accuracy   of the words of the original, the share that the guess names at the same place
    exact            1 if all places agree, padding too, else 0
    ROUGE-n          F1 = 2·m/(a + b); a and b are the numbers of n-grams of the two texts, m that of matches, in which
                     every n-gram counts as often as it occurs in both (Section 2, as the F measure of Section 3)
    ROUGE-L          the same with the numbers of words, and m the length of the longest common subsequence (Eq. 4 with
                     β = 1)

Two texts without n-grams agree in none: 0. The package `rouge-score` gives the same numbers for words without endings
that it would strip; it is no dependency, because it brings nltk along. Tests: tests/goals/metrics/test_text_similarity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from torch import Tensor

PADDING = 0
"""The code that stands for no word."""


def text_metrics(guess: Tensor, originals: Tensor) -> dict[str, float]:
    """Means over texts: token_accuracy (over all words together), exact, rouge_1, rouge_2 and rouge_l.

    Args:
        guess, originals: [n, length, words], n ≥ 1.
    """
    named, true = guess.argmax(-1), originals.argmax(-1)
    words, right = true != PADDING, named.to(true.device) == true
    pairs = [(without_padding(a), without_padding(b)) for a, b in zip(named.tolist(), true.tolist(), strict=True)]
    return {
        "token_accuracy": float(right[words].double().mean()),
        "exact": float(right.all(1).double().mean()),
        "rouge_1": fmean(rouge_n(a, b, 1) for a, b in pairs),
        "rouge_2": fmean(rouge_n(a, b, 2) for a, b in pairs),
        "rouge_l": fmean(rouge_l(a, b) for a, b in pairs),
    }


def without_padding(codes: Sequence[int]) -> list[int]:
    """The codes of words alone."""
    return [code for code in codes if code != PADDING]


def rouge_n(a: Sequence[int], b: Sequence[int], n: int) -> float:
    """F1 of the n-grams of two texts, as codes of words."""
    one, other = (Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)) for text in (a, b))
    return f1((one & other).total(), one.total(), other.total())


def rouge_l(a: Sequence[int], b: Sequence[int]) -> float:
    """F1 of the longest common subsequence of two texts, as codes of words."""
    return f1(longest_common(a, b), len(a), len(b))


def longest_common(a: Sequence[int], b: Sequence[int]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for word in a:
        before, row = row, [0]
        for j, other in enumerate(b):
            row.append(before[j] + 1 if word == other else max(before[j + 1], row[j]))
    return row[-1]


def f1(matches: int, a: int, b: int) -> float:
    """2·matches/(a + b), 0 where there is nothing to match."""
    return 2 * matches / (a + b) if a + b else 0.0
