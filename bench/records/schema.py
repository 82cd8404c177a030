"""The schema of a record: what one trial leaves on disk, as one JSON object. No other place lists its fields.

Every field has its type and, under it, a line that says what it holds. The checks of a file that is read follow from
the types (`RECORD`, made by `fedarena.records.json_schema`). Where a type says too little, a check stands beside it in
`Annotated`. `VARIES` stands there where two runs of one configuration may differ, as they do in time. A field that is
`NotRequired` is filled in when the runs are known that the record is compared with; every file has it, unless
`MAY_LACK` stands there too.

`fedarena.records.upgrade` reads the files of earlier schemas; `fedarena.records.trial_key` has the hash that names a
trial, which does not depend on the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args, get_type_hints, is_typeddict

from fedarena.contracts.goal_names import GoalName
from fedarena.core.threat import Form, Knowledge, Party
from fedarena.records.json_schema import (
    MAY_LACK,
    amount,
    both,
    check_of,
    each,
    fields,
    named,
    number,
    pair,
    parts_of,
    perhaps,
    point,
    seed_number,
    share,
    whole,
)

SCHEMA = 8
"""The version of this schema."""

VARIES = "varies"

Status = Literal["ok", "n/a", "diverged", "failed"]
STATUSES: tuple[Status, ...] = get_args(Status)

Curve = Annotated[list[list[Any]], each(point)]
"""[round, accuracy, loss] of each evaluation; R² in place of accuracy where labels are numbers, null for a loss that is
not finite."""

TABLE = fields({})
TRAINING = fields({"local_epochs": whole, "batch_size": whole, "rounds": whole, "lr": number})
"""The fields of the schedule (`fedarena.problem.schedule.Schedule`) that readers of records use."""
OPTIONS = fields({"model": TABLE, "partition": TABLE, "training": TRAINING})
Options = Annotated[dict[str, dict[str, Any]], both(OPTIONS, named(TABLE))]


class TrialOf(TypedDict):
    """The trial that a record belongs to."""

    key: str
    """The key of the trial: the hash of its identity, without the reading."""
    records: int
    """How many records the trial gave, one for each reading. A trial counts only when all of them are there."""


class DataSource(TypedDict):
    """Where the data set came from (`fedarena.datasets.dataset.Provenance`)."""

    source: str
    """What the data are, in words."""
    file: str | None
    """The name of the file that was read, without its folder; null for data that a library carries."""
    sha256: str | None
    """The checksum of that file or of the arrays."""
    verified: bool
    """Whether the checksum is one that the package knows."""
    subset: str | None
    """What is missing of the data, such as "15000 of 50000 training images"; null for complete data."""


class ProblemSetting(TypedDict):
    """The problem that is trained on."""

    dataset: str
    """The name of the data set."""
    data: DataSource
    """Where its data came from."""
    model: str
    """The name of the model."""
    partition: str
    """The way in which the samples are split among the clients."""
    clients: int
    """The number of clients."""
    corrupted: int
    """How many of them are corrupted when the federation is poisoned."""
    corrupted_data: str
    """What data the corrupted clients have."""
    assumed_corrupted: int
    """How many corrupted clients the server assumes (f)."""
    device: str
    """The device on which it is trained."""


class Identity(TypedDict):
    """Everything that determines the result of a trial. Times, memory, environment and workers are not part of it."""

    problem: ProblemSetting
    """The problem that is trained on."""
    defense: str
    """The defense, with its further parts: "dp-sgd+krum"."""
    attack: str
    """The attack, with its wrappers; `none` is a run in which all clients are honest."""
    party: Literal["", Party]
    """The party that attacks; empty without an attack."""
    form: Literal["", Form]
    """`paper`, the attack as published, or `adaptive`, adapted to the defense; empty without an attack."""
    attacker_knowledge: Literal["", Knowledge]
    """What corrupted clients know: `none`, `own` or `omniscient`; empty unless the federation is poisoned."""
    seed: Annotated[int, seed_number]
    """The seed of the run."""
    secret: NotRequired[Annotated[str, MAY_LACK]]
    """What makes its randomness one that cannot be guessed from the seed; absent where nothing does."""
    other_rounds: NotRequired[Annotated[bool, MAY_LACK]]
    """Whether the attack read as many rounds elsewhere in the training, too; absent where it did not."""
    options: Options
    """Every option of every method, by its kind, as resolved; of further parts under `defense+NAME`, `attack+NAME`."""
    versions: dict[str, int]
    """The version of every method, by its kind."""


class References(TypedDict, total=False):
    """What can be had without a federation, and what the defended model keeps of FedAvg's gain over it."""

    local_only: float
    """The mean accuracy of clients that train alone (`fedarena.problem.alone.parties`). It is measured with FedAvg's
    clean run."""
    server_only: float
    """The accuracy of the defense's server if it trains alone. It is measured with the defense's clean run, where the
    server holds samples."""
    unfederated: float
    """b, the largest of chance, local_only and server_only."""
    gain: Annotated[float, share]
    """(clean_accuracy − b)/(fedavg_accuracy − b), cut to [0, 1]; absent where FedAvg gains nothing
    (`fedarena.goals.metrics.gain`)."""


class Utility(TypedDict):
    """The quality of the defended model without an attack on its training."""

    measure: str
    """What the numbers are: `accuracy`, or `R2` where labels are numbers."""
    chance: float
    """What a guess without a model reaches."""
    references: References
    """What the model is compared with; empty where it was not measured."""
    clean_accuracy: NotRequired[float]
    """The accuracy of the defended model after the last round of a run that no client poisons."""
    clean_curve: NotRequired[Curve]
    """Its accuracy by round."""
    nodes: NotRequired[Annotated[dict[str, float], MAY_LACK]]
    """Of a run without a server and without poisoning: what its nodes reach (`fedarena.federation.nodes`), by name."""
    fedavg_accuracy: NotRequired[float]
    """The accuracy of FedAvg on the same problem."""


class ByClient(TypedDict):
    """What the final model of the run is worth to single clients (`fedarena.federation.by_client`)."""

    mean: Annotated[float, share]
    """The mean over the honest clients of the accuracy on held-out data with the client's own shares of classes."""
    lowest_decile: Annotated[float, share]
    """Its quantile of .1 over these clients."""


class Attacked(TypedDict, total=False):
    """The course of a poisoned run; empty for all others."""

    curve: Curve
    """The accuracy under attack by round."""
    by_round: dict[str, list[float | None]]
    """By name and round, how the server used corrupted and honest uploads (`integrity.shares`)."""
    begins: int
    """The first round in which the attack may do harm."""
    ends: int
    """The first round from which on it no longer does; absent where it does not stop before the run's end."""
    success: Annotated[list[list[float]], each(pair)]
    """[round, share of held-out inputs on which the trigger succeeds] of each evaluation; absent without a trigger."""
    strengths: dict[str, float]
    """Strengths that the attack computes by a formula."""
    untuned: list[str]
    """The options that the attack could have chosen in simulations, and took as given."""


class Tuned(TypedDict, total=False):
    """How an attack chose its strength in simulations; empty for attacks that did not."""

    options: list[str]
    """The names of the options that it chose."""
    tried: list[Any]
    """[values, harm] of each simulation; the first one has the values that were given."""
    chosen: list[Any]
    """The values chosen."""
    ran_with: dict[str, dict[str, Any]]
    """The options of the attack in the run, where the record's `options` has those that were given."""


class Control(TypedDict):
    """What the control reading of the same messages leaks (`fedarena.goals.control`)."""

    said: Literal["nothing", "something else", "a part", "nothing of samples"]
    """What the defense gives the party to read: no reading, one that has nothing to do with its messages, one that
    leaves out what clients add and nobody accounts for, or messages that do not depend on samples
    (`fedarena.goals.message_checks`)."""
    outcome: str
    """What came of the attack on the control reading, as "leaks labels"; that the attack broke; or what is left out."""
    finding: str
    """How much leaks, beside what a guess reaches; or the error."""
    metrics: dict[str, float]
    """What the judge measured of the attack on the control reading, by name."""


class Cost(TypedDict):
    """What the run cost."""

    bytes_up: Annotated[float, amount]
    """Bytes that a client sends in a round."""
    bytes_down: Annotated[float, amount]
    """Bytes that a client receives in a round."""
    seconds: Annotated[float, amount, VARIES]
    """Seconds of the training. Under poisoning they do not count a secure sum's messages, which nobody reads."""
    attack_seconds: Annotated[float, amount, VARIES]
    """Seconds of the attack, which parties that see the same share, and of its judgement."""
    peak_bytes: Annotated[float, amount]
    """A client's peak memory, as `--client-memory` limits it: broadcast, state, batch and all tensors of its step."""
    relative_seconds: NotRequired[Annotated[float | None, perhaps(amount), VARIES]]
    """seconds over those of FedAvg's run; null where the latter are not known."""


class Environment(TypedDict):
    """The environment in which a record was measured."""

    fedarena: str
    """The version of this package."""
    commit: str | None
    """The commit of a source checkout; null for an installed package."""
    python: str
    """The version of Python."""
    libraries: dict[str, str]
    """The versions of the libraries that numbers may depend on."""
    machine: str
    """The kind of the processor."""
    system: str
    """The operating system."""
    cpus: int | None
    """The number of processors."""
    processor: NotRequired[Annotated[str, MAY_LACK]]
    """The processor's model."""
    kernels: NotRequired[Annotated[str, MAY_LACK]]
    """The vector instructions and BLAS libraries that computed: others change the last bits of a result."""


class Record(Identity):
    """One record. A trial gives one for each reading, the way in which the party looks at what it saw."""

    schema: int
    """The version of this schema."""
    key: str
    """The record's key and its file's name: the hash of identity and reading."""
    trial: TrialOf
    """The trial that it belongs to."""
    goal: Literal["", GoalName]
    """What an inference attack is after; empty for all others."""
    reading: str
    """The way in which the party looked at what it saw; empty where there is one way only, or nothing was seen."""
    status: Status
    """`ok`; `n/a`, where the attack does not apply; `diverged`, of the training; or `failed`, where a method broke."""
    reason: str
    """The reason, where the status is not `ok`."""
    metrics: dict[str, float]
    """What the judge measured, by name."""
    series: Annotated[dict[str, list[list[float]]], named(each(pair))]
    """What the judge measured by round, [round, value], by name; and `roc`: [false positive rate, true positive
    rate]."""
    scores: Annotated[dict[str, float], named(share)]
    """`leak` and `privacy`, or `integrity`, in [0, 1]."""
    control: NotRequired[Annotated[Control, MAY_LACK]]
    """What the defense does not let parties read of its messages, although it leaks; most records do not have it."""
    utility: Utility
    """The quality of the model without an attack on its training."""
    by_client: NotRequired[Annotated[ByClient, MAY_LACK]]
    """The accuracy by client of the model that the run ended with, under attack where it is poisoned. Records of runs
    without rounds, of regressions and of clients that all hold the same mix (partition iid) do not have it."""
    attacked: Attacked
    """The course of a poisoned run."""
    tuned: Tuned
    """How an attack chose its strength."""
    warnings: list[str]
    """What must stand beside every number of the run, such as that a secure sum was simulated."""
    guarantees: dict[str, float]
    """What the protocol promises, such as epsilon and delta."""
    cost: Cost
    """Bytes, seconds and memory."""
    origins: dict[str, str]
    """The sources of methods from other packages, by name."""
    environment: Annotated[Environment, VARIES]
    """The environment in which the record was measured."""


class RecordFile(Record):
    """A record as its file has it."""

    sum: Annotated[str, VARIES]
    """The sha256 of all the other fields, 20 hex digits; a record that was changed since does not count."""


RECORD = check_of(Record)
"""The check of a record that was read. Raises ValueError that names the first field that is wrong."""


def _varying(kind: Any, prefix: str = "") -> Iterator[str]:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        value, notes = parts_of(hint)
        if VARIES in notes:
            yield prefix + name
        elif is_typeddict(value):
            yield from _varying(value, f"{prefix}{name}.")


VOLATILE = tuple(_varying(RecordFile))
"""The fields, as "cost.seconds", in which two runs of one configuration may differ."""
