"""Many writes: the state as a sum, the products of transitions in closed form, and keys that do not interfere."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Implies, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Given, Hypothesis, Induction, Lemma, Link, Suppose
from ..kernel.terms import (
    Eye,
    Family,
    Index,
    Prod,
    Stack,
    Sum,
    Term,
    Zero,
    entries,
    equal,
    indicator,
    indices,
    le,
    named,
    norm2,
    scalars,
    vector,
)
from ..linear_attention import operator as linear_attention
from .operator import DECLARATION, H0, NOTE, ONE, YANG, H, beta, d_k, d_v, j, k, keeps, s, t, v


def kept(first: Index, last: Index, *, decreasing: bool = False) -> Term:
    """What a range of tokens leaves of the memory, the earliest token's transition leftmost."""
    return Prod(keeps(s), s, first, last, decreasing)


def written(weight: Term) -> Term:
    """The sum of the writes up to t, each times what is left of it."""
    return Sum(beta[j] * v[j] * k[j].T * weight, j, 1, t)


# A write is seen through the transitions of all later tokens.
unrolled = Statement(Equation(H[t], H0 * kept(1, t) + written(kept(j + 1, t))), le(0, t))

UNROLLED = Claim(
    id="delta-rule/unrolled",
    title="the state is the sum of the writes, each through the transitions after it",
    statement=unrolled,
    sources=(Source(YANG, "section 3.2", "there from the state at the start of a chunk"),),
    proof=Induction(
        t,
        Direct(note="t = 0: no token, no write"),
        Chain(
            (
                Link(H[t] * keeps(t + 1) + beta[t + 1] * v[t + 1] * k[t + 1].T, note="the update, as declared"),
                Link(
                    (H0 * kept(1, t) + written(kept(j + 1, t))) * keeps(t + 1) + beta[t + 1] * v[t + 1] * k[t + 1].T,
                    (Hypothesis(),),
                    "the state before, unrolled",
                ),
            ),
            note="the last transition joins every product; the last write has none after it",
        ),
    ),
    operator=DECLARATION,
    near_misses=(
        variant(
            unrolled,
            "transitions in reversed order",
            Equation(H[t], H0 * kept(1, t, decreasing=True) + written(kept(j + 1, t, decreasing=True))),
        ),
        variant(unrolled, "a write passes its own transition", Equation(H[t], H0 * kept(1, t) + written(kept(j, t)))),
        variant(unrolled, "the initial state is not transformed", Equation(H[t], H0 + written(kept(j + 1, t)))),
    ),
)

# T solves (I + tril(diag(β) K Kᵀ, -1)) T = diag(β), here entry by entry: forward substitution, row after row.
n, m, N = indices("n m N")
T = scalars("T")


def substituted(row: Index, column: Index) -> Term:
    """An entry of T from the rows above it."""
    return beta[row] * (indicator(equal(row, column)) - Sum((k[row].T * k[m]) * T[m, column], m, 1, row - 1))


ut_transform = Assumption(
    "UT transform",
    ForAll(ForAll(Equation(T[n, j], substituted(n, j)), j, 1, N), n, 1, N),
    solve={T[n, j]: substituted(n, j)},
)


def rows(family: Family) -> Term:
    """The matrix whose rows are the first t members, transposed."""
    return named(family.name.upper(), Stack(family[j].T, j, 1, t), t)


K, V, T_t = rows(k), rows(v), named("T", entries(T[n, j], n, (1, t), j, (1, t)), t)
triangular = ForAll(ForAll(Equation(T[n, j], 0), j, t + 1, N), n, 1, t)
product = Equation(kept(1, t), Eye(d_k) - K.T * T_t.T * K)
closed = Equation(H[t], H0 * kept(1, t) + (T_t * V).T * K)
wy = Statement(And(triangular, product, closed), le(0, t) & le(t, N), (ut_transform,))


def without_gates(part: int) -> Lemma:
    """What the gated delta rule says at gates that are 1."""
    return Lemma("gated-delta-rule/wy", part, {t: t}, {"gamma": ((t,), ONE)})


WY = Claim(
    id="delta-rule/wy",
    title="the product of transitions is I - KᵀTᵀK with the UT transform T, and H_t = H_0 Π + (TV)ᵀK",
    statement=wy,
    sources=(
        Source(YANG, "sections 3.1 and 3.2", "T by forward substitution; that it is lower triangular is the first part"),
        Source("Joffrain et al., Accumulating Householder Transformations, Revisited, ACM TOMS 32 (2006)", "the UT transform"),
    ),
    proof=Each(
        (
            ForEach(ForEach(Direct((without_gates(0),), "the gated delta rule with γ = 1: T is lower triangular"))),
            Direct((without_gates(1),), "the gated delta rule with γ = 1"),
            Direct((without_gates(2),), "the gated delta rule with γ = 1"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(wy, "T not transposed: the reversed product", And(triangular, Equation(kept(1, t), Eye(d_k) - K.T * T_t * K), closed)),
        variant(wy, "T transposed in the state", And(triangular, product, Equation(H[t], H0 * kept(1, t) + (T_t.T * V).T * K))),
        variant(wy, "any T", drop="UT transform"),
    ),
)

# Mutually orthogonal keys for any number of tokens: scaled unit vectors, then zeros, in a mirror.
r = indices("r")[0]
c, mirror = scalars("c"), vector("w", d_k)
scaled_unit = Stack(indicator(equal(r, n)) * c[n], r, 1, d_k)
orthogonal_keys = Assumption(
    "orthogonal keys",
    ForAll(ForAll(Equation(k[j].T * k[n], 0), j, 1, n - 1), n, 1, N),
    solve={k[n]: (Eye(d_k) - 2 / norm2(mirror) * mirror * mirror.T) * scaled_unit},
)
fresh_start = Assumption("H_0 = 0", Equation(H0, Zero(d_v, d_k)), solve={H0: Zero(d_v, d_k)})
apart = Given("orthogonal keys", {n: t + 1})
write = beta[t + 1] * v[t + 1] * k[t + 1].T
full_rate = ForAll(Equation(beta[j], 1), j, 1, N)
additive = Equation(H[t], Sum(beta[j] * v[j] * k[j].T, j, 1, t))
same_state = Equation(H[t], linear_attention.H[t])
orthonormal = Statement(And(additive, Implies(full_rate, same_state)), le(0, t) & le(t, N), (fresh_start, orthogonal_keys))

ORTHONORMAL = Claim(
    id="delta-rule/orthonormal",
    title="with orthogonal keys the writes add up, and at rate 1 the state is that of linear attention",
    statement=orthonormal,
    sources=(
        Source(NOTE, "sections 1.3.2 and 1.3.5", "keys of any length: only their orthogonality is needed"),
        Source(YANG, "section 2.2", "the update; not stated there"),
    ),
    proof=Each(
        (
            Induction(
                t,
                Direct((Given("H_0 = 0"),), "t = 0: both are 0"),
                Chain(
                    (
                        Link(H[t] * keeps(t + 1) + write, note="the update, as declared"),
                        Link(Sum(beta[j] * v[j] * k[j].T, j, 1, t) * keeps(t + 1) + write, (Hypothesis(),), "the state before"),
                    ),
                    (apart,),
                    "the new key finds nothing",
                ),
            ),
            Suppose(
                Induction(
                    t,
                    Direct((Given("H_0 = 0"),), "t = 0: both are 0"),
                    Chain(
                        (
                            Link(linear_attention.H[t] * keeps(t + 1) + write, (Hypothesis(),), "the update, from the same state"),
                            Link(
                                Sum(v[j] * k[j].T, j, 1, t) * keeps(t + 1) + write,
                                (Lemma("linear-attention/state"), Given("H_0 = 0")),
                                "that state, unrolled",
                            ),
                            Link(
                                Sum(v[j] * k[j].T, j, 1, t) + v[t + 1] * k[t + 1].T, (apart, Given("premise")), "the new key finds nothing"
                            ),
                        ),
                        (Lemma("linear-attention/state"), Given("H_0 = 0")),
                        "linear attention's next state",
                    ),
                )
            ),
        )
    ),
    near_misses=(
        variant(
            orthonormal,
            "the writes add up without their rates",
            And(Equation(H[t], Sum(v[j] * k[j].T, j, 1, t)), Implies(full_rate, same_state)),
        ),
        variant(orthonormal, "a state at the start", drop="H_0 = 0"),
        variant(orthonormal, "keys that are not orthogonal", drop="orthogonal keys"),
    ),
)

CLAIMS = (UNROLLED, WY, ORTHONORMAL)
