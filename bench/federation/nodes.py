"""The models of single nodes, where there is no server."""

from __future__ import annotations

from fedarena.contracts.peers import Peers
from fedarena.core.tensors import finite, rows, stack
from fedarena.federation.finished_run import FinishedRun


def node_metrics(finished: FinishedRun) -> dict[str, float]:
    """Of the honest nodes after the last round; {} with a server, or where a model is not finite.

    Returns:
        node_worst, mean_model: the least accuracy of a node's own model, and that of the mean W̄ of these models, which
        no node holds (R² where labels are numbers); consensus: √(mean_i ‖W_i − W̄‖²); edge_bytes: bytes on one edge a
        round, both ways together.
    """
    run, problem, defense = finished.run, finished.problem, finished.defense
    if not isinstance(defense, Peers) or not run.models or not all(map(finite, run.in_use)):
        return {}
    x = rows(stack(run.in_use)).double()
    return {
        "node_worst": run.curve[-1].worst,
        "mean_model": problem.evaluate(run.params)[0],
        "consensus": float((x - x.mean(0)).square().sum(1).mean().sqrt()),
        "edge_bytes": run.bytes_up * defense.graph.nodes / len(defense.graph.edges),
    }
