"""What kind of recurrence a declaration is, read from the update as it is written.

    H_t = L_t H_{t-1} R_t + U_t

`classify` says what L, R and U are and of what kind the transitions are: the identity, a number, diagonal, one of these plus
a matrix of rank one or of low rank, or any matrix. Where the update is affine but no such product, or not affine at all, it
says so with the part of the update that stands in the way. Nothing is proved here: the theorems of `derive` prove that the
pieces are those of the update, and refute that an update is affine which is said not to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sympy import Basic, Symbol

from ..kernel import terms as tm
from ..kernel.formulas import Declaration
from ..kernel.terms import Rec, Recurrence, Term
from .linear import NoProduct, NotLinear, Product, linear, one, plus, times
from .side import IDENTITY, KINDS, Side, side

TWO_SIDED = "sum of products"  # affine, but a sum of L H R with several L and R: not one product
UNREAD = "not read"  # written in a way that is not looked into: it may be affine or not
NOT_AFFINE = "not affine"


@dataclass(frozen=True)
class Update:
    """The update of one state. ``t`` is the time that its terms speak of, ``before`` the state at t - 1.

    ``kind`` is one of `KINDS`, and then H_t = left H_{t-1} right + write with m x m, n x n and m x n terms for an m x n
    state (``write`` is None for 0); or TWO_SIDED, where H_t = Σ products + write; or UNREAD or NOT_AFFINE, where ``reason``
    is a sentence and ``term`` the part of the update that it is about.
    """

    state: Recurrence
    t: Symbol
    kind: str
    products: tuple[Product, ...] = ()
    left: Side | None = None
    right: Side | None = None
    write: Term | None = None
    reason: str = ""
    term: Term | None = None

    @property
    def before(self) -> Rec:
        """The state at t - 1."""
        return self.state[self.t - 1]

    @property
    def affine(self) -> bool:
        """Whether the update is L H R + U."""
        return self.kind in KINDS

    def __str__(self) -> str:
        if not self.affine:
            return f"{self.kind}: {self.reason}: {self.term}" if self.reason else self.kind
        return " and ".join(f"{s} on the {where}" for s, where in self._acting) or str(self.right)

    @property
    def _acting(self) -> tuple[tuple[Side, str], ...]:
        both = ((cast(Side, self.left), "left"), (cast(Side, self.right), "right"))
        return tuple((s, where) for s, where in both if s.kind != IDENTITY)


@dataclass(frozen=True)
class Read:
    """The read-out: Σ products + rest, with states at t or t - 1 in the products, where it is ``linear`` in the states.

    Otherwise ``reason`` is a sentence and ``term`` the part of the read-out that it is about.
    """

    linear: bool
    products: tuple[Product, ...] = ()
    rest: Term | None = None
    reason: str = ""
    term: Term | None = None


@dataclass(frozen=True)
class Classification:
    """The updates of the states of a declaration, in its order, and its read-out."""

    updates: tuple[Update, ...]
    read: Read

    @property
    def kind(self) -> str:
        """The most general kind among the updates."""
        order = (*KINDS, TWO_SIDED, UNREAD, NOT_AFFINE)
        return max((u.kind for u in self.updates), key=order.index, default=IDENTITY)

    @property
    def affine(self) -> bool:
        """Whether every update is L H R + U."""
        return all(u.affine for u in self.updates)


def states(declaration: Declaration) -> tuple[Recurrence, ...]:
    """The states of a declaration, none, one or several."""
    s = declaration.state
    return s if isinstance(s, tuple) else () if s is None else (s,)


def classify(declaration: Declaration) -> Classification:
    """The kinds of a declaration's updates and its read-out, in terms at its time t."""
    t = declaration.t
    return Classification(tuple(update(s, t) for s in states(declaration)), read(declaration))


def update(state: Recurrence, t: Symbol) -> Update:
    """The kind of one recurrence's update, in terms at time t."""
    put_back = _PutBack({})
    try:
        step, atom, put_back = _opened(state.member.step_at(t, state[t - 1]), (state[t - 1],))
        found = linear(step, atom)
    except NotLinear as e:
        return Update(state, t, NOT_AFFINE, reason=e.why, term=put_back(e.term))
    except NoProduct as e:
        return Update(state, t, UNREAD, reason=e.why, term=put_back(e.term))
    products = tuple(put_back.product(p) for p in found.products if not p.vanishes)
    if not products:
        return Update(state, t, UNREAD, write=found.rest, reason="nothing of the state before is left", term=found.rest)
    sides = _sides(products, state[t - 1])
    if sides is None:
        acting = plus(p.term for p in products)
        return Update(state, t, TWO_SIDED, products, write=found.rest, reason="no single product L H R", term=acting)
    left, right = sides
    kind = max((left.kind, right.kind), key=KINDS.index)
    return Update(state, t, kind, products, left, right, found.rest)


def read(declaration: Declaration) -> Read:
    """The read-out, as far as it is linear in the states at t and t - 1."""
    t = declaration.t
    members = tuple(s[at] for s in states(declaration) for at in (t, t - 1))
    put_back = _PutBack({})
    try:
        output, atoms, put_back = _opened(declaration.output, members)
        found = linear(output, atoms)
    except (NotLinear, NoProduct) as e:
        return Read(False, reason=e.why, term=put_back(e.term))
    return Read(True, tuple(put_back.product(p) for p in found.products), found.rest)


class _PutBack:
    """Puts the members of recursions where atoms stand for them."""

    def __init__(self, members: dict[Term, Rec]) -> None:
        self._members = members

    def __call__(self, x: Term) -> Term:
        return cast(Term, tm.substitute(x, self._members))

    def product(self, p: Product) -> Product:
        return Product(self._members[p.of], p.scale, p.left, p.right, p.turned)


def _opened(x: Term, members: tuple[Rec, ...]) -> tuple[Term, frozenset[Term], _PutBack]:
    """A term with an atom for each of some members of recursions."""
    x = cast(Term, tm.unnamed(x))
    taken = frozenset(tm.free(x))
    atoms: dict[Rec, Term] = {}
    for m in members:
        kind = cast(tm.Var, m.args[3]).field
        atoms[m] = cast(Term, tm.fresh(tm.Var(f"{m.name}_before", (), m.rows, m.cols, kind), taken))
        taken |= {atoms[m]}
    x = cast(Term, put(x, {tm.unnamed(m): v for m, v in atoms.items()}))
    own = {tm.unnamed(m.moved(0)) for m in members}
    for left in (n for n in tm.walk(x) if isinstance(n, Rec) and tm.unnamed(n.moved(0)) in own):
        raise NoProduct(left, "the state at another time")
    return x, frozenset(atoms.values()), _PutBack({v: m for m, v in atoms.items()})


def put(x: Basic, members: Mapping[Basic, Basic]) -> Basic:
    """A term with other terms for some members of recursions, where no index is bound that they speak of."""
    if x in members:
        return members[x]
    if not isinstance(x, (Term, tm.Tuple)) or not x.args:
        return x
    args = [put(a, members) for a in x.args]
    return x if all(a is b for a, b in zip(args, x.args, strict=True)) else cast(Basic, x.func(*args))


def _sides(products: tuple[Product, ...], state: Rec) -> tuple[Side, Side] | None:
    """L and R where the products are one: L H R."""
    if any(p.turned for p in products):
        return None
    rows, cols = state.shape
    lefts, rights = {p.left for p in products}, {p.right for p in products}
    if lefts == {one(rows)} and rights == {one(cols)} and cols == 1:
        return side(plus(times(p.scale, p.left) for p in products), rows), side(None, cols)
    if len(lefts) == 1:
        return side(_own(lefts, rows), rows), side(plus(times(p.scale, p.right) for p in products), cols)
    if len(rights) == 1:
        return side(plus(times(p.scale, p.left) for p in products), rows), side(_own(rights, cols), cols)
    return None


def _own(found: set[Term], size: tm.Index) -> Term | None:
    (x,) = found
    return None if x == one(size) else x


__all__ = ["NOT_AFFINE", "TWO_SIDED", "UNREAD", "Classification", "Read", "Update", "classify", "put", "read", "states", "update"]
