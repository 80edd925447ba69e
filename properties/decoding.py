"""Decoding with a cache, as a plan: in which parts the tokens enter, and what else is done with the cache between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

FORK, ROLL_BACK = "fork", "roll-back"
Enter = Callable[[Any, int, int], tuple[Any, Any]]


@dataclass(frozen=True)
class Plan:
    """The parts in which tokens enter a cache, and a detour of ``count`` other tokens around each part.

    ``FORK`` has them enter from the same cache, after the part or before it; what comes of it is dropped. ``ROLL_BACK`` has
    them enter before the part and takes them back. ``content`` is what they consist of, ``spare`` the slots that a ring has
    beyond its window, ``single`` says that tokens enter one at a time, by the step.
    """

    ends: tuple[int, ...]
    detour: str = ""
    count: int = 3
    content: float = 7.0
    spare: int = 0
    single: bool = False

    def follow(self, cache: Any, enter: Enter, others: Callable[[Any, int], Any], crop: Callable[[Any, int], Any]) -> list[Any]:
        """The outputs of the parts.

        ``enter`` is given a cache and the first and last token of a part, ``others`` a cache and its number of tokens.
        """
        found = []
        for number, (a, b) in enumerate(pairwise(self.ends)):
            if self.detour == ROLL_BACK:
                cache = crop(others(cache, a), self.count)
            before = self.detour == FORK and number % 2
            after = self.detour == FORK and not before
            if before:
                others(cache, a)
            out, new = enter(cache, a, b)
            if after:
                others(cache, a)
            found.append(out)
            cache = new
        return found
