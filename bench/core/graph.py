"""Graphs of nodes that talk to their neighbours, and the weights by which they mix what they hear."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from fedarena.core.errors import UserError
from fedarena.core.options import option, to_text

if TYPE_CHECKING:
    import networkx as nx

GRAPHS = ("ring", "complete", "star", "dumbbell", "random-regular", "erdos-renyi", "edges")
DRAWS = 1000
"""How many graphs are drawn at random until one is connected."""
EDGE = re.compile(r"(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,8})")
"""Two nodes, each number without leading zeros, so that there is one way to write a number."""


@dataclass(frozen=True)
class GraphOptions:
    """The options of protocols without a server that say who talks to whom."""

    graph: str = option("random-regular", "who talks to whom", choices=GRAPHS)
    degree: int = option(
        4, "neighbours of each node; in a smaller graph all others", low=1, acts_with=("graph", "random-regular")
    )
    share: float = option(
        0.3, "probability of each edge; graphs that fall apart are drawn again", above=0, high=1,
        acts_with=("graph", "erdos-renyi"),
    )  # fmt: skip
    edges: tuple[str, ...] = option((), "pairs of nodes, such as 0-1,1-2", acts_with=("graph", "edges"))
    colluders: int = option(
        0, "how many more of the victim's neighbours collude with a curious client; no other threat heeds it", low=0
    )
    draw: int = option(
        0, "number of the graph that is drawn, the same for all seeds", low=0,
        acts_with=("graph", "random-regular", "erdos-renyi"),
    )  # fmt: skip


@dataclass(frozen=True)
class Graph:
    """A connected graph without loops.

    Attributes:
        nodes: how many there are; their numbers begin with 0.
        edges: pairs (i, j) with i < j, ascending.
    """

    nodes: int
    edges: tuple[tuple[int, int], ...]

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Of each node, ascending."""
        found: list[set[int]] = [set() for _ in range(self.nodes)]
        for i, j in self.edges:
            found[i].add(j)
            found[j].add(i)
        return tuple(tuple(sorted(some)) for some in found)

    @cached_property
    def mixing(self) -> tuple[dict[int, float], ...]:
        """Of each node, w_ij of itself and of its neighbours, ascending."""
        around = [sorted((i, *some)) for i, some in enumerate(self.neighbours)]
        return tuple({j: self.weight(i, j) for j in some} for i, some in enumerate(around))

    def weight(self, i: int, j: int) -> float:
        """w_ij of Metropolis: 1/(1 + max(deg i, deg j)) on an edge, and what is left of 1 for the node itself.

        The weights are symmetric, and those around a node add up to 1. So plain mixing keeps the mean of all nodes.
        """
        if i == j:
            return 1 - sum(self.weight(i, k) for k in self.neighbours[i])
        return 1 / (1 + max(len(self.neighbours[i]), len(self.neighbours[j])))


def make_graph(options: GraphOptions, nodes: int) -> Graph:
    """The graph of these options. Raises UserError where there is none of so many nodes, or it is not connected."""
    return _graph(options.graph, options.degree, options.share, options.edges, options.draw, nodes)


@cache
def _graph(kind: str, degree: int, share: float, edges: tuple[str, ...], draw: int, nodes: int) -> Graph:
    import networkx as nx

    if nodes < 2:
        raise UserError(f"option 'clients' is {nodes}, allowed without a server: 2 or more")

    def regular(seed: int) -> nx.Graph[int]:
        most = min(degree, nodes - 1)
        if most * nodes % 2:
            raise UserError(f"option 'degree' is {degree}, allowed with {nodes} nodes: an even number")
        if most <= nodes * 3 / 4:
            return nx.random_regular_graph(most, nodes, seed)
        # What a dense graph lacks is a sparse one, which is drawn in no time.
        return nx.complement(nx.random_regular_graph(nodes - 1 - most, nodes, seed))

    fixed: dict[str, Callable[[], nx.Graph[int]]] = {
        "ring": lambda: nx.cycle_graph(nodes) if nodes > 2 else nx.path_graph(nodes),
        "complete": lambda: nx.complete_graph(nodes),
        "star": lambda: nx.star_graph(nodes - 1),
        "dumbbell": lambda: _dumbbell(nodes),
        "edges": lambda: _from_edges(edges, nodes),
    }
    if kind in fixed:
        return _made(fixed[kind]())
    drawn = regular if kind == "random-regular" else lambda seed: nx.gnp_random_graph(nodes, share, seed)
    for again in range(DRAWS):
        graph = drawn(draw * DRAWS + again)
        if nx.is_connected(graph):
            return _made(graph)
    name, value = ("degree", degree) if kind == "random-regular" else ("share", share)
    raise UserError(
        f"option '{name}' is {value:g}: none of {DRAWS} graphs of {nodes} nodes is connected, allowed: a larger one"
    )


def _made(graph: nx.Graph[int]) -> Graph:
    """The same graph in our own form."""
    return Graph(len(graph), tuple(sorted((min(edge), max(edge)) for edge in graph.edges)))


def _dumbbell(nodes: int) -> nx.Graph[int]:
    """Two cliques of half of the nodes each, and one edge between the last node of one and the first of the other."""
    import networkx as nx

    half = nodes // 2
    return nx.compose_all(
        [
            nx.complete_graph(half),
            nx.complete_graph(range(half, nodes)),
            nx.Graph([(half - 1, half)]),
        ]
    )


def _from_edges(edges: tuple[str, ...], nodes: int) -> nx.Graph[int]:
    import networkx as nx

    graph: nx.Graph[int] = nx.empty_graph(nodes)
    for text in edges:
        found = EDGE.fullmatch(text)
        ends = () if found is None else (int(found[1]), int(found[2]))
        if len(set(ends)) != 2 or max(ends) >= nodes:
            raise UserError(
                f"option 'edges' has {text!r}, allowed: two different nodes from 0 to {nodes - 1} without leading "
                "zeros, such as 0-1"
            )
        graph.add_edge(*ends)
    if not nx.is_connected(graph):
        apart = nx.number_connected_components(graph)
        raise UserError(
            f"option 'edges' is {to_text(edges) or 'not given'}, which leaves {apart} parts without an edge "
            f"between them, allowed with graph=edges: edges that connect all {nodes} nodes"
        )
    return graph
