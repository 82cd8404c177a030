"""Boards from where they are: a published one, the folder of a suite, or a folder of loose records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedarena.board.board import Board
from fedarena.board.build import Asked, build, doubt
from fedarena.board.consistent import contradictions
from fedarena.board.published import from_json
from fedarena.core.errors import UserError
from fedarena.core.files import digest
from fedarena.core.text.plural import plural
from fedarena.records.schema import Record
from fedarena.records.store import Store
from fedarena.records.trial_key import hashed_problem
from fedarena.runs.suite.plan import Plan, read_plan


def find_folder(name: str) -> Path:
    """Where the results of a suite or a folder are: a path that is there, or else runs/NAME.

    Of a suite's file it is runs/ and the file's name.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return Path("runs") / path.stem
    return path if path.exists() else Path("runs") / name


def load_board(where: Path) -> Board:
    """The board of a published file or of a folder of records; one without cells where there are none.

    Raises:
        UserError: nothing there, a file that is no board, or one whose scores are not those that its metrics give.
    """
    if where.is_file():
        return _published(where)
    if not where.is_dir():
        raise UserError(f"there are no results in {where}: `bench suite run` and `bench run` make some")
    if (where / "board.json").is_file() and not (where / "records").is_dir():
        return load_board(where / "board.json")
    store, plan = Store(where, doubt), read_plan(where)
    if plan is None:
        board = _loose(where, store)
        if (where / "plan.json").exists():
            note = (
                "plan.json is damaged or of another layout: problems are named anew, and what is missing is not known"
            )
            board = replace(board, notes=(f"{note}; `bench suite run` makes it anew", *board.notes))
        return board
    return build(plan.suite, plan.title, _of_plan(plan, store), [*store.notes(), *_others(plan, store)])


def _published(where: Path) -> Board:
    try:
        board = from_json(where.read_text(encoding="utf-8"), where)
    except UnicodeDecodeError:
        raise UserError(f"{where} is not a board: it is no text") from None
    if faults := list(contradictions(board)):
        more = f", and {len(faults) - 1} more like it" if len(faults) > 1 else ""
        raise UserError(f"{where} is damaged: {faults[0]}{more}")
    return board


def _of_plan(plan: Plan, store: Store) -> list[Asked]:
    asked = []
    for t in plan.trials:
        if not t.shown:
            continue
        records = [] if t.refused else store.trial(t.key)
        what = (t.problem, t.defense, t.attack, t.party, t.form, t.knows, t.goal, t.seed)
        plain = t.defense == "fedavg" and t.attack == "none"
        useful = t.problem not in plan.aside
        asked.append(Asked(*what, records, t.refused, plain, t.counts, useful))
    return asked


def _others(plan: Plan, store: Store) -> list[str]:
    known = {t.key for t in plan.trials}
    others = [key for key in store.complete() if key not in known]
    if not others:
        return []
    return [f"{plural(len(others), 'trial')} in the folder, not of this suite as it is now and not on the board"]


def _loose(where: Path, store: Store) -> Board:
    """Records without a plan: problems are named after data set and model, and numbered where there are several."""
    groups: dict[str, list[Record]] = {}
    trials = [store.trial(key) for key in store.complete()]
    for records in trials:
        groups.setdefault(_problem(records[0]), []).extend(records)
    names: dict[str, str] = {}
    for place, records in sorted(groups.items(), key=lambda item: (_short(item[1][0]), item[0])):
        short, taken = _short(records[0]), len([n for n in names.values() if n.split("#")[0] == _short(records[0])])
        names[place] = f"{short}#{taken + 1}" if taken else short
    asked = []
    for records in trials:
        r = records[0]
        if any(group == "probe" for group in r["options"]):
            continue  # an honest run again, tried with a trigger
        what = (r["defense"], r["attack"], r["party"], r["form"], r["attacker_knowledge"], r["goal"], r["seed"])
        calm = r["attack"] == "none"
        asked.append(Asked(names[_problem(r)], *what, records, "", r["defense"] == "fedavg" and calm))
    asked += _calm(asked)
    title = f"Records in {where.name or where}"
    return build(where.name, title, sorted(asked, key=lambda t: t.seed), store.notes())


def _calm(asked: list[Asked]) -> list[Asked]:
    """Where only attacks were asked for, what their records say of the run that they read stands for it."""
    there = {(t.problem, t.defense, t.seed) for t in asked if t.attack == "none"}
    found: dict[tuple[str, str, int], Asked] = {}
    for t in asked:
        place = (t.problem, t.defense, t.seed)
        if t.attack != "none" and not t.knows and place not in there and place not in found:
            who = (t.problem, t.defense, "none", "", "", "", "", t.seed)
            found[place] = Asked(*who, t.records[:1], "", t.defense == "fedavg")
    return list(found.values())


def _short(record: Record) -> str:
    return f"{record['problem']['dataset']}-{record['problem']['model']}"


def _problem(record: Record) -> str:
    groups = {name: record["options"][name] for name in ("model", "partition", "training")}
    return digest([hashed_problem(record["problem"]), groups])
