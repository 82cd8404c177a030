"""Runs a suite: complete trials stay as they are, missing ones are measured and written at once."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedarena.records.schema import Record
from fedarena.records.store import Store, prepare
from fedarena.records.trial_locks import TrialLocks
from fedarena.runs.suite.forecast import Costs
from fedarena.runs.suite.gain_check import is_reference, require_gain
from fedarena.runs.suite.plan import Plan, Planned, digest_of, make_plan, read_plan, write_plan
from fedarena.runs.suite.secret import keep_secret, stored_secret
from fedarena.runs.suite.suite import Suite

if TYPE_CHECKING:
    from fedarena.federation.spec import Training
    from fedarena.records.results import Gallery
    from fedarena.runs.executors import Executor
    from fedarena.runs.suite.trials import Trial

LOOK = 3.0
"""Seconds between two checks for what other processes have written into the folder."""
SETTLED = 2.0
"""Seconds between two estimates of the time left; each one visits every trial."""


@dataclass
class Outcome:
    """The outcome of running a suite.

    Attributes:
        store: the folder's records, as the run left them.
        done: the number of trials measured now. there: the number of trials that were there before.
        lost: trial → reason, for trials that were given up or refused when their turn came.
        refused: the number of planned trials that cannot be run.
    """

    store: Store
    done: int = 0
    there: int = 0
    lost: dict[str, str] = field(default_factory=dict)
    refused: int = 0


ProgressReport = Callable[[int, int, str, float | None], object]
"""(trials done, trials in all, what was done last, seconds that the rest may take: None where nothing is known)."""


def plan_of(
    suite: Suite,
    seeds: Sequence[int],
    folder: Path,
    data_dir: Path | None,
    before: Callable[[], object] = lambda: None,
    progress: Callable[[float, str], object] = lambda share, text: None,
    secret: str | None = None,
) -> Plan:
    """The folder's plan if it is this suite's, else a new one; `before` is called first then. Raises UserError.

    Args:
        secret: what was given, empty for none; if nothing was said and the folder has none either, one is drawn where a
            foreign attack takes part.
    """
    plan, stored = read_plan(folder), stored_secret(folder, secret or "")
    if plan is not None and plan.digest == digest_of(suite, seeds, data_dir, stored):
        return replace(plan, secret=stored)
    before()
    from fedarena.runs.suite.trials import has_foreign_attack, trials_of

    if secret is None and not stored and has_foreign_attack(suite):
        stored = secrets.token_hex(16)
    return make_plan(suite, seeds, data_dir, trials_of(suite, seeds, data_dir, stored), progress)


def run_suite(
    suite: Suite,
    plan: Plan,
    folder: Path,
    data_dir: Path | None,
    open_executor: Callable[[], Executor],
    fresh: bool = False,
    report_progress: ProgressReport = lambda done, total, text, left: None,
    warn: Callable[[str], None] = lambda note: None,
) -> Outcome:
    """Measure the missing trials.

    Args:
        warn: called before anything is measured, about records that are ignored and will be replaced.
        open_executor: called only if there is something to do.
        fresh: measure everything again.

    Raises:
        UserError: a folder that cannot be written, or a problem on which a federation is of no use.
    """
    prepare(folder)
    keep_secret(folder, plan.secret)
    write_plan(plan, folder)
    store = Store(folder)
    for note in store.notes():
        warn(f"{note}; what the suite needs of them is measured again")
    wanted = [t for t in plan.trials if not t.refused]
    missing = [t for t in wanted if fresh or not store.trial(t.key)]
    outcome = Outcome(store, there=len(wanted) - len(missing), refused=len(plan.trials) - len(wanted))
    if missing:
        measuring = _Measuring(
            suite=suite, plan=plan, data_dir=data_dir, fresh=fresh, report_progress=report_progress, outcome=outcome
        )
        measuring.run(missing, open_executor())
    return outcome


class _Measuring:
    def __init__(
        self,
        suite: Suite,
        plan: Plan,
        data_dir: Path | None,
        fresh: bool,
        report_progress: ProgressReport,
        outcome: Outcome,
    ) -> None:
        from fedarena.runs.suite.trials import trials_of

        self.plan, self.store, self.fresh, self.report_progress, self.outcome = (
            plan,
            outcome.store,
            fresh,
            report_progress,
            outcome,
        )
        self.specs: dict[tuple[str, ...], Trial] = {
            t.name: t for t in trials_of(suite, plan.seeds, data_dir, plan.secret)
        }
        self.looked = time.monotonic()
        self.total = len([t for t in plan.trials if not t.refused])
        self.complete: set[int] = set()
        self.locks = TrialLocks(self.store.folder)
        self.gone: set[int] = set()
        self.spent, self.costs = 0.0, Costs()
        self.began: float | None = None
        self.judged, self.left = 0.0, math.inf

    def run(self, missing: list[Planned], place: Executor) -> None:
        from fedarena.runs.engine import Events, run

        # FedAvg's runs come first: they show whether the problems measure anything.
        self.missing = sorted(missing, key=lambda trial: not is_reference(trial))
        for trial in self.plan.trials:
            if not trial.refused and (records := self.store.trial(trial.key)):
                self.costs.add(trial, records)
        self.report_progress(self.outcome.there, self.total, "starting", None)
        events = Events(finished=self._finished, lost=self._lost, elsewhere=self._elsewhere, claim=self._claim)
        try:
            require_gain(self.plan, self.store.trial)
            run([self.specs[t.name].spec for t in self.missing], place, events, self._known())
        finally:
            self.locks.close()

    def _known(self) -> dict[Training, Record]:
        """The runs in the folder that serve as references."""
        from fedarena.runs.trial import given_by

        known: dict[Training, Record] = {}
        for trial in [] if self.fresh else self.plan.trials:
            records = [] if trial.refused else self.store.trial(trial.key)
            if records:
                known |= {run: records[0] for run in given_by(self.specs[trial.name].spec) if run not in known}
        return known

    def _finished(self, i: int, k: int, records: list[Record], galleries: list[Gallery]) -> None:
        self.store.add(records, galleries)
        self.outcome.done += 1
        if i in self.complete:  # another process had measured it, but not everything that the same training gives
            self.outcome.there -= 1
        self.locks.give_back([self.missing[i].key])
        if is_reference(self.missing[i]):
            require_gain(self.plan, self.store.trial)
        cost = self.costs.add(self.missing[i], records)
        if self.began is None:  # the first trial includes the loading of libraries
            self.began = time.monotonic()
        else:
            self.spent += cost
        self._mark_complete(i)

    def _lost(self, i: int, why: str) -> None:
        self.outcome.lost[_title(self.missing[i])] = why
        self.gone.add(i)
        self.locks.give_back([self.missing[i].key])
        self._mark_complete(i)

    def _elsewhere(self, i: int) -> list[Record]:
        """The records of a trial that another run into the same folder has finished since this one began."""
        if self.fresh:
            return []
        if time.monotonic() - self.looked > LOOK:
            self.store.refresh()
            self.looked = time.monotonic()
        records = self.store.trial(self.missing[i].key)
        if records and i not in self.complete:
            self.outcome.there += 1
            self._mark_complete(i)
        return records

    def _claim(self, groups: Sequence[int]) -> bool:
        """Claim these trials; False if another run is measuring one of them, or has just finished one."""
        if self.fresh:
            return True
        keys = [self.missing[i].key for i in groups]
        if not self.locks.take(keys):
            return False
        known = [key for key in keys if self.store.trial(key)]
        self.store.refresh()
        if [key for key in keys if self.store.trial(key)] == known:
            return True
        self.locks.give_back(keys)
        return False

    def _mark_complete(self, i: int) -> None:
        self.complete.add(i)
        done = self.outcome.done + self.outcome.there + len(self.gone)
        self.report_progress(done, self.total, _title(self.missing[i]), self._left())

    def _left(self) -> float | None:
        """Seconds that the rest may take at the speed so far."""
        if self.began is None or not self.spent:
            return None
        since = time.monotonic() - self.judged
        if self.left < math.inf and since < SETTLED:
            return max(0.0, self.left - since)
        rest = [self.costs.of(t) or 0.0 for i, t in enumerate(self.missing) if i not in self.complete]
        self.judged = time.monotonic()
        self.left = sum(rest) * (self.judged - self.began) / self.spent
        return self.left


def _title(trial: Planned) -> str:
    if trial.clean:
        probe = trial.name[3].removeprefix("probe ")
        tried = f", tried with {probe}'s trigger" if probe else ""
        return f"{trial.problem}: {trial.defense}, without an attack{tried}, seed {trial.seed}"
    who = f"corrupted ({trial.knows})" if trial.knows else f"{trial.party}, {trial.form}"
    return f"{trial.problem}: {trial.attack} on {trial.defense}, {who}, seed {trial.seed}"
