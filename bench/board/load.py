"""Loads a board: a published file, the folder of a suite, or a folder of loose records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedarena.board.board import Board
from fedarena.board.build import build
from fedarena.board.consistent import contradictions
from fedarena.board.doubtful_record import doubt
from fedarena.board.planned_trial import PlannedTrial
from fedarena.board.published import from_json
from fedarena.contracts.baseline import BASELINE
from fedarena.core.errors import UserError
from fedarena.core.files import digest
from fedarena.core.garbage import no_collection
from fedarena.core.text.numbers import plural
from fedarena.records.schema import Record
from fedarena.records.store import Store
from fedarena.records.trial_key import hashed_problem
from fedarena.runs.suite.plan import Plan, read_plan


def find_folder(name: str) -> Path:
    """Where the results of a suite or a folder are: an existing path, or else runs/NAME.

    The results of a suite file are in the folder runs/ under the file's name.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return Path("runs") / path.stem
    return path if path.exists() else Path("runs") / name


@no_collection()
def load_board(where: Path) -> Board:
    """The board of a published file or of a folder of records.

    Raises:
        UserError: the path does not exist or holds no records, the file is no board, or its scores do not follow from
            its metrics.
    """
    if where.is_file():
        return _published(where)
    if (where / "board.json").is_file() and not (where / "records").is_dir():
        return load_board(where / "board.json")
    store, plan = Store(where, doubt), read_plan(where)
    store.require_records()
    if plan is not None:
        return build(plan.suite, plan.title, _trials_of_plan(plan, store), [*store.notes(), *_foreign(plan, store)])
    board = _board_of_loose_records(where, store)
    if (where / "plan.json").exists():
        note = "plan.json is damaged or of another layout: problems have new names, and it is not known what is missing"
        board = replace(board, notes=(f"{note}; `bench suite run` makes it again", *board.notes))
    return board


def _published(where: Path) -> Board:
    try:
        board = from_json(where.read_text(encoding="utf-8"), where)
    except UnicodeDecodeError:
        raise UserError(f"{where} is not a board: it is not text") from None
    if faults := list(contradictions(board)):
        more = f", and {len(faults) - 1} more like it" if len(faults) > 1 else ""
        raise UserError(f"{where} is damaged: {faults[0]}{more}")
    return board


def _trials_of_plan(plan: Plan, store: Store) -> list[PlannedTrial]:
    """The trials of a suite's plan that its board shows, with their records."""
    return [
        PlannedTrial(
            **t.names(),
            records=[] if t.refused else store.trial(t.key),
            refused=t.refused,
            reference=t.defense == BASELINE and t.clean,
            counts=t.counts,
            utility=t.problem not in plan.aside,
        )
        for t in plan.trials
        if t.shown
    ]


def _foreign(plan: Plan, store: Store) -> list[str]:
    """A note on trials in the folder that the plan does not have."""
    known = {t.key for t in plan.trials}
    others = [key for key in store.complete() if key not in known]
    if not others:
        return []
    return [f"{plural(len(others), 'trial')} in the folder, not of this suite as it is now and not on the board"]


def _board_of_loose_records(where: Path, store: Store) -> Board:
    """The board of records without a plan."""
    records_by_trial = [store.trial(key) for key in store.complete()]
    names = _problem_names(records_by_trial)
    trials = []
    for records in records_by_trial:
        r = records[0]
        if any(group == "probe" for group in r["options"]):
            continue  # a clean run that was repeated with a trigger
        trials.append(
            PlannedTrial(
                problem=names[_problem_key(r)],
                defense=r["defense"],
                attack=r["attack"],
                party=r["party"],
                form=r["form"],
                knows=r["attacker_knowledge"],
                goal=r["goal"],
                seed=r["seed"],
                records=records,
                reference=r["defense"] == BASELINE and r["attack"] == "none",
            )
        )
    trials += _clean_runs_of_attacks(trials)
    title = f"Records in {where.name or where}"
    return build(where.name, title, sorted(trials, key=lambda t: t.seed), store.notes())


def _problem_names(records_by_trial: list[list[Record]]) -> dict[str, str]:
    """Names by `_problem_key`: data set and model, with a number where several problems share them."""
    groups: dict[str, Record] = {}
    for records in records_by_trial:
        groups.setdefault(_problem_key(records[0]), records[0])
    names: dict[str, str] = {}
    for key, record in sorted(groups.items(), key=lambda item: (_short_name(item[1]), item[0])):
        short = _short_name(record)
        taken = sum(name.split("#")[0] == short for name in names.values())
        names[key] = f"{short}#{taken + 1}" if taken else short
    return names


def _clean_runs_of_attacks(trials: list[PlannedTrial]) -> list[PlannedTrial]:
    """Clean runs that were not measured by themselves, as the records of inference attacks on them describe them."""
    known = {(*t.run, t.seed) for t in trials if t.clean}
    clean: dict[tuple[str, str, int], PlannedTrial] = {}
    for t in trials:
        run = (*t.run, t.seed)
        if not t.clean and not t.knows and run not in known and run not in clean:
            clean[run] = PlannedTrial(
                problem=t.problem,
                defense=t.defense,
                seed=t.seed,
                records=t.records[:1],
                reference=t.defense == BASELINE,
            )
    return list(clean.values())


def _short_name(record: Record) -> str:
    return f"{record['problem']['dataset']}-{record['problem']['model']}"


def _problem_key(record: Record) -> str:
    """A digest that is the same for records of one problem."""
    groups = {name: record["options"][name] for name in ("model", "partition", "training")}
    # Other randomness makes another split of the data and another initial model.
    return digest([hashed_problem(record["problem"]), groups, *([record["secret"]] if "secret" in record else [])])
