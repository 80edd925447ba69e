"""Quotients whose denominator is an empty sum at some length: a proof at the other lengths is none."""

from __future__ import annotations

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct
from isoform.derivations.kernel.terms import Cond, Exp, Ind, Num, Sqrt, Sum, Term, Where, indices, le, scalar, scalars

j, l, t = indices("j l t")
s, v = scalars("s"), scalars("v")
a, b = scalar("a"), scalar("b")
Z = Sum(Exp(s[l]), l, 1, t)

SIDES = [
    pytest.param(Sum(Exp(s[j]) / Z, j, 1, t), Num(1), id="weights"),
    pytest.param(Sum(b / Ind(t), j, 1, t), b, id="mean of a constant"),
    pytest.param(Sum(v[j] / Ind(t), j, 1, t) + b, Sum((v[j] + b) / Ind(t), j, 1, t), id="shifted mean"),
    pytest.param(Where(le(1, t), (Z + a) / Z, b), Where(le(1, t), 1 + a / Z, Num(0)), id="a branch without the denominator"),
]


def test_a_root_needs_no_more_where_it_is_of_a_square() -> None:
    z = scalar("z", "complex")
    for x in (a - b, (a - b) * a, Exp(a) - 1):
        assert proved(Sqrt(x * x) + b, b + Sqrt(x * x), Cond())
    for x in ((a - b) * a, (z - 1) * (z - 1), (a - b) * (b - a)):
        assert not proved(Sqrt(x) + b, b + Sqrt(x), Cond())


def proved(lhs: Term, rhs: Term, where: Cond) -> bool:
    try:
        prove(Statement(Equation(lhs, rhs), where), Direct(), lambda id: pytest.fail(id))
    except Unproved:
        return False
    return True


@pytest.mark.parametrize(("lhs", "rhs"), SIDES)
def test_an_identity_that_fails_where_the_sum_is_empty_is_not_proved(lhs: Term, rhs: Term) -> None:
    assert proved(lhs, rhs, le(1, t))
    assert certify(Statement(Equation(lhs, rhs), le(0, t))).holds is False
    assert not proved(lhs, rhs, le(0, t))
