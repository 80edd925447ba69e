"""The Kalman filter: one more output, and batch conditioning on all outputs is one step of a linear recurrence.

    x' = A x + c + w        y' = H x' + v        Cov w = Q, Cov v = R, both independent of all before

Of all outputs Y before, n numbers, nothing is used but means and covariances: E x = μ, Cov x = Π, Cov(x, Y) = L, Cov Y = W. What
conditioning on Y gives is m = μ + J (Y - E Y) and P = Π - J Lᵀ, J = L W⁻¹. The empty Y is the start: m = μ, P = Π.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, Statement
from ..kernel.scripts import Cancels, Direct, Each, Exists, Given, Part, UniqueInverse, Using
from ..kernel.terms import Block, Eye, Inverse, Term, Zero, indices, matrix, named, vector

KALMAN = "Kalman, A New Approach to Linear Filtering and Prediction Problems, J. Basic Eng. 82 (1960)"
ANDERSON = "Anderson and Moore, Optimal Filtering (1979)"

N, p, n = indices("N p n")
A, H, Q, R = matrix("A", N, N), matrix("H", p, N), matrix("Q", N, N), matrix("R", p, p)
mu, c = vector("mu", N), vector("c", N)
Pi, L, W, J = matrix("Pi", N, N), matrix("L", N, n), matrix("W", n, n), matrix("J", N, n)
seen, y = vector("e", n), vector("y", p)  # Y less its mean, and the new output

# All at once: the means and covariances of x' and of (Y, y').
new_mu, new_Pi = A * mu + c, A * Pi * A.T + Q
crossed = Block((A * L, new_Pi * H.T))
joint = named("W'", Block((W, L.T * A.T * H.T), (H * A * L, H * new_Pi * H.T + R)))
surprise = Block((seen,), (y - H * new_mu,))
batch_mean = new_mu + crossed * Inverse(joint) * surprise
shared = Block((L.T * A.T,), (H * new_Pi,))
batch_covariance = new_Pi - crossed * Inverse(joint) * shared

# Step by step, from what conditioning on Y gave.
mean, covariance = named("m", mu + J * seen), named("P", Pi - J * L.T)


def predicted(noise: Term) -> Term:
    """The covariance of x' given Y."""
    return named("P⁻", A * covariance * A.T + noise)


ahead = predicted(Q)
S = named("S", H * ahead * H.T + R)


def gain(innovation: Term = S, spread: Term = ahead) -> Term:
    """K: how much of the innovation goes into the mean."""
    return named("K", spread * H.T * Inverse(innovation))


# The joint covariance, inverted by blocks: S is what W leaves of the lower right one.
upper, known = L.T * A.T * H.T, H * A * J
top = Block((Inverse(W) + Inverse(W) * upper * Inverse(S) * known, -(Inverse(W) * upper * Inverse(S))))
bottom = Block((-(Inverse(S) * known), Inverse(S)))
onto = Block((Eye(n),), (Zero(p, n),)), Block((Zero(n, p),), (Eye(p),))
inverse = onto[0] * top + onto[1] * bottom
weighed = Assumption("J = L W⁻¹", Equation(J * W, L), solve={L: J * W})
below = (
    Using(Given(weighed.name), left=-(onto[1] * H * A), right=top),
    Using(Cancels(S), left=onto[1], right=Block((-known, Eye(p)))),
)
distinct = Assumption("the outputs before have an invertible covariance", Invertible(W))
uncertain = Assumption("the innovation has an invertible covariance", Invertible(S))


def filtered(K: Term, control: Term = c, spread: Term = ahead) -> Formula:
    """Conditioning on all outputs is the update of the filter, which is linear in the mean, the output and the control."""
    forecast, kept = A * mean + control, Eye(N) - K * H
    updated = forecast + K * (y - H * forecast)
    return And(
        Invertible(joint),
        Equation(Inverse(joint), inverse),
        Equation(batch_mean, updated),
        Equation(batch_covariance, kept * spread),
        Equation(updated, kept * A * mean + K * y + kept * control),
    )


gained = Using(Given(weighed.name), left=-A, right=top * surprise)
lost = Using(Given(weighed.name), left=A, right=top * shared)
conditioned = Statement(filtered(gain()), assumptions=(weighed, distinct, uncertain))

STEP = Claim(
    id="state-space/kalman",
    title="the step of the Kalman filter is conditioning a Gaussian state on all outputs at once: m' = (I - KH)(A m + c) + K y, a linear "
    "recurrence with gains of its own at every step",
    statement=conditioned,
    sources=(
        Source(KALMAN, "theorem 3", "outputs with noise, and a control c; after an invertible covariance of the outputs before"),
        Source(ANDERSON, "the conditional mean and covariance of Gaussian variables", "for any outputs"),
    ),
    proof=Each(
        (
            Exists(inverse=inverse, by=below),
            UniqueInverse(below),
            Direct((Using(Part(2), left=crossed, right=surprise), gained), "the gain is what the new output is weighed with"),
            Direct((Using(Part(2), left=-crossed, right=shared), lost), "what is left of the covariance"),
            Direct(note="collect what the mean is multiplied with"),
        )
    ),
    near_misses=(
        variant(conditioned, "any other J", drop=weighed.name),
        variant(conditioned, "outputs that repeat each other", drop=distinct.name, at={n: 1, W: 0}),
        variant(conditioned, "an output known beforehand", drop=uncertain.name, at={p: 1, n: 0, H: Zero(p, N), R: 0}),
        variant(conditioned, "the noise of the output left out", filtered(gain(named("S", H * ahead * H.T)))),
        variant(conditioned, "the noise of the state left out", filtered(gain(spread=predicted(Zero(N, N))))),
        variant(conditioned, "the gain before the prediction", filtered(gain(spread=covariance))),
        variant(conditioned, "the control left out", filtered(gain(), Zero(N, 1))),
    ),
)

CLAIMS = (STEP,)
