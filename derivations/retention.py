"""Retention: linear attention whose memory fades by a constant factor.

    H_t = γ H_{t-1} + v_t k_tᵀ        y_t = H_t q_t

Source: Sun et al., "Retentive Network: A Successor to Transformer for Large Language Models", arXiv 2307.08621,
section 2.1 (without the group norm and its normalisations). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from . import linear_attention
from .claim import Claim, Source, variant
from .kernel.formulas import And, Assumption, Declaration, Equation, Implies, Statement
from .kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Rowwise, Suppose, Unfold, Using
from .kernel.terms import (
    Hadamard,
    Index,
    Num,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    entries,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrix,
    recurrence,
    scalar,
    vectors,
)

d_k, d_v = indices("d_k d_v")
t, s, j, i, n, T = indices("t s j i n T")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
gamma = scalar("gamma")
H0 = matrix("H0", d_v, d_k)

SUN = "Sun et al., Retentive Network: A Successor to Transformer for Large Language Models, arXiv 2307.08621"
NOTE = "08 - Transformer and Variants (a blog note)"

H = recurrence("H", H0, lambda t, H: gamma * H + v[t] * k[t].T)

DECLARATION = Declaration(
    operator="retention",
    inputs={"q": q, "k": k, "v": v, "gamma": gamma},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "gamma": "real, 0 <= gamma <= 1"},
    source=f"{SUN}, equation 6",
)
DECLARATIONS = (DECLARATION,)


def faded(at: Index, weight: Term) -> Term:
    """The start, faded, and the sum of the writes up to a time, each with a weight."""
    return gamma**at * H0 + Sum(weight * v[j] * k[j].T, j, 1, at)


unrolled = Statement(Equation(H[t], faded(t, gamma ** (t - j))), le(0, t))
scaled = Lemma("affine/scaled", part=1, families={"a": ((t,), gamma), "U": ((t,), v[t] * k[t].T)})
powers = Lemma("affine/products", part=3, families={"c": ((), gamma)})

UNROLLED = Claim(
    id="retention/unrolled",
    title="the state is the sum of the writes, each faded by its age",
    statement=unrolled,
    sources=(Source(SUN, "equation 1", "there A for γ; with a state at the start"), Source(NOTE, "section 1.3.4, RetNet")),
    proof=Direct((scaled, powers), "numbers for transitions: products of one number are its powers"),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "a write fades at once", Equation(H[t], faded(t, gamma ** (t - j + 1)))),
        variant(unrolled, "old writes stay as they are", Equation(H[t], faded(t, Num(1)))),
        variant(unrolled, "the start does not fade", Equation(H[t], H0 + Sum(gamma ** (t - j) * v[j] * k[j].T, j, 1, t))),
    ),
)


def rows(family: object) -> Term:
    """The matrix whose row i is the i-th member, transposed."""
    return Stack(family[i].T, i, 1, T)  # type: ignore[index]


def decay(shift: Index = 0) -> Term:
    """D: γ to the age of token j for query i, and 0 for tokens to come."""
    return entries(Where(le(j, i), gamma ** (i - j + shift), Num(0)), i, (1, T), j, (1, T))


Q, K, V = rows(q), rows(k), rows(v)
outputs = Stack((H[i] * q[i]).T, i, 1, T)
from_start = Stack(gamma**i * (H0 * q[i]).T, i, 1, T)
parallel = Statement(Equation(Hadamard(Q * K.T, decay()) * V + from_start, outputs), le(0, T))
upper = entries(Where(le(i, j), gamma ** (j - i), Num(0)), i, (1, T), j, (1, T))

PARALLEL = Claim(
    id="retention/parallel",
    title="(QKᵀ ⊙ D) V with D_tj = γ^{t-j} for j <= t computes the recurrence; a state at the start adds γ^t H_0 q_t",
    statement=parallel,
    sources=(Source(SUN, "equation 5 and section 2.1", "without rotation and normalisation; with a state at the start"),),
    proof=Rowwise(n, Direct((Lemma("retention/unrolled"),), "row n: the mask cuts the sum at n")),
    operator=DECLARATION,
    near_misses=(
        variant(parallel, "decay transposed", Equation(Hadamard(Q * K.T, upper) * V + from_start, outputs)),
        variant(parallel, "the current token fades", Equation(Hadamard(Q * K.T, decay(1)) * V + from_start, outputs)),
        variant(parallel, "no mask", Equation(Q * K.T * V + from_start, outputs)),
        variant(parallel, "a state at the start is forgotten", Equation(Hadamard(Q * K.T, decay()) * V, outputs)),
    ),
)

# The ends of the range of γ -----------------------------------------------------------------------

keeps_all, keeps_none = Equation(gamma, 1), Equation(gamma, 0)
additive = Equation(H[n], linear_attention.H[n])
current = Equation(H[s], v[s] * k[s].T)
age_zero = Equation(gamma**n, indicator(equal(n, 0)))
limits = Statement(
    And(Implies(keeps_all, additive), Implies(keeps_none, And(current, age_zero))), le(0, n) & le(1, s)
)
nothing_kept = Using(Given("premise"), right=gamma**n)

LIMITS = Claim(
    id="retention/limits",
    title="γ = 1 is linear attention; γ = 0 keeps the current token only, with 0⁰ = 1",
    statement=limits,
    sources=(Source(SUN, "equations 5 and 6", "γ lies strictly between there"), Source(NOTE, "section 1.3.4: γ in [0, 1]")),
    proof=Each(
        (
            Suppose(
                Induction(
                    n,
                    Direct(note="the same start"),
                    Chain(
                        (Link(gamma * H[n] + v[n + 1] * k[n + 1].T, note="the update, as declared"),),
                        (Hypothesis(), Given("premise")),
                        "γ = 1: the update of linear attention",
                    ),
                )
            ),
            Suppose(
                Each(
                    (
                        Direct((Unfold(H[s]), Given("premise")), "γ = 0: nothing of the state before"),
                        Induction(
                            n,
                            Direct(note="the current token has no factor γ: 0⁰ = 1"),
                            Direct((nothing_kept,), "an older one has a factor γ = 0"),
                        ),
                    )
                )
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(limits, "any γ is linear attention", And(additive, Implies(keeps_none, And(current, age_zero)))),
        variant(
            limits,
            "γ = 0 forgets the current token too",
            And(Implies(keeps_all, additive), Implies(keeps_none, And(Equation(H[s], Zero(d_v, d_k)), age_zero))),
        ),
        variant(limits, "0⁰ = 0", And(Implies(keeps_all, additive), Implies(keeps_none, And(current, Equation(gamma**n, 0))))),
    ),
)

# What becomes of one value ------------------------------------------------------------------------

CLAIMS = (UNROLLED, PARALLEL, LIMITS)
