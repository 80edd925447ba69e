"""How many values a state of linear attention can hold: d_k, if it is to be any values; one list of them, any number.

    read back with query q_i from a fresh state:  Σ_j v_j k_jᵀ q_i
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, LessEqual, Statement
from ..kernel.scripts import Absurd, Cases, Chain, Direct, Each, Given, Link, NullVector, Product, Rowwise, Sign, Using
from ..kernel.terms import Eye, Family, Ind, Inverse, Stack, Sum, Term, equal, indicator, indices, le, lt, matrix, scalars, vectors
from ..linear_attention.operator import d_k, d_v, k, v
from .linear import NOTE, SCHLAG

t, i, j, l, n, r = indices("t i j l n r")
q = vectors("q", d_k)
x = scalars("x")


def read_back(value: Term) -> Term:
    """What query i reads of the values."""
    return Sum(value * (k[j].T * q[i]), j, 1, t)


# Any list of values ---------------------------------------------------------------------------------

W = matrix("W", d_k, d_k)
e = Stack(indicator(equal(r, j)), r, 1, d_k)
one_list = Assumption("recall of the values v", ForAll(Equation(v[i], read_back(v[j])), i, 1, t))
every_list = Assumption(
    "recall of every list of values, by the same keys and queries",
    ForAll(ForAll(Equation(read_back(indicator(equal(j, l))), indicator(equal(i, l))), l, 1, t), i, 1, t),
    solve={k[j]: W * e, q[j]: Inverse(W).T * e},
)
limited = Statement(LessEqual(Ind(t), Ind(d_k)), le(0, t), (one_list, every_list))

contradiction = Chain(
    (
        Link(Sum(x[i] ** 2, i, 1, t), (Using(Given("length 1"), left=-1),), "a list x of values, not all 0"),
        Link(Sum(Sum(x[i] * x[l] * (k[l].T * q[i]), l, 1, t), i, 1, t), (Given(every_list.name),), "is recalled"),
    ),
    (Using(Given("null vector"), left=Sum(x[i] * q[i].T, i, 1, t)),),
    "but its state is 0",
)

# Seven values in the plane, v_j = (1, j), read back exactly by keys of three dimensions: a_j = (1, j), and see below.
SEVEN: dict[Any, Any] = {"t": 7, "d_k": 3, "d_v": 2}
for at in range(1, 8):
    SEVEN |= {("k", (at,)): (Fraction(5 - at, 7), Fraction(at - 4, 28), 0), ("q", (at,)): (1, at, 0), ("v", (at,)): (1, at)}

CAPACITY = Claim(
    id="memory/capacity",
    title="keys and queries that recall every list of t values, whatever it is, have t <= d_k",
    statement=limited,
    as_written=replace(limited, assumptions=(one_list,)),
    as_written_at=SEVEN,
    expected="qualified",
    sources=(
        Source(NOTE, "section 1.3.3: t > d values cannot be recalled", "of every list at once; one list may be recalled, see one-list"),
        Source(SCHLAG, "section 4.1, the capacity of a fast weight memory"),
    ),
    proof=Cases(
        (
            (le(t, d_k), Sign((Product((Ind(d_k - t),)),))),
            (lt(d_k, t), NullVector(k[j], j, t, x.name, Absurd(contradiction))),
        )
    ),
    near_misses=(
        variant(limited, "of one list", drop=every_list.name, at=SEVEN),
        variant(limited, "one value less", LessEqual(Ind(t), Ind(d_k - 1))),
        variant(limited, "the size of the values counts", LessEqual(Ind(t), Ind(d_v))),
    ),
)

# One list of values ---------------------------------------------------------------------------------

# V is the matrix with the values as rows. If V = AB through d_k columns, with P = (AᵀA)⁻¹, then keys and queries are at hand;
# and if there are any, V = Q Hᵀ goes through d_k columns.
a, B, P = vectors("a", d_k), matrix("B", d_k, d_v), matrix("P", d_k, d_k)
gram = Sum(a[j] * a[j].T, j, 1, t)
inverse = Assumption("P = (AᵀA)⁻¹", Equation(gram * P, Eye(d_k)), solve={P: Inverse(gram)})
recalled = replace(one_list, solve={k[j]: a[j], q[j]: P * a[j], v[j]: B.T * a[j]})
state = Sum(v[j] * k[j].T, j, 1, t)


def rows(family: Family) -> Term:
    """The matrix whose row i is the i-th member, transposed."""
    return Stack(family[i].T, i, 1, t)


def one(query: Term, first: Term = state) -> And:
    """The values Bᵀa_j under the keys a_j are recalled by a query; values that are recalled are a product."""
    return And(Equation(Sum(B.T * a[j] * (a[j].T * query), j, 1, t), B.T * a[l]), Equation(rows(v), rows(q) * first.T))


NOTHING: dict[Any, Any] = {"t": 1, "d_k": 1, "d_v": 1, "l": 1, P: 0, B: 1}
NOTHING |= {("a", (1,)): 1, ("k", (1,)): 0, ("q", (1,)): 0, ("v", (1,)): 0}
one_of_rank = Statement(one(P * a[l]), le(1, l) & le(l, t), (inverse, recalled))

ONE_LIST = Claim(
    id="memory/one-list",
    title="one list of values, of any length, can be recalled exactly if V = AB through d_k independent columns; if it is, V = QHᵀ",
    statement=one_of_rank,
    sources=(Source(NOTE, "section 1.3.3", "there the keys are chosen before the values"),),
    proof=Each(
        (
            Direct((Using(Given(inverse.name), left=B.T, right=a[l]),), "keys a_j and queries (AᵀA)⁻¹a_j"),
            Rowwise(n, Direct((Given(one_list.name, at={i: n}),), "row n: v_n = H q_n")),
        )
    ),
    near_misses=(
        variant(one_of_rank, "any P", drop=inverse.name, at=NOTHING),
        variant(one_of_rank, "values that are not recalled", drop=one_list.name),
        variant(one_of_rank, "queries a_j", one(a[l])),
        variant(one_of_rank, "the transposed state", one(P * a[l], Sum(v[j] * q[j].T, j, 1, t))),
    ),
)

CLAIMS = (CAPACITY, ONE_LIST)
