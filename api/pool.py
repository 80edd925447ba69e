"""Calls in worker processes that can be killed: a call that exceeds its limit ends, and the rest goes on.

A limit counts processor time, so that what else the machine does has no say in the outcome; a call that waits instead of
working ends after a multiple of it.

The workers are started as plain processes, so a script that calls `isoform.verify` needs no `__main__` guard.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from isoform.worker import describe, nothing

STARTUP_LIMIT = 120.0
WAIT = 10.0
"""How many times its limit a call may take by the clock."""
_BOOT = "import pickle, sys; inbox = sys.stdin.buffer; sys.path[:] = pickle.load(inbox); from isoform.worker import serve; serve(inbox)"


Kind = Literal["done", "late", "raised", "died"]


@dataclass(frozen=True)
class Task:
    """A call to make elsewhere; `call` and `args` must be picklable, `limit` is in seconds of processor time, all threads together."""

    key: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    limit: float


@dataclass(frozen=True)
class Started:
    """A worker has taken up the task."""

    key: str


@dataclass(frozen=True)
class Ended:
    """What came of a task: its value, or the reason why there is none; ``signal`` ended the process of one that died, if not 0."""

    key: str
    kind: Kind
    value: Any
    reason: str
    seconds: float
    signal: int = 0


Event = Started | Ended


def default_jobs() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_each(jobs: int) -> int:
    """Return how many threads each of so many workers may use."""
    return max(1, default_jobs() // max(1, jobs))


def run(
    tasks: Sequence[Task], *, jobs: int, warm_up: Callable[[], object] = nothing, follow: Callable[[Ended], Sequence[Task]] | None = None
) -> Generator[Event, None, None]:
    """Run the tasks on `jobs` workers and yield events as they come; closing the iterator kills what still runs.

    ``follow`` makes of a task that has ended those that follow from it.
    """
    crew = Crew(jobs if follow else min(jobs, len(tasks)), warm_up)
    crew.add(tasks)
    left = len(tasks)
    try:
        while left:
            event = crew.events.get()
            if isinstance(event, Ended):
                more = follow(event) if follow else ()
                crew.add(more)
                left += len(more) - 1
            yield event
    finally:
        crew.stop()


class Crew:
    """Workers that take up tasks as they are added; what comes of them is in ``events``. Whoever makes one must stop it."""

    def __init__(self, jobs: int, warm_up: Callable[[], object]) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._todo: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._warm_up = warm_up
        self._threads_each = threads_each(jobs)
        self._stopped = threading.Event()
        self._slots = [threading.Thread(target=self._slot, daemon=True) for _ in range(jobs)]
        self._workers: list[_Worker] = []
        for slot in self._slots:
            slot.start()

    def add(self, tasks: Sequence[Task]) -> None:
        """Give the workers more to do."""
        for task in tasks:
            self._todo.put(task)

    def stop(self) -> None:
        """Kill what still runs."""
        self._stopped.set()
        for _ in self._slots:
            self._todo.put(None)
        for worker in list(self._workers):
            worker.kill()
        for slot in self._slots:
            slot.join()
        for worker in self._workers:
            worker.close()

    def _slot(self) -> None:
        worker: _Worker | None = None
        with contextlib.suppress(Exception):  # the first task says so
            worker = self._hire()
        while (task := self._todo.get()) and not self._stopped.is_set():
            self.events.put(Started(task.key))
            begin = time.perf_counter()
            try:
                worker = worker or self._hire()
                ended = worker.do(task)
            except Exception as error:
                ended = Ended(task.key, "died", None, describe(error), time.perf_counter() - begin)
            if worker and not worker.usable:
                worker.close()
                worker = None
            self.events.put(ended)
        if worker:
            worker.close()

    def _hire(self) -> _Worker:
        worker = _Worker(self._threads_each)
        self._workers.append(worker)
        if self._stopped.is_set():
            worker.kill()
        worker.start(self._warm_up)
        return worker


class _Worker:
    def __init__(self, threads: int) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT],  # -P: no module of the working folder stands in for pickle
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def start(self, warm_up: Callable[[], object]) -> None:
        self._send(sys.path)
        ended = self.do(Task("warm-up", warm_up, (), STARTUP_LIMIT))
        if ended.kind in ("late", "died"):
            raise RuntimeError(f"the worker did not start: {ended.reason}")

    @property
    def usable(self) -> bool:
        return self._process.poll() is None

    def do(self, task: Task) -> Ended:
        """Make the call in the worker; if that ends the worker, it is no longer usable."""
        begin = time.perf_counter()
        message = pickle.dumps((task.call, task.args))
        late = threading.Event()
        alarm = threading.Timer(WAIT * task.limit, self._expire, (late,))
        alarm.start()
        kind, value, reason = self._exchange((message, task.limit), late)
        alarm.cancel()
        alarm.join()
        status = self._process.returncode or 0
        return Ended(task.key, kind, value, reason, time.perf_counter() - begin, max(0, -status))

    def _exchange(self, request: tuple[bytes, float], late: threading.Event) -> tuple[Kind, Any, str]:
        _, limit = request
        try:
            self._send(request)
            fine, value = pickle.load(self._answers)
        except (EOFError, OSError):
            death = self._death()
            if late.is_set():
                return "late", None, f"not done after {WAIT * limit:g} s, {WAIT:g} times its time limit"
            spent = hasattr(signal, "SIGPROF") and self._process.returncode == -signal.SIGPROF
            return ("late", None, f"exceeded its time limit of {limit:g} s") if spent else ("died", None, death)
        except Exception as error:
            self.kill()
            return ("died", None, f"its result is not readable: {describe(error)}")
        return ("done", value, "") if fine else ("raised", None, value)

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and release its streams."""
        self.kill()
        for stream in (self._requests, self._answers, self._errors):
            with contextlib.suppress(OSError):
                stream.close()

    def _expire(self, late: threading.Event) -> None:
        late.set()
        self.kill()

    def _send(self, message: object) -> None:
        pickle.dump(message, self._requests)
        self._requests.flush()

    def _death(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"its worker process died (exit status {code})" + (f": {lines[-1]}" if lines else "")
