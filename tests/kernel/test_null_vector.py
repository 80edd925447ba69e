"""A null vector exists where columns outnumber rows, is a new name, and is all that it is said to be and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Formula, LessEqual, NonZero, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Absurd, Chain, Direct, Given, Induction, Link, NullVector, Script, Sign, Using
from isoform.derivations.kernel.terms import Cond, Ind, Sum, equal, indicator, indices, le, lt, scalar, scalars, vectors

d, t, i, j, l, n = indices("d t i j l n")
k, q = vectors("k", d), vectors("q", d)
x, y = scalars("x"), scalars("y")
z = vectors("z", d, "complex")
c = scalar("c")

# k_1, …, k_t with a left inverse: t vectors in fewer than t dimensions have none
dual = Assumption("dual", ForAll(ForAll(Equation(k[l].T * q[i], indicator(equal(i, l))), l, 1, t), i, 1, t))
IMPOSSIBLE = Equation(c, 0)


def contradiction(name: str = "x") -> Chain:
    x = scalars(name)
    return Chain(
        (
            Link(Sum(x[i] ** 2, i, 1, t), (Using(Given("length 1"), left=-1),)),
            Link(Sum(Sum(x[i] * x[l] * (k[l].T * q[i]), l, 1, t), i, 1, t), (Given("dual"),)),
        ),
        (Using(Given("null vector"), left=Sum(x[i] * q[i].T, i, 1, t)),),
    )


NULL = NullVector(k[j], j, t, "x", Absurd(contradiction()))


def proves(conclusion: Formula, script: Script, *assumptions: Assumption, where: Cond) -> bool:
    try:
        prove(Statement(conclusion, where, assumptions), script, lambda id: pytest.fail(id))
    except Unproved:
        return False
    return True


def test_more_columns_than_rows() -> None:
    assert proves(IMPOSSIBLE, NULL, dual, where=lt(d, t))


@pytest.mark.parametrize("where", [le(d, t), lt(t, d), equal(d, t), le(1, t), Cond()])
def test_as_many_rows_as_columns(where: Cond) -> None:
    assert not proves(IMPOSSIBLE, NULL, dual, where=where)


@pytest.mark.parametrize(
    "change",
    [
        {"last": t - 1},
        {"last": t + 1},
        {"last": d},
        {"last": j},
        {"column": k[j].T},
        {"column": z[j]},
        {"column": k[i]},
        {"column": k[j] / c},
        {"column": Ind(j) * k[j]},
        {"x": "k"},
        {"x": "q"},
        {"x": "y"},
    ],
    ids=str,
)
def test_other_columns_or_names(change: dict[str, Any]) -> None:
    """The same contradiction from other columns, fewer of them, or a vector that is already known."""
    known = Assumption("known", Equation(y[1], 2))
    name = change.get("x", "x")
    script = replace(NULL, **change, script=Absurd(contradiction(name)))
    assert not proves(IMPOSSIBLE, script, dual, known, where=lt(d, t))
    assert proves(IMPOSSIBLE, NULL, dual, known, where=lt(d, t))


def test_the_vector_is_no_more_than_it_is_said_to_be() -> None:
    """Neither is an entry of it not 0, nor is it the only one, nor does it have a sign."""
    where = lt(d, t)
    for false in (Equation(x[1], 1), Equation(x[1], 0), NonZero(x[1]), LessEqual(0, x[1])):
        # of a goal that speaks of x, x is not new
        assert not proves(false, NullVector(k[j], j, t, "x", Direct((Given("length 1"),))), dual, where=where)
        assert not proves(false, NullVector(k[j], j, t, "x", Sign()), dual, where=where)
    twice = NullVector(k[j], j, t, "x", NullVector(k[j], j, t, "y", Absurd(contradiction())))
    assert not proves(IMPOSSIBLE, twice, dual, where=where)
    alone = NullVector(k[j], j, t, "x", Absurd(Direct((Using(Given("length 1"), left=-1),))))
    assert not proves(IMPOSSIBLE, alone, dual, where=where)


def test_the_vector_does_not_move_with_the_number_of_columns() -> None:
    step = Direct((Using(Given("length 1")),))
    moving = NullVector(k[j], j, t, "x", Induction(t, Direct(), step, start=1))
    assert not proves(Equation(c * Ind(t), c), moving, where=lt(d, t) & le(1, t))


def test_columns_that_do_not_exist() -> None:
    """What is known of an index j of the goal says nothing of the columns' j."""
    gates = Assumption("here", NonZero(x[j]))
    columns = NullVector(k[j] / x[j], j, t, "y", Direct())
    where = lt(d, t) & le(1, j) & le(j, t)
    everywhere = Assumption("everywhere", ForAll(NonZero(x[n]), n, 1, t))
    identity = Equation(k[1] + k[2], k[2] + k[1])
    assert proves(identity, columns, everywhere, where=where)
    assert not proves(identity, columns, gates, where=where)


def test_nothing_follows_from_no_contradiction() -> None:
    assert not proves(IMPOSSIBLE, Absurd(Direct()), dual, where=lt(d, t))
    assert not proves(IMPOSSIBLE, Absurd(Chain((Link(c),))), where=le(0, t))
    zero = Assumption("zero", Equation(c, 0))
    one = Assumption("one", Equation(c, 1))
    both = Absurd(Chain((Link(c, (Using(Given("one"), left=-1),)),), (Given("zero"),)))
    assert proves(Equation(x[1], x[2]), both, zero, one, where=le(0, t))
    assert not proves(Equation(x[1], x[2]), both, zero, where=le(0, t))


@pytest.mark.parametrize("name", ["null vector", "length 1"])
def test_the_names_of_what_is_known_of_it_are_kept(name: str) -> None:
    false = Assumption(name, Equation(c, 1))
    assert not proves(IMPOSSIBLE, NULL, dual, false, where=lt(d, t))
