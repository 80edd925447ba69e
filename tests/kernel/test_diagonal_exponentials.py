"""The exponential of a multiple of a diagonal matrix is read entry by entry, and is a function of that matrix."""

from __future__ import annotations

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import Equation, Invertible, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.scripts import Direct
from isoform.derivations.kernel.terms import Cond, Diag, Entry, Exp, Integral, Inverse, Log, Num, Row, Stack, Sum, Term, le, vectors

from .attacks import ANYWHERE, A, B, al, check, d, given, i, identity, j, k, m, n, prover, s, t, u, v, x, y

inside = le(1, i) & le(i, d) & le(1, j) & le(j, d)
decay = Exp(x * Diag(u))
gates = vectors("g", d)
Sides = tuple[Term, Term]

# a false equation, and a true one that looks like it
EQUATIONS: dict[str, tuple[Sides, Sides, Cond]] = {
    "the row of another entry": (
        (Row(decay * v, i), Exp(x * Row(u, j)) * Row(v, i)),
        (Row(decay * v, i), Exp(x * Row(u, i)) * Row(v, i)),
        inside,
    ),
    "the number outside of the exponential": (
        (Row(decay * A, i), x * Exp(Row(u, i)) * Row(A, i)),
        (Row(decay * A, i), Exp(x * Row(u, i)) * Row(A, i)),
        inside,
    ),
    "a column of a product": (
        (Entry(A * decay, i, j), Exp(x * Row(u, i)) * Entry(A, i, j)),
        (Entry(A * decay, i, j), Exp(x * Row(u, j)) * Entry(A, i, j)),
        inside,
    ),
    "an exponential off the diagonal": (
        (Entry(decay, i, i + 1), Exp(x * Row(u, i))),
        (Entry(decay, i, i + 1), Num(0)),
        le(1, i) & le(i, d - 1),
    ),
    "entries of the exponential of any matrix": (
        (Entry(Exp(A), i, i), Exp(Entry(A, i, i))),
        (Entry(Exp(Diag(u)), i, i), Exp(Row(u, i))),
        inside,
    ),
    "of a product with a diagonal matrix": (
        (Entry(Exp(Diag(u) * A), i, i), Exp(Row(u, i) * Entry(A, i, i))),
        (Entry(Exp(Diag(u) * Num(2) * x), i, i), Exp(2 * x * Row(u, i))),
        inside,
    ),
    "of a sum with a matrix": (
        (Entry(Exp(Diag(u) + A), i, i), Exp(Row(u, i) + Entry(A, i, i))),
        (Entry(Exp(Sum(al[k], k, 1, n) * Diag(u)), i, i), Exp(Sum(al[k], k, 1, n) * Row(u, i))),
        inside,
    ),
    "a row of a transpose": (
        (Row(decay.T * v, i), Exp(x * Row(u, j)) * Row(v, i)),
        (Row(decay.T * v, i), Exp(x * Row(u, i)) * Row(v, i)),
        inside,
    ),
    "a row of the transpose of any exponential": (
        (Row(Exp(A).T, i) * v, Row(Exp(A), i) * v),
        (Row(Exp(A).T, i) * v + 1, 1 + Row(Exp(A).T, i) * v),
        inside,
    ),
    "a multiple of the identity": (
        (Exp(x * identity) * A, x * A),
        (Exp(x * identity) * A, Exp(x) * A),
        ANYWHERE,
    ),
    "a multiple of the identity by a sum of logarithms": (
        (Exp(Log(Num(2)) * identity + Log(Num(3)) * identity) * A, 5 * A),
        (Exp(Log(Num(2)) * identity + Log(Num(3)) * identity) * A, 6 * A),
        ANYWHERE,
    ),
    "an identity beside another matrix": (
        (Exp(x * identity + B) * A, Exp(x) * A),
        (Exp(x * identity + 0 * B) * A, Exp(x) * A),
        ANYWHERE,
    ),
    "a row of an integral": (
        (Row(Integral(Exp(s * Diag(u)), s, 0, x) * v, i), Integral(Exp(s * Row(u, j)), s, 0, x) * Row(v, i)),
        (Row(Integral(Exp(s * Diag(u)), s, 0, x) * v, i), Integral(Exp(s * Row(u, i)), s, 0, x) * Row(v, i)),
        inside,
    ),
    "an entry of the integral of any exponential": (
        (Entry(Integral(Exp(s * A), s, 0, x), i, i), Integral(Exp(s * Entry(A, i, i)), s, 0, x)),
        (Entry(Integral(Exp(s * Diag(u)), s, 0, x), i, i), Integral(Exp(s * Row(u, i)), s, 0, x)),
        inside,
    ),
    "an entry off the diagonal of an integral": (
        (Entry(Integral(s * Exp(s * Diag(u)), s, 0, x), i, i + 1), Integral(s * Exp(s * Row(u, i)), s, 0, x)),
        (Entry(Integral(s * Exp(s * Diag(u)), s, 0, x), i, i + 1), Num(0)),
        le(1, i) & le(i, d - 1),
    ),
    "a row of the integral of a sum": (
        (Row(Integral(A + s * B, s, 0, x), i), x * Row(A, i) + x * Row(B, i)),
        (Row(Integral(A + s * B, s, 0, x), i), x * Row(A, i) + x * x / 2 * Row(B, i)),
        inside,
    ),
    "any matrix moved past": ((A * decay, decay * A), (Diag(u) * decay, decay * Diag(u)), ANYWHERE),
    "of two columns, as one": (
        (Exp(Diag(u)) * Exp(Diag(v)), Exp(2 * Diag(u))),
        (Exp(x * Diag(u)) * Exp(y * Diag(u)), Exp((x + y) * Diag(u))),
        ANYWHERE,
    ),
    "of the sum over a family, as of one member": (
        (Exp(Sum(Diag(gates[k]), k, 1, 2)) * Exp(-Diag(gates[1])), Exp(Diag(gates[1]))),
        (Exp(al[1] * Diag(gates[t])) * Exp(al[2] * Diag(gates[t])), Exp((al[1] + al[2]) * Diag(gates[t]))),
        ANYWHERE,
    ),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations(name: str) -> None:
    false, true, where = EQUATIONS[name]
    check(Statement(Equation(*false), where), Statement(Equation(*true), where), Direct())
    assert certify(Statement(Equation(*false), where)).holds is False
    assert certify(Statement(Equation(*true), where)).holds is True


def test_a_row_beyond_the_diagonal() -> None:
    with pytest.raises(Unproved, match="is not known here"):
        prover({})(Statement(Equation(Row(decay * v, i), Num(0)), le(d + 1, i)), Direct())


def test_a_column_with_labels_of_its_own_is_not_read() -> None:
    """Its rows would be numbered n..m in one engine, and from 1 in the other."""
    labelled = Exp(Diag(Stack(al[k], k, n, m)))
    for row in (i, i - n + 1):
        with pytest.raises((ValueError, TypeError)):
            prover({})(Statement(Equation(Entry(labelled, row, row), Exp(al[i])), le(n, i) & le(i, m)), Direct())


def test_beside_inverses() -> None:
    """A function of a diagonal matrix is one of one scalar; a diagonal matrix between two others stays where it is."""
    gap = decay - identity
    exists = (given("e^{x diag(u)} - 1 has an inverse", Invertible(gap)), given("B has one", Invertible(B)))
    check(
        Statement(Equation(Inverse(gap) * A * decay, Inverse(gap) * A + A), ANYWHERE, exists),
        Statement(Equation(Inverse(gap) * decay, Inverse(gap) + identity), ANYWHERE, exists),
        Direct(),
    )
    check(
        Statement(Equation(Inverse(B) * Diag(u) * B, Diag(u)), ANYWHERE, exists),
        Statement(Equation(Inverse(B) * B * Diag(u), Diag(u)), ANYWHERE, exists),
        Direct(),
    )
