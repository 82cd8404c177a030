"""Executors do the work: in this process, in joblib's worker processes on this machine, or on a Ray cluster.

Each has the method `submit` of a `concurrent.futures` executor, so that the engine treats them alike.
What a call gives does not depend on where it runs.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from multiprocessing import connection, resource_tracker
from typing import Any

from fedarena.core import plugin_file
from fedarena.core.errors import ClusterGone, UserError, WorkerDied
from fedarena.core.interrupts import hiding_interrupts, see_interrupts, unchanged_interrupts, uninterrupted
from fedarena.core.streams import open_streams
from fedarena.runs.left_semaphores import remove_left_semaphores
from fedarena.runs.worker_messages import end_with_parent

ANSWER = 5.0
"""Seconds that a cluster's head may take to accept a connection."""
ROOM = 4 * 2**30
"""Bytes of a GPU's memory that a worker is expected to take. CUDA itself takes half a gigabyte a process."""


class Executor(ABC):
    """Carries out calls.

    Attributes:
        slots: how many calls should be under way at once.
        near: whether calls run on this machine, so that they can reach this process by a local socket.
        patience: seconds without a result after which `first_done` looks what is wrong; None: never.
    """

    slots: int = 1
    near: bool = True
    patience: float | None = None

    @abstractmethod
    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a call. Its future raises `WorkerDied` if its worker dies, and `ClusterGone` if all of them have."""

    def warm(self) -> None:  # noqa: B027  (not every executor needs it)
        """Begin a slow start in the background, while the caller does something else."""

    def first_done(self, calls: Iterable[Future[Any]], patience: float | None = None) -> set[Future[Any]]:
        """Those of some calls that are done, as soon as one is, or none after `patience` seconds.

        Args:
            patience: None: the executor's own.
        """
        done = wait(calls, self.patience if patience is None else patience, FIRST_COMPLETED).done
        if not done:
            self.look()
        return done

    def look(self) -> None:  # noqa: B027  (not every executor needs it)
        """Find out whether calls that are under way can still end; those that cannot raise `WorkerDied`."""

    def stop(self) -> None:  # noqa: B027  (not every executor needs it)
        """Abandon the calls that are under way."""


class InProcess(Executor):
    """Carries out one call after another in this process."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class Local(Executor):
    """Joblib's worker processes (loky)."""

    patience = 2.0

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        # One more than there are workers, so that no worker waits while this process handles its result.
        self.slots = jobs + 1
        self._used: Any = None
        self._dead: set[int] = set()
        remove_left_semaphores()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if sys.platform != "win32":  # where it starts before Python 3.14, this thread would see Ctrl-C again
            resource_tracker.ensure_running()
        # Requested each time: after a worker died this is a new pool.
        with hiding_interrupts():
            try:
                inner = self._pool().submit(_call, function, args)
            except BrokenExecutor:
                inner = self._pool().submit(_call, function, args)
        return _translated(inner, lambda error: _died(error) if isinstance(error, BrokenExecutor) else error)

    def _pool(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        from fedarena.core.tensors import REDUCERS

        # A worker that has grown large ends after its job, and another takes its place: nothing is lost.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
        with _silent_tracker():
            self._used = get_reusable_executor(
                max_workers=self._jobs,
                timeout=300,
                job_reducers=REDUCERS,
                result_reducers=REDUCERS,
                initializer=_begin,
                initargs=(os.getpid(), plugin_file.in_use()),  # other ones make a new pool
            )
        return self._used

    def warm(self) -> None:
        for _ in range(self._jobs):
            self.submit(import_module, "fedarena.runs.engine")

    def look(self) -> None:
        """As inherited; called twice before it does anything.

        A worker that is killed in the middle of its result keeps the lock for results, and loky's thread waits for the
        rest of this result for good. Without the other workers, and without the end of the pipe that this process
        holds itself, the thread finds that there is no rest.
        """
        if self._used is None:
            return
        workers = dict(self._used._processes)
        ended = {pid for pid, worker in workers.items() if connection.wait([worker.sentinel], 0)}
        if ended & self._dead:
            for pid in workers.keys() - ended:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._used._result_queue._writer.close()
        self._dead = ended

    def stop(self) -> None:
        if self._used is not None:
            # Waited for, so that no semaphore is left for loky's tracker to warn about.
            self._used.shutdown(wait=True, kill_workers=True)


def _begin(parent: int, plugins: tuple[tuple[str, bytes | None], ...]) -> None:
    """Begin a worker process, which can import the plug-in files that are in use."""
    os.environ[plugin_file.VARIABLE] = os.pathsep.join(path for path, _ in plugins)
    list(plugin_file.claims())
    # Ctrl-C reaches every process of a terminal. The parent ends its workers, which would print a traceback themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    see_interrupts()
    # Watched from its start on: otherwise an idle worker would outlive a killed parent by the timeout.
    end_with_parent(parent)


@contextmanager
def _silent_tracker() -> Iterator[None]:
    """Silence the process that tracks semaphores, if it starts meanwhile, about those that it removes itself.

    An interrupt can come between the removal of a semaphore and the message to the tracker. Nothing is left behind
    then, but a page of warnings would hide the one line that matters. The tracker is a separate process, which inherits
    this one's warning filters as text only.
    """
    silent = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(silent)
    try:
        yield
    finally:
        sys.warnoptions.remove(silent)


class Ray(Executor):
    """Tasks on a Ray cluster; the package must be installed on every node."""

    near = False

    def __init__(self, address: str | None, jobs: int | None) -> None:
        try:
            import ray
        except ImportError:
            raise UserError("option 'engine' is ray, which is not installed: pip install \"fedarena[ray]\"") from None
        self._ray: Any = ray
        try:
            # Without an address a cluster of this machine alone.
            logging: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
            if address is not None:
                _require_answer(address)
            with unchanged_interrupts():
                ray.init(address=address or "local", num_cpus=None if address else jobs, **logging)
        except Exception as error:  # of no class in particular where a node does not start in time
            why = " ".join(str(error).split())[:200]
            if address is None:
                raise UserError(f"option 'engine' is ray, but no cluster can be started here ({why})") from None
            raise UserError(f"option 'address' is '{address}', where no Ray cluster answers ({why})") from None
        whole = int(self._ray.cluster_resources().get("CPU", 1))
        self.slots = min(jobs or whole, whole)
        self._remote = ray.remote(num_cpus=1, max_retries=0)(_call)

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        return _translated(self._remote.remote(function, args).future(), self._described)

    def _described(self, error: BaseException) -> BaseException:
        """An error of Ray as an executor's, and what a call raised as it is."""
        from ray.exceptions import RayError, RayTaskError

        if isinstance(error, RayTaskError):
            cause: BaseException | None = getattr(error, "cause", None)
            return cause or error
        if not isinstance(error, RayError):
            return error
        return ClusterGone(f"the Ray cluster is gone: {_brief(error)}") if self._gone(error) else _died(error)

    def _gone(self, error: BaseException) -> bool:
        """Whether no call can be carried out any more: no node is left, or none can be reached from here."""
        from ray.exceptions import LocalRayletDiedError, RayError

        if isinstance(error, LocalRayletDiedError):  # the process through which this machine's calls go out
            return True
        try:
            return not any(node["Alive"] for node in self._ray.nodes())
        except (RayError, OSError, RuntimeError):
            return True

    def stop(self) -> None:
        self._ray.shutdown()


def _require_answer(address: str) -> None:
    """Raise OSError where nothing listens at HOST:PORT. Ray itself would notice it only after minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Carry out a call in a worker.

    Loky collects garbage after calls, once a second. With torch and scikit-learn loaded this takes a fifth of a second
    each time, unless the libraries' objects are frozen for the collector.

    Workers share a GPU. What PyTorch keeps there for later calls would be missing in the other processes, so it is
    given back.
    """
    global _modules
    try:
        with redirect_stdout(sys.stderr):  # what methods print is no output of the command
            return function(*args)
    finally:
        if len(sys.modules) != _modules:
            gc.collect()
            gc.freeze()
            _modules = len(sys.modules)
        if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_initialized():
            torch.cuda.empty_cache()


_modules = 0
"""The number of modules when objects were last frozen."""


def _translated(inner: Future[Any], described: Callable[[BaseException], BaseException]) -> Future[Any]:
    """The same future, which raises what `described` makes of the library's own exceptions."""
    outer: Future[Any] = Future()

    def pass_on(done: Future[Any]) -> None:
        if done.cancelled():
            outer.set_exception(WorkerDied("cancelled"))
        elif (error := done.exception()) is None:
            outer.set_result(done.result())
        else:
            outer.set_exception(described(error))

    inner.add_done_callback(pass_on)
    return outer


def _died(error: BaseException) -> WorkerDied:
    return WorkerDied(_brief(error))


def _brief(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")


@contextmanager
def executor(engine: str, jobs: int | None, address: str | None = None) -> Iterator[Executor]:
    """An executor for the time of a run. If an exception ends the run, calls under way are abandoned.

    Args:
        jobs: how many calls run at once; None: one for each core.

    Raises:
        UserError: the cluster does not answer or cannot be started.
    """
    open_streams()
    place = Ray(address, jobs) if engine == "ray" else _near(jobs or cores())
    try:
        yield place
    except BaseException:
        with uninterrupted():  # a second Ctrl-C would leave workers at work, for which Python waits at its end
            place.stop()
        raise
    if engine == "ray":
        place.stop()


def _near(jobs: int) -> Executor:
    return Local(jobs) if jobs > 1 else InProcess()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usual_jobs(device: str) -> int:
    """How many calls run at once where nobody says how many: one for each core.

    On a GPU, which all workers share, it is no more than there is room for in its free memory.
    """
    if device == "cpu":
        return cores()
    import torch

    if not torch.cuda.is_available():
        return cores()
    return max(1, min(cores(), torch.cuda.mem_get_info()[0] // ROOM))


@contextmanager
def arithmetic() -> Iterator[None]:
    """Set how torch computes while the context is open.

    Torch uses one thread, also afterwards: trials are the unit of parallelism, and a second OpenMP thread on a busy
    machine costs far more than it gives. Denormal numbers, below 1e-38 in single precision, become 0: errors of nearly
    fitted samples get that small, and a processor takes a hundred times as long for them. The setting affects all
    floats of this thread, also Python's own, so it is reset. So is the caller's own precision of new tensors.
    """
    import torch

    from fedarena.core.tensors import single_precision

    torch.set_num_threads(1)
    before = sys.float_info.min / 2 == 0
    torch.set_flush_denormal(True)
    try:
        with single_precision():
            yield
    finally:
        torch.set_flush_denormal(before)
