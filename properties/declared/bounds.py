"""How far a form of a declared layer may be from the truth: running errors of one token, carried by the exact Jacobians.

The error of an update on the true state (`Rounded`, in any order of its sums and products) reaches the state s tokens later
through the product of the exact Jacobians in between, whose absolute value is taken last: through the transitions where the
update is affine, along the true trajectory where it is not. Errors of errors are covered by `SECOND_ORDER` wherever a comparison
counts, since one that is wider than 2⁻⁸ is blind; where an update is not affine its Jacobians are compared with those at the
distance of the bound, and where they differ by more than that factor allows there is no bound.

An affine update H = D ⊙ H + F, with D what number and diagonals keep, may also be added up in chunks: S_t = D S_c + Σ D F_j, where
what F finds in a state has been split into what the chunk was entered with and what it wrote itself. M_t is the largest sum of
absolute values that a chunk, starting anywhere, has at t; it is rounded as often as it has terms. Where F depends on the state a
chunk solves for it, with as many sums more as it has tokens. Decays over a range are exponentials of sums of logarithms, rounded as
often as the range is long, or products in a tree. Transitions of higher rank may also be composed in any order (`_Composed`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isoform.derivations.evaluate.errors import EvaluationError

from ..bounds import EXPONENTIAL, SECOND_ORDER, SPLIT, Bounds, gamma
from ..operator import Instance
from ..tensors import Precision, largest, sum_dtype
from .affine import Affine, affine
from .layer import Layer
from .numbers import Moving, Rounded, Value
from .token import Token, columns, flat, jacobians, moved, row, shaped, spread, token

Array = np.ndarray[Any, Any]
CURVED = SECOND_ORDER - 1
"""The part of a Jacobian by which it may change over the distance of the bound."""
States = tuple[Array, ...]


@dataclass(frozen=True)
class Errors:
    """Of the states (b, h, t + 1, n): what is carried, what their own sums add, and M; of the outputs (b, h, t, m): what is carried."""

    carried: Array
    direct: Array
    sums: Array
    outputs: Array


def bound(layer: Layer, x: Instance, states: States, p: Precision, span: int) -> Bounds:
    """Bounds of outputs (b, h, t, rows, cols), the sums of the absolute values of their terms, and bounds of the states (…, n).

    ``span`` is the size of a chunk. They are infinite for a term whose roundings are not counted here, and NaN from where a form may
    meet a number beyond its range.
    """
    with np.errstate(all="ignore"):
        try:
            return _bound(layer, x, states, Rounded(unit=p.unit * layer.roundings, tiny=p.tiny), span)
        except EvaluationError:
            return _endless(layer, x, states)


def _bound(layer: Layer, x: Instance, states: States, system: Rounded, span: int) -> Bounds:
    before, after = (tuple(s[:, :, part] for s in states) for part in (slice(None, -1), slice(1, None)))
    at = token(layer, x, before)
    sums, step = affine(at, system), jacobians(at, before)
    exact = [tuple((s, np.abs(s), np.zeros(s.shape)) for s in part) for part in (before, after)]
    updated = spread(at.updated(replace(system, smooth=sums is None), exact[0]), exact[0])
    error = flat(tuple(v[2] for v in updated))
    reads = _reads(at, before, after)
    found = carried(flat(states), step, error, reads, sums, system, span)

    wide = [tuple(zip(part, shaped(found.sums[:, :, n], part), shaped(found.direct[:, :, n], part), strict=True))
            for n, part in ((slice(None, -1), before), (slice(1, None), after))]  # fmt: skip
    _, terms, own = spread((at.read(system, *(wide if sums else exact)),), exact[0])[0]
    terms, own = row(terms), row(own)
    own = own + system.unit * min(span, step.shape[2]) * terms * (sums is not None and sums.solves)
    conveyed = sum(np.split(found.outputs, found.outputs.shape[-1] // own.shape[-1], -1))
    output = (own + conveyed) * SECOND_ORDER + system.tiny * (1 + terms.shape[-1])
    states_bound = (found.carried + found.direct) * SECOND_ORDER + system.tiny * (np.arange(step.shape[2] + 1)[:, None] + 1)
    if sums is None and _bends(at, before, step, states_bound[:, :, :-1]):
        output, states_bound = np.full_like(output, np.inf), np.full_like(states_bound, np.inf)
    known = Bounds(_known(output), _known(states_bound), _known(terms))
    return _within_range(known, x, flat(tuple(v[1] for v in updated)), found.sums[:, :, 1:])


def _within_range(found: Bounds, x: Instance, *sizes: Array) -> Bounds:
    """NaN from where a form may meet a number beyond its range, an infinite one, which may stay for ever; ``sizes`` are (b, h, t, n)."""
    most = largest(sum_dtype(x.dtype, x.precision))
    gone = np.logical_or.accumulate(np.any([~(s <= most).all(-1) for s in sizes], 0), 2)[..., None]
    start = found.states[:, :, :1]
    after = np.where(gone, np.nan, found.states[:, :, 1:])
    return replace(found, output=np.where(gone, np.nan, found.output), states=np.concatenate([start, after], 2))


def _endless(layer: Layer, x: Instance, states: States) -> Bounds:
    """Nothing is known."""
    true = flat(states)
    output = np.full((*true.shape[:2], true.shape[2] - 1, math.prod(layer.output_shape(x))), np.inf)
    return _within_range(Bounds(output, np.full(true.shape, np.inf), np.zeros_like(output)), x, np.abs(true[:, :, 1:]))


def _known(x: Array) -> Array:
    """Infinite where nothing is known."""
    return np.where(np.isnan(x), np.inf, x)


def _reads(at: Token, before: States, after: States) -> tuple[Array, Array]:
    """The derivatives (b, h, t, m, n) of the output by the states that a token finds, and by those that it leaves.

    A read-out that conjugates states has 2m rows: a and conj(b) of o = a S + b conj(S), since |b conj(P)| = |conj(b) P|.
    """
    found = []
    for which in (1, 0), (0, 1):
        along = _change(at, moved(before, which[0]), moved(after, which[1]))
        if at.layer.conjugates(at.layer.steps.output):
            turned = _change(at, moved(before, 1j * which[0]), moved(after, 1j * which[1]))
            along = np.concatenate([(along - 1j * turned) / 2, (along + 1j * turned).conj() / 2], -2)
        found.append(along)
    return found[0], found[1]


def _change(at: Token, old: tuple[Value, ...], new: tuple[Value, ...]) -> Array:
    (out,) = spread((at.read(Moving(), old, new),), old)
    return columns(row(out[1]))


def carried(true: Array, step: Array, error: Array, reads: tuple[Array, Array], sums: Affine | None, system: Rounded, span: int) -> Errors:
    """The errors of a run: token by token, from the products of the Jacobians since every earlier token."""
    b, h, length, n = error.shape
    unit, size = system.unit, np.abs(true)
    span = min(length, span) if sums is not None and sums.solves else length
    since = np.zeros((b, h, length + 1, n, n), step.dtype)
    local, found, direct, total = np.zeros((4, *true.shape))
    outputs = np.zeros((b, h, length, reads[0].shape[-2]))
    chunk, composed = _Chunks.at_start(size), _Composed.at_start(size)
    since[:, :, 0] = np.eye(n)
    local[:, :, 0] = unit * size[:, :, 0]
    found[:, :, 0], total[:, :, 0] = local[:, :, 0], size[:, :, 0]
    lost, own = np.zeros((b, h, n)), size[:, :, :1]
    composed.advance(0, since[:, :, :1], own)
    for t in range(1, length + 1):
        old = since[:, :, :t].copy()
        local[:, :, t] = error[:, :, t - 1]
        if sums is not None:
            here = sums.token(t - 1)
            chunk.advance(t, here, own, size[:, :, t])
            total[:, :, t], turned, whole = chunk.largest(max(0, t - span), t)
            fades = _fades(here.still, span) * unit * total[:, :, t]
            before, lost = lost, (span + 3) * unit * turned + system.tiny * whole
            direct[:, :, t] = unit * (min(span, t) + 3 + SPLIT) * total[:, :, t] + fades + lost
            if sums.solves:
                again = total[:, :, t - 1]
                local[:, :, t] = here.error(again) + unit * span * here.rest(again) + here.found(before)
                local[:, :, t] += unit * 4 * total[:, :, t] + fades + lost
        since[:, :, :t] = step[:, :, None, t - 1] @ old
        since[:, :, t] = np.eye(n)
        found[:, :, t] = _applied(since[:, :, : t + 1], local[:, :, : t + 1])
        rows = reads[1][:, :, None, t - 1] @ since[:, :, : t + 1]
        rows[:, :, :t] += reads[0][:, :, None, t - 1] @ old
        outputs[:, :, t - 1] = _applied(rows, local[:, :, : t + 1])
        if sums is None:
            continue
        own = _apart(since[:, :, : t + 1], true[:, :, : t + 1], true[:, :, t])
        if sums.composes:
            more = gamma(n + 2, unit) * composed.advance(t, since[:, :, : t + 1], own)
            direct[:, :, t] += more[..., None]
            outputs[:, :, t - 1] += np.abs(reads[1][:, :, t - 1]).sum(-1) * more[..., None]
    return Errors(found, direct, total, outputs)


def _applied(products: Array, errors: Array) -> Array:
    """Σ_s |P_s| e_s."""
    return np.asarray(np.einsum("bhsij,bhsj->bhi", np.abs(products), errors))


def _apart(since: Array, true: Array, now: Array) -> Array:
    """|P_c||S_c| + |S - P_c S_c|: a state in the parts that come from before each chunk and from inside it."""
    before = np.einsum("bhcij,bhcj->bhci", since, true)
    return np.einsum("bhcij,bhcj->bhci", np.abs(since), np.abs(true)) + np.abs(now[:, :, None] - before)


def _fades(still: Array, span: int) -> Array:
    """Roundings of products of decays, in a tree or as exponentials; none where nothing decays."""
    return np.where(still, 0.0, (EXPONENTIAL + 1) * (2 + np.log2(span + 1)))


@dataclass
class _Chunks:
    """For a chunk that starts at each time: its sum of absolute values, that with the logarithms of its decays, and without decays."""

    sums: Array
    turned: Array
    whole: Array

    @staticmethod
    def at_start(size: Array) -> _Chunks:
        found = _Chunks(*np.zeros((3, *size.shape)))
        found.sums[:, :, 0] = found.whole[:, :, 0] = size[:, :, 0]
        return found

    def advance(self, t: int, here: Affine, states: Array, size: Array) -> None:
        """One more token, and a chunk that starts behind it."""
        kept, rest = here.kept[:, :, None], here.rest(states)
        self.turned[:, :, :t] = kept * (self.turned[:, :, :t] + here.logs[:, :, None] * self.sums[:, :, :t])
        self.sums[:, :, :t] = kept * self.sums[:, :, :t] + rest
        self.whole[:, :, :t] += rest
        self.sums[:, :, t] = self.whole[:, :, t] = size

    def largest(self, first: int, last: int) -> tuple[Array, Array, Array]:
        """The largest of those of the chunks that start in a range."""
        found = [a[:, :, first : last + 1].max(2) for a in (self.sums, self.turned, self.whole)]
        return found[0], found[1], found[2]


@dataclass
class _Composed:
    """Products of transitions and sums of writes over any ranges, composed in any order: in the largest row sums.

    Two ranges (a, b] and (b, c] are put together once for each b, which rounds |P_cb||P_ba| and |P_cb||Z_ba| + |Z_cb| at most, and
    reaches the state at t through P_tc: max_c ‖P_tc‖ Σ_b max_c (‖P_cb‖ x_b + ‖Z_cb‖) at most, with x_b = max_a ‖P_ba‖ ‖S_a‖ + ‖Z_ba‖.
    """

    entered: Array
    worst: Array

    @staticmethod
    def at_start(size: Array) -> _Composed:
        return _Composed(*np.zeros((2, *size.shape[:3])))

    def advance(self, t: int, since: Array, own: Array) -> Array:
        """The state at t, with the products since every earlier time and its parts: the sum for it."""
        products, parts = np.abs(since).sum(-1).max(-1, initial=0.0), own.max(-1, initial=0.0)
        self.entered[:, :, t] = parts.max(-1)
        inside = products * self.entered[:, :, : t + 1] + parts
        self.worst[:, :, : t + 1] = np.maximum(self.worst[:, :, : t + 1], inside)
        return np.asarray(products.max(-1) * self.worst[:, :, :t].sum(-1))


def _bends(at: Token, states: States, step: Array, wide: Array) -> bool:
    """Whether the Jacobians change over the distance of the bound by more than errors of errors are given room for."""
    signs = np.where(np.arange(wide.shape[-1]) % 2, -1.0, 1.0)
    turns = (1, 1j) if at.layer.complex else (1,)
    for way in (turn * sign * way for turn in turns for sign in (1, -1) for way in (np.ones_like(signs), signs)):
        beside = tuple(s + d for s, d in zip(states, shaped(wide * way, states), strict=True))
        if not np.all(np.abs(jacobians(at, beside) - step) <= CURVED * np.abs(step).max(initial=0.0) + gamma(64, 2.0**-52)):
            return True
    return False
