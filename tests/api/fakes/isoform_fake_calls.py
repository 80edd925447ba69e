"""Calls that a worker process can import: they answer, raise, hang, die, or hand back what cannot travel."""

import os
import signal
import time


def double(x):
    print("a stray line on stdout")
    return 2 * x


def fail(message):
    raise ValueError(message)


def sleep(seconds, started_file=None):
    if started_file:
        with open(started_file, "w") as file:
            file.write(str(os.getpid()))
    time.sleep(seconds)


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def unpicklable():
    return lambda: None


class Unreadable:
    """A value that is pickled well and cannot be loaded again."""

    def __reduce__(self):
        return fail, ("cannot be loaded",)


def thread_budget():
    return os.environ["OMP_NUM_THREADS"]
