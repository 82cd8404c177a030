"""The Python API, as `import fedarena as fa` offers it.

Every function does what a command of `bench` does, with the same options and the same records. Options have the names
of the command's, with `_` for `-`; those of `--set` keep their dotted names:

    results = fa.run("dbcl", "dlg", rounds=200, seeds=[0, 1], **{"dbcl.hash": "uniform"})
    results.table()
    results.to_frame()
    results.plot()

Bad input raises `fa.UserError` with the line that the command would print.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fedarena.core.errors import UserError, type_of
from fedarena.core.short_repr import ShortRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from pandas import DataFrame
    from rich.console import Console
    from torch import Tensor
    from torch.nn import Module

    from fedarena.board.board import Board
    from fedarena.board.gate.comparison import Comparison
    from fedarena.board.leaderboard import LeaderboardRow
    from fedarena.board.ranking import Score
    from fedarena.contracts.aggregator import Aggregator
    from fedarena.contracts.defense import Defense
    from fedarena.contracts.inference import Inference, Reconstruction
    from fedarena.contracts.poisoning import Poisoning
    from fedarena.contracts.secure_sum import SecureSum
    from fedarena.core.card import Card
    from fedarena.core.given import Numbers
    from fedarena.federation.foreign_gradient import Gradients
    from fedarena.federation.rule_function import Upload, Uploads
    from fedarena.federation.spec import MethodSpec
    from fedarena.goals.pairing_table import PairingTable
    from fedarena.records.results import GroupResult
    from fedarena.records.saved_transcript import Transcript
    from fedarena.records.schema import Record

Progress = Callable[[str, float, str], object]
"""Called with the name of a training run, the share of it that is done, and what it is doing."""


# -- records -------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Records(ShortRepr, Sequence["Record"]):
    """Records, as files have them: a sequence of dictionaries (`fedarena.records.schema.Record`)."""

    records: tuple[Record, ...]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        return self.records[index]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def to_frame(self) -> DataFrame:
        """One row for each record. See `fedarena.records.frame.to_frame`."""
        from fedarena.records.frame import to_frame

        return to_frame(self.records)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(max_rows=20))


@dataclass(frozen=True, repr=False)
class Results(Records):
    """The records of one defense against one attack, beside no defense.

    Attributes:
        defense, attack: their names.
    """

    defense: str
    attack: str
    _groups: tuple[GroupResult, ...]

    @property
    def failed(self) -> bool:
        """Whether a trial failed."""
        return any(record["status"] == "failed" for record in self.records)

    @property
    def verdict(self) -> str:
        """What came of it, in one sentence."""
        return self._table().verdict

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the verdict leaves unsaid, a sentence each: other forms, parties and knowledge, lost accuracy."""
        return self._table().remarks

    def table(self) -> None:
        """Print the verdict, the table, its notes and the remarks, as `bench run` does."""
        from fedarena.cli.output.pairing import WIDTH
        from fedarena.cli.output.terminal import Terminal, stdout_width

        self._show(Terminal(width=stdout_width(WIDTH)))

    def plot(self) -> Figure | None:
        """The pairing's picture: pictures read from uploads, curves of accuracy, … None where there is none."""
        from fedarena import goals
        from fedarena.cli.output.pairing import drawn

        content = goals.of_attack(self._attack()).figure(self._groups, self.defense, self.attack)
        return None if content is None else drawn(content)

    def __repr__(self) -> str:
        return f"<Results: {self.attack} against {self.defense}, {len(self)} records>"

    def _attack(self) -> MethodSpec:
        return next(group.spec.attack for group in self._groups if group.spec.attack is not None)

    def _table(self) -> PairingTable:
        from fedarena import goals

        return goals.of_attack(self._attack()).table(self.records, self.defense, self.attack)

    def _show(self, console: Console) -> None:
        from fedarena.cli.output.pairing import show

        show(console, self._table(), self.records, self.defense, self.attack)

    def _repr_html_(self) -> str:
        from fedarena.cli.output.pairing import WIDTH
        from fedarena.cli.output.terminal import Terminal

        page = Terminal(record=True, width=WIDTH, file=io.StringIO())
        self._show(page)
        return page.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def read_records(folder: str | Path) -> Records:
    """The records of a folder, such as `runs` or `runs/smoke`; damaged and outdated files are left out.

    Raises:
        UserError: there are no records in it.
    """
    from fedarena.records.store import Store

    store = Store(_path("folder", folder))
    store.require_records()
    return Records(tuple(record for key in store.complete() for record in store.trial(key)))


def read_transcript(folder: str | Path) -> Transcript:
    """What crossed the wires of a run, as `fa.run(..., save_transcript=…)` wrote it.

    Args:
        folder: that of one run, such as `wires/dbcl-seed-0`.

    Returns:
        `fedarena.records.saved_transcript.Transcript`: its `facts`, its `rounds`, and what each party sees of them.

    Raises:
        UserError: there is none, or its files are not what was written.
    """
    from fedarena.records import saved_transcript

    return saved_transcript.read_transcript(_path("folder", folder))


# -- what is measured ----------------------------------------------------------------------------------


def run(
    defense: str | type[Defense | Aggregator | SecureSum] | Card,
    attack: str | type[Inference | Poisoning] | Card,
    *,
    out: str | Path | None = None,
    progress: bool | Progress = False,
    **options: Any,
) -> Results:
    """Run a defense against an attack beside no defense, as `bench run` does.

    Args:
        defense, attack: names (`methods` lists them), or classes of your own. The options dataset and model take
            objects as well (`fedarena.runs.own_objects.name_of`). A run with objects has one process.
        out: a folder for the records and their pictures; None: nothing is written.
        progress: True: bars on stderr; a function is called with the run, the share done, and what it is doing.
        options: those of `bench run`: seeds, party, form, knows, dataset, model, partition, clients, rounds, jobs,
            save_transcript, …, and those of `--set` by their dotted names. Several values are a list.

    Raises:
        UserError: input that cannot run.
    """
    from fedarena.cli import run as command

    if not (isinstance(progress, bool) or callable(progress)):
        raise UserError(f"option 'progress' is {type_of(progress)}, allowed: True, False, or a function")
    folder = None if out is None else _path("out", out)
    given = {"defense": defense, "attack": attack, **options}
    named = _named(given)
    if named is not given:
        if options.get("jobs") not in (None, 1):
            raise UserError(f"option 'jobs' is {options['jobs']}, allowed with objects of your own: 1")
        named["jobs"] = 1
    args = _parsed("run", [], named)
    pairing, groups = command.plan(args)
    jobs = command.jobs_of(args)

    def told(i: int, share: float, text: str) -> None:
        if callable(progress):
            progress(command.name_of(groups[i]), share, text)

    with command.progress_bars(groups, quiet=progress is not True) as bars:
        results = command.measure(groups, jobs, folder, told if callable(progress) else bars)
    records = tuple(record for result in results for record in result.records)
    return Results(records, pairing.defense.label, pairing.attack.label, tuple(results))


OBJECTS = ("defense", "rule", "attack", "dataset", "model")
"""Options that may be objects of the user's own."""


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """The options with names in place of objects. Raises UserError."""
    objects = {
        kind: value
        for kind in OBJECTS
        if not isinstance(value := options.get(kind, ""), str) and not (value is None and kind in ("dataset", "model"))
    }
    if not objects:
        return options
    from fedarena import goals
    from fedarena.runs.own_objects import name_of

    named = options | {option: name_of(option, value) for option, value in objects.items()}
    goals.of_attack.cache_clear()  # a class of this session can change under its name
    return named


def run_suite(suite: str | Path, *, progress: bool = False, **options: Any) -> Records:
    """Measure what is missing of a suite in its folder, as `bench suite run` does, and return all its records.

    Args:
        suite: a name that `bench suite list` prints, or a .toml file.
        progress: whether a bar on stderr shows it.
        options: those of `bench suite run`: seeds, out (default: runs/SUITE), jobs, data_dir, fresh, …

    Raises:
        UserError: a suite that cannot run.
    """
    from fedarena.cli import suite as command

    args = _parsed("suite", ["run", str(_path("suite", suite)), *([] if progress else ["--quiet"])], options)
    _, plan, _, outcome = command.measure(args)
    outcome.store.refresh()
    return Records(tuple(r for t in plan.trials if not t.refused for r in outcome.store.trial(t.key)))


def explain(
    defense: str | type[Defense | Aggregator | SecureSum] | Card,
    attack: str | type[Inference | Poisoning] | Card,
    **options: Any,
) -> dict[str, Any]:
    """Who sees what, before anything runs, as `bench explain --json` prints it. Raises UserError."""
    from fedarena.cli.explain import facts

    named = _named({"defense": defense, "attack": attack, **options})
    return facts(_parsed("explain", [named.pop("defense"), named.pop("attack")], named))


def methods(kind: str | None = None, *, plugin: str | Path | Sequence[str | Path] | None = None) -> DataFrame:
    """The methods of one kind (defense, aggregator, secure, attack, dataset, model, partition) or of all.

    Args:
        plugin: files with cards of your own methods, which are known from now on.

    Raises:
        UserError: an unknown kind, or a file without cards.
    """
    from pandas import DataFrame

    from fedarena.cli.methods import rows_of

    rows = rows_of(_parsed("list", [] if kind is None else [str(kind)], {"plugin": plugin}).kind)
    return DataFrame([{"kind": of, **row} for of, some in rows.items() for row in some])


def aggregate(
    rule: str | type[Aggregator] | Card,
    uploads: Uploads,
    f: int,
    *,
    reference: Upload | None = None,
    seed: int = 0,
    **options: Any,
) -> NDArray[Any] | Tensor | dict[str, NDArray[Any] | Tensor]:
    """What an aggregation rule makes of one round's uploads, apart from any federation.

        fa.aggregate("nnm+krum", np.random.rand(10, 3), f=2)  # an array [3]

    Args:
        rule: a rule by its name (`fa.methods("aggregator")`), one with wrappers before it, WRAPPER+RULE, or a class.
        uploads: n of them, finite real numbers: an array or a tensor [n, d], or a list of n vectors [d], or of n
            mappings from names to arrays or tensors, such as state dicts. Whole numbers are computed as floats.
        f: how many of them the server assumes to be corrupted, 0 to n − 1; most rules allow less.
        reference: the upload that the server's own data give, for rules that compare with it, such as `fltrust`.
        seed: of rules that draw at random.
        options: of the rule and its wrappers, by name, or of one part by its dotted name: `**{"PART.OPTION": 2}`.

    Returns:
        The aggregate, of the kind of one upload: an array or a tensor [d] of floats, or a mapping with the types of
        the upload's, whole numbers rounded. A rule with a memory is called as in the first round.

    Raises:
        UserError: an unknown rule or option, uploads of different shapes, complex or not finite, or an f that the rule
            does not allow.
    """
    from fedarena.federation import rule_function

    name = _named({"rule": rule})["rule"]
    return rule_function.aggregate(name, uploads, f, reference=reference, seed=seed, **options)


def invert(
    model: Module,
    gradients: Gradients,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    attack: str | type[Inference] | Card,
    images: int = 1,
    labels: Numbers | None = None,
    samples: tuple[Numbers, Numbers] | None = None,
    loss: str = "cross-entropy",
    local_epochs: int = 0,
    lr: float | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    progress: Callable[[float, str], object] | None = None,
    **options: Any,
) -> Reconstruction:
    """Guess the images behind a gradient of the mean loss of a batch, which any code computed.

        gradient = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
        fa.invert(model, gradient, input_shape=(1, 8, 8), n_classes=10, attack="inverting-gradients").images

    Args:
        model: takes inputs `[n, *input_shape]` in [0, 1]; the gradient was taken at its parameters.
        gradients: tensors or arrays, by name, or in the order of `model.parameters()`. With local_epochs: the update,
            start − end.
        input_shape: images [channels, height, width]. n_classes: outputs of the model.
        attack: one after images, by its name (`fa.methods("attack")`), or a class.
        images: samples behind the gradient. labels: their classes [images], where the attacker knows them.
        samples: inputs `[k, *input_shape]` and classes [k] that the attacker has collected; None: it has no prior.
        loss: cross-entropy, mse or regression.
        local_epochs, lr, batch_size: how an update came about, by plain SGD. By default it is one gradient. Without
            batch_size all images are one batch.
        seed: of what the attack draws. progress: is called with the share done, and a text.
        options: the attack's own, such as iterations=500 (`bench show NAME`).

    Returns:
        The guess: its `images` and `labels`, and the search's own distance `match`. Nothing is
        compared with the truth; `fa.metrics.reconstruction` does that.

    Raises:
        UserError: input that does not fit together, or an attack that cannot start.
    """
    from fedarena.federation.foreign_gradient import guess_behind, local_work, read_upload

    work = local_work(images, loss, local_epochs, lr, batch_size)
    sent = read_upload(model, gradients, input_shape, n_classes, images, work)
    return guess_behind(sent, _named({"attack": attack})["attack"], options, (labels, samples), seed, progress)


def _parsed(command: str, words: list[str], options: dict[str, Any]) -> argparse.Namespace:
    """The arguments of a command. Raises UserError."""
    from fedarena.cli import read_args

    for name, value in options.items():
        if name == "help":
            raise UserError("option 'help' is of commands: here `help(fa.run)` and its like print more")
        flag, several = f"--{name.replace('_', '-')}", list(value) if isinstance(value, list | tuple) else [value]
        if name in PATHS and value is not None:
            several = [_path(name, one) for one in several]
        if "." in name:
            words.append(f"--set={name}={_text(value)}")
        elif name in REPEATED and value is not None:
            words += [f"{flag}={one}" for one in several]
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.append(f"{flag}={_text(value)}")
    return read_args([command, *words])


def _text(value: Any) -> str:
    from fedarena.core.options import to_text

    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return to_text(tuple(value) if several else value)


PATHS = ("data_dir", "out", "plugin", "save_transcript")
"""Options that are paths."""
REPEATED = ("plugin", "problem")
"""Options of a command that may be repeated."""


def _path(option: str, given: str | Path) -> Path:
    """Raises UserError for what is no path."""
    if not isinstance(given, str | Path) or not str(given):
        shown = repr(given) if isinstance(given, str) else type_of(given)
        raise UserError(f"option '{option}' is {shown}, allowed: a path")
    return Path(given)


# -- boards --------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Leaderboard(ShortRepr):
    """A board: the scores of defenses against attacks, over seeds."""

    board: Board

    def to_frame(self) -> DataFrame:
        """One row for each clean run, reference and cell. See `fedarena.board.frame.to_frame`."""
        from fedarena.board.frame import to_frame

        return to_frame(self.board)

    def ranking(self, **options: Any) -> DataFrame:
        """The defenses in their order, as `bench leaderboard` ranks them, with each score and its 95 % interval.

        Args:
            options: those of `bench leaderboard` that choose: threats="own,server", problem, weights.

        Raises:
            UserError: an option that is not allowed.
        """
        from pandas import DataFrame

        from fedarena.board.leaderboard import AXES

        names = (*(("weighted",) if options.get("weights") else ()), "lowest", "utility", *AXES, "overall")
        return DataFrame(
            [
                {"rank": row.rank, "defense": row.defense, "unranked": row.unranked}
                | {key: value for name in names for key, value in _with_ends(name, row.cells[name].score).items()}
                for row in self._rows(options)
            ]
        )

    def _rows(self, options: dict[str, Any]) -> tuple[LeaderboardRow, ...]:
        from fedarena.board.leaderboard import render
        from fedarena.cli.leaderboard import chosen

        return render(self.board, *chosen(_parsed("leaderboard", [], options), self.board)).rows

    def _repr_html_(self) -> str:
        from pandas import DataFrame

        names = ("lowest", "utility", "integrity", "privacy")
        rows = [
            {"rank": row.rank, "defense": row.defense} | {name: row.cells[name].text for name in names}
            for row in self._rows({})
        ]
        return str(DataFrame(rows).to_html(index=False))


def _with_ends(name: str, score: Score | None) -> dict[str, float | None]:
    """A score and the ends of its interval, cut to [0, 1], as columns; None where there is none."""
    value = None if score is None else score.value
    low, high = (None, None) if value is None or value.interval is None else value.interval
    return {
        name: None if value is None else value.value,
        f"{name}_low": None if low is None else max(0.0, low),
        f"{name}_high": None if high is None else min(1.0, high),
    }


@dataclass(frozen=True, repr=False)
class Difference(ShortRepr):
    """What became of a board's scores on another board (`bench compare`)."""

    comparison: Comparison

    @property
    def passed(self) -> bool:
        """Whether the gate is passed: there are no findings."""
        return not self.comparison.findings

    @property
    def verdict(self) -> str:
        """One line: whether the gate is passed, and what was found."""
        from fedarena.board.gate.wording import verdict

        return verdict(self.comparison)

    def to_frame(self) -> DataFrame:
        """One row for each cell, clean run and mean that was compared."""
        from pandas import DataFrame

        from fedarena.cli.compare import as_json

        return DataFrame(as_json(self.comparison)["items"])

    def _repr_html_(self) -> str:
        return f"<p>{self.verdict}</p>"


def load_board(where: str | Path) -> Leaderboard:
    """A published board.json, or the board of a suite or a folder of records.

    Raises:
        UserError: there are no results, or the file is no board.
    """
    from fedarena.board.load import find_folder, load_board

    return Leaderboard(load_board(find_folder(str(_path("board", where)))))


def compare(base: str | Path | Leaderboard, new: str | Path | Leaderboard, **options: Any) -> Difference:
    """Whether a score changed by more than its noise, as `bench compare` does.

    Args:
        base, new: boards, or where they are.
        options: those of `bench compare`: false_alarm, effect, losses_only, exact.

    Raises:
        UserError: no board, or an option that is not allowed.
    """
    from fedarena.board.gate.compare import compare
    from fedarena.cli.compare import read_rules

    rules = read_rules(_parsed("compare", ["base", "new"], options))
    one, other = (b if isinstance(b, Leaderboard) else load_board(b) for b in (base, new))
    return Difference(compare(one.board, other.board, rules))
