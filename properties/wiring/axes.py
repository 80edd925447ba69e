"""Axes of tensors by name: "b t h k". Parentheses join axes to one, "b t (h k)"; 1 is an axis of size 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

_AXIS = re.compile(r"\(([^()]*)\)|([^\s()]+)")
_SUM = re.compile(r"(\w+)([+-]\d+)?")
ONE = "1"


@cache
def groups(axes: str) -> tuple[tuple[str, ...], ...]:
    """The names that make each axis: ("b",), ("h", "k"), and () for an axis of size 1."""
    found = ((joined or single).split() for joined, single in _AXIS.findall(axes))
    return tuple(tuple(n for n in names if n != ONE) for names in found)


@cache
def names(axes: str) -> tuple[str, ...]:
    """All names, in order."""
    return tuple(n for group in groups(axes) for n in group)


def size(name: str, sizes: Mapping[str, int]) -> int:
    """The size of an axis; that of "w-1" by that of "w". Raises KeyError."""
    if name in sizes:
        return sizes[name]
    found = _SUM.fullmatch(name)
    if found is None or found[2] is None:
        raise KeyError(name)
    return sizes[found[1]] + int(found[2])


def measured(axes: str, x: Any, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of the axes of a tensor; of joined ones, those that are not known by ``sizes`` follow if there is one."""
    found: dict[str, int] = {}
    for group, whole in zip(groups(axes), x.shape):
        known = {n: sizes[n] for n in group if n in sizes} if len(group) > 1 else {}
        unknown = [n for n in group if n not in known]
        if len(unknown) == 1:
            known[unknown[0]] = whole // max(1, prod(known.values()))
        found |= known
    return found


def reordered(x: Any, before: str, after: str, sizes: Mapping[str, int]) -> Any:
    """A tensor with the axes ``before`` as one with the axes ``after``.

    One that cannot have the axes ``before`` stays as it is: that its shape is wrong is for others to find.
    """
    if before == after or x.ndim != len(groups(before)):
        return x
    single, wanted = names(before), names(after)
    if not _joins(before) and not _joins(after):
        return x.permute([single.index(n) for n in wanted])
    if list(x.shape) != [prod(size(n, sizes) for n in group) for group in groups(before)]:
        return x
    moved = x.reshape([size(n, sizes) for n in single]).permute([single.index(n) for n in wanted])
    return moved.reshape([prod(size(n, sizes) for n in group) for group in groups(after)])


def _joins(axes: str) -> bool:
    """Whether an axis is made of several, or of none."""
    return any(len(group) != 1 for group in groups(axes))
