"""An equation for all values of its indices, used as a rule, keeps them apart from the indices of the goal."""

from __future__ import annotations

from typing import NoReturn

import pytest

from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Formula, NonZero, Statement
from isoform.derivations.kernel.proof import Proof, Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Cases, Direct, ForEach, Given, Hypothesis, Induction
from isoform.derivations.kernel.terms import Exp, Ind, Inverse, Num, Sum, Term, Where, indices, le, lt, scalar, scalars

n, m, t = indices("n m t")
x, y = scalars("x"), scalars("y")


def no_claims(id: str) -> NoReturn:
    raise AssertionError(f"{id} is not asked for here")


def proved(statement: Statement, script: object) -> Proof:
    return prove(statement, script, no_claims)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [n, m])
def test_what_is_known_of_a_goals_index_is_not_known_of_a_parameter(name: object) -> None:
    """From: x_i = 0 for every i >= 3. At n >= 3 this must not give x_1 = 0, whatever i is called."""
    late = Equation(Where(le(3, name), x[name], Num(0)), Where(le(3, name), Num(0), Num(0)))  # type: ignore[arg-type,index]
    assumption = Assumption("late zeros", ForAll(late, name, 1))  # type: ignore[arg-type]
    false = Statement(Equation(x[1] * Ind(n), 0), le(3, n), (assumption,))
    with pytest.raises(ValueError, match="not a single product"):
        proved(false, Direct((Given("late zeros"),)))


def test_a_parameter_named_like_an_excluded_index_still_matches() -> None:
    """x_n = 0 for n <= t, where the goal's own n is greater than t."""
    assumption = Assumption("early zeros", ForAll(Equation(x[n], 0), n, 1, t))
    total: Formula = Equation(x[t] * y[n] + x[1], 0)
    assert proved(Statement(total, lt(t, n) & le(1, t), (assumption,)), Direct((Given("early zeros"),))).used == {"early zeros"}


def test_a_quantified_formula_can_be_moved() -> None:
    """All of x_1, ..., x_t vanish, by induction on t, where each is the sum of those before it."""
    assumption = Assumption("sums", ForAll(Equation(x[n], Sum(x[m], m, 1, n - 1)), n, 1))
    vanish = Statement(ForAll(Equation(x[n], 0), n, 1, t), le(0, t), (assumption,))
    step = ForEach(Cases(((le(n, t), Direct((Hypothesis(),))), (lt(t, n), Direct((Given("sums", {n: n}), Hypothesis()))))))
    assert proved(vanish, Induction(t, ForEach(Direct()), step)).used == {"sums"}


@pytest.mark.parametrize("last", [t, 5, None])
def test_a_quantified_formula_is_rebuilt_from_its_parts(last: object) -> None:
    formula = ForAll(Equation(x[n], 0), n, 1, last)  # type: ignore[arg-type]
    assert formula.func(*formula.args) == formula


total = Sum(x[n] ** m, m, 1, t)


@pytest.mark.parametrize(
    ("lhs", "used", "other"),
    [
        (x[n] / (1 + x[n]), x[n] / (1 + x[n]), x[n] / (1 + y[n])),
        (x[n] / (1 + x[n]), x[n] / (1 + x[n]), x[n] / (1 + x[n + 1])),
        (Inverse(total), 1 / total, 1 / Sum(x[n + 1] ** m, m, 2, t)),
        (Inverse(Sum(x[n] * y[m], m, 1, t)), 1 / Sum(x[n] * y[m], m, 1, t), 1 / Sum(x[m] * y[m], m, 1, t)),
    ],
    ids=str,
)
def test_a_parameter_inside_a_reciprocal(lhs: Term, used: Term, other: Term) -> None:
    """A rule for all n whose left side has n in what is divided by, used under a sum over n, and not on what only looks like it."""
    rule = Assumption("rule", ForAll(Equation(lhs, y[n]), n, 1, t))
    exists = tuple(
        Assumption(f"{k}", ForAll(NonZero(of), n, 1))
        for k, of in enumerate((1 + x[n], 1 + y[n], total, Sum(x[n] ** m, m, 2, t), Sum(x[n] * y[m], m, 1, t), Sum(x[m] * y[m], m, 1, t)))
    )
    by = Direct((Given("rule"),))
    assert proved(Statement(Equation(Sum(used, n, 1, t), Sum(y[n], n, 1, t)), le(0, t), (rule, *exists)), by).used >= {"rule"}
    with pytest.raises(Unproved):
        proved(Statement(Equation(Sum(other, n, 1, t), Sum(y[n], n, 1, t)), le(0, t), (rule, *exists)), by)
    with pytest.raises(Unproved):
        proved(Statement(Equation(Sum(used, n, 1, t + 1), Sum(y[n], n, 1, t + 1)), le(0, t), (rule, *exists)), by)


def test_what_is_not_zero_for_all_values_of_an_index_in_an_exponent() -> None:
    z = scalar("z")
    known = Assumption("no root", ForAll(NonZero(1 - Exp(z * x[n])), n, 1, t))
    one = Equation((1 - Exp(z * x[m])) / (1 - Exp(z * x[m])), 1)
    assert proved(Statement(one, le(1, m) & le(m, t), (known,)), Direct()).used == {"no root"}
    for where, false in ((le(1, m), one), (le(1, m) & le(m, t), Equation((2 - Exp(z * x[m])) / (2 - Exp(z * x[m])), 1))):
        with pytest.raises(Unproved):
            proved(Statement(false, where, (known,)), Direct())
