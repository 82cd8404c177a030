"""Options of ByzFL's line search."""

from dataclasses import dataclass

from fedarena.core.options import option


@dataclass(frozen=True)
class SearchOptions:
    """How an attacker searches its strength in each round; see `largest_of` beside this file for the search."""

    evaluations: int = option(20, "strengths that are tried in a round, 0 among them", low=2)
    delta: float = option(10.0, "first step of the search", above=0)
    ratio: float = option(0.8, "factor on the step where it does no more harm", above=0.5, below=1)
