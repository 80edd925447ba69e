"""One write: its three forms, the gradient that it follows, what it stores, and when it is stable."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Iff, Implies, Less, LessEqual, NonZero, Statement
from ..kernel.scripts import Both, Chain, Contradiction, Direct, Each, Given, Link, Product, Sign, Suppose, Unfold
from ..kernel.terms import At, Deriv, Term, Trace, Zero, le, matrix, named, norm2, scalar, vector
from .operator import DECLARATION, HALF, NOTE, ONE, SCHLAG, YANG, H, beta, d_k, d_v, k, keeps, s, t, v

# The old value v_old = H_{t-1} k_t is taken out and the new one put in; or: the error is taken out.
old = H[t - 1] * k[t]


def corrected(state: Term, rate: Term, error: Term, key: Term) -> Term:
    """A state after one correction of an error, written at a key."""
    return state - rate * error * key.T


replaced = H[t - 1] - beta[t] * old * k[t].T + beta[t] * v[t] * k[t].T
update = Equation(H[t], corrected(H[t - 1], beta[t], old - v[t], k[t]))
three_forms = Statement(And(Equation(H[t], replaced), update), le(1, t))
transition = Link(H[t - 1] * keeps(t) + beta[t] * v[t] * k[t].T, (Unfold(H[t]),), "the update, as declared")
mixed = beta[t] * v[t] + (ONE - beta[t]) * old

THREE_FORMS = Claim(
    id="delta-rule/three-forms",
    title="transition, replacement and error correction are one update",
    statement=three_forms,
    sources=(
        Source(YANG, "section 2.2"),
        Source(SCHLAG, "section 4.2", "with a feature map on the keys"),
        Source(NOTE, "section 1.3.5"),
    ),
    proof=Each(
        (
            Chain(
                (
                    transition,
                    Link(H[t - 1] - old * k[t].T + mixed * k[t].T, note="remove the old value, write a mixture of old and new"),
                ),
                note="the shares of the old value add up",
            ),
            Chain((transition, Link(replaced, note="the product with I - β kkᵀ distributes")), note="both writes share the key"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(
            three_forms,
            "the sign of the error",
            And(Equation(H[t], replaced), Equation(H[t], corrected(H[t - 1], beta[t], v[t] - old, k[t]))),
        ),
        variant(
            three_forms,
            "the new value is written at full rate",
            And(Equation(H[t], H[t - 1] - beta[t] * old * k[t].T + v[t] * k[t].T), update),
        ),
        variant(
            three_forms,
            "the old value is read from the new state",
            And(Equation(H[t], replaced), Equation(H[t], corrected(H[t - 1], beta[t], H[t] * k[t] - v[t], k[t]))),
        ),
    ),
)


def loss(state: Term) -> Term:
    """Half the squared error of recalling v_t from a state by k_t."""
    return named("L", HALF * norm2(state * k[t] - v[t]), t, state)


def gradient(state: Term) -> Term:
    """The gradient of the loss in the state."""
    return (state * k[t] - v[t]) * k[t].T


X, E = matrix("X", d_v, d_k), matrix("E", d_v, d_k)
eps = scalar("epsilon")


def slope(of: Term, along: Term) -> Term:
    """The derivative of the loss at a state in a direction."""
    return At(Deriv(loss(of + eps * along), eps), eps, 0)


def inner(a: Term, b: Term) -> Term:
    """The inner product of two matrices."""
    return Trace(a.T * b)


# G is the gradient at X when the slope along every direction E is <G, E>; the update is one step against it.
is_gradient = Equation(slope(X, E), inner(gradient(X), E))
one_step = Equation(H[t], H[t - 1] - beta[t] * gradient(H[t - 1]))
gradient_step = Statement(And(is_gradient, one_step), le(1, t))

GRADIENT_STEP = Claim(
    id="delta-rule/gradient-step",
    title="the update is one gradient step of size β on the recall error",
    statement=gradient_step,
    sources=(Source(YANG, "section 2.2", "with the same loss ½|Hk - v|²"), Source(NOTE, "section 1.3.5")),
    proof=Each(
        (
            Chain(
                (
                    Link(
                        At(Deriv(loss(X) + eps * inner(gradient(X), E) + eps**2 * (HALF * norm2(E * k[t])), eps), eps, 0),
                        note="expand the square",
                    ),
                ),
                note="only the part linear in ε has a slope at 0",
            ),
            Chain((transition,), note="the error (Hk - v) factors out"),
        )
    ),
    near_misses=(
        variant(gradient_step, "twice the gradient", And(Equation(slope(X, E), 2 * inner(gradient(X), E)), one_step)),
        variant(gradient_step, "a step uphill", And(is_gradient, Equation(H[t], H[t - 1] + beta[t] * gradient(H[t - 1])))),
        variant(gradient_step, "the gradient at the new state", And(is_gradient, Equation(H[t], H[t - 1] - beta[t] * gradient(H[t])))),
    ),
)

# s is an index of its own: what is assumed of its rate says nothing about the other two parts.
share = beta[t] * norm2(k[t])
w, u = vector("w", d_k), vector("u", d_k)
exact_rate = Assumption("exact rate", Equation(beta[s] * norm2(k[s]), 1), solve={beta[s]: ONE / norm2(k[s])})
orthogonal = Assumption("orthogonal", Equation(k[t].T * u, 0), solve={u: w - (k[t].T * w / norm2(k[t])) * k[t]})
mixture = Equation(H[t] * k[t], (ONE - share) * H[t - 1] * k[t] + share * v[t])
stored, untouched = Equation(H[s] * k[s], v[s]), Equation(H[t] * u, H[t - 1] * u)
overwrite = Statement(And(mixture, stored, untouched), le(1, s) & le(1, t), (exact_rate, orthogonal))

OVERWRITE = Claim(
    id="delta-rule/overwrite",
    title="a write moves what its key finds towards the value, and nothing else",
    statement=overwrite,
    sources=(Source(YANG, "section 2.2", "there for β in (0, 1) and unit keys"), Source(SCHLAG, "section 4.2")),
    proof=Each(
        (
            Chain(
                (Link((H[t - 1] * keeps(t) + beta[t] * v[t] * k[t].T) * k[t], (Unfold(H[t]),), "the update, as declared"),),
                note="k meets k",
            ),
            Chain(
                (Link((ONE - beta[s] * norm2(k[s])) * H[s - 1] * k[s] + beta[s] * norm2(k[s]) * v[s], (Unfold(H[s]),), "the same at s"),),
                (Given("exact rate"),),
                "nothing is left of the old value",
            ),
            Chain(
                (
                    Link(
                        H[t - 1] * u + (k[t].T * u) * (beta[t] * v[t] - beta[t] * H[t - 1] * k[t]),
                        (Unfold(H[t]),),
                        "the write, seen from u",
                    ),
                ),
                (Given("orthogonal"),),
                "u does not see it",
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(
            overwrite,
            "the rate without the norm of the key",
            And(Equation(H[t] * k[t], (ONE - beta[t]) * H[t - 1] * k[t] + beta[t] * v[t]), stored, untouched),
        ),
        variant(
            overwrite, "the shares exchanged", And(Equation(H[t] * k[t], share * H[t - 1] * k[t] + (ONE - share) * v[t]), stored, untouched)
        ),
        variant(overwrite, "any rate stores the value", drop="exact rate"),
        variant(overwrite, "a direction that is not orthogonal", drop="orthogonal"),
    ),
)

factor = (ONE - share) ** 2
shrinks = Equation(loss(H[t]), factor * loss(H[t - 1]))
contracts = Less(factor, 1)
contraction = Statement(And(shrinks, Iff(And(Less(0, share), Less(share, 2)), contracts)), le(1, t))

CONTRACTION = Claim(
    id="delta-rule/loss-contraction",
    title="a write scales its own loss by (1 - β|k|²)², less than 1 exactly for 0 < β|k|² < 2",
    statement=contraction,
    sources=(Source(YANG, "section 2.2", "the factor is not stated there"),),
    proof=Each(
        (
            Chain(
                (Link(HALF * norm2((ONE - share) * (H[t - 1] * k[t] - v[t])), (Unfold(H[t]),), "the error is scaled by 1 - β|k|²"),),
                note="and the square by its square",
            ),
            Both(
                Sign((Product((share, 2 - share)),)),
                Each(
                    (
                        Contradiction("premise", (Product((-share, 2)), Product((-share, -share)))),
                        Contradiction("premise", (Product((share - 2, 2)), Product((share - 2, share - 2)))),
                    )
                ),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(
            contraction,
            "the factor unsquared",
            And(Equation(loss(H[t]), (ONE - share) * loss(H[t - 1])), Iff(And(Less(0, share), Less(share, 2)), contracts)),
        ),
        variant(contraction, "rates up to 1 only", And(shrinks, Iff(And(Less(0, share), Less(share, 1)), contracts))),
        variant(contraction, "the upper end included", And(shrinks, Iff(And(Less(0, share), LessEqual(share, 2)), contracts))),
        variant(contraction, "the lower end included", And(shrinks, Iff(And(LessEqual(0, share), Less(share, 2)), contracts))),
    ),
)


z = vector("z", d_k)
key = NonZero(norm2(k[t]))
at_least_0, at_most_2 = LessEqual(0, share), LessEqual(share, 2)


def no_longer(vector: Term) -> LessEqual:
    """The transition I - β kkᵀ does not make a vector longer."""
    return LessEqual(norm2(keeps(t) * vector), norm2(vector))


# The norm of I - β kkᵀ is at most 1 when no z gets longer; for the converse it is enough that k does not.
sound = Implies(And(key, at_least_0, at_most_2), no_longer(z))
sharp = Implies(And(key, no_longer(k[t])), And(at_least_0, at_most_2))
idle = Implies(Equation(k[t], Zero(d_k, 1)), And(Equation(share, 0), Equation(keeps(t) * z, z)))
stable = Statement(And(sound, sharp, idle), le(1, t))

STABLE = Claim(
    id="delta-rule/stable",
    title="the transition has norm at most 1 exactly for 0 <= β|k|² <= 2",
    statement=stable,
    sources=(Source(YANG, "the paragraph on normalizing the keys", "there by the eigenvalues 1 and 1 - β|k|²"),),
    proof=Each(
        (
            Suppose(Sign((Product((share, 2 - share, (k[t].T * z) ** 2, ONE / norm2(k[t]))),))),
            Suppose(
                Each(
                    (
                        Contradiction("premise 2", (Product((-share, norm2(k[t]), 2)), Product((-share, -share, norm2(k[t]))))),
                        Contradiction("premise 2", (Product((share - 2, norm2(k[t]), 2)), Product((share - 2, share - 2, norm2(k[t]))))),
                    )
                )
            ),
            Suppose(Each((Direct((Given("premise"),), "no key, no rate"), Direct((Given("premise"),), "and no change")))),
        )
    ),
    near_misses=(
        variant(stable, "rates up to 3", And(Implies(And(key, at_least_0, LessEqual(share, 3)), no_longer(z)), sharp, idle)),
        variant(stable, "negative rates", And(Implies(And(key, at_most_2), no_longer(z)), sharp, idle)),
        variant(stable, "only rates up to 1", And(sound, Implies(And(key, no_longer(k[t])), And(at_least_0, LessEqual(share, 1))), idle)),
        variant(stable, "only rates below 2", And(sound, Implies(And(key, no_longer(k[t])), And(at_least_0, Less(share, 2))), idle)),
    ),
)

CLAIMS = (THREE_FORMS, GRADIENT_STEP, OVERWRITE, CONTRACTION, STABLE)
