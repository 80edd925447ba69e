"""A bound index that stands only in an exponent is shifted with its range, and with nothing else."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.scripts import Direct
from isoform.derivations.kernel.terms import Exp, Index, Sum, Term, Where, cuts, indices, le, vectors

from .attacks import check

b = cuts("b")
d, i, j, n, p = indices("d i j n p")
q, k = vectors("q", d), vectors("k", d)


def weight(of: Index, by: Index = p) -> Term:
    return Exp(q[by].T * k[of])


def total(body: Term, first: Index, last: Index) -> Term:
    return Sum(body, j, first, last)


SHIFTED = total(weight(p + j), 1, n)
FROM_CUT = total(weight(b[i] + j), 1, n)
TURNED = total(weight(n - j), 0, n)
VISIBLE = total(Where(le(j, i), weight(p + j), weight(p + j) * 2), 1, n)


@pytest.mark.parametrize(
    ("left", "false", "true"),
    [
        (SHIFTED, total(weight(j), p, p + n), total(weight(j), p + 1, p + n)),
        (SHIFTED, total(weight(j, j), p + 1, p + n), total(weight(j), p + 1, p + n)),
        (FROM_CUT, total(weight(j), b[i], b[i] + n), total(weight(j), b[i] + 1, b[i] + n)),
        (FROM_CUT, total(weight(j), b[i + 1] + 1, b[i + 1] + n), total(weight(j), b[i] + 1, b[i] + n)),
        (TURNED, total(weight(j), 1, n), total(weight(j), 0, n)),
        (
            VISIBLE,
            total(Where(le(j, i), weight(j), weight(j) * 2), p + 1, p + n),
            total(Where(le(j, p + i), weight(j), weight(j) * 2), p + 1, p + n),
        ),
        (
            total(weight(j) * weight(p + j, i), 1, n),
            total(weight(j - p) * weight(j), p + 1, p + n),
            total(weight(j - p) * weight(j, i), p + 1, p + n),
        ),
    ],
)
def test_only_a_whole_shift_is_an_identity(left: Term, false: Term, true: Term) -> None:
    where = le(0, n) & le(0, i)
    check(Statement(Equation(left, false), where), Statement(Equation(left, true), where), Direct())
