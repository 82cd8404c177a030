"""The graph of a network, in which the modules that prepare its input are not traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx, nn

from fedarena.core.errors import UserError
from fedarena.models.dropout import Dropout


def graph_of(model: nn.Module) -> fx.Graph:
    """The graph of a network, traced by torch.fx. Raises UserError where the network's code cannot be traced."""
    try:
        return _Tracer().trace(model)
    except Exception as error:  # a module's own code may fail in any way
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(
            f"torch.fx cannot trace the model ({why}), allowed: modules whose code does not depend on values"
        ) from error


def plain(module: nn.Module) -> bool:
    """Whether a module has no parameters."""
    return next(module.parameters(), None) is None


class _Tracer(fx.Tracer):
    """Traces all modules but those without parameters that see nothing but the network's input.

    Their code need not be traceable; an example is `fedarena.models.preprocess.Preprocess`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._front: set[fx.Node] = set()
        """Nodes that depend on the input alone."""

    def create_node(self, kind: str, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(kind, target, *args, **kwargs)
        bare = kind not in ("get_attr", "call_module") or (kind == "call_module" and self._is_plain(target))
        if bare and self._front.issuperset(node.all_input_nodes):
            self._front.add(node)
        return node

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        read: list[fx.Node] = []
        fx.node.map_aggregate((args, kwargs), lambda a: read.append(a.node) if isinstance(a, fx.Proxy) else None)
        if plain(m) and self._front.issuperset(read):
            return self.create_proxy("call_module", self.path_of_module(m), args, kwargs)
        return super().call_module(m, forward, args, kwargs)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Dropout) or super().is_leaf_module(m, module_qualified_name)

    def _is_plain(self, target: str) -> bool:
        return plain(self.root.get_submodule(target))
