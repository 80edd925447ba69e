"""Features of the keys and queries, and a normaliser beside the state."""

from __future__ import annotations

from dataclasses import replace

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link
from ..kernel.terms import Apply, Index, Num, Sum, Term, Zero, indices, le, norm2, recurrence, scalars
from .operator import KATHAROPOULOS, d_v, j, k, q, t, v

m = indices("m")[0]
rho = scalars("rho")


def phi(of: Term) -> Term:
    """A feature map, any function."""
    return Apply("phi", (of,), m, 1)


S = recurrence("S", Zero(d_v, m), lambda t, S: S + v[t] * phi(k[t]).T)
z = recurrence("z", Zero(m, 1), lambda t, z: z + phi(k[t]))


def feature_sums(first: object = 1) -> Formula:
    """The state and the normaliser as sums over the keys."""
    return And(Equation(S[t], Sum(v[j] * phi(k[j]).T, j, first, t)), Equation(z[t], Sum(phi(k[j]), j, first, t)))


features = Statement(feature_sums(), le(0, t))
one_more = Induction(t, Direct(note="no token"), Direct((Hypothesis(),), "one more token"))

FEATURES = Claim(
    id="linear-attention/feature-state",
    title="with a feature map, the state and the normaliser are sums over the keys",
    statement=features,
    sources=(Source(KATHAROPOULOS, "equations 10, 11 and 16 to 19"),),
    proof=Each((one_more, one_more)),
    near_misses=(
        variant(features, "the first token is left out", feature_sums(2)),
        variant(features, "features of the sum", And(features.conclusion.args[0], Equation(z[t], phi(Sum(k[j], j, 1, t))))),
    ),
)


def similarity(n: Index) -> Term:
    """φ(query_t)ᵀ φ(key_n)."""
    return phi(q[t]).T * phi(k[n])


def normaliser_is(what: Term) -> Assumption:
    """The reciprocal ρ_t of a number; it has one where it is not 0."""
    return Assumption("the normaliser is not 0", Equation(rho[t] * what, 1), solve={rho[t]: Num(1) / what})


mean = Equation(rho[t] * S[t] * phi(q[t]), Sum(rho[t] * similarity(j) * v[j], j, 1, t))
sum_to_one = Equation(Sum(rho[t] * similarity(j), j, 1, t), 1)
normalized = Statement(And(mean, sum_to_one), le(0, t), (normaliser_is(z[t].T * phi(q[t])),))
state_and_normaliser = (Lemma("linear-attention/feature-state", part=0), Lemma("linear-attention/feature-state", part=1))

NORMALIZED = Claim(
    id="linear-attention/normalized",
    title="S_t φ(q_t) / z_tᵀφ(q_t) is a mean of the values, weighed in proportion to φ(q_t)ᵀφ(k_j), where z_tᵀφ(q_t) is not 0",
    statement=normalized,
    sources=(Source(KATHAROPOULOS, "equations 4, 9 and 20", "any feature map, also a signed one"),),
    proof=Each(
        (
            Direct(state_and_normaliser, "the state, unrolled"),
            Chain(
                (Link(rho[t] * (z[t].T * phi(q[t])), state_and_normaliser, "the normaliser, unrolled"),),
                (Given("the normaliser is not 0"),),
                "its reciprocal",
            ),
        )
    ),
    near_misses=(
        variant(normalized, "any factor", drop="the normaliser is not 0"),
        variant(
            normalized,
            "signed features: z_t is not 0",
            drop="the normaliser is not 0",
            add=(replace(normaliser_is(norm2(z[t])), name="z_t is not 0"),),
        ),
        variant(normalized, "the current token is left out", And(mean, Equation(Sum(rho[t] * similarity(j), j, 1, t - 1), 1))),
    ),
)

CLAIMS = (FEATURES, NORMALIZED)
