"""What a matrix of key-value products remembers: exact recall with orthonormal keys, and weights that never change.

    H_t = H_{t-1} + v_t k_tᵀ        recalled for key k_i: H_t k_i

The state is that of linear attention; see linear_attention.
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Implies, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Lemma, Link, Suppose
from ..kernel.terms import Eye, Index, Num, Stack, Sum, Term, equal, indicator, indices, le, norm2, recurrence, vector
from ..linear_attention.operator import H0, H, d_k, d_v, fresh_start, k, v

t, s, i, j, l, n, N, r = indices("t s i j l n N r")

NOTE = "08 - Transformer and Variants (a blog note)"
SCHLAG = "Schlag et al., Linear Transformers Are Secretly Fast Weight Programmers, arXiv 2102.11174"

# Exact recall -------------------------------------------------------------------------------------

# Unit vectors in a mirror: orthonormal, and any N <= d_k of them.
mirror = vector("w", d_k)
unit = Stack(indicator(equal(r, n)), r, 1, d_k)
orthonormal = Assumption(
    "orthonormal keys",
    ForAll(ForAll(Equation(k[n].T * k[i], indicator(equal(n, i))), i, 1, N), n, 1, N),
    solve={k[n]: (Eye(d_k) - 2 / norm2(mirror) * mirror * mirror.T) * unit},
)
recall = Statement(Equation(H[t] * k[s], v[s]), le(1, s) & le(s, t) & le(t, N) & le(N, d_k), (fresh_start, orthonormal))

RECALL = Claim(
    id="memory/orthonormal-recall",
    title="with orthonormal keys, of which d_k fit, every value is recalled exactly",
    statement=recall,
    sources=(
        Source(NOTE, "section 1.3.3: keys can be designed for t <= d"),
        Source(SCHLAG, "section 4.1, the capacity of a fast weight memory"),
    ),
    proof=Chain(
        (
            Link(Sum(v[j] * (k[j].T * k[s]), j, 1, t), (Lemma("linear-attention/state"), Given("H_0 = 0")), "the state, unrolled"),
        ),
        (Given("orthonormal keys"),),
        "only the key itself is met",
    ),
    near_misses=(
        variant(recall, "a state at the start", drop="H_0 = 0"),
        variant(recall, "any keys", drop="orthonormal keys"),
        variant(recall, "the value of the last token", Equation(H[t] * k[s], v[t])),
    ),
)

# Nothing is forgotten -----------------------------------------------------------------------------

# The weight of v_j in a read-out is what a change δ of v_j is multiplied with there.
delta, query = vector("delta", d_v), vector("x", d_k)


def value(at: Index) -> Term:
    """The values, with v_j changed by δ."""
    return v[at] + indicator(equal(at, j)) * delta


changed = recurrence("H", H0, lambda t, H: H + value(t) * k[t].T)
HALF = Num(Fraction(1, 2))


def weighs(weight: Term) -> Equation:
    """The change of a read-out by a query x is the weight times the change of the value."""
    return Equation((changed[t] - H[t]) * query, weight * delta)


product = k[j].T * query
weight = weighs(product)


def since(first: Index, last: Index, found: Term) -> Term:
    """What a range of tokens adds to a read-out by a vector."""
    return Sum((k[i].T * found) * v[i], i, first, last)


drift = Equation(H[t] * k[j] - H[j] * k[j], since(j + 1, t, k[j]))
orthogonal = ForAll(Equation(k[i].T * k[j], 0), i, j + 1, t)
kept = Implies(orthogonal, Equation(H[t] * k[j], H[j] * k[j]))
never = Statement(And(weight, drift, kept), le(1, j) & le(j, t))

of_changed = Lemma("affine/additive", part=1, families={"U": ((t,), value(t) * k[t].T)})

NEVER = Claim(
    id="memory/linear-never-forgets",
    title="for a fixed query the weight of v_j is k_jᵀx at every t >= j; what k_j reads still drifts, unless later keys are orthogonal",
    statement=never,
    sources=(Source(NOTE, "section 1.3.3: the memory is not changed again", "that the read-out by k_j drifts is not said there"),),
    proof=Each(
        (
            Direct((of_changed, Lemma("linear-attention/state")), "both states, unrolled: they differ in write j"),
            Direct((Lemma("linear-attention/state"),), "the writes after j"),
            Suppose(
                Chain(
                    (Link(H[j] * k[j] + since(j + 1, t, k[j]), (Lemma("linear-attention/state"),), "the writes after j"),),
                    (Given("premise"),),
                    "their keys do not meet k_j",
                )
            ),
        )
    ),
    near_misses=(
        variant(never, "the weight fades with age", And(weighs(HALF ** (t - j) * product), drift, kept)),
        variant(never, "what k_j reads stays", And(weight, drift, kept.args[1])),
        variant(never, "the write itself is part of the drift", And(weight, Equation(H[t] * k[j] - H[j] * k[j], since(j, t, k[j])), kept)),
    ),
)

CLAIMS = (RECALL, NEVER)
