"""What runs without a server tell of single nodes: accuracies, their distance and the bytes on an edge, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fedarena.core.text.numbers import Mean, digits, level, mean, size
from fedarena.records.schema import Record

OWN_MODELS = (
    "Without a server accuracy is the mean over the honest nodes' own models, and the scores follow from it. The mean "
    "of these models, which no node holds, may do better."
)
"""What a reader of an accuracy must know there."""


@dataclass(frozen=True)
class Figure:
    """How a figure of `fedarena.federation.nodes.node_metrics` is printed.

    Attributes:
        title: the heading of its column. phrase: its place in a sentence.
        text: its mean over seeds, and what the accuracies of the problem are → its text.
    """

    title: str
    phrase: str
    text: Callable[[Mean, str], str]


FIGURES = {
    "node_worst": Figure("worst node", "worst {}", level),
    "mean_model": Figure("mean model", "mean model {}", level),
    "consensus": Figure("consensus distance", "consensus distance {}", lambda m, measure: digits(m)),
    "edge_bytes": Figure("bytes per edge", "{} per edge and round", lambda m, measure: size(m.value)),
}
UNDER_ATTACK = ("node_worst", "mean_model", "consensus")
"""What poisoning may change."""


def nodes_of(record: Record) -> dict[str, float]:
    """The figures of a record; {} with a server. Those of a poisoned run are among its metrics, as its accuracy is."""
    found = {**record["metrics"], **record["utility"].get("nodes", {})}
    return {name: found[name] for name in FIGURES if name in found}


def over_runs(records: Iterable[Record]) -> dict[str, Mean]:
    """The means over the seeds of a defense's runs without poisoning, or of its runs under one attack."""
    runs = list({r["seed"]: nodes_of(r) for r in records}.values())
    return {name: mean(values) for name in FIGURES if (values := [run[name] for run in runs if name in run])}


def nodes_line(figures: Mapping[str, Mean], measure: str) -> str:
    """ "nodes: worst 93 %, mean model 96 %, consensus distance 0.12, 3.2 kB per edge and round".

    Empty with a server.
    """
    return _line("nodes", {name: figures[name] for name in FIGURES if name in figures}, measure)


def honest_nodes_line(figures: Mapping[str, Mean], measure: str) -> str:
    """The same of a poisoned run, without the bytes; empty with a server."""
    return _line("honest nodes", {name: figures[name] for name in UNDER_ATTACK if name in figures}, measure)


def _line(whose: str, figures: Mapping[str, Mean], measure: str) -> str:
    parts = [FIGURES[name].phrase.format(FIGURES[name].text(m, measure)) for name, m in figures.items()]
    return f"{whose}: {', '.join(parts)}" if parts else ""
