"""Runs groups of trials: first the training of a federation, then the attacks that read it.

Groups that can read one training run share it, and parties that see the same share the attack. Attacks on a finished
run go before the next training, so that no more runs are held in memory than there are workers. A group starts when the
runs that it is measured against are done. A trial is handed on as soon as it is complete, so that a killed process
loses only what is under way. Results do not depend on where and in which order the work is done: every piece is a pure
function of its spec, computed by one thread.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from fedarena.core.errors import ClusterGone, UserError, WorkerDied, describe
from fedarena.core.interrupts import require_no_interrupt
from fedarena.federation.spec import GroupSpec, Training
from fedarena.goals.prepared import CompleteRecord, OpenRecord, PreparedRecord, SilentRecord, task_digest
from fedarena.records.results import Gallery, GroupResult
from fedarena.records.schema import Record
from fedarena.runs.executors import Executor, arithmetic, executor
from fedarena.runs.trial import add_reference, attack_alike, gather, given_by, prepare_together, references, shared
from fedarena.runs.worker_messages import Address, mailbox, post

Report = Callable[[int, float, str], None]
"""(index of the group, share done, what it is doing)."""
Done = tuple[Record, Gallery | None]

TRAINING = 0.1
"""The share of a group's time that progress counts for the training."""
TRIES = 3
"""How often a piece of work may lose its worker before it is given up."""
PAUSE = 0.1
"""The least number of seconds between two progress messages of a piece."""
LOOK = 1.0
"""Seconds between two looks at the trials that another process works on."""


@dataclass
class Events:
    """The callbacks of a run.

    Attributes:
        report: called with the progress of groups.
        finished: called with every complete trial: the group's index, the threat's index, its records, their pictures.
        lost: called with a group that was given up or refused, and the reason.
        elsewhere: gives the records of a group that another process has written since, or none. It is called before a
            training starts.
        claim: called next, with the groups that would read the training. It gives False if another process works on one
            of them; they are then looked at again later.
    """

    report: Report = lambda i, share, text: None
    finished: Callable[[int, int, list[Record], list[Gallery]], object] = lambda i, k, records, galleries: None
    lost: Callable[[int, str], object] | None = None
    elsewhere: Callable[[int], Sequence[Record]] = lambda i: ()
    claim: Callable[[Sequence[int]], bool] = lambda groups: True


@dataclass
class _Piece:
    """A piece of work: a training run or one attack.

    Attributes:
        groups: the groups that it is done for.
        function, args: what is called.
        records: the indices of the prepared records that are attacked, one for each group; empty for a training run.
        died: how often it lost its worker.
    """

    groups: tuple[int, ...]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    records: tuple[int, ...] = ()
    died: int = 0


@dataclass
class _Group:
    """The state of a group.

    Attributes:
        prepared: its records after the training.
        done: the complete records, by their index.
        reported: the indices of the threats whose trials were handed on.
    """

    prepared: list[PreparedRecord] = field(default_factory=list)
    done: dict[int, Done] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)


def run_groups(
    groups: Sequence[GroupSpec],
    jobs: int,
    report: Report = lambda i, share, text: None,
    finished: Callable[[list[Record], list[Gallery]], object] = lambda records, galleries: None,
) -> list[GroupResult]:
    """Every group's result, in order, on this machine.

    Args:
        groups: FedAvg on the same problem and seed must be among them for every defended run, and the unattacked
            run of the same defense for every poisoned one.
        jobs: worker processes; 1 runs in this process.
        report: called from this process as groups progress.
        finished: called from this process with each trial's records and pictures as soon as it is complete.

    Raises:
        UserError: input that cannot run.
    """
    results: dict[tuple[int, int], list[Done]] = {}

    def keep(i: int, k: int, records: list[Record], galleries: list[Gallery]) -> None:
        pictures = {gallery.key: gallery for gallery in galleries}
        results[i, k] = [(record, pictures.get(record["key"])) for record in records]
        finished(records, galleries)

    with executor("local", jobs) as place:
        run(groups, place, Events(report, keep))
    return [
        gather(group, [done for k in range(max(1, len(group.threats))) for done in results[i, k]])
        for i, group in enumerate(groups)
    ]


def run(
    groups: Sequence[GroupSpec], place: Executor, events: Events, known: Mapping[Training, Record] | None = None
) -> None:
    """Run groups, and hand every trial to the caller.

    Args:
        known: records of runs that are done already and stand as references.

    Raises:
        UserError: input that cannot run, unless the caller handles lost groups (`Events.lost`).
        WorkerDied: likewise, a piece of work that lost its worker `TRIES` times.
        ClusterGone: no call can be carried out any more.
        Exception: likewise, whatever a method raised while it trained.
        BaseException: whatever `Events.report` raised.
        ValueError: a group whose references are neither known nor among the groups.
    """
    tally = _Tally(events.report)
    with mailbox(tally.take) if place.near and place.slots > 1 else nullcontext() as address:
        _Run(groups=groups, place=place, events=events, clean=dict(known or {}), tally=tally, address=address).run()


class _Run:
    def __init__(
        self,
        groups: Sequence[GroupSpec],
        place: Executor,
        events: Events,
        clean: dict[Training, Record],
        tally: _Tally,
        address: Address | None,
    ) -> None:
        self.groups, self.place, self.events, self.clean = groups, place, events, clean
        self.tally, self.address = tally, address
        # Progress of work in this process needs no mailbox.
        self.near: Callable[[Any], object] | None = tally if place.slots <= 1 and place.near else None
        self.state = [_Group() for _ in groups]
        self.waiting = deque(
            _Piece(tuple(indices), _prepare, (tuple(indices), [groups[i] for i in indices], address))
            for indices in shared(groups)
        )
        self.attacks: deque[_Piece] = deque()
        self.under_way: dict[Future[Any], _Piece] = {}
        self.claimed_by_others = False

    def run(self) -> None:
        while self.waiting or self.attacks or self.under_way:
            require_no_interrupt()
            while len(self.under_way) < self._room() and (piece := self._next()) is not None:
                self.under_way[self._start(piece)] = piece
            if not self.under_way:
                if self.claimed_by_others:
                    time.sleep(LOOK)
                else:
                    self._stuck()
                continue
            calls = [self.tally.failed, *self.under_way]
            done = self.place.first_done(calls, LOOK if self.claimed_by_others else None)
            self.tally.require_success()
            for future in done:
                self._take(future, self.under_way.pop(future))
        self.tally.require_success()

    def _room(self) -> int:
        """How many pieces may run at once. A piece that has lost its worker runs alone, so that it harms no other."""
        suspects = [p for p in (*self.under_way.values(), *self.attacks, *self.waiting) if p.died]
        return 1 if suspects else self.place.slots

    def _next(self) -> _Piece | None:
        """The next piece that can start. Pieces that have lost a worker come first."""
        for piece in [p for p in (*self.attacks, *self.waiting) if p.died]:
            (self.attacks if piece.records else self.waiting).remove(piece)
            return piece
        if self.attacks:
            return self.attacks.popleft()
        self.claimed_by_others = False
        for piece in list(self.waiting):
            if self._done_elsewhere(piece):
                self.waiting.remove(piece)
            elif self._ready(piece):
                if self.events.claim(piece.groups):
                    self.waiting.remove(piece)
                    return piece
                self.claimed_by_others = True
        return None

    def _done_elsewhere(self, piece: _Piece) -> bool:
        records_of = {i: self.events.elsewhere(i) for i in piece.groups}
        self.clean |= {
            run: records[0] for i, records in records_of.items() if records for run in given_by(self.groups[i])
        }
        return all(records_of.values())

    def _ready(self, piece: _Piece) -> bool:
        """Whether every reference is known, or comes from this very training."""
        own = {run for i in piece.groups for run in given_by(self.groups[i])}
        return all(run in self.clean or run in own for i in piece.groups for run in references(self.groups[i]))

    def _start(self, piece: _Piece) -> Future[Any]:
        if self.near is not None:
            return self.place.submit(piece.function, *piece.args[:-1], self.near)
        return self.place.submit(piece.function, *piece.args)

    def _stuck(self) -> None:
        """Handle a standstill: nothing runs, and what is left waits for references that never come."""
        if not (self.waiting or self.attacks):
            return
        if self.events.lost is None:
            raise ValueError("a defended run without FedAvg's, or a poisoned one without the same run unattacked")
        for piece in self.waiting:
            for i in piece.groups:
                self.events.lost(i, "the run that it is measured against is not there")
        self.waiting.clear()

    def _take(self, future: Future[Any], piece: _Piece) -> None:
        try:
            result = future.result()
        except WorkerDied as error:
            piece.died += 1
            if piece.died < TRIES:
                (self.attacks if piece.records else self.waiting).append(piece)
            else:
                self._lose(piece, error, f"its worker process died {TRIES} times (out of memory?)")
            return
        except ClusterGone:
            raise
        except UserError as error:
            self._lose(piece, error, str(error))
            return
        except Exception as error:  # an error in a third party's code or in this package: the other groups go on
            self._lose(piece, error, getattr(error, "__notes__", [describe(error)])[-1])
            return
        if piece.records:
            for i, j, done in zip(piece.groups, piece.records, result, strict=True):
                self._attacked(i, j, done)
        else:
            self._queue_attacks(piece.groups, *result)

    def _lose(self, piece: _Piece, error: Exception, why: str) -> None:
        if self.events.lost is None:
            raise WorkerDied(why) if isinstance(error, WorkerDied) else error
        for i in dict.fromkeys(piece.groups):
            self.events.lost(i, why)

    def _queue_attacks(
        self, groups: Sequence[int], prepared: Sequence[list[PreparedRecord]], tasks: Sequence[list[str]]
    ) -> None:
        """Queue the attacks on what a training gave, one for all records of the same task."""
        alike: dict[str, list[tuple[int, int, OpenRecord | SilentRecord]]] = defaultdict(list)
        for i, records, digests in zip(groups, prepared, tasks, strict=True):
            self._prepared(i, records)
            for j, (record, digest) in enumerate(zip(records, digests, strict=True)):
                if not isinstance(record, CompleteRecord):
                    alike[digest or f"{i}, {j}"].append((i, j, record))
        for task in alike.values():
            of_groups, of_records, open_records = zip(*task, strict=True)
            parts = [(i, j, self._part(i)) for i, j, _ in task]
            self.attacks.append(_Piece(of_groups, _attack, (parts, open_records, self.address), of_records))

    def _prepared(self, i: int, prepared: list[PreparedRecord]) -> None:
        group, state = self.groups[i], self.state[i]
        state.prepared = prepared
        # Own runs become references before anything is measured against them.
        self.clean |= {run: prepared[0].record for run in given_by(group) if prepared and run not in self.clean}
        self.tally((i, -1, TRAINING, "trained"))
        for j, one in enumerate(prepared):
            if isinstance(one, CompleteRecord):
                state.done[j] = one.record, None
                self.tally((i, j, self._part(i), "done"))
        self._report_finished(i)

    def _part(self, i: int) -> float:
        """The share of a group's time that progress counts for each of its attacks."""
        return (1 - TRAINING) / len(self.state[i].prepared)

    def _attacked(self, i: int, j: int, done: Done) -> None:
        self.tally((i, j, self._part(i), "attacking"))
        self.state[i].done[j] = done
        open_record = self.state[i].prepared[j]
        # The challenge, which can be large, is discarded.
        self.state[i].prepared[j] = CompleteRecord(open_record.spec, open_record.threat, open_record.record)
        self._report_finished(i)

    def _report_finished(self, i: int) -> None:
        """Hand on the trials of a group that are complete now."""
        state, group = self.state[i], self.groups[i]
        for k, threat in enumerate(group.threats or (None,)):
            of_threat = [j for j, one in enumerate(state.prepared) if one.threat == threat]
            if k in state.reported or not of_threat or not all(j in state.done for j in of_threat):
                continue
            state.reported.add(k)
            own, plain = (self.clean[run] for run in references(group))
            records = [state.done[j][0] for j in of_threat]
            for record in records:
                add_reference(record, own, plain)
            self.events.finished(i, k, records, [g for j in of_threat if (g := state.done[j][1]) is not None])


News = Address | Callable[[Any], object] | None


@arithmetic()
def _prepare(
    indices: tuple[int, ...], specs: list[GroupSpec], news: News
) -> tuple[list[list[PreparedRecord]], list[list[str]]]:
    """The records of groups before their attacks, and the digests of these attacks' tasks."""

    def report_progress(share: float, text: str) -> None:
        for i in indices:
            _send(news, (i, -1, TRAINING * share, text))

    try:
        prepared = prepare_together(specs, _now_and_then(report_progress))
        return prepared, [[task_digest(one) for one in records] for records in prepared]
    except UserError:
        raise
    except Exception as error:
        if not callable(news):
            error.add_note(describe(error))  # another process no longer has the traceback
        raise


@arithmetic()
def _attack(
    parts: list[tuple[int, int, float]], records: Sequence[OpenRecord | SilentRecord], news: News
) -> list[Done]:
    def report_progress(share: float, text: str) -> None:
        for group, piece, part in parts:
            _send(news, (group, piece, part * share, text))

    return attack_alike(records, _now_and_then(report_progress))


def _now_and_then(report_progress: Callable[[float, str], None]) -> Callable[[float, str], None]:
    """The same function, called at most once every `PAUSE`.

    An attack reports each of thousands of steps, and a message to another process takes a tenth of a millisecond on
    either side.
    """
    last = -math.inf

    def sparing(share: float, text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PAUSE:
            last = now
            report_progress(share, text)

    return sparing


def _send(news: News, item: tuple[int, int, float, str]) -> None:
    if callable(news):
        news(item)
    else:
        post(news, item)


class _Tally:
    """Adds up the shares that a group's pieces have done.

    Attributes:
        failed: has whatever the caller's function raised. Nothing more is reported then.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._done: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._one = threading.Lock()
        self.failed: Future[None] = Future()

    def __call__(self, item: tuple[int, int, float, str]) -> None:
        group, piece, share, text = item
        with self._one:
            if self.failed.done():
                return
            shares = self._done[group]
            shares[piece] = max(shares[piece], share)  # what a worker has sent may come after its result
            total = sum(shares.values())
            try:
                self._report(group, min(total, 1.0), "done" if total > 0.9999 else text)
            except BaseException as error:
                self.failed.set_exception(error)
                raise

    def require_success(self) -> None:
        """Raise whatever the caller's function raised."""
        if self.failed.done():
            self.failed.result()

    def take(self, item: tuple[int, int, float, str]) -> None:
        """The same in a thread, where nobody waits for what is raised: `failed` has it."""
        with suppress(BaseException):
            self(item)
