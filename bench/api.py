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

from fedarena.core.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from torch.nn import Module

    from fedarena.board.board import Board
    from fedarena.board.gate.comparison import Comparison
    from fedarena.contracts.inference import Reconstruction
    from fedarena.goals.pairing_table import PairingTable
    from fedarena.records.results import GroupResult
    from fedarena.records.saved_transcript import Transcript
    from fedarena.records.schema import Record

Progress = Callable[[str, float, str], object]
"""Called with the name of a training run, the share of it that is done, and what it is doing."""


# -- records -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Records(Sequence["Record"]):
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


@dataclass(frozen=True)
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

    def _attack(self) -> Any:
        return next(group.spec.attack for group in self._groups if group.spec.attack is not None)

    def _table(self) -> PairingTable:
        from fedarena import goals

        return goals.of_attack(self._attack()).table(self.records, self.defense, self.attack)

    def _show(self, console: Any) -> None:
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
        UserError: there is no such folder.
    """
    from fedarena.records.store import Store

    if not Path(folder).is_dir():
        raise UserError(f"there are no records in {folder}, which is no folder")
    store = Store(Path(folder))
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

    return saved_transcript.read_transcript(folder)


# -- what is measured ----------------------------------------------------------------------------------


def run(
    defense: Any,
    attack: Any,
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

    args = _parsed("run", [], _named({"defense": defense, "attack": attack, **options}))
    pairing, groups = command.plan(args)
    jobs, folder = command.jobs_of(args), None if out is None else Path(out)

    def told(i: int, share: float, text: str) -> None:
        if callable(progress):
            progress(command.name_of(groups[i]), share, text)

    with command.progress_bars(groups, quiet=progress is not True) as bars:
        results = command.measure(groups, jobs, folder, told if callable(progress) else bars)
    records = tuple(record for result in results for record in result.records)
    return Results(records, pairing.defense.label, pairing.attack.label, tuple(results))


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """The options with names in place of objects. Raises UserError."""
    kinds = ("defense", "attack", "dataset", "model")
    objects = {kind: options[kind] for kind in kinds if not isinstance(options.get(kind), str | None)}
    if not objects:
        return options
    from fedarena import goals
    from fedarena.runs.own_objects import name_of

    if options.get("jobs") not in (None, 1):
        raise UserError(f"option 'jobs' is {options['jobs']}, allowed with objects of your own: 1")
    named = options | {option: name_of(option, value) for option, value in objects.items()} | {"jobs": 1}
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

    args = _parsed("suite", ["run", str(suite), *([] if progress else ["--quiet"])], options)
    _, plan, _, outcome = command.measure(args)
    outcome.store.refresh()
    return Records(tuple(r for t in plan.trials if not t.refused for r in outcome.store.trial(t.key)))


def explain(defense: str, attack: str, **options: Any) -> dict[str, Any]:
    """Who sees what, before anything runs, as `bench explain --json` prints it. Raises UserError."""
    from fedarena.cli.explain import facts

    return facts(_parsed("explain", [defense, attack], options))


def methods(kind: str | None = None) -> DataFrame:
    """The methods of one kind (defense, aggregator, secure, attack, dataset, model, partition) or of all.

    Raises:
        UserError: an unknown kind.
    """
    from pandas import DataFrame

    from fedarena.cli.methods import rows_of

    rows = rows_of(kind)
    return DataFrame([{"kind": of, **row} for of, some in rows.items() for row in some])


def aggregate(rule: str, uploads: Any, f: int, **options: Any) -> Any:
    """What an aggregation rule makes of one round's uploads. See `fedarena.federation.rule_function.aggregate`."""
    from fedarena.federation import rule_function

    return rule_function.aggregate(rule, uploads, f, **options)


def invert(
    model: Module,
    gradients: Any,
    *,
    input_shape: Sequence[int],
    n_classes: int,
    attack: str,
    **options: Any,
) -> Reconstruction:
    """Guess the images behind a gradient that any code computed, as `fedarena.federation.foreign_gradient.invert`.

    Args:
        model: takes inputs `[n, *input_shape]` in [0, 1]; the gradient was taken at its parameters.
        gradients: by name, or in the order of `model.parameters()`. With local_epochs: the update, start − end.
        input_shape: images [channels, height, width]. n_classes: outputs of the model.
        attack: one after images, by its name (`fa.methods("attack")`).
        options: images, labels, samples, loss, local_epochs, lr, batch_size, seed, progress, and the attack's own.

    Returns:
        The guess, and the search's own distance `match`. Nothing is compared with the truth.

    Raises:
        UserError: input that does not fit.
    """
    from fedarena.federation import foreign_gradient

    given = {"input_shape": input_shape, "n_classes": n_classes, "attack": attack, **options}
    return foreign_gradient.invert(model, gradients, **given)


def _parsed(command: str, words: list[str], options: dict[str, Any]) -> argparse.Namespace:
    """The arguments of a command. Raises UserError."""
    from fedarena.cli import read_args

    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if "." in name:
            words.append(f"--set={name}={_text(value)}")
        elif name == "plugin" and not isinstance(value, str | Path | None):
            words += [f"{flag}={file}" for file in value]
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.append(f"{flag}={_text(value)}")
    return read_args([command, *words])


def _text(value: Any) -> str:
    from fedarena.core.options import to_text

    several = isinstance(value, Iterable) and not isinstance(value, str)
    return to_text(tuple(value) if several else value)


# -- boards --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaderboard:
    """A board: the scores of defenses against attacks, over seeds."""

    board: Board

    def to_frame(self) -> DataFrame:
        """One row for each clean run, reference and cell. See `fedarena.board.frame.to_frame`."""
        from fedarena.board.frame import to_frame

        return to_frame(self.board)

    def ranking(self) -> DataFrame:
        """The defenses in the order of their lowest score, as `bench leaderboard` ranks them."""
        from pandas import DataFrame

        from fedarena.board.leaderboard import AXES, render

        rows = render(self.board).rows
        names = ("lowest", "utility", *AXES, "overall")
        scores = [{name: None if (s := row.cells[name].score) is None else s.value for name in names} for row in rows]
        return DataFrame(
            [
                {"rank": row.rank, "defense": row.defense, "unranked": row.unranked}
                | {name: None if mean is None else mean.value for name, mean in of_row.items()}
                for row, of_row in zip(rows, scores, strict=True)
            ]
        )

    def _repr_html_(self) -> str:
        return str(self.ranking().to_html(index=False, float_format="{:.2f}".format, na_rep=""))


@dataclass(frozen=True)
class Difference:
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

    return Leaderboard(load_board(find_folder(str(where))))


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
