"""Limits that are declared, as text: "T%16, K=V, no packing"."""

from __future__ import annotations

import math
import re
from functools import reduce

from ..limits import GROUPS, REFUSALS, UNEQUAL, Limits, Sizes
from ..operator import Operator
from .convention import WiringError

_SIZE = re.compile(r"(\w+)\s*(%|>=|<=|=)\s*(\d+)")
_EQUAL = re.compile(r"[kd]\s*=\s*v")
_NO = re.compile(r"no\s+([\w-]+)")
FORMS = "T%16, T>=16, T<=64 or T=16 (so for other sizes), K=V, groups=1, and 'no' before one of "


def parse_limits(text: str, operator: Operator) -> Limits:
    """The limits that a text declares, entries between commas.

    Raises WiringError for an entry that is none of `FORMS`, for a size that cases of the operator have not, and for one that
    leaves nothing.
    """
    entries = [e.strip() for e in text.split(",") if e.strip()]
    return reduce(both, (_entry(e, operator) for e in entries), Limits())


def both(a: Limits, b: Limits) -> Limits:
    """What is within two limits. Raises WiringError where nothing is."""
    axes = dict.fromkeys(s.axis for s in (*a.sizes, *b.sizes))
    try:
        return Limits(tuple(reduce(_narrower, (s for s in (*a.sizes, *b.sizes) if s.axis == n)) for n in axes), {**a.refuses, **b.refuses})
    except ValueError as error:
        raise WiringError(f"limits: {error}") from None


def _narrower(a: Sizes, b: Sizes) -> Sizes:
    least, most = max(a.least, b.least), min((n for n in (a.most, b.most) if n is not None), default=None)
    reason = "; ".join(dict.fromkeys(r for r in (a.reason, b.reason) if r))
    return Sizes(a.axis, multiple=math.lcm(a.multiple, b.multiple), least=least, most=most, reason=reason)


def _entry(entry: str, operator: Operator) -> Limits:
    said, reason = entry.lower(), f"declared: {entry}"
    if _EQUAL.fullmatch(said):
        return Limits(refuses={UNEQUAL: reason})
    if re.fullmatch(rf"{GROUPS}\s*=\s*1", said):
        return Limits(refuses={GROUPS: reason})
    refused = _NO.fullmatch(said)
    if refused and refused[1] in REFUSALS:
        return Limits(refuses={refused[1]: reason})
    found = _SIZE.fullmatch(said)
    if found is None:
        raise WiringError(f"limits: {entry!r} is not understood; allowed are {FORMS}{', '.join(REFUSALS)}")
    axis, sign, number = found[1], found[2], int(found[3])
    known = [n for n, _ in operator.corners()[0].sizes]
    if axis not in known:
        raise WiringError(f"limits: {entry!r} is of no size of {operator.name}, which has {', '.join(known)}")
    try:
        return Limits((_sizes(axis, sign, number, reason),))
    except ValueError as error:
        raise WiringError(f"limits: {entry!r} leaves nothing, since {error}") from None


def _sizes(axis: str, sign: str, number: int, reason: str) -> Sizes:
    if sign == "%":
        return Sizes(axis, multiple=number, reason=reason)
    least, most = (number if sign in (">=", "=") else 0), (number if sign in ("<=", "=") else None)
    return Sizes(axis, least=least, most=most, reason=reason)
