"""DeltaProduct: several steps of the delta rule for every token.

    H_{i,j} = H_{i,j-1} (I - β_{i,j} k_{i,j} k_{i,j}ᵀ) + β_{i,j} v_{i,j} k_{i,j}ᵀ        H_{i,0} = H_{i-1},  H_i = H_{i,n_h},  y_i = H_i q_i

The keys, values and rates of all tokens in a row, token i has those after the cut b_{i-1} up to b_i: n_h steps for each token are
b_i = n_h i, and any other cuts give each token a number of steps of its own, none among them.

Source: Siems, Carstensen, Zela, Hutter, Pontil, Grazzi, "DeltaProduct: Improving State-Tracking in Linear RNNs via Householder
Products", arXiv 2502.10297. Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from .claim import Claim, Source, variant
from .delta_rule.operator import H0, H, beta, j, k, keeps, q, s, t, v
from .kernel.formulas import And, Equation, Formula, Statement
from .kernel.scripts import Chain, Direct, Each, Hypothesis, Induction, Lemma, Link, Part, Unfold
from .kernel.terms import Index, Prod, Recurrence, Sum, Term, cuts, indices, le, recurrence

SIEMS = "Siems et al., DeltaProduct: Improving State-Tracking in Linear RNNs via Householder Products, arXiv 2502.10297"

(i,) = indices("i")
b = cuts("b")


def write(at: Index) -> Term:
    """What a step writes."""
    return beta[at] * v[at] * k[at].T


def steps(state: Term, after: Index) -> Recurrence:
    """The steps of one token, numbered from 1, from a state and after a cut."""
    return recurrence("H", state, lambda j, H: H * keeps(after + j) + write(after + j))


def number(i: Index) -> Index:
    """How many steps token i has."""
    return b[i] - b[i - 1]


P = recurrence("P", H0, lambda i, P: steps(P, b[i - 1])[number(i)])


def kept(first: Index, last: Index, *, decreasing: bool = False) -> Term:
    """A product of generalised Householder matrices, the earliest step leftmost."""
    return Prod(keeps(s), s, first, last, decreasing)


def token(state: Term, i: Index, *, decreasing: bool = False) -> Term:
    """What token i makes of a state: the product of its transitions, and its writes, each through the transitions after it."""
    first, last = b[i - 1] + 1, b[i]
    writes = Sum(write(j) * kept(j + 1, last, decreasing=decreasing), j, first, last)
    return state * kept(first, last, decreasing=decreasing) + writes


def product(update: Term, flat: Term = H[b[i]]) -> Formula:
    """The update of a token, and the loop over tokens as the delta rule on all steps in a row, read where a token ends."""
    return And(Equation(P[i], update), Equation(P[i], flat), Equation(P[i] * q[i], flat * q[i]))


def micro_steps(state: Term, i: Index) -> Lemma:
    """The delta rule on the steps of token i, unrolled."""
    own = {family.name: ((t,), family[b[i - 1] + t]) for family in (k, v, beta)}
    return Lemma("delta-rule/unrolled", at={t: number(i)}, families={**own, "H0": ((), state)})


at_once = P[i - 1] - Sum(beta[s] * (P[i - 1] * k[s] - v[s]) * k[s].T, s, b[i - 1] + 1, b[i])
delta_product = Statement(product(token(P[i - 1], i)), le(1, i))

PRODUCT = Claim(
    id="delta-product/interleaved",
    title="several delta steps a token are the delta rule on all steps in a row; its transition is a product of Householder matrices",
    statement=delta_product,
    sources=(
        Source(
            SIEMS,
            "the state transition as a product of n_h generalised Householder matrices",
            "any number of steps for each token; with a state at the start",
        ),
    ),
    proof=Each(
        (
            Direct((Unfold(P[i]), micro_steps(P[i - 1], i)), "the steps of a token, unrolled"),
            Induction(
                i,
                Direct((Unfold(P[1]), micro_steps(P[0], 1), Lemma("delta-rule/unrolled")), "the steps of the first token"),
                Chain(
                    (
                        Link(token(P[i], i + 1), (micro_steps(P[i], i + 1),), "the steps of a token, unrolled"),
                        Link(token(H[b[i]], i + 1), (Hypothesis(),), "from the state at the cut"),
                    ),
                    (Lemma("delta-rule/unrolled"),),
                    "the sums join at the cut",
                ),
                start=1,
            ),
            Direct((Part(2),), "the same state is read"),
        )
    ),
    near_misses=(
        variant(delta_product, "the transitions of a token in reversed order", product(token(P[i - 1], i, decreasing=True))),
        variant(delta_product, "all steps of a token correct the state before it", product(at_once)),
        variant(delta_product, "read before the last step of the token", product(token(P[i - 1], i), H[b[i] - 1])),
        variant(delta_product, "one step for each token", product(token(P[i - 1], i), H[i])),
    ),
)

CLAIMS = (PRODUCT,)
