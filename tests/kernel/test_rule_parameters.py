"""An equation for all values of its indices, used as a rule, keeps them apart from the indices of the goal."""

from __future__ import annotations

from typing import NoReturn

import pytest

from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Formula, Statement
from isoform.derivations.kernel.proof import Proof
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Cases, Direct, ForEach, Given, Hypothesis, Induction
from isoform.derivations.kernel.terms import Ind, Num, Sum, Where, indices, le, lt, scalars

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
