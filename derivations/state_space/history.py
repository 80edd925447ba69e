"""What a state keeps of the inputs before it: all that later outputs need, and at most as many scalars as it has entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, LessEqual, Statement
from ..kernel.scripts import (
    Absurd,
    Cases,
    Chain,
    Direct,
    Each,
    ForEach,
    Given,
    Hypothesis,
    Induction,
    Lemma,
    Link,
    NullVector,
    Part,
    Product,
    Sign,
    Unfold,
    Using,
)
from ..kernel.terms import (
    Eye,
    Ind,
    Index,
    Inverse,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrices,
    recurrence,
    scalars,
    vector,
    vectors,
)
from .operator import DECLARATION, GU, NOTE, Abar, Bbar, C, D, N, j, k, m, u, x, x0, y

T, i, r = indices("T i r")

KALMAN = "Kalman, On the General Theory of Control Systems, IFAC Proceedings 1 (1960)"

# All that later outputs need ----------------------------------------------------------------------

# Another start, other inputs v up to T, and the same ones after it.
z0, v = vector("z0", N), vectors("v", m)


def other(at: Index, last: Index = T) -> Term:
    """The inputs of another history: those after the last that differs are the same."""
    return Where(le(at, last), v[at], u[at])


def run(start: Term, last: Index = T) -> Recurrence:
    """The states of another history."""
    return recurrence("x", start, lambda k, x: Abar * x + Bbar * other(k, last))


def reached(at: Index) -> Term:
    """What an input at some time is multiplied with in the state at T."""
    return Abar ** (T - at) * Bbar


missing = Sum(reached(j) * (u[j] - v[j]), j, 1, T)
met = Assumption("both histories lead to one state", Equation(run(z0)[T], x[T]), solve={z0: x0 + Inverse(Abar) ** T * missing})


def same_future(last: Index = T, first: Index = 1) -> Formula:
    """The same states from T on, and the same outputs after it."""
    z, at = run(z0, last), k + first
    return And(Equation(z[k], x[k]), Equation(C * z[at] + D * other(at, last), y.subs({k: at})))


sufficient = Statement(same_future(), le(0, T) & le(T, k), (met,))

SUFFICIENT = Claim(
    id="state-space/sufficient-state",
    title="two histories that lead to one state have one future: the same inputs after it give the same states and outputs",
    statement=sufficient,
    sources=(Source(GU, "section 2.3, the recurrent view", "other starts, other inputs; all that counts is the state"),),
    proof=Each(
        (
            Induction(k, Direct((Given(met.name),)), Direct((Hypothesis(),), "the same input"), start=T),
            Direct((Unfold(run(z0)[k + 1]), Unfold(x[k + 1]), Part(1)), "one more step from the same state, by the same input"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(sufficient, "two states", drop=met.name),
        variant(sufficient, "the outputs at T, which D reads the last inputs in, are the same", same_future(first=0)),
        variant(sufficient, "the next inputs differ too", same_future(last=T + 1)),
    ),
)

# The inputs themselves ----------------------------------------------------------------------------

G = matrices("G", m, N)


# For one scalar input G = (RᵀR)⁻¹ Rᵀ, where the columns of R are those multipliers, is a model.
columns = Stack(Row(reached(j).T, 1), j, 1, T)
left_inverse = Inverse(columns * columns.T) * columns
same_state = Assumption("both histories lead to one state", Equation(run(x0)[T], x[T]), solve={v[j]: u[j]})
readable = Assumption(
    "every history can be read back",
    ForAll(ForAll(Equation(G[i] * reached(j), Where(equal(i, j), Eye(m), Zero(m, m))), j, 1, T), i, 1, T),
    solve={G[i]: Stack(Row(left_inverse, i), r, 1, m)},
)


# Two inputs, one number: 0 then 0, and 1 then -1, add up to the same.
SAME_SUM: dict[Any, Any] = {"N": 1, "m": 1, "T": 2, Abar: 1, Bbar: 1, x0: 0}
SAME_SUM |= {("u", (1,)): 0, ("u", (2,)): 0, ("v", (1,)): 1, ("v", (2,)): -1}


def one_history(last: Index = T) -> Formula:
    """The same states and outputs from T on, and the same inputs before."""
    z = run(x0)
    outputs = Equation(C * z[k + 1] + D * other(k + 1), y.subs({k: k + 1}))
    return And(Equation(z[k], x[k]), outputs, ForAll(Equation(v[i], u[i]), i, 1, last))


bounded = Statement(one_history(), le(0, T) & le(T, k) & equal(m, 1), (same_state, readable))
same_start = {"z0": ((), x0)}
states_after, outputs_after = (Lemma("state-space/sufficient-state", part=n, at={k: k, T: T}, families=same_start) for n in (0, 1))
from_u = Lemma("state-space/unrolled", part=0, at={k: T})
from_v = replace(from_u, families={"u": ((k,), other(k))})


def read_back(of: Term) -> Term:
    """What G_i reads of the inputs j = 1..T in the state at T."""
    return Sum(G[i] * reached(j) * of, j, 1, T)


both_unrolled = (Using(Given(same_state.name), left=G[i]), Using(from_u, left=G[i]), Using(from_v, left=-G[i]))

BOUNDED = Claim(
    id="state-space/bounded-state",
    title="two histories of scalar inputs that lead to one state have one future; they are the same if every history can be read back from "
    "the state",
    statement=bounded,
    as_written=replace(bounded, assumptions=(same_state,)),
    as_written_at=SAME_SUM,
    expected="qualified",
    sources=(
        Source(
            NOTE,
            "state-space models: all the history is in the state",
            "for outputs: see sufficient-state",
        ),
        Source(KALMAN, "observability", "there states from outputs, here inputs from a state"),
    ),
    proof=Each(
        (
            Direct((Using(states_after),), "one state, one future"),
            Direct((Using(outputs_after),), "one state, one future"),
            ForEach(
                Chain(
                    (
                        Link(read_back(v[j]), (Given(readable.name),), "read back"),
                        Link(read_back(u[j]), both_unrolled, "both states, unrolled, are the same"),
                    ),
                    (Given(readable.name),),
                    "read back",
                )
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(bounded, "two states", drop=same_state.name),
        variant(bounded, "more inputs than the state has room for", drop=readable.name, at=SAME_SUM),
        variant(bounded, "an input after T", one_history(T + 1), at={T: 0, m: 1, ("u", (1,)): 0, ("v", (1,)): 1}),
    ),
)

# How many of them ---------------------------------------------------------------------------------

# One scalar input w, from any start: its multipliers are the columns Ā^{T-j} b.
b, g = vector("b", N), matrices("g", 1, N)
weights, c = scalars("w"), scalars("c")


def column(at: Index) -> Term:
    """What a scalar input at some time is multiplied with in the state at T."""
    return Abar ** (T - at) * b


stacked = Stack(column(j).T, j, 1, T)
readable_scalars = Assumption(
    readable.name,
    ForAll(ForAll(Equation(g[i] * column(j), indicator(equal(i, j))), j, 1, T), i, 1, T),
    solve={g[i]: Row(Inverse(stacked * stacked.T) * stacked, i)},
)
added = Sum(weights[j] * column(j), j, 1, T)  # what they add to the state at T


def fitting(room: Formula, read: Term = added) -> Formula:
    """There are not too many inputs, and each is read back."""
    return And(room, ForAll(Equation(g[i] * read, weights[i]), i, 1, T))


fits = Statement(fitting(LessEqual(Ind(T), Ind(N))), le(0, T), (readable_scalars,))

seen = Chain(
    (
        Link(Sum(c[i] ** 2, i, 1, T), (Using(Given("length 1"), left=-1),), "inputs c, not all 0"),
        Link(
            Sum(Sum(c[i] * c[j] * (g[i] * column(j)), j, 1, T), i, 1, T),
            (Given(readable.name),),
            "are read back",
        ),
    ),
    (Using(Given("null vector"), left=Sum(c[i] * g[i], i, 1, T)),),
    "but add nothing to the state",
)

LENGTH = Claim(
    id="state-space/history-length",
    title="a state of N entries from which every history of T scalar inputs can be read back has T <= N",
    statement=fits,
    sources=(
        Source(KALMAN, "controllability", "the columns Ā^{T-j} b span at most the states"),
        Source(NOTE, "state-space models: all the history is in the state", "of more than N inputs two histories share a state"),
    ),
    proof=Each(
        (
            Cases(
                (
                    (le(T, N), Sign((Product((Ind(N - T),)),))),
                    (lt(N, T), NullVector(column(j), j, T, c.name, Absurd(seen))),
                )
            ),
            ForEach(Direct((Given(readable.name),), "one of them is left")),
        )
    ),
    near_misses=(
        variant(fits, "any history", drop=readable.name, at={N: 1, T: 2}),
        variant(fits, "one input less", fitting(LessEqual(Ind(T), Ind(N - 1))), at={N: 1, T: 1, Abar: 1, b: 1}),
        variant(fits, "as many inputs as entries", fitting(LessEqual(Ind(N), Ind(T))), at={N: 2, T: 1}),
        variant(fits, "read back from the last input alone", fitting(LessEqual(Ind(T), Ind(N)), weights[T] * b)),
    ),
)

CLAIMS = (SUFFICIENT, BOUNDED, LENGTH)
