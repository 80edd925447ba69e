"""The sums of the absolute values of an affine update's terms, and what its number and diagonals keep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from isoform.derivations.kernel.terms import Num, Rec, walk
from isoform.derivations.layer.classify import read
from isoform.derivations.layer.side import GENERAL, LOW_RANK, Side

from ..bounds import strength
from ..oracle import STEP
from .layer import Layer
from .numbers import Rounded
from .token import Token, columns, directions, flat, spread

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Affine:
    """The sum of the absolute values of an update's terms, for a state of absolute values M: ``by`` (…, n, n) M + ``own`` (…, n).

    ``error_by`` and ``error_own`` say the same of its rounding error, ``kept`` (…, n) what numbers and diagonals keep of M, ``logs``
    the size of the logarithm of that, with its phase where it is complex, and ``still`` where all is kept as it is.
    ``solves`` says that the rest depends on the state by matrices of rank one or a few, for which a chunk is solved, ``composes``
    that transitions are of higher rank, and multiplied.
    """

    by: Array
    own: Array
    error_by: Array
    error_own: Array
    kept: Array
    logs: Array
    still: Array
    solves: bool
    composes: bool

    def token(self, t: int) -> Affine:
        """The update of one token."""
        sums = (self.by, self.own, self.error_by, self.error_own, self.kept, self.logs, self.still)
        by, own, error_by, error_own, kept, logs, still = (a[:, :, t] for a in sums)
        return Affine(by, own, error_by, error_own, kept, logs, still, self.solves, self.composes)

    def rest(self, size: Array) -> Array:
        """The terms beside what is kept."""
        return np.maximum(self.found(size) + _like(self.own, size), 0.0)

    def found(self, size: Array) -> Array:
        """Those of them that the state is in."""
        return np.maximum(_times(self.by, size) - _like(self.kept, size) * size, 0.0)

    def error(self, size: Array) -> Array:
        """The rounding error."""
        return _times(self.error_by, size) + _like(self.error_own, size)


def _times(matrix: Array, size: Array) -> Array:
    """(b, h, n, n) times (b, h, …, n)."""
    return np.asarray(np.einsum("bhij,bh...j->bh...i", matrix, size))


def _like(x: Array, size: Array) -> Array:
    """(b, h, n) beside (b, h, …, n)."""
    return x.reshape(*x.shape[:2], *(1,) * (size.ndim - 3), x.shape[-1])


def affine(at: Token, system: Rounded) -> Affine | None:
    """The sums of an affine update; None where it is not affine in all states together."""
    found = at.layer.classification
    updates = found.updates
    sides = [cast(Side, s) for u in updates for s in (u.left, u.right)] if found.affine else []
    if not found.affine or any(isinstance(n, Rec) for s in sides for n in walk(s.matrix)) or not _together(at.layer):
        return None
    zero = tuple(np.zeros(s.shape) for s in at.before)
    moved = tuple((s + 0 * d, z + 1j * STEP * d, z + 0j * d) for s, z, d in zip(at.before, zero, directions(at.before), strict=True))
    alone = tuple((s, z, z) for s, z in zip(at.before, zero, strict=True))
    by, fixed = spread(at.updated(system, moved), moved), spread(at.updated(system, alone), alone)
    size, error = (columns(flat(tuple(v[n].imag / STEP for v in by))) for n in (1, 2))
    own, error_own = (flat(tuple(v[n] for v in fixed)) for n in (1, 2))
    kept = [_base(at, cast(Side, u.left)) * _base(at, cast(Side, u.right)).swapaxes(-1, -2) for u in updates]
    base = flat(tuple(np.broadcast_to(k, s.shape) for k, s in zip(kept, at.before, strict=True)))
    solves = any(s.outers for s in sides)
    composes = any(s.kind in (LOW_RANK, GENERAL) for s in sides)
    return Affine(size, own, error, error_own, np.abs(base), _logs(base), base == 1, solves, composes)


def _together(layer: Layer) -> bool:
    """Whether what is written is linear in all states together: no product of two of them is written to a third."""
    writes = [u.write for u in layer.classification.updates if u.write is not None]
    return len(layer.initial) == 1 or all(read(replace(layer.declaration, output=w)).linear for w in writes)


def _logs(base: Array) -> Array:
    """The sizes of logarithms of decays, 0 at 0."""
    return np.abs(np.log(np.where(base == 0, 1, base))) if np.iscomplexobj(base) else strength(base)


def _base(at: Token, side: Side) -> Array:
    """What a transition keeps of each row (…, n, 1): a number or a diagonal."""
    if side.kind == GENERAL:
        return np.zeros((1, 1))
    number = np.zeros((1, 1)) if side.number is None else np.ones((1, 1)) if side.number == Num(1) else at.term(side.number)
    if side.diagonal is None:
        return number
    return np.asarray(at.term(side.diagonal).diagonal(axis1=-2, axis2=-1)[..., None] + number)
