"""Proof scripts: what an author writes. They are data; only ``prove.py`` turns them into proofs.

Justifications (``by=``) name equations that rewrite on the way; everything else is decided by the normal form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from sympy import Symbol

from .terms import Cond, Like, Rec, Term, Var


@dataclass(frozen=True)
class Unfold:
    """The recursion's own update at this member: ``H_t = step(t, H_{t-1})``."""

    member: Rec


@dataclass(frozen=True)
class Given:
    """An assumption that is an equation; ``at`` fixes indices that it holds for all values of."""

    name: str
    at: Mapping[Symbol, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hypothesis:
    """The induction hypothesis."""


@dataclass(frozen=True)
class Lemma:
    """The statement of another claim.

    ``at`` fixes its indices, and sizes of its atoms; ``families`` puts terms for its families: ``{"A": ((t,), term)}``,
    where factors 1 and I then fall away; ``part`` picks a conjunct. Its conditions on indices are checked where it is
    used, its assumptions must be assumptions or earlier parts here; ``given`` are assumptions here that hold for all
    values of their first indices, at some of these.
    """

    claim: str
    part: int = 0
    at: Mapping[Symbol, Any] = field(default_factory=dict)
    families: Mapping[str, tuple[tuple[Symbol, ...], Term]] = field(default_factory=dict)
    reverse: bool = False
    given: tuple[Given, ...] = ()


@dataclass(frozen=True)
class Part:
    """An equation that is an earlier part of the same conjunction, counted from 1; see ``Each``."""

    number: int


@dataclass(frozen=True)
class Cancels:
    """``of`` times its inverse is the identity, for a term that has one: what an inverse is."""

    of: Term


@dataclass(frozen=True)
class Using:
    """Add ``left (l - r) right`` for an equation l = r, one row of it, its trace or its conjugate: a certificate, no rewriting."""

    equation: Cancels | Given | Hypothesis | Lemma | Part | Unfold
    left: Like = 1
    right: Like = 1
    row: Any = None
    trace: bool = False
    conjugate: bool = False


Reason: TypeAlias = Cancels | Unfold | Given | Hypothesis | Lemma | Part | Using


@dataclass(frozen=True)
class Direct:
    """Both sides have the same normal form, after rewriting by the given equations."""

    by: tuple[Reason, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Link:
    """The next term of a chain of equalities, and why it equals the one before."""

    term: Term
    by: tuple[Reason, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Chain:
    """From the left side through the links to the right side, which the last step reaches by ``by``."""

    links: tuple[Link, ...]
    by: tuple[Reason, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Induction:
    """On an index from ``start``: the base case, then from ``on`` to ``on + 1``.

    Recursions that occur at ``on + 1`` are unfolded once; the hypothesis is there as ``Hypothesis()``, and is used
    by itself where the step is a bare ``Direct()``. What it says of signs and inverses is known without being named.
    ``order`` predecessors need as many base cases. A ``strong`` one shows the claim at ``on`` from all smaller
    values: there is no base case, the step covers ``start`` too.
    """

    on: Symbol
    base: Script = Direct()
    step: Script = Direct((Hypothesis(),))
    start: Any = 0
    order: int = 1
    strong: bool = False


@dataclass(frozen=True)
class Rowwise:
    """Two matrices with a time axis are equal when their generic row ``i`` is."""

    i: Symbol
    script: Script = Direct()


@dataclass(frozen=True)
class Blockwise:
    """Two block matrices are equal when their blocks are."""

    scripts: Mapping[tuple[int, int], Script] = field(default_factory=dict)
    by: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Cases:
    """The conditions cover every value of the indices; each case is proved on its own."""

    cases: tuple[tuple[Cond, Script], ...]


@dataclass(frozen=True)
class Each:
    """The parts of a conjunction, in order.

    A part may use those before it: an equation as ``Part``, a sign or an inverse by itself. Inductions and other
    methods that move an index or a variable start without them.
    """

    scripts: tuple[Script, ...]


@dataclass(frozen=True)
class Both:
    """The two directions of an equivalence; each side's premise is the assumption ``premise``."""

    forward: Script
    backward: Script


@dataclass(frozen=True)
class Suppose:
    """The premise of an implication becomes the assumption ``premise``."""

    script: Script


@dataclass(frozen=True)
class ForEach:
    """The index of a quantified formula becomes a free index in its range."""

    script: Script


@dataclass(frozen=True)
class Product:
    """``coefficient`` times factors, each known to be non-negative, or written as squares, sums, products and reciprocals of such."""

    factors: tuple[Like, ...]
    coefficient: Fraction = Fraction(1)


@dataclass(frozen=True)
class Sign:
    """a <= b because b - a is a sum of products of non-negative terms; without parts, its normal form is one.

    For a strict inequality one of the products must be positive.
    """

    parts: tuple[Product, ...] = ()
    by: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Contradiction:
    """The negation of an inequality would give the opposite of the named assumption, by a sign certificate."""

    against: str
    parts: tuple[Product, ...] = ()


@dataclass(frozen=True)
class NullVector:
    """More columns than rows: numbers ``x`` of length 1 with x_1 column_1 + … + x_last column_last = 0.

    ``column`` is the column at index ``j``; ``x`` is the name of a family of real scalars that occurs nowhere else. What
    is known of them are the assumptions ``null vector`` and ``length 1``. Assumes the theorem null-vector.
    """

    column: Term
    j: Symbol
    last: Any
    x: str
    script: Script


@dataclass(frozen=True)
class Absurd:
    """The assumptions contradict each other: ``script`` shows 1 = 0, from which everything follows."""

    script: Script


@dataclass(frozen=True)
class Exists:
    """A scalar is not zero, or a matrix is invertible, as a product of factors that are known to be.

    ``parts`` show instead that a scalar is not zero by a sign certificate of 0 < |x|², and ``inverse`` that something
    is invertible: their product, in this order, is the identity.
    """

    parts: tuple[Product, ...] = ()
    inverse: Term | None = None
    by: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Ode:
    """Both sides satisfy dx/ds = F x + g with one F, and agree at s = start; F = None means that it is 0."""

    s: Var
    start: Like = 0
    matrix: Term | None = None
    by: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Integrands:
    """Two integrals over one range are equal when their integrands are, at every value of a real ``s`` that is used nowhere else."""

    s: Var
    script: Script = Direct()


@dataclass(frozen=True)
class Sizes:
    """The equation at stated sizes only, entry by entry: the proof's scope becomes ``sizes <= n``."""

    sizes: Mapping[Symbol, tuple[int, ...]]
    by: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class UniqueInverse:
    """M X = I makes X the inverse of the square invertible matrix M: proves ``Inverse(M) = X``."""

    by: tuple[Reason, ...] = ()


Script: TypeAlias = (
    Direct | Chain | Induction | Rowwise | Blockwise | Cases | Each | Both | Suppose | ForEach | Sign | Contradiction
    | Exists | Ode | Integrands | Sizes | UniqueInverse | NullVector | Absurd
)
