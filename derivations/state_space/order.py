"""The order of the inputs: what an exchange of two of them does to the outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..attention.equivariance import LEE, a, b, exchanged
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Iff, Statement
from ..kernel.scripts import Both, Direct, Each, ForEach, Given, Lemma, Using
from ..kernel.terms import Add, Index, Sum, Term, Where, Zero, indices, le, lt, named
from .convolution import fresh_start, tap
from .operator import DECLARATION, GU, Abar, Bbar, C, D, N, j, k, l, m, p, u, y

T, r, n = indices("T r n")


Answer = Callable[[Index, Index], Term]


def impulse(at: Index, of: Index) -> Term:
    """The answer at one time to an impulse at another: a column of it for each input."""
    return named("M", Where(lt(of, at), tap(at - of), Where(le(of, at), tap(0), Zero(p, m))), at, of)


def around(at: Index, of: Index) -> Term:
    """The same where the last inputs come before the first one."""
    return named("M", Where(le(of, at), tap(at - of), tap(T + at - of)), at, of)


def commutes(answer: Answer = impulse) -> Formula:
    """To exchange any two inputs a < b is to exchange the answers, at every time and to every impulse."""
    moved = exchanged(lambda place: answer(k, place), r)
    same: Formula = Equation(moved, exchanged(lambda place: answer(place, r), k))
    for i, first in ((r, 1), (k, 1), (b, a + 1), (a, 1)):
        same = ForAll(same, i, first, T)
    return same


def no_memory(first: Index = 1, last: Index = T - 1) -> Formula:
    """The kernel is 0 at these lags."""
    return ForAll(Equation(tap(l), Zero(p, m)), l, first, last)


added_up = Equation(y.subs({k: n}), Add(Sum(impulse(n, j) * u[j], j, 1, n), D * u[n]))


def orderless(no_order: Formula) -> Formula:
    """The answer is the sum of those to the impulses, and D; and when these do not know the order."""
    return And(added_up, no_order)


order = Statement(orderless(Iff(commutes(), no_memory())), le(0, T) & le(1, n), (fresh_start,))
# Over two steps: a system that answers at once and never later, and one that answers again two steps later.
memoryless: dict[Any, Any] = {T: 2, N: 1, m: 1, p: 1, Abar: 0, Bbar: 1, C: 1}
two_steps_late = memoryless | {N: 2, Abar: ((0, 1), (1, 0)), Bbar: (1, 0), C: ((1, 0),)}
one_exchange = Given("premise", at={a: 1, b: l + 1, k: l + 1, r: l + 1})

ORDER_MATTERS = Claim(
    id="state-space/order-matters",
    title="a causal time-invariant system commutes with the exchange of any two of T inputs, and so with all permutations, exactly "
    "where K̄_l = 0 for 1 <= l < T",
    statement=order,
    sources=(
        Source(LEE, "section 2.2 and property 1: permutation equivariance", "any two inputs; all permutations are made of such exchanges"),
        Source(GU, "equations 4 and 5", "D and K̄_0 do not matter: they see one input only"),
    ),
    proof=Each(
        (
            Direct((Lemma("state-space/unrolled", part=0), Given("x_0 = 0")), "the state, unrolled"),
            Both(
                ForEach(Direct((Using(one_exchange),), "exchange 1 and 1 + l: the answer at 1 to an impulse at 1 + l is 0")),
                ForEach(ForEach(ForEach(ForEach(Direct((Given("premise"),), "K̄_0 on the diagonal, and 0 elsewhere"))))),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(order, "a state at the start", drop="x_0 = 0"),
        variant(order, "every causal system", orderless(commutes())),
        variant(order, "a system without memory only if K̄_0 = 0", orderless(Iff(commutes(), no_memory(first=0))), at=memoryless),
        variant(order, "lag T counts", orderless(Iff(commutes(), no_memory(last=T))), at=two_steps_late),
        variant(order, "the last inputs come before the first one", orderless(Iff(commutes(around), no_memory()))),
    ),
)

CLAIMS = (ORDER_MATTERS,)
