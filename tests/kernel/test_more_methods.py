"""Strong induction, stated sizes, and powers as relations: each proves its truth and refuses its falsehood."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import Assumption, Equation, Formula, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Cases, Chain, Direct, Given, Hypothesis, Induction, Link, Script, Sizes, Unfold
from isoform.derivations.kernel.terms import (
    Eye,
    Family,
    Ind,
    Sum,
    Term,
    Trace,
    index,
    indices,
    le,
    matrix,
    recurrence,
    scalar,
    scalars,
)

n, t, j, L = indices("n t j L")
x = scalars("x")
A, B = matrix("A", n, n), matrix("B", n, n)
S = recurrence("S", scalar("s0"), lambda t, s: s + x[t])


def attempt(conclusion: Formula, script: Script, where: object = None, *assumptions: Assumption) -> str:
    """The scope of the proof, or the word open."""
    statement = Statement(conclusion, le(0, t) if where is None else where, assumptions)  # type: ignore[arg-type]
    try:
        return prove(statement, script, lambda id: pytest.fail(id)).scope
    except Unproved:
        return "open"


def total(hi: object) -> Term:
    return scalar("s0") + Sum(x[j], j, 1, hi)  # type: ignore[arg-type]


step = Chain((Link(S[t - 1] + x[t], (Unfold(S[t]),)), Link(total(t - 1) + x[t], (Hypothesis(),))))
strong = Induction(t, step=Cases(((le(t, 0), Direct()), (le(1, t), step))), strong=True)


def test_strong_induction() -> None:
    assert attempt(Equation(S[t], total(t)), strong) == "all sizes"
    assert attempt(Equation(S[t], total(t - 1)), strong) == "open"


def test_strong_induction_does_not_assume_what_it_shows() -> None:
    circular = Induction(t, step=Direct((Hypothesis(),)), strong=True)
    assert attempt(Equation(S[t], total(t - 1)), circular) == "open"
    assert attempt(Equation(S[t], scalar("s0")), circular) == "open"


cayley = Equation(A * A - Trace(A) * A + ((Trace(A) * Trace(A) - Trace(A * A)) / 2) * Eye(n), 0 * A)


@pytest.mark.parametrize(
    ("sizes", "scope"),
    [((1,), "sizes <= 1"), ((1, 2), "sizes <= 2"), ((1, 2, 3), "open"), ((2,), "open"), ((), "open"), ((-1, 0, 1), "open")],
)
def test_an_identity_of_one_size(sizes: tuple[int, ...], scope: str) -> None:
    """Cayley-Hamilton for 2 x 2 matrices holds at 1 too, and is false at 3; a gap in the sizes is no scope."""
    assert attempt(cayley, Sizes({n: sizes})) == scope
    assert attempt(cayley, Direct()) == "open"


def test_matrices_written_out_do_not_commute() -> None:
    assert attempt(Equation(A * B, B * A), Sizes({n: (1,)})) == "sizes <= 1"
    assert attempt(Equation(A * B, B * A), Sizes({n: (1, 2)})) == "open"
    assert attempt(Equation((A * B).T, B.T * A.T), Sizes({n: (0, 1, 2, 3)})) == "sizes <= 3"


w = Family("w", field="complex")()
root = Assumption("root of unity", Equation(w**L, 1))


def test_a_power_as_a_relation() -> None:
    where = le(1, L)
    assert attempt(Equation(w ** (L + 2), w**2), Direct((Given("root of unity"),)), where, root) == "all sizes"
    assert attempt(Equation(w ** (L + 2), w), Direct((Given("root of unity"),)), where, root) == "open"


def test_a_relation_does_not_divide() -> None:
    """x^t = y says nothing of x^(t-1): at x = 0, t = 1 that is 1."""
    y, z = scalar("y"), scalar("z")
    given = Assumption("power", Equation(z**t, y))
    assert attempt(Equation(z ** (t - 1) * z, y), Direct((Given("power"),)), le(1, t), given) == "all sizes"
    assert attempt(Equation(z ** (t - 1), y / z), Direct((Given("power"),)), le(1, t), given) == "open"


def test_an_index_as_a_number_keeps_its_name() -> None:
    assert attempt(Equation(Sum(Ind(index("i")), index("i"), 1, 3), 6), Direct()) == "all sizes"


def test_products_at_size_0_have_their_shape() -> None:
    """An inner size 0 gives zeros, an outer one nothing; neither is an index out of range, and no false sum is proved."""
    m, sizes = index("m"), (0, 1, 2)
    C, D = matrix("C", n, m), matrix("D", m, n)
    assert attempt(Equation((C * D).T, D.T * C.T), Sizes({n: sizes, m: sizes})) == "sizes <= 2"
    assert attempt(Equation(C * D, C * D + Eye(n)), Sizes({n: sizes, m: sizes})) == "open"
    assert attempt(Equation(C * D, Eye(n)), Sizes({n: (0,), m: sizes})) == "sizes <= 0"
