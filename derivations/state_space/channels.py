"""Several channels: side by side, as blocks, and as one system with many inputs that is many with one each."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Link, Part, Unfold, Using
from ..kernel.terms import (
    Block,
    Diag,
    Ind,
    Num,
    Recurrence,
    Row,
    Stack,
    Term,
    Zero,
    equal,
    index,
    indicator,
    indices,
    le,
    matrices,
    matrix,
    recurrence,
    vector,
    vectors,
)
from .operator import DECLARATION, GU, Abar, Bbar, C, D, N, k, m, u, x, x0, y

SMITH = "Smith, Warrington, Linderman, Simplified State Space Layers for Sequence Modeling, arXiv 2208.04933"

# One system on each channel -----------------------------------------------------------------------

# Channel c is row c of the states X, inputs U and outputs; A second system of its own sizes stands beside the first one.
H, M, q, o = indices("H M q o")
c, r = indices("c r")
U, X0 = matrices("U", H, m), matrix("X0", H, N)
pick = Stack(indicator(equal(r, c)), r, 1, H).T
F, G, E, R = matrix("F", M, M), matrix("G", M, q), matrix("E", o, M), matrix("R", o, q)
v, w0 = vectors("v", q), vector("w0", M)
w = recurrence("w", w0, lambda k, w: F * w + G * v[k])


def batched(transition: Term) -> Recurrence:
    """The states of all channels, as rows."""
    return recurrence("X", X0, lambda k, X: X * transition + U[k] * Bbar.T)


X = batched(Abar.T)


def channel(start: Term) -> Recurrence:
    """The system on the inputs of channel c alone."""
    return recurrence("x", start, lambda k, x: Abar * x + Bbar * Row(U[k], c).T)


def diagonal(a: Term, b: Term, corner: Term | None = None) -> Term:
    """The block-diagonal matrix of two blocks, or with another one on the lower left."""
    below = Zero(b.rows, a.cols) if corner is None else corner
    return Block((a, Zero(a.rows, b.cols)), (below, b))


def stacked(a: Term, b: Term) -> Term:
    """Two columns, one above the other."""
    return Block((a,), (b,))


def both(corner: Term | None = None) -> Recurrence:
    """Two systems as one."""
    return recurrence("z", stacked(x0, w0), lambda k, z: diagonal(Abar, F, corner) * z + diagonal(Bbar, G) * stacked(u[k], v[k]))


def beside(z: Recurrence) -> tuple[Formula, Formula]:
    """The states and the outputs of two systems as one."""
    outputs = diagonal(C, E) * z[k] + diagonal(D, R) * stacked(u[k], v[k])
    return Equation(z[k], stacked(x[k], w[k])), Equation(outputs, stacked(y, E * w[k] + R * v[k]))


def each_alone(of: Recurrence, X: Recurrence = X) -> tuple[Formula, Formula]:
    """Row c of the states and of the outputs is that of channel c alone."""
    output = C * of[k] + D * Row(U[k], c).T
    return Equation(Row(X[k], c), of[k].T), Equation(Row(X[k] * C.T + U[k] * D.T, c), output.T)


alone = each_alone(channel(Row(X0, c).T))
multichannel = Statement(And(*alone, *beside(both())), le(0, k) & le(1, c) & le(c, H))
row_c = Link(Row(X[k], c) * Abar.T + Row(U[k + 1], c) * Bbar.T, (Using(Unfold(X[k + 1]), left=pick),), "row c of the update")

MULTICHANNEL = Claim(
    id="state-space/multichannel",
    title="the same system on each of H channels is H systems that do not meet; two systems beside each other are one with block-diagonal "
    "matrices, and so any number of them",
    statement=multichannel,
    sources=(
        Source(GU, "section 3.4: H copies, one for each feature", "there mixed afterwards by a linear layer"),
        Source(SMITH, "section 2.3, S4 as a bank of SISO systems", "blocks of any two sizes, each of which may be block-diagonal"),
    ),
    proof=Each(
        (
            Induction(k, Direct(note="row c of the start"), Chain((row_c,), (Hypothesis(),), "the update of the channel")),
            Direct((Part(1),), "row c of what is read"),
            Induction(k, Direct(note="the two starts"), Direct((Hypothesis(),), "block by block")),
            Direct((Part(3),), "block by block"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(multichannel, "every channel starts at 0", And(*each_alone(channel(Zero(N, 1))), *beside(both()))),
        variant(multichannel, "Ā not transposed", And(*each_alone(channel(Row(X0, c).T), batched(Abar)), *beside(both()))),
        variant(multichannel, "one block is seen by the other", And(*alone, *beside(both(matrix("K", M, N))))),
    ),
)

# One input each -----------------------------------------------------------------------------------

# B̄ has the columns b_1, ..., b_m; column i of Z is the state of the system that sees input i alone.
i = index("i")
Z0, rates, b = matrix("Z0", N, m), vector("a", m), vectors("b", N)
every = Stack(Num(1), r, 1, m)
one_of = Stack(indicator(equal(r, i)), r, 1, m)
split = Stack(b[r].T, r, 1, m).T
by_columns = Assumption("B̄ has the columns b_i", Equation(Bbar, split), solve={Bbar: split})
shared = Assumption("the starts add up to x_0", Equation(x0, Z0 * every), solve={x0: Z0 * every})


def column(x: Term) -> Term:
    """Column i of a matrix."""
    return Row(x.T, i).T


def apart(kept: Callable[[Term], Term]) -> Recurrence:
    """The states of m systems with one input each, as columns."""
    return recurrence("Z", Z0, lambda k, Z: kept(Z) + split * Diag(u[k]))


single = recurrence("x", column(Z0), lambda k, x: Abar * x + b[i] * Row(u[k], i))


def added(Z: Recurrence, answers: Term) -> Formula:
    """Each column is a system with one input, and the states and the outputs add up to those of the whole."""
    return And(Equation(column(Z[k]), single[k]), Equation(x[k], Z[k] * every), Equation(y, answers))


Z = apart(lambda Z: Abar * Z)
answers = C * Z[k] * every + D * u[k]
tied = Statement(added(Z, answers), le(0, k) & le(1, i) & le(i, m), (by_columns, shared))
column_i = Link(Abar * column(Z[k]) + b[i] * Row(u[k + 1], i), (Using(Unfold(Z[k + 1]), right=one_of),), "column i of the update")
sum_of_columns = Using(Unfold(Z[k + 1]), left=-1, right=every)

TIED = Claim(
    id="state-space/mimo-is-tied-siso",
    title="a system with m inputs is the sum of m systems with one input each that share Ā",
    statement=tied,
    sources=(Source(SMITH, "section 4, the states of S5 as sums of those of S4", "any starts that add up to x_0; with D"),),
    proof=Each(
        (
            Induction(k, Direct(note="column i of the starts"), Chain((column_i,), (Hypothesis(),), "the update of system i")),
            Induction(
                k,
                Direct((Given(shared.name),), "the starts add up"),
                Direct((Hypothesis(), Using(Given(by_columns.name), right=u[k + 1]), sum_of_columns), "one input each"),
            ),
            Direct((Part(2),), "the read-out is linear"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(tied, "each of them starts at x_0", drop=shared.name),
        variant(tied, "they see the inputs through other columns", drop=by_columns.name),
        variant(tied, "each fades at its own rate", added(apart(lambda Z: Abar * Z * Diag(rates)), answers)),
        variant(tied, "each of them adds all of D u", added(Z, C * Z[k] * every + Ind(m) * D * u[k])),
    ),
)

CLAIMS = (MULTICHANNEL, TIED)
