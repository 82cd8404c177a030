"""Rules and poisoning attacks of this package inside a Flower federation.

    strategy = RuleStrategy("nnm+krum", f=2, min_fit_clients=10)
    app = ClientApp(client_fn, mods=[poison_mod("sign-flip", corrupted=(0, 1), scale=4.0)])

A client's upload is its update, W − W_local, with W the model that it was sent and W_local the one that it sends back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Context, Message, MessageType
from flwr.common import FitIns, FitRes, Parameters, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg
from torch import Tensor

from fedarena.contracts.aggregator import Call, checked
from fedarena.contracts.poisoning import AttackerKnowledge, Poisoning, RoundView
from fedarena.core.errors import UserError, type_of
from fedarena.core.given import integer
from fedarena.core.options import to_text
from fedarena.core.rng import LARGEST_SEED, Rng
from fedarena.core.tensors import Tensors, shapes_of
from fedarena.core.threat import NotApplicable
from fedarena.federation import compose
from fedarena.federation.adversary import crafted, without_infinities
from fedarena.federation.rule_function import rule_by_name
from fedarena.federation.spec import MethodSpec

MEMORY = "fedarena.attack"
"""The name of an attack's memory in the state that Flower keeps for a client."""


class RuleStrategy(FedAvg):  # type: ignore[misc]  # flwr is optional, so its types are not read
    """Flower's FedAvg with an aggregation rule in place of the mean: W ← W − rule(W − W_1, …, W − W_n).

    A rule gets no weights that clients claim, and an upload with a value that is not finite counts as zeros.

    Args:
        rule: a rule by its name, or one with wrappers before it: WRAPPER+RULE.
        f: how many of a round's clients the server assumes to be corrupted.
        seed: of rules that draw at random.
        options: of the rule and its wrappers, by name, or of one part by its dotted name.
        flower: those of Flower's FedAvg, such as fraction_fit and initial_parameters.

    Raises:
        UserError: an unknown rule or option, a rule that compares with the server's own data, or, in a round, an f that
            the rule does not allow.
    """

    def __init__(
        self, rule: str, f: int, *, seed: int = 0, options: Mapping[str, Any] | None = None, **flower: Any
    ) -> None:
        super().__init__(**flower)
        self.rule, self.f = rule_by_name(rule, options or {}), integer("f", f, 0)
        self.seed = integer("seed", seed, 0, LARGEST_SEED)
        if self.rule.auxiliary:
            raise UserError(f"rule '{rule}' compares with an upload of the server's own data, which no strategy has")
        self.memory: Tensors = {}
        self.numbers: dict[str, int] = {}

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """As FedAvg does. The strategy remembers the model that clients are sent."""
        self.sent = parameters_to_ndarrays(parameters)
        configured: list[tuple[ClientProxy, FitIns]] = super().configure_fit(server_round, parameters, client_manager)
        return configured

    def aggregate_fit(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, FitRes]],
        failures: list[tuple[ClientProxy, FitRes] | BaseException],
    ) -> tuple[Parameters | None, dict[str, Any]]:
        """The model after a round, and the clients' metrics as FedAvg aggregates them."""
        if not results or (failures and not self.accept_failures):
            return None, {}
        # The order in which clients answer changes from run to run.
        results = sorted(results, key=lambda result: (len(result[0].cid), result[0].cid))
        self.rule.check(len(results), integer("f", self.f, 0, len(results) - 1))
        models = [parameters_to_ndarrays(one.parameters) for _, one in results]
        x = torch.stack([torch.cat([_flat(w - v) for w, v in zip(self.sent, m, strict=True)]) for m in models])
        call = Call(
            weights=torch.tensor([float(one.num_examples) for _, one in results]),
            f=self.f,
            memory=self.memory,
            rng=Rng(self.seed).child("aggregate", server_round),
            senders=tuple(self.numbers.setdefault(proxy.cid, len(self.numbers)) for proxy, _ in results),
            shapes=tuple(w.shape for w in self.sent),
        )
        x = without_infinities({"": x}, range(len(x)))[""]
        made = checked(self.rule(x, call), self.rule, x)
        self.memory = made.memory
        steps = made.vector.detach().split([w.size for w in self.sent])
        new = [(w - s.numpy().reshape(w.shape)).astype(w.dtype) for w, s in zip(self.sent, steps, strict=True)]
        metrics = self.fit_metrics_aggregation_fn
        told = metrics([(one.num_examples, one.metrics) for _, one in results]) if metrics else {}
        return ndarrays_to_parameters(new), told


def poison_mod(attack: str, *, corrupted: Collection[int] | None = None, seed: int = 0, **options: Any) -> PoisonMod:
    """A mod for a `ClientApp`, by which clients poison what they send. They see their own upload alone.

    Args:
        attack: a poisoning attack by its name.
        corrupted: the partition ids of the clients that poison; None: every client.
        seed: of attacks that draw at random.
        options: of the attack.

    Raises:
        UserError: an unknown attack or option, or an attack that needs more than one client's own upload.
    """
    first = integer("seed", seed, 0, LARGEST_SEED)
    if not isinstance(attack, str):
        raise UserError(f"attack is {type_of(attack)}, allowed: a name; one of your own has its card's name")
    spec = compose.parse_attack(attack, {name: to_text(value) for name, value in options.items()})
    kind = compose.attack_class(spec)
    if not issubclass(kind, Poisoning):
        raise UserError(f"attack is '{attack}', allowed: an attack on uploads (see `bench list attack`)")
    if compose.foreign("attack", spec):
        raise UserError(f"attack {attack} is of another package, whose code does not run in this process")
    refusal = f"attack {attack} cannot be a Flower client's"
    if "own" not in compose.knowledge_levels(spec) or getattr(spec.options, "tune", None):
        raise UserError(f"{refusal}: it needs more than the client's own upload")
    if not isinstance(corrupted, Collection | None):
        raise UserError(f"corrupted is {type_of(corrupted)}, allowed: the partition ids of the clients that poison")
    ids = None if corrupted is None else frozenset(integer("a partition id in corrupted", one, 0) for one in corrupted)
    mod = PoisonMod(spec, ids, first)
    try:
        made = mod.attack()
        why = made.applies()
        if why is None and not made.sends:
            why = NotApplicable("it changes what a client trains on, and no upload")
        if why is None:
            mod.crafted({"w": torch.ones(4)}, {"w": torch.zeros(4)}, {}, 0, 0)
    except Exception:  # it looked for data or for the protocol, and there are none
        why = NotApplicable("it needs more than the client's own upload")
    if why is not None:
        raise UserError(f"{refusal}: {why.reason}")
    return mod


class PoisonMod:
    """What `poison_mod` returns.

    Attributes:
        spec: the attack. corrupted, seed: as in `poison_mod`.
    """

    def __init__(self, spec: MethodSpec, corrupted: frozenset[int] | None, seed: int) -> None:
        self.spec, self.corrupted, self.seed = spec, corrupted, seed

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        """The client's reply, poisoned if the message asks it to train.

        Raises:
            ValueError: the message or the reply has not exactly one model, or they differ in shape.
        """
        reply = call_next(message, context)
        client = int(context.node_config.get("partition-id", context.node_id))
        trains = message.metadata.message_type.split(".")[0] == MessageType.TRAIN
        if not trains or reply.has_error() or not (self.corrupted is None or client in self.corrupted):
            return reply
        (sent,) = message.content.array_records.values()
        ((place, model),) = reply.content.array_records.items()
        before = dict(zip(model, map(_tensor, sent.to_numpy_ndarrays()), strict=True))
        after = dict(zip(model, map(_tensor, model.to_numpy_ndarrays()), strict=True))
        kept = context.state.array_records.get(MEMORY, {})
        memory = {name: _tensor(array.numpy()) for name, array in kept.items()}
        group = message.metadata.group_id
        t = int(group) - 1 if group.isdigit() else 0
        poisoned, memory = self.crafted(before, after, memory, t, client)
        context.state[MEMORY] = _record(memory)
        reply.content[place] = _record(poisoned)
        return reply

    def attack(self) -> Poisoning:
        """The attack of one client that knows its own uploads alone: there is no task, no defense and no data."""
        nothing: Any = None
        knowledge = AttackerKnowledge(
            task=nothing, defense=nothing, clients=nothing, corrupted=1, data=nothing, knows="own"
        )
        return compose.make_poisoning(self.spec, knowledge)

    def crafted(self, before: Tensors, after: Tensors, memory: Tensors, t: int, client: int) -> tuple[Tensors, Tensors]:
        """The model that is sent in place of `after`, and the attack's memory."""
        view = RoundView(
            round=t,
            participants=1,  # of the others a client knows nothing
            size=1,
            down=before,
            own={name: (w - after[name])[None] for name, w in before.items()},
            honest={},
            clients=(client,),
        )
        rng = Rng(self.seed).child("craft", client, t)
        up, memory = crafted(self.attack(), view, memory, rng, shapes_of(view.own))
        up = without_infinities(up, [0])
        return {name: (w - up[name][0]).to(after[name].dtype) for name, w in before.items()}, memory


def _flat(array: np.ndarray[Any, Any]) -> Tensor:
    t = _tensor(np.asarray(array)).flatten()
    return t if t.is_floating_point() else t.float()


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    return torch.from_numpy(np.array(array))


def _record(tensors: Mapping[str, Tensor]) -> ArrayRecord:
    return ArrayRecord({name: Array(t.numpy()) for name, t in tensors.items()})


__all__: Sequence[str] = ("PoisonMod", "RuleStrategy", "poison_mod")
