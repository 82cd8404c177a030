"""For each law a method that breaks it on purpose, and nothing that comes before it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.contracts.defense import Defense
from fedarena.contracts.inference import Inference, Labels
from fedarena.contracts.observation import Observation
from fedarena.contracts.poisoning import Poisoning
from fedarena.contracts.secure_sum import Exchange, SecureSum
from fedarena.core.card import Card
from fedarena.core.options import option
from fedarena.core.rng import Rng
from fedarena.core.tensors import scale
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.defenses.fedavg.protocol import FedAvg
from fedarena.models.architecture import Architecture, blank

# -- cards and options ------------------------------------------------------------------------------


class Middle(Aggregator):
    def __call__(self, x, call):
        return Aggregate(x.median(0).values, None)


class Unfinished(Aggregator):
    pass


@dataclass(frozen=True)
class TwoFaced:
    """Setting one option sets the other."""

    a: int = option(1, "one number", low=1)
    b: int = option(1, "another", low=1)

    def __post_init__(self):
        if self.a != 1:
            object.__setattr__(self, "b", self.a)


@dataclass(frozen=True)
class Odd:
    """An even number raises what is no UserError."""

    size: int = option(3, "an odd number")

    def __post_init__(self):
        if self.size % 2 == 0:
            raise ValueError("even")


@dataclass(frozen=True)
class Mute:
    """Its option has no help."""

    size: int = option(3, "", low=1)


@dataclass(frozen=True)
class Idle:
    """An option with a condition that its own class takes away."""

    kind: str = option("plain", "plain or scaled", choices=("plain", "scaled"))
    size: float = option(1.0, "the scale", low=0, acts_with=("kind", "scaled"))

    def __post_init__(self):
        object.__setattr__(self, "kind", "scaled" if self.size != 1.0 else self.kind)


# -- rules ------------------------------------------------------------------------------------------


class NeedsFive(Middle):
    def __call__(self, x, call):
        return Aggregate(x[4] - x[4] + x.median(0).values, None)


class Many(Middle):
    def __call__(self, x, call):
        return Aggregate(x.median(0, keepdim=True).values, None)


class InPlace(Middle):
    def __call__(self, x, call):
        return Aggregate(x.sub_(0.0).mul_(0.5).median(0).values, None)


class Moody(Middle):
    def __call__(self, x, call):
        return Aggregate(x.median(0).values + 0.1 * torch.randn(x.shape[1]).to(x), None)


class FirstComes(Middle):
    def __call__(self, x, call):
        return Aggregate(x[0].clone(), None)


class Debts(Middle):
    def __call__(self, x, call):
        used = x.new_zeros(len(x)) + 1
        used[x.norm(dim=1).argmax()] = -1
        return Aggregate(x.median(0).values, used)


class Shrinking(Middle):
    unanimous = True

    def __call__(self, x, call):
        return Aggregate(0.9 * x.median(0).values, None)


class CalledMean(Middle):
    def averages(self, n, f):
        return n < 20


class CalledPick(Middle):
    def picks(self, n, f):
        return n > 1


class SecretMean(Aggregator):
    def __call__(self, x, call):
        return Aggregate(x.mean(0), None)


class SlightlyLess(Aggregator):
    def __call__(self, x, call):
        return Aggregate(0.999 * x.mean(0), None)


# -- defenses ---------------------------------------------------------------------------------------


class Plain(FedAvg):
    """FedAvg without its faster form."""

    clients = Defense.clients


class Noisy(Plain):
    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return {name: t + 0.01 * torch.randn(t.shape) for name, t in up.items()}, memory


class TwoForms(FedAvg):
    """`client` is halved, and FedAvg's faster form is not."""

    clients = FedAvg.clients

    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return scale(0.5, up), memory


OWN = random.Random(0)
"""A generator that is hidden state: nothing that a method is given decides what comes next."""


class Dice(Plain):
    def aggregate(self, state, sent, ups, cohort, rng):
        after = super().aggregate(state, sent, ups, cohort, rng)
        return replace(after, params=scale(1 + 0.1 * OWN.random(), after.params))


@dataclass(frozen=True)
class Wrong:
    """Simulates another upload."""

    simulate: Any

    def __call__(self, x, y):
        return scale(2.0, self.simulate(x, y))


class Misread(Plain):
    def readings(self, threat, seen, victims):
        return [
            _each(reading, lambda o: replace(o, simulate=Wrong(o.simulate)))
            for reading in _given(self, threat, seen, victims)
        ]


@dataclass(frozen=True)
class Leaky:
    """Holds what the party must not see."""

    simulate: Any
    batch: Any

    def __call__(self, x, y):
        return self.simulate(x, y)


class Telling(Plain):
    """Keeps what clients train on, and gives it to whoever reads."""

    kept: Any = None

    def client(self, down, batch, memory, noise):
        if Telling.kept is None and not torch._C._functorch.is_functorch_wrapped_tensor(batch.x):
            Telling.kept = batch.x
        return super().client(down, batch, memory, noise)

    def readings(self, threat, seen, victims):
        return [
            _each(r, lambda o: replace(o, simulate=Leaky(o.simulate, Telling.kept)))
            for r in _given(self, threat, seen, victims)
        ]


def _given(defense, threat, seen, victims):
    return FedAvg.readings(defense, threat, seen, victims)


def _each(reading, change):
    return replace(reading, observations=tuple(change(o) for o in reading.observations))


class Weak(Plain):
    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return scale(1e-4, up), memory


class OnTheCPU(Plain):
    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return {name: t + torch.zeros(t.shape) for name, t in up.items()}, memory


# -- secure sums ------------------------------------------------------------------------------------


class Masks(SecureSum):
    """Masks that the server takes off again; a toy without any secrecy of them."""

    def check(self, n):
        from fedarena.contracts.secure_sum import require_two

        require_two("masks", n)

    def masks(self, vectors, rng):
        return torch.randn(vectors.shape, generator=rng.torch(), dtype=torch.float64)

    def __call__(self, vectors, rng):
        wire = vectors.double() + self.masks(vectors, rng).to(vectors.device)
        return Exchange(wire, vectors.sum(0), tuple(range(len(vectors))), extra_up=0.0, extra_down=0.0)


class HalfSum(Masks):
    def __call__(self, vectors, rng):
        return replace(super().__call__(vectors, rng), total=vectors[1:].sum(0))


class Bare(Masks):
    def masks(self, vectors, rng):
        return 1e-3 * super().masks(vectors, rng)


class Reused(Masks):
    def masks(self, vectors, rng):
        return super().masks(vectors, Rng(7))


class Scribbling(Masks):
    def __call__(self, vectors, rng):
        return super().__call__(vectors.mul_(2.0), rng)


class Short(Masks):
    def without_messages(self, vectors, rng):
        return replace(self(vectors, rng), wire=None, total=2 * vectors.sum(0))


class Alone(Masks):
    def check(self, n):
        return


# -- attacks that read ------------------------------------------------------------------------------


class ByBias(Inference):
    """The labels by the signs of the last layer's bias gradient."""

    goal = "labels"

    def run(self, view, rng, progress):
        return [Labels(self.guess(seen, rng)) for seen in view.observations]

    def guess(self, seen: Observation, rng: Rng) -> torch.Tensor:
        return seen.target[seen.output_bias].argsort()[: seen.images]


class TooFew(ByBias):
    def guess(self, seen, rng):
        return super().guess(seen, rng)[:0]


class Guessing(ByBias):
    def guess(self, seen, rng):
        return torch.randint(0, 10, (seen.images,), generator=torch.Generator().manual_seed(OWN.getrandbits(32)))


class Overwriting(ByBias):
    def guess(self, seen, rng):
        return seen.target[seen.output_bias].mul_(2.0).argsort()[: seen.images]


class Blind(ByBias):
    def guess(self, seen, rng):
        return torch.arange(seen.images) % 10


class ReaderOnTheCPU(ByBias):
    def guess(self, seen, rng):
        return (seen.target[seen.output_bias] + torch.zeros(10)).argsort()[: seen.images]


# -- attacks that poison ----------------------------------------------------------------------------


class Back(Poisoning):
    def craft(self, view, memory, rng):
        return scale(-1.0, view.own), memory


class Halved(Back):
    def craft(self, view, memory, rng):
        return {name: t[..., :1] for name, t in view.own.items()}, memory


class Relabelling(Poisoning):
    def batch(self, batch, round, client, rng):
        batch.y.fill_(0)
        return batch


class Whim(Back):
    def craft(self, view, memory, rng):
        return scale(-1.0 - random.random(), view.own), memory


class InPairs(Back):
    def craft(self, view, memory, rng):
        return {name: t.std(0, keepdim=True).expand(t.shape) for name, t in view.own.items()}, memory


class TooCurious(Back):
    """It plays the laws of single rounds, and asks for honest uploads from the second round on."""

    def craft(self, view, memory, rng):
        if memory and view.round == 1:
            return scale(-1.0, view.honest), memory
        return scale(-1.0, view.own), {"seen": torch.ones(())}


class Overflowing(Poisoning):
    def batch(self, batch, round, client, rng):
        return replace(batch, y=0 * batch.y)

    def trigger(self, x):
        return x + 1.0, 0


class Tame(Poisoning):
    def craft(self, view, memory, rng):
        return dict(view.own), memory


class PoisonOnTheCPU(Back):
    def craft(self, view, memory, rng):
        return {name: -t + torch.zeros(t.shape) for name, t in view.own.items()}, memory


# -- data, partitions, models -----------------------------------------------------------------------

X = np.random.default_rng(0).random((60, 8), dtype=np.float32)
Y = np.arange(60, dtype=np.int64) % 3


def data(name: str, **changed: Any) -> Any:
    parts: dict[str, Any] = {"x_train": X[:40], "y_train": Y[:40], "x_test": X[40:], "y_test": Y[40:]}
    return Dataset(
        name=name,
        **{**parts, **changed},
        scale=1.0,
        n_classes=3,
        provenance=Provenance("made here"),
    )


def shuffled(data_dir: Any = None) -> Any:
    order = np.random.default_rng(random.getrandbits(32)).permutation(40)
    return data("shuffled", x_train=X[:40][order], y_train=Y[:40][order])


def in_turn(labels, n_clients, rng, options):
    from fedarena.datasets.dataset import check_clients

    check_clients(labels, n_clients)
    return np.array_split(rng.permutation(len(labels)), n_clients)


class Dense(Architecture):
    def module(self, input_shape, n_classes):
        return blank(lambda: nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), n_classes)))


class Dropping(Dense):
    def module(self, input_shape, n_classes):
        return blank(lambda: nn.Sequential(nn.Dropout(), super(Dropping, self).module(input_shape, n_classes)))


class OneTooMany(Dense):
    def module(self, input_shape, n_classes):
        return super().module(input_shape, n_classes + 1)


class Filled(Dense):
    def module(self, input_shape, n_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(input_shape)), n_classes))


class Rough(nn.Module):
    def forward(self, x):
        return (x - x).sqrt() + x


class RootOfZero(Dense):
    def module(self, input_shape, n_classes):
        dense = super().module(input_shape, n_classes)
        return nn.Sequential(dense, Rough())


def _card(kind: Any, target: Any, **more: Any) -> Card:
    name = more.pop("name", "toy")
    return Card(name=name, kind=kind, title="A toy", target=target, **more)


def _rule(target: Any = Middle, **more: Any) -> Card:
    return _card("aggregator", target, **more)


BROKEN: Mapping[str, tuple[Card, ...]] = {
    "card-cites": (
        _rule(paper="A paper", authors="Nobody", year=2020, url="nowhere"),
        Card(name="toy", kind="aggregator", title="Two\nlines", target=Middle),
    ),
    "card-says-the-goal": (_card("attack", "fedarena.attacks.poisoning.sign_flip:SignFlip", goal="labels"),),
    "target-fits": (_rule(Unfinished), _rule(FedAvg), _rule("nowhere:Nothing"), _card("attack", "nowhere:Nothing")),
    "defaults-parse": (_rule(options=Mute),),
    "options-differ": (_rule(options=TwoFaced),),
    "bad-options-refused": (_rule(options=Odd),),
    "idle-options-refused": (_rule(options=Idle),),
    "numbers-refused": (_rule(NeedsFive),),
    "vector-fits": (_rule(Many),),
    "uploads-stay": (_rule(InPlace),),
    "stream-decides": (_rule(Moody),),
    "order-is-nothing": (_rule(FirstComes),),
    "used-are-weights": (_rule(Debts),),
    "unanimity-wins": (_rule(Shrinking),),
    "means-average": (_rule(CalledMean),),
    "picks-are-uploads": (_rule(CalledPick),),
    "rule-acts": (_rule(SecretMean),),
    "withstands-the-flipped": (_rule(SlightlyLess),),
    "client-is-pure": (_card("defense", Noisy),),
    "clients-are-client": (_card("defense", TwoForms),),
    "runs-repeat": (_card("defense", Dice),),
    "simulation-hits-target": (_card("defense", Misread),),
    "views-hide-samples": (_card("defense", Telling),),
    "defense-acts": (_card("defense", FedAvg), _card("defense", Plain)),
    "defense-learns": (_card("defense", Weak),),
    "sum-is-exact": (_card("secure", HalfSum),),
    "messages-hide": (_card("secure", Bare),),
    "masks-are-drawn": (_card("secure", Reused),),
    "vectors-stay": (_card("secure", Scribbling),),
    "without-messages-is-the-same": (_card("secure", Short),),
    "one-client-is-refused": (_card("secure", Alone),),
    "answers-are-judged": (_card("attack", TooFew),),
    "seed-decides": (_card("attack", Guessing),),
    "view-stays": (_card("attack", Overwriting),),
    "attack-reads": (_card("attack", Blind),),
    "uploads-fit": (_card("attack", Halved),),
    "batches-stay": (_card("attack", Relabelling),),
    "rng-decides": (_card("attack", Whim),),
    "one-colluder-works": (_card("attack", InPairs),),
    "knowledge-suffices": (_card("attack", TooCurious),),
    "trigger-fits": (_card("attack", Overflowing),),
    "poisoning-acts": (_card("attack", Tame),),
    "samples-fit": (
        _card("dataset", lambda folder: data("another")),
        _card("dataset", lambda folder: data("toy", y_test=Y)),
    ),
    "loading-repeats": (_card("dataset", shuffled, name="shuffled"),),
    "labels-occur": (_card("dataset", lambda folder: data("toy", y_train=0 * Y[:40])),),
    "held-out-is-apart": (_card("dataset", lambda folder: data("toy", x_test=X[:20])),),
    "shards-fit": (_card("partition", lambda y, n, rng, o: in_turn(y, n, rng, o)[1:]),),
    "samples-go-once": (_card("partition", lambda y, n, rng, o: [rng.integers(0, len(y), 50) for _ in range(n)]),),
    "generator-decides": (_card("partition", lambda y, n, rng, o: in_turn(y, n, np.random.default_rng(0), o)),),
    "impossible-numbers-refused": (
        _card("partition", lambda y, n, rng, o: np.array_split(rng.permutation(len(y)), max(1, n))),
    ),
    "module-is-pure": (_card("model", Dropping),),
    "outputs-fit": (_card("model", OneTooMany),),
    "parameters-are-drawn": (_card("model", Filled),),
    "gradients-are-finite": (_card("model", RootOfZero),),
    "devices-agree": (_card("defense", OnTheCPU), _card("attack", ReaderOnTheCPU), _card("attack", PoisonOnTheCPU)),
}
"""Law → methods that break it."""
SOUND = (
    _rule(),
    _card("defense", Plain, name="plainly"),
    _card("secure", Masks),
    _card("attack", ByBias),
    _card("attack", Back),
    _card("dataset", lambda folder: data("toy")),
    _card("partition", in_turn),
    _card("model", Dense),
)
"""What these methods were before they were broken."""
