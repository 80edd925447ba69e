"""A sign or an inverse assumed of a whole family is known of each member in the range, and of no other."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import And, Assumption, Equation, ForAll, Formula, Less, LessEqual, NonZero, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct, Product, Script, Sign
from isoform.derivations.kernel.terms import Prod, Sum, indices, le, scalar, scalars

s, t, j, n = indices("s t j n")
g = scalars("g")
c = scalar("c")
positive = Assumption("gates", ForAll(Less(0, g[s]), s, 1, t))
bounded = Assumption("bound", ForAll(LessEqual(g[s], c), s, 1, t))


def proved(conclusion: Formula, script: Script, *assumptions: Assumption) -> bool:
    try:
        prove(Statement(conclusion, le(1, j) & le(j, t), assumptions), script, lambda id: pytest.fail(id))
    except Unproved:
        return False
    return True


@pytest.mark.parametrize(
    ("conclusion", "holds"),
    [
        (Less(0, g[j]), True),
        (Less(0, g[j + 1]), False),
        (Less(0, g[j - 1]), False),
        (Less(0, Prod(g[s], s, 1, t)), True),
        (Less(0, Prod(g[s], s, j + 1, t)), True),
        (Less(0, Prod(g[s], s, 0, t)), False),
        (Less(0, Prod(g[s], s, 1, t + 1)), False),
        (Less(0, Sum(g[s], s, 1, j)), True),
        (Less(0, Sum(g[s], s, j + 1, t)), False),
        (LessEqual(0, Sum(g[s], s, j + 1, t)), True),
        (Less(g[j], 0), False),
        (Less(0, g[j] - 1), False),
    ],
)
def test_the_range_of_a_sign(conclusion: Formula, holds: bool) -> None:
    assert proved(conclusion, Sign(), positive) == holds


def test_an_index_of_the_goal_is_no_parameter() -> None:
    """The goal knows 1 <= j; the assumption, of a j of its own, says nothing below 2."""
    later = Assumption("later", ForAll(Less(0, g[j]), j, 2, t))
    assert not proved(Less(0, g[j]), Sign(), later)
    assert proved(Less(0, g[j + 1]), Sign(), Assumption("all", ForAll(Less(0, g[j]), j, 2)))


def test_a_difference_of_a_family_and_a_constant() -> None:
    assert proved(LessEqual(g[j], c), Sign((Product((c - g[j],)),)), bounded)
    assert not proved(LessEqual(g[j + 1], c), Sign((Product((c - g[j + 1],)),)), bounded)
    assert not proved(LessEqual(c, g[j]), Sign((Product((g[j] - c,)),)), bounded)


def test_two_signs_of_a_family() -> None:
    both = Assumption("both", ForAll(And(Less(0, g[s]), ForAll(LessEqual(g[s], c), n, 1, s - 1)), s, 1, t))
    assert proved(Less(0, g[j]), Sign(), both)
    assert not proved(Less(0, g[j + 1]), Sign(), both)
    assert not proved(Less(g[j], 0), Sign(), both)
    # that g_s <= c is said of no n where s = 1
    assert not proved(LessEqual(g[1], c), Sign((Product((c - g[1],)),)), both)


def test_inverses_of_a_family() -> None:
    nonzero = Assumption("nonzero", ForAll(NonZero(g[s]), s, 1, t))
    assert proved(Equation(g[j] / g[j], 1), Direct(), nonzero)
    assert not proved(Equation(g[j + 1] / g[j + 1], 1), Direct(), nonzero)
    assert not proved(Equation(g[j] / g[j], 1), Direct())
