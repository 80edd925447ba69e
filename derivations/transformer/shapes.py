"""Units keep the shape of the tokens, T x d, so that they stack; for the heads, this takes W_O.

    encoder   x'_t = f(l, x_t, Σ_n W_{l,n}ᵀ h(l, n, Σ_{j≤T} a(l, n, x_t, x_j)))
    decoder   x'_t = g(l, y_t, Σ_n U_{l,n}ᵀ c(l, n, Σ_{j≤M} b(l, n, y_t, m_j))),   y_t = f(l, x_t, …) with j ≤ t

The functions are any: f and g hold residuals, norms and the feed-forward network. With a = exp(score) (value, 1), h divides
the weighed values by the normaliser: softmax attention. W_{l,n} are the d_v rows of W_O that meet head n (attention/multi-head).
"""

from __future__ import annotations

from collections.abc import Callable

from .. import cost
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Link, Unfold, Using
from ..kernel.terms import (
    Apply,
    Ind,
    Index,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    equal,
    indicator,
    indices,
    le,
    matrices,
    named,
    recurrence,
    vectors,
)
from .layers import NOTE, VASWANI, N, T, d, j, l, n, r, s, token, x

M, L, d_v, e = indices("M L d_v e")  # tokens of the memory, layers below, columns of a head, what is summed has size e
memory = vectors("m", d)
W, U = matrices("W", d_v, d), matrices("U", d_v, d)
Unit = Callable[[Index, Term, Index], Term]


def head(layer: Index, own: Term, key: Term, last: Index, names: tuple[str, str] = ("h", "a")) -> Term:
    """What head n makes of the keys 1..last: d_v numbers."""
    of, pair = names
    return Apply(of, (Ind(layer), Ind(n), Sum(Apply(pair, (Ind(layer), Ind(n), own, key), e, 1), j, 1, last)), d_v, 1)


def attended(layer: Index, X: Term, at: Index, last: Index) -> Term:
    """Token ``at`` and what its heads read from the tokens 1..last, side by side, times W_O."""
    own = token(X, at)
    read = Sum(W[layer, n].T * head(layer, own, token(X, j), last), n, 1, N)
    return Apply("f", (Ind(layer), own, read), d, 1)


def encoder(layer: Index, X: Term, at: Index) -> Term:
    """Full self-attention."""
    return attended(layer, X, at, T)


def decoder(layer: Index, X: Term, at: Index) -> Term:
    """Masked self-attention, then cross-attention to the memory."""
    own = attended(layer, X, at, at)
    return Apply("g", (Ind(layer), own, Sum(U[layer, n].T * head(layer, own, memory[j], M, ("c", "b")), n, 1, N)), d, 1)


def units(name: str, unit: Unit, start: Term, below: Index = 0) -> Recurrence:
    """Units on top of each other, from a T x d matrix on; the first has the number ``below`` + 1."""
    return recurrence(name, start, lambda layer, X: Stack(unit(layer + below, X, r).T, r, 1, T))


def whole(unit: Unit) -> Recurrence:
    """All units, on the tokens themselves."""
    return units("X", unit, Stack(x[r].T, r, 1, T))


def upper(unit: Unit, below: Index) -> Recurrence:
    """The units after the first L."""
    return units("Y", unit, whole(unit)[L], below)


def stacks(unit: Unit, below: Index = L) -> ForAll:
    """l units on the output of L units are L + l units: row by row, for all T rows."""
    return ForAll(Equation(Row(upper(unit, below)[l], s), Row(whole(unit)[l + L], s)), s, 1, T)


def columns(side_by_side: Term) -> Equation:
    """The columns of all heads together, before W_O."""
    one = head(l, x[s], x[j], T)
    return Equation(Sum(named("columns", Ind(one.T.cols), one.T), n, 1, N), side_by_side)


def size(unit: Unit, rows: Index, cols: Term) -> Equation:
    """How many numbers there are after l units."""
    return Equation(named("numbers", cost.numbers(whole(unit)[l]), whole(unit)[l]), Ind(rows) * cols)


HEADS = columns(Ind(N) * Ind(d_v))
SIZES = size(encoder, T, Ind(d)), size(decoder, T, Ind(d))
STACKS = stacks(encoder), stacks(decoder)
where = le(0, l) & le(0, L) & le(0, N) & le(0, T) & le(0, M) & le(0, d) & le(0, d_v)
shapes = Statement(And(HEADS, *SIZES, *STACKS), where)


def by_units(unit: Unit) -> Induction:
    """Both stacks end in the same unit."""

    def updated(at: Index, below: Recurrence, first: Index) -> Term:
        return unit(at + first, below[at - 1], s).T

    def unfolded(of: Recurrence, at: Index, sign: int) -> Using:
        return Using(Unfold(of[at]), left=sign * Stack(indicator(equal(r, s)), r, 1, T).T)

    one, other = upper(unit, L), whole(unit)
    same = Link(updated(l + L + 1, other, 0), (Hypothesis(),), "the rows below are the same")
    first = Link(updated(l + 1, one, L), (unfolded(one, l + 1, 1),), "row s of the last unit")
    step = Chain((first, same), (unfolded(other, l + L + 1, -1),), "row s of unit L + l + 1")
    return Induction(l, ForEach(Direct(note="no further unit")), ForEach(step))


SHAPE_PRESERVING = Claim(
    id="transformer/shape-preserving",
    title="N heads side by side are N·d_v columns; with W_O, encoder and decoder units make T x d of T x d, so that l units stack on L "
    "others, at any depth",
    statement=shapes,
    sources=(
        Source(NOTE, "encoder and decoder: self-attention and feed-forward keep the size of the input", "with W_O: N·d_v rows, d columns"),
        Source(VASWANI, "sections 3.1 and 3.2.2", "any functions of a token and of what it reads"),
    ),
    proof=Each(
        (
            Direct(note="d_v columns for each head"),
            Direct(note="T rows of d numbers, after any unit"),
            Direct(note="T rows of d numbers, after any unit"),
            by_units(encoder),
            by_units(decoder),
        )
    ),
    near_misses=(
        variant(shapes, "the heads fit without W_O", And(columns(Ind(d)), *SIZES, *STACKS)),
        variant(shapes, "an encoder hands on one token", And(HEADS, size(encoder, 1, Ind(d)), SIZES[1], *STACKS)),
        variant(shapes, "a decoder hands on the rows of its memory", And(HEADS, SIZES[0], size(decoder, M, Ind(d)), *STACKS)),
        variant(shapes, "the upper units are the lower ones again", And(HEADS, *SIZES, stacks(encoder, 0), STACKS[1])),
    ),
)

CLAIMS = (SHAPE_PRESERVING,)
