"""The engine: order, memory, workers that die, and what it does with others' work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from helpers.suite import POISON, READ

from fedarena.core.errors import UserError, WorkerDied
from fedarena.federation.spec import GroupSpec
from fedarena.records.schema import Record
from fedarena.runs import engine
from fedarena.runs.engine import TRIES, Events, run
from fedarena.runs.executors import Executor, InProcess
from fedarena.runs.suite.suite import parse
from fedarena.runs.suite.trials import trials_of

MATRIX = '[[matrix]]\nproblem = "read"\ndefenses = ["fedavg", "dbcl"]\nattacks = ["last-layer-label"]\n'
SERVER = 'parties = ["server"]\nforms = ["adaptive"]\n'
SIGN_FLIP = '[[matrix]]\nproblem = "poison"\ndefenses = ["fedavg"]\nattacks = ["sign-flip"]\n'


def specs(text: str = READ + MATRIX + SERVER) -> list[GroupSpec]:
    return [t.spec for t in trials_of(parse(text, Path("play.toml")), (0,))]


class Kept:
    """What a run told of."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.records: list[Record] = []
        self.lost: dict[int, str] = {}

    def events(self, **changes: Any) -> Events:
        return Events(**{"finished": self._finished, "lost": self.lost.__setitem__, **changes})

    def _finished(self, i: int, k: int, records: list[Record], galleries: list[Any]) -> None:
        self.done.append(i)
        self.records += records


class Dying(Executor):
    """Like two worker processes that share a fate: `deadly` says which calls end them."""

    def __init__(self, deadly: Callable[[Callable[..., Any], tuple[Any, ...]], bool]) -> None:
        self.slots, self.near, self.deadly, self.deaths = 2, False, deadly, 0
        self.pending: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.together: list[int] = []

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.pending.append((future, function, args))
        return future

    def first_done(self, calls: Iterable[Future[Any]], patience: float | None = None) -> set[Future[Any]]:
        self.carry_out()
        return super().first_done(calls, patience)

    def carry_out(self) -> None:
        """Everything that is pending at once, as far as nobody dies."""
        pending, self.pending = self.pending, []
        self.together.append(len(pending))
        dead = any(self.deadly(function, args) for _, function, args in pending)
        self.deaths += dead
        for future, function, args in pending:
            if dead:
                future.set_exception(WorkerDied("gone"))
            else:
                future.set_result(function(*args))


def is_attack_on(defense: str) -> Callable[[Callable[..., Any], tuple[Any, ...]], bool]:
    return lambda function, args: function is engine._attack and args[1][0].spec.defense.name == defense


def test_a_piece_that_kills_its_worker_is_given_up_and_others_are_not() -> None:
    groups, kept = specs(READ + MATRIX), Kept()
    place = Dying(is_attack_on("dbcl"))
    run(groups, place, kept.events())
    guilty = {i for i, g in enumerate(groups) if g.attack is not None and g.defense.name == "dbcl"}
    assert kept.lost == dict.fromkeys(guilty, "its worker process died 3 times (out of memory?)")
    assert sorted([*kept.done, *guilty]) == list(range(len(groups)))
    assert place.deaths <= TRIES * len(guilty)
    assert max(place.together) == 2


def test_a_run_that_kills_its_worker_ends_everything_without_a_callback() -> None:
    place = Dying(lambda function, args: function is engine._prepare)
    with pytest.raises(WorkerDied, match=r"^its worker process died 3 times \(out of memory\?\)$"):
        run(specs(), place, Events())


def test_a_piece_that_dies_once_is_tried_again() -> None:
    groups, kept, died = specs(), Kept(), []

    def once(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        if not died and function is engine._prepare:
            died.append(function)
            return True
        return False

    run(groups, Dying(once), kept.events())
    assert died
    assert kept.lost == {}
    assert sorted(kept.done) == list(range(len(groups)))


def test_a_reference_that_is_given_up_takes_what_waits_for_it() -> None:
    groups, kept = specs(), Kept()
    place = Dying(lambda function, args: function is engine._prepare and args[1][0].defense.name == "fedavg")
    run(groups, place, kept.events())
    why = {groups[i].defense.name: told for i, told in kept.lost.items()}
    assert why == {
        "fedavg": "its worker process died 3 times (out of memory?)",
        "dbcl": "the run that it is measured against is not there",
    }
    assert (kept.done, place.deaths) == ([], TRIES)


def test_without_somebody_to_tell_losses_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="a defended run without FedAvg's"):
        run([g for g in specs() if g.defense.name == "dbcl"], InProcess(), Events())

    def refusing(*args: Any) -> Any:
        raise UserError("no")

    monkeypatch.setattr(engine, "prepare_together", refusing)
    with pytest.raises(UserError, match=r"^no$"):
        run(specs(), InProcess(), Events())


def test_trials_that_others_finished_stand_as_references() -> None:
    groups, first = specs(), Kept()
    run(groups, InProcess(), first.events())
    by_group = dict(zip(first.done, first.records, strict=True))
    mine = [i for i, g in enumerate(groups) if g.defense.name == "dbcl"]
    kept = Kept()
    run(groups, InProcess(), kept.events(elsewhere=lambda i: [] if i in mine else [by_group[i]]))
    assert sorted(kept.done) == mine
    assert {r["utility"]["fedavg_accuracy"] for r in kept.records} == {
        by_group[0]["utility"]["clean_accuracy"],
    }


def test_trials_that_others_work_on_are_left_until_they_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at again after a while, and taken once nobody is at it."""
    groups, kept, naps, order = specs(), Kept(), [], []
    monkeypatch.setattr(engine.time, "sleep", naps.append)

    def claim(indices: Sequence[int]) -> bool:
        free = groups[indices[0]].defense.name == "dbcl" or len(naps) >= 3
        order.append((groups[indices[0]].defense.name, free))
        return free

    run(groups, InProcess(), kept.events(claim=claim))
    assert naps == [engine.LOOK] * 3  # what is defended waits for FedAvg's, which somebody else is at
    assert order == [("fedavg", False)] * 3 + [("fedavg", True), ("dbcl", True)]
    assert sorted(kept.done) == list(range(len(groups)))


def test_readings_of_a_run_go_before_the_next_run() -> None:
    """So that no more runs are held than there are workers."""
    began: list[str] = []

    class Watched(InProcess):
        def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
            began.append(function.__name__)
            return super().submit(function, *args)

    run(specs(READ + MATRIX), Watched(), Kept().events())
    # FedAvg's client, and the server with who listens, who see the same; then the defended run, which a client looks at
    # in more than one way.
    assert began[:4] == ["_prepare", *["_attack"] * 2, "_prepare"]
    assert set(began[4:]) == {"_attack"}


def test_shares_add_up_to_done(tmp_path: Path) -> None:
    told: dict[int, list[float]] = {}
    groups = specs(READ + POISON + MATRIX + SERVER + SIGN_FLIP)
    run(groups, InProcess(), Kept().events(report=lambda i, share, text: told.setdefault(i, []).append(share)))
    for shares in told.values():
        assert all(0 <= share <= 1 for share in shares)
        assert shares[-1] == pytest.approx(1.0)
    assert sorted(told) == list(range(len(groups)))
