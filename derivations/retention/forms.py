"""Retention as a sum, as a masked matrix product, at the ends of the range of γ, and what it forgets."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Implies, Less, LessEqual, Statement
from ..kernel.scripts import (
    Chain,
    Direct,
    Each,
    Given,
    Hypothesis,
    Induction,
    Lemma,
    Link,
    Part,
    Product,
    Rowwise,
    Sign,
    Suppose,
    Unfold,
    Using,
)
from ..kernel.terms import (
    Hadamard,
    Ind,
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
    recurrence,
    scalar,
    vector,
)
from ..linear_attention import operator as linear_attention
from .operator import DECLARATION, H0, NOTE, SUN, H, d_k, d_v, gamma, k, q, t, v

s, j, i, l, n, T = indices("s j i l n T")


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

# The weight of v_j in a read-out is what a change δ of v_j is multiplied with there.
delta, query = vector("delta", d_v), vector("x", d_k)
epsilon = scalar("epsilon")
ONE = Num(1)


def value(at: Index) -> Term:
    """The values, with v_j changed by δ."""
    return v[at] + indicator(equal(at, j)) * delta


changed = recurrence("H", H0, lambda t, H: gamma * H + value(t) * k[t].T)
of_changed = Lemma("affine/scaled", part=1, families={"a": ((t,), gamma), "U": ((t,), value(t) * k[t].T)})
change = (changed[t] - H[t]) * query


def seen(weight: Term) -> Equation:
    """The change of a read-out by a query x is the change of the value, times the weight."""
    return Equation(change, weight * (k[j].T * query) * delta)


# 1 - γ^n (1 + n (1 - γ)) is a sum of products that are not negative: γ^n <= 1 / (1 + n (1 - γ)) for γ in [0, 1].
bernoulli = Equation(
    1 - gamma**n * (1 + Ind(n) * (1 - gamma)),
    (1 - gamma) ** 2 * Sum(Ind(l) * gamma ** (l - 1), l, 1, n),
)
fading = And(LessEqual(0, gamma), Less(gamma, 1), Less(0, epsilon), LessEqual(1, Ind(n) * epsilon * (1 - gamma)))
sluggish = And(LessEqual(0, gamma), LessEqual(gamma, 1), Less(0, epsilon), LessEqual(1, Ind(n) * epsilon))
small = Implies(fading, LessEqual(gamma**n, epsilon))
no_sign = Implies(LessEqual(0, gamma), LessEqual(0, gamma**n))
stays = Implies(keeps_all, Equation(gamma**n, 1))


def forgotten(weight: Term = gamma ** (t - j), vanishes: Formula = small, at_one: Formula = stays) -> Formula:
    """The weight at t of a value written at j; it falls below any ε > 0 if γ < 1, and stays if γ = 1."""
    return And(seen(weight), bernoulli, no_sign, vanishes, at_one)


forgets = Statement(forgotten(), le(0, n) & le(1, j) & le(j, t))
unchanged = (of_changed, powers, Lemma("retention/unrolled"))

FORGETS = Claim(
    id="retention/forgets",
    title="for a fixed query the weight of v_j is γ^{t-j} k_jᵀx: it vanishes in time if γ < 1, and never changes if γ = 1",
    statement=forgets,
    sources=(
        Source(NOTE, "section 1.3.4: γ is there to forget"),
        Source(SUN, "section 2.1, the decay matrix D", "γ^n <= ε once n (1 - γ) ε >= 1, by Bernoulli's inequality"),
    ),
    proof=Each(
        (
            Direct(unchanged, "both states, unrolled: they differ in write j"),
            Induction(n, Direct(note="n = 0: no age, no term"), Direct((Using(Hypothesis()),), "one more term")),
            Suppose(Sign()),
            Suppose(
                Sign(
                    (
                        Product((epsilon, 1 - gamma, 1 - gamma, Sum(Ind(l) * gamma ** (l - 1), l, 1, n))),
                        Product((epsilon, gamma**n)),
                        Product((gamma**n, Ind(n) * epsilon * (1 - gamma) - 1)),
                    ),
                    (Using(Part(2), left=epsilon),),
                )
            ),
            Suppose(
                Induction(
                    n,
                    Direct(note="n = 0: no factor"),
                    Direct((Using(Given("premise"), right=gamma**n), Using(Hypothesis())), "one more factor 1"),
                )
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(forgets, "the weight of one step later", forgotten(gamma ** (t - j + 1))),
        variant(forgets, "a weight that stays", forgotten(ONE)),
        variant(
            forgets,
            "γ = 1 forgets too",
            forgotten(vanishes=Implies(sluggish, LessEqual(gamma**n, epsilon))),
        ),
        variant(forgets, "any γ stays", forgotten(at_one=Equation(gamma**n, 1))),
    ),
)

CLAIMS = (UNROLLED, PARALLEL, LIMITS, FORGETS)
