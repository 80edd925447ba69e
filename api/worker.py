"""The worker's side of the pool: a process that answers one call after the other over its standard streams."""

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO


def serve(inbox: BinaryIO) -> None:
    """Answer the calls that arrive until the stream ends; the first one is the warm-up."""
    outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    while True:
        try:
            message, limit = pickle.load(inbox)
        except EOFError:
            return
        _allow(limit)
        outbox.write(answer(message))
        outbox.flush()
        _allow(0)


def _allow(seconds: float) -> None:
    """Let the system end this process (SIGPROF) once it has used so much more processor time; 0 takes the limit away.

    A system without such a timer (Windows) sets no limit here.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def answer(message: bytes) -> bytes:
    """Make the call that a message describes and return what came of it, pickled."""
    try:
        call, args = pickle.loads(message)
        return pickle.dumps((True, call(*args)))
    except Exception as error:
        return pickle.dumps((False, describe(error)))


def describe(error: BaseException) -> str:
    """Return an exception as one line: type, message and place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{place}" if text else f"{type(error).__name__}{place}"


def nothing(*_: Any) -> None:
    """The warm-up of a pool that needs none."""


def _leave_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    serve(sys.stdin.buffer)
