"""A method that returns no answer is named with its place and with what is allowed, and no line of the harness is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.plugin_files import forgotten

from fedarena.cli import main

pytestmark = pytest.mark.usefixtures("briefly_alone")

METHODS = """
import functools
import numpy as np
import torch
from fedarena.contracts.aggregator import Aggregate, Aggregator
from fedarena.contracts.defense import Defense, Direction
from fedarena.contracts.inference import Extraction, GradientEstimate, Inference, Labels, Reconstruction, Scores, Watch
from fedarena.contracts.poisoning import Poisoning
from fedarena.core.card import Card
from fedarena.datasets.dataset import Dataset, Provenance
from fedarena.defenses.fedavg.protocol import FedAvg


class Weights(Aggregator):
    def __call__(self, x, call):
        return Aggregate(x.mean(0), used=[1, 2])


class Bare(Aggregator):
    def __init__(self):
        pass

    def __call__(self, x, call):
        return Aggregate(x.mean(0), used=None)


class Renamed(FedAvg):
    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return {name[1:]: t for name, t in up.items()}, memory


class Flat(FedAvg):
    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return {name: t.flatten() for name, t in up.items()}, memory


class Ragged(Flat):
    def client(self, down, batch, memory, noise):
        up, memory = FedAvg.client(self, down, batch, memory, {})
        return {name: t[: len(noise["rows"])] for name, t in up.items()}, memory

    def draw(self, rng):
        return {"rows": torch.zeros(1 + rng.integer() % 9)}


class Double(FedAvg):
    def client(self, down, batch, memory, noise):
        up, memory = super().client(down, batch, memory, noise)
        return {name: t.double() for name, t in up.items()}, memory


class DoubleStep(FedAvg):
    def direction(self, state, sent, ups, cohort, rng):
        step = super().direction(state, sent, ups, cohort, rng).step
        return Direction({name: t.double() for name, t in step.items()})


class Forgetful(FedAvg):
    def client(self, down, batch, memory):
        return super().client(down, batch, memory, None)


class Alone(Aggregator):
    def __call__(self, x):
        return Aggregate(x.mean(0), used=None)


class Plain:
    def __call__(self, x, call):
        return Aggregate(x.mean(0), used=None)


class Unwritten(Aggregator):
    pass


class Nothing(Inference):
    goal = "labels"

    def run(self, view, rng, progress):
        return None


class Lists(Nothing):
    def run(self, view, rng, progress):
        return [Labels([1]) for _ in view.observations]


class TooMany(Nothing):
    def run(self, view, rng, progress):
        return [Labels(torch.zeros(1, dtype=torch.long)) for _ in range(7)]


class Complex(Nothing):
    goal = "membership"

    def run(self, view, rng, progress):
        return [Scores(torch.zeros(len(o.candidates.x), dtype=torch.complex64)) for o in view.observations]


class WithGradient(Nothing):
    goal = "reconstruction"

    def run(self, view, rng, progress):
        images = [torch.rand(o.images, *view.input_shape, requires_grad=True) for o in view.observations]
        return [Reconstruction(x, torch.zeros(len(x), dtype=torch.long), match=0.0, evaluations=0) for x in images]


class Partial(Nothing):
    goal = "estimate"

    def run(self, view, rng, progress):
        return [GradientEstimate(dict(list(o.estimate.items())[:1])) for o in view.observations]


class Hasty(Nothing):
    def run(self, view, rng):
        return []


class Aimless(Nothing):
    goal = "nonsense"


class Wakeful(Nothing):
    def watch(self, schedule):
        return None


class ThreeScores(Nothing):
    goal = "membership"

    def run(self, view, rng, progress):
        return [Scores(torch.zeros(3)) for _ in view.observations]


class Worded(Nothing):
    goal = "reconstruction"

    def run(self, view, rng, progress):
        images = [torch.rand(o.images, *view.input_shape) for o in view.observations]
        return [Reconstruction(x, torch.zeros(len(x), dtype=torch.long), 0.0, evaluations="a") for x in images]


class Stolen(Nothing):
    goal = "extraction"

    def run(self, view, rng, progress):
        return [Extraction({"fc1.weight": torch.zeros(3)}) for _ in view.disclosures]


class Misspelt(Poisoning):
    def crafts(self, view, memory, rng):
        return view.own, memory


class Blurred(Poisoning):
    def craft(self, view, rng):
        return view.own, None


class Unfed(Poisoning):
    def batch(self, batch, round, client, rng):
        return None


class Silent(Poisoning):
    def craft(self, view, memory, rng):
        return None


class Memoryless(Poisoning):
    def craft(self, view, memory, rng):
        return view.own


class Short(Poisoning):
    def craft(self, view, memory, rng):
        return {name: t[:1] for name, t in view.own.items()}, memory


def made(**changed):
    x, y = np.random.default_rng(0).random((40, 8), dtype="float32"), np.arange(40) % 4
    parts = dict(x_train=x, y_train=y, x_test=x, y_test=y, scale=1.0, n_classes=4, provenance=Provenance("here"))
    return Dataset("toy", **(parts | changed))


def bare_load():
    return made()


def by_name(*, data_dir=None):
    return made()


@functools.cache
def a_pair(data_dir=None):
    return 1, 2


def from_words(data_dir=None):
    return made(provenance="here")


def from_a_path(data_dir=None):
    from pathlib import Path

    return made(provenance=Provenance("here", file=Path("toy.csv")))


def one_class_more(data_dir=None):
    return made(y_train=np.arange(40) % 5)


def counted(n, data_dir=None):
    return n


class Callable:
    def __call__(self, data_dir=None):
        return [1]


def parts_of(labels, n_clients, rng):
    return np.array_split(rng.permutation(len(labels)), n_clients)


def too_few(labels, n_clients, rng, options):
    return parts_of(labels, n_clients - 1, rng)


def beyond(labels, n_clients, rng, options):
    return [part + 1 for part in parts_of(labels, n_clients, rng)]


def as_lists(labels, n_clients, rng, options):
    return [part.tolist() for part in parts_of(labels, n_clients, rng)]


def nobody(labels, n_clients, rng, options):
    return None


DATA_1 = Card(name="bare-load", kind="dataset", title="t", target=bare_load)
DATA_2 = Card(name="by-name", kind="dataset", title="t", target=by_name)
DATA_3 = Card(name="a-pair", kind="dataset", title="t", target=a_pair)
DATA_4 = Card(name="from-words", kind="dataset", title="t", target=from_words)
DATA_5 = Card(name="from-a-path", kind="dataset", title="t", target=from_a_path)
DATA_6 = Card(name="one-class-more", kind="dataset", title="t", target=one_class_more)
DATA_7 = Card(name="a-class", kind="dataset", title="t", target=Plain)
DATA_8 = Card(name="counted", kind="dataset", title="t", target=functools.partial(counted, 3))
DATA_9 = Card(name="callable", kind="dataset", title="t", target=Callable())
SPLIT_1 = Card(name="parts-of", kind="partition", title="t", target=parts_of)
SPLIT_2 = Card(name="too-few", kind="partition", title="t", target=too_few)
SPLIT_3 = Card(name="beyond", kind="partition", title="t", target=beyond)
SPLIT_4 = Card(name="as-lists", kind="partition", title="t", target=as_lists)
SPLIT_5 = Card(name="nobody", kind="partition", title="t", target=nobody)
DOUBLE = Card(name="double", kind="defense", title="t", target=Double)
DOUBLE_STEP = Card(name="double-step", kind="defense", title="t", target=DoubleStep)
WEIGHTS = Card(name="weights", kind="aggregator", title="t", target=Weights)
BARE = Card(name="bare", kind="aggregator", title="t", target=Bare)
RENAMED = Card(name="renamed", kind="defense", title="t", target=Renamed)
NOTHING = Card(name="nothing", kind="attack", title="t", target=Nothing)
LISTS = Card(name="lists", kind="attack", title="t", target=Lists)
TOO_MANY = Card(name="too-many", kind="attack", title="t", target=TooMany)
COMPLEX = Card(name="complex", kind="attack", title="t", target=Complex)
WITH_GRADIENT = Card(name="with-gradient", kind="attack", title="t", target=WithGradient)
PARTIAL = Card(name="partial", kind="attack", title="t", target=Partial)
SILENT = Card(name="silent", kind="attack", title="t", target=Silent)
MEMORYLESS = Card(name="memoryless", kind="attack", title="t", target=Memoryless)
FLAT = Card(name="flat", kind="defense", title="t", target=Flat)
RAGGED = Card(name="ragged", kind="defense", title="t", target=Ragged)
FORGETFUL = Card(name="forgetful", kind="defense", title="t", target=Forgetful)
ALONE = Card(name="alone", kind="aggregator", title="t", target=Alone)
PLAIN = Card(name="plain", kind="aggregator", title="t", target=Plain)
UNWRITTEN = Card(name="unwritten", kind="aggregator", title="t", target=Unwritten)
FUNCTION = Card(name="function", kind="aggregator", title="t", target=lambda options: Plain())
HASTY = Card(name="hasty", kind="attack", title="t", target=Hasty)
AIMLESS = Card(name="aimless", kind="attack", title="t", target=Aimless)
WAKEFUL = Card(name="wakeful", kind="attack", title="t", target=Wakeful)
THREE_SCORES = Card(name="three-scores", kind="attack", title="t", target=ThreeScores)
WORDED = Card(name="worded", kind="attack", title="t", target=Worded)
STOLEN = Card(name="stolen", kind="attack", title="t", target=Stolen)
MISSPELT = Card(name="misspelt", kind="attack", title="t", target=Misspelt)
BLURRED = Card(name="blurred", kind="attack", title="t", target=Blurred)
UNFED = Card(name="unfed", kind="attack", title="t", target=Unfed)
SHORT = Card(name="short", kind="attack", title="t", target=Short)
"""
READ = "--party server --form adaptive --rounds 2"
POISON = "--corrupted 2 --clients 5 --rounds 2"
WITH_FLIP = f"--attack sign-flip {POISON}"
ON = f"--defense fedavg {WITH_FLIP} --dataset"
SPLIT = f"--defense fedavg {WITH_FLIP} --partition"
CASES = [
    (
        f"--defense weights --attack sign-flip {POISON}",
        "rule Weights.__call__ (own.py:",
        "a list as used, allowed: None,",
    ),
    (
        f"--defense bare --attack sign-flip {POISON}",
        "aggregator Bare.__init__ (own.py:",
        "takes (self), allowed: (self, options)",
    ),
    (f"--defense renamed --attack sign-flip {POISON}", "defense Renamed.client (own.py:", "the server's step lacks "),
    (f"--defense fedavg --attack nothing {READ}", "Nothing.run (own.py:", "returned None, allowed: a list of 1 Labels"),
    (
        f"--defense fedavg --attack lists {READ}",
        "Lists.run (own.py:",
        "returned a list as values, allowed: a list of 1",
    ),
    (f"--defense fedavg --attack too-many {READ}", "TooMany.run (own.py:", "returned a list of 7 (a Labels), allowed:"),
    (f"--defense fedavg --attack complex {READ}", "Complex.run (own.py:", "returned a complex tensor [2] as values"),
    (f"--defense pbpfl --attack partial {READ}", "Partial.run (own.py:", "returned {'fc1.weight': ["),
    (f"--defense fedavg --attack silent {POISON}", "Silent.craft (own.py:", "returned None, allowed: uploads {"),
    (
        f"--defense fedavg --attack memoryless {POISON}",
        "Memoryless.craft (own.py:",
        "returned a dict, allowed: uploads {",
    ),
    (f"--defense fedavg --attack short {POISON}", "Short.craft (own.py:", ", an upload of 2 clients is {"),
    (
        f"--defense flat --attack sign-flip {POISON}",
        "defense Flat.client (own.py:",
        "the server's step has fc1.weight [12800], fc2",
    ),
    (f"--defense flat --attack sign-flip {POISON}", "defense Flat.client (own.py:", "allowed: fc1.weight [200, 64], "),
    (
        f"--defense ragged --attack sign-flip {POISON}",
        "Ragged.client (own.py:",
        "another client's is",
    ),
    (f"--defense forgetful {WITH_FLIP}", "Forgetful.client (own.py:", "(self, down, batch, memory), allowed: (self, "),
    (f"--defense alone {WITH_FLIP}", "Alone.__call__ (own.py:", "takes (self, x), allowed: (self, x, call)"),
    (f"--defense plain {WITH_FLIP}", "Plain (own.py:", "inherits from object, allowed: a subclass of Aggregator"),
    (f"--defense unwritten {WITH_FLIP}", "Unwritten (own.py:", "lacks __call__, allowed: a class with all"),
    (f"--defense function {WITH_FLIP}", "<lambda> (own.py:", "is a function, allowed: a subclass of Aggregator"),
    (
        f"--defense fedavg --attack hasty {READ}",
        "Hasty.run (own.py:",
        "(self, view, rng), allowed: (self, view, rng, p",
    ),
    (
        f"--defense fedavg --attack aimless {READ}",
        "Aimless (own.py:",
        "has the goal 'nonsense', allowed: reconstruction,",
    ),
    (f"--defense fedavg --attack wakeful {READ}", "Wakeful.watch (own.py:", "returned None, allowed: a Watch"),
    (f"--defense fedavg --attack three-scores {READ}", "ThreeScores.run (own.py:", "1 Scores with values a tensor [2]"),
    (
        f"--defense fedavg --attack worded {READ}",
        "Worded.run (own.py:",
        "returned a str as evaluations, allowed: a num",
    ),
    (
        "--defense dbcl --attack stolen --party client --form adaptive --rounds 3",
        "Stolen.run (own.py:",
        "returned {'fc1.weight': [3]}, allowed: {",
    ),
    (
        f"--defense fedavg --attack misspelt {POISON}",
        "Misspelt (own.py:",
        "has no craft and no batch of its own, allowed",
    ),
    (
        f"--defense fedavg --attack blurred {POISON}",
        "Blurred.craft (own.py:",
        "(self, view, rng), allowed: (self, view, mem",
    ),
    (f"--defense fedavg --attack unfed {POISON}", "Unfed.batch (own.py:", "returned None, allowed: a Batch"),
    (f"--defense double {WITH_FLIP}", "Double.client (own.py:", "makes fc1.weight float64, allowed: float32"),
    (
        f"--defense double-step {WITH_FLIP}",
        "DoubleStep.direction (own.py:",
        "makes fc1.weight float64, allowed: float32",
    ),
    (f"{ON} bare-load", "dataset bare_load (own.py:", "takes (), allowed: (data_dir)"),
    (f"{ON} by-name", "dataset by_name (own.py:", "takes (*, data_dir), allowed: (data_dir)"),
    (f"{ON} a-pair", "dataset a_pair (own.py:", "returned a tuple, allowed: a Dataset"),
    (f"{ON} from-words", "data set 'toy': provenance is a str, expected a Provenance", "(in made, own.py:"),
    (f"{ON} from-a-path", "provenance: file is a PosixPath, expected a text", "(in from_a_path, own.py:"),
    (f"{ON} one-class-more", "y_train holds labels from 0 to 4, expected 0 to 3", "(in made, own.py:"),
    (f"{ON} a-class", "dataset Plain (own.py:", "is a class, allowed: a function of (data_dir)"),
    (f"{ON} counted", "dataset counted (own.py:", "returned an int, allowed: a Dataset"),
    (f"{ON} callable", "dataset Callable (own.py:", "returned a list, allowed: a Dataset"),
    (
        f"{SPLIT} parts-of",
        "partition parts_of (own.py:",
        "takes (labels, n_clients, rng), allowed: (labels, n_clients, ",
    ),
    (
        f"{SPLIT} too-few",
        "partition too_few (own.py:",
        "returned 4 shards, allowed: for 5 clients as many arrays int64",
    ),
    (f"{SPLIT} beyond", "partition beyond (own.py:", " as a shard, allowed: for 5 clients as many"),
    (f"{SPLIT} as-lists", "partition as_lists (own.py:", "returned a list as a shard, allowed: for 5 clients as many"),
    (f"{SPLIT} nobody", "partition nobody (own.py:", "returned None, allowed: for 5 clients as many arrays"),
]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "own.py"
    path.write_text(METHODS)
    return path


@pytest.fixture
def told(plugin: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """What `bench run` prints of the words of a command line."""

    def run(words: str) -> str:
        usual = f"--model mlp --jobs 1 --quiet --seeds 0 --plugin {plugin} --out {plugin.parent / 'out'}"
        with forgotten():
            main(["run", *words.split(), *usual.split()])
        return " ".join("".join(capsys.readouterr()).split())

    return run


@pytest.mark.parametrize(("words", "place", "what"), CASES)
def test_it_is_named_with_its_place(told: Callable[[str], str], words: str, place: str, what: str) -> None:
    text = told(words)
    assert place in text
    assert what in text


def test_images_that_know_how_they_were_made_are_taken(told: Callable[[str], str]) -> None:
    text = told(f"--defense fedavg --attack with-gradient {READ}")
    assert "failed" not in text
    assert "SSIM" in text
