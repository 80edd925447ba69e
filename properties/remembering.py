"""Results by the contents of the arguments: every form, and many a law, asks for the same truths, which are dear."""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


class Remembering:
    """The last so many results of functions whose arguments are data."""

    def __init__(self, kept: int) -> None:
        self.kept = kept
        self._known: OrderedDict[tuple[Any, bytes], Any] = OrderedDict()

    def __call__(self, function: Callable[..., Result]) -> Callable[..., Result]:
        """The function, which computes what is not known."""
        return partial(self._result, function)

    def _result(self, function: Callable[..., Result], *arguments: Any) -> Result:
        # equal arguments can have two pickles, and are then computed twice; other arguments never have the same one
        key = function, hashlib.sha256(pickle.dumps(arguments)).digest()
        if key not in self._known:
            self._known[key] = function(*arguments)
        self._known.move_to_end(key)
        while len(self._known) > self.kept:
            self._known.popitem(last=False)
        found: Result = self._known[key]
        return found


truths = Remembering(1024)
"""What operators refer to: arrays."""
slopes = Remembering(8192)
"""Directional derivatives and their bounds: two numbers each."""
