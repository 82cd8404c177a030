"""Graphs: their edges by hand, the weights of Metropolis, and what is refused."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fedarena.core.errors import UserError
from fedarena.core.graph import Graph, GraphOptions, make_graph

NO_EDGES = ("3-03", "03-1", "00-1", "\u0663-1", "1-\u00b2", "+1-2", " 1-2", "1-2-3", "1", "", "1-" + "9" * 50)


def edges(nodes: int, **options: object) -> tuple[tuple[int, int], ...]:
    return make_graph(GraphOptions(**options), nodes).edges  # type: ignore[arg-type]


def test_edges_of_each_kind() -> None:
    assert edges(4, graph="ring") == ((0, 1), (0, 3), (1, 2), (2, 3))
    assert edges(2, graph="ring") == ((0, 1),)
    assert edges(3, graph="complete") == ((0, 1), (0, 2), (1, 2))
    assert edges(4, graph="star") == ((0, 1), (0, 2), (0, 3))
    assert edges(6, graph="dumbbell") == ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5))
    assert edges(3, graph="edges", edges=("2-1", "0-2")) == ((0, 2), (1, 2))


def test_graphs_drawn_at_random_are_connected_and_follow_from_their_number() -> None:
    for kind in ("random-regular", "erdos-renyi"):
        first, again, other = (make_graph(GraphOptions(graph=kind, draw=k), 12) for k in (0, 0, 1))
        assert first == again != other
        assert nx.is_connected(nx.Graph(first.edges))
    assert {len(some) for some in make_graph(GraphOptions(), 12).neighbours} == {4}
    assert {len(some) for some in make_graph(GraphOptions(), 3).neighbours} == {2}


def test_dense_regular_graphs_are_drawn_at_once() -> None:
    """By what they lack: the draw of what is there does not end in half a minute."""
    first, again, other = (make_graph(GraphOptions(degree=90, draw=k), 100) for k in (0, 0, 1))
    assert {len(some) for some in first.neighbours} == {90}
    assert first == again != other
    assert edges(5, degree=4) == edges(5, graph="complete")


def test_weights_of_metropolis_by_hand() -> None:
    path = Graph(3, ((0, 1), (1, 2)))
    assert path.mixing[0] == pytest.approx({0: 2 / 3, 1: 1 / 3})
    assert path.mixing[1] == pytest.approx({0: 1 / 3, 1: 1 / 3, 2: 1 / 3})


@given(nodes=some.integers(2, 12), draw=some.integers(0, 50))
def test_weights_are_symmetric_and_add_up_to_one(nodes: int, draw: int) -> None:
    graph = make_graph(GraphOptions(graph="erdos-renyi", share=0.5, draw=draw), nodes)
    for i in range(nodes):
        assert sum(graph.mixing[i].values()) == pytest.approx(1)
        assert all(graph.weight(i, j) == graph.weight(j, i) > 0 for j in graph.neighbours[i])


@pytest.mark.parametrize(
    ("nodes", "options", "told"),
    [
        (5, {"degree": 3}, "option 'degree' is 3, allowed with 5 nodes: an even number"),
        (6, {"degree": 1}, "option 'degree' is 1: none of 1000 graphs of 6 nodes is connected, allowed: a larger one"),
        (
            4,
            {"graph": "edges", "edges": ("0-1", "2-3")},
            "option 'edges' is 0-1,2-3, which leaves 2 parts without an edge between them, allowed with graph=edges: "
            "edges that connect all 4 nodes",
        ),
        (3, {"graph": "edges"}, "option 'edges' is not given, which leaves 3 parts without an edge between them"),
        (
            4,
            {"graph": "edges", "edges": ("0-4",)},
            "option 'edges' has '0-4', allowed: two different nodes from 0 to 3",
        ),
        (
            4,
            {"graph": "edges", "edges": ("1-1",)},
            "option 'edges' has '1-1', allowed: two different nodes from 0 to 3",
        ),
        *(
            (
                4,
                {"graph": "edges", "edges": ("0-1", "1-2", "2-3", edge)},
                f"option 'edges' has {edge!r}, allowed: two different nodes from 0 to 3",
            )
            for edge in NO_EDGES
        ),
        (1, {}, "option 'clients' is 1, allowed without a server: 2 or more"),
        (1, {"graph": "ring"}, "option 'clients' is 1, allowed without a server: 2 or more"),
    ],
)
def test_what_is_no_connected_graph_is_refused_in_one_line(nodes: int, options: dict[str, object], told: str) -> None:
    with pytest.raises(UserError) as refused:
        edges(nodes, **options)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)
