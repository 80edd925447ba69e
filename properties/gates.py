"""Logs of decays and norms of keys: how the arguments of a call become the inputs of a declaration, and how gates are drawn.

A declaration has decays γ, the call has g = log γ, and a norm may come first: neither e^g nor 1/√(Σx² + ε) is rational.
The exact truth gets them to `DIGITS` decimal digits, correctly rounded, and float64 rounds them like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .strategies import WIDE, Case
from .tensors import SHORT, rounded

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
DIGITS = 80
"""265 bits."""
GONE = -1000.0
"""A decay of e^-1000 or less leaves nothing that float64 could hold, of anything below 2³⁰⁰: it counts as 0."""
NORM_EPS = 1e-6
"""The ε inside the root of the optional norm of queries and keys."""
_CONTEXT = Context(prec=DIGITS, Emax=10**6, Emin=-(10**6))


@dataclass(frozen=True)
class Field:
    """Numbers in which the arguments of a call are made inputs: their own, exponentials and square roots."""

    of: Callable[[Any], Array]
    exp: Callable[[Array], Array]
    root: Callable[[Array], Array]


def _each(f: Callable[[Any], Fraction]) -> Callable[[Any], Array]:
    def apply(x: Any) -> Array:
        given = np.asarray(x)
        found = np.empty(given.shape, dtype=object)
        for at in np.ndindex(given.shape):
            found[at] = f(given[at])
        return found

    return apply


def _decimal(x: Any) -> Decimal:
    """A float as it is, a fraction to `DIGITS` digits."""
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator)) if isinstance(x, Fraction) else Decimal(float(x))


def _power(g: Any) -> Fraction:
    return Fraction(_CONTEXT.exp(_decimal(g))) if g > GONE else Fraction(0)


def softened(x: Any) -> Fraction:
    """log(1 + e^x) to 36 digits or more, 0 where e^x is nothing; from e^-100 on by three terms of its series."""
    if x <= GONE:
        return Fraction(0)
    e = _CONTEXT.exp(_decimal(x))
    if x > -100:
        return Fraction(_CONTEXT.ln(_CONTEXT.add(e, 1)))
    return Fraction(e) - Fraction(e) ** 2 / 2 + Fraction(e) ** 3 / 3


FLOATS = Field(np.asarray, np.exp, np.sqrt)
"""float64, or complex128 for a complex step."""
RATIONALS = Field(_each(Fraction), _each(_power), _each(lambda x: Fraction(_CONTEXT.sqrt(_decimal(x)))))


def unit(x: Array, field: Field) -> Array:
    """Each row divided by √(Σx² + ε)."""
    return x / field.root((x * x).sum(-1, keepdims=True) + field.of(NORM_EPS))


def unit_change(x: Array, dx: Array) -> Array:
    """The sum of the absolute values of the terms of the derivative of `unit` in a direction."""
    length = np.sqrt((x * x).sum(-1, keepdims=True) + NORM_EPS)
    own = np.abs(x / length)
    return (np.abs(dx) + own * (own * np.abs(dx)).sum(-1, keepdims=True)) / length


LOGS = {
    "gates-zero": (0.0,),
    "gates-reset": (-np.inf,),
    "gates-mixed": (0.0, -1e-8, -0.1, -1.0, -1.4, -3.0, -30.0, -np.inf),
    "gates-strong": (-1e4, -300.0, -30.0, -0.1, -1e-8),
    "some-resets": (-np.inf, -0.1, -0.1, -0.02, -0.02),
    "long-memory": (-1e-4,),
    "gates-constant": (),
}
"""What logs of decays are chosen from where a structure flag says so; constant ones are one number per head."""
FLAGS = tuple(LOGS)
SETTLING = "strong-then-weak"
"""Structure in which all tokens but the last `SETTLED`, and few others, fade by e^-100: a sum of logs has lost the digits of later ones."""
IN_TIME = (*FLAGS, SETTLING)
"""What a gate for every token may have."""
SETTLED, EARLY, LATE = 4, -100.0, (-0.3, -0.02)
OUTSIDE = (-0.5, -0.05, 0.0, 0.05, 0.25)
"""Logs of decays some of which are above 1."""


def is_wide(case: Case) -> bool:
    """Whether logs of decays have more bits than the inputs."""
    return case.has(WIDE) and case.dtype in SHORT


def settling(rng: np.random.Generator, shape: tuple[int, ...], time: int) -> Array:
    """Logs of decays that are strong and then weak along an axis."""
    late = np.arange(shape[time]) >= shape[time] - SETTLED
    weak = np.expand_dims(late, tuple(n for n in range(len(shape)) if n != time)) | (rng.random(shape) < 1 / 8)
    return np.where(weak, rng.choice(LATE, shape), EARLY) * (1 + rng.random(shape) / 8)


def logs(case: Case, purpose: int, shape: tuple[int, ...], constant: tuple[int, ...] = (), time: int | None = 1) -> Array:
    """Logs of decays of the case's structure; ``constant`` are axes along which a constant gate does not change.

    ``time`` is the axis of tokens, if there is one.

    Every other case has each number that is chosen up to an eighth larger, so that sums of them are rounded. A dyadic
    case has decays 1 and 0, and one without a flag numbers between -2⁻⁸ and -2, evenly on a logarithmic scale.
    """
    rng = case.rng(purpose)
    dtype = "float32" if is_wide(case) else case.dtype
    if case.has("dyadic"):
        return np.where(rng.random(shape) < 0.15, -np.inf, 0.0)
    if case.has("outside"):
        return rounded(rng.choice(OUTSIDE, shape), dtype)
    if case.has(SETTLING) and time is not None:
        return rounded(settling(rng, shape, time), dtype)
    chosen = LOGS["gates-mixed"] + LOGS["gates-strong"] if case.has("edge") else next((v for n, v in LOGS.items() if case.has(n)), ())
    if chosen:
        drawn = rng.choice(chosen, shape)
        return rounded(drawn * (1 + rng.random(shape) / 8) if case.seed % 2 else drawn, dtype)
    kept = tuple(1 if n in constant and case.has("gates-constant") else size for n, size in enumerate(shape))
    return rounded(np.broadcast_to(case.plain(-(2.0 ** rng.uniform(-8, 1, kept))), shape), dtype)
