"""Training is inference, for gradients too: the recurrence and the masked product have one derivative in every direction."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma
from ..kernel.terms import At, Deriv, Hadamard, Index, Recurrence, Row, Stack, Term, Zero, indices, le, matrix, recurrence, scalar, vectors
from .forms import M
from .operator import DECLARATION, H0, KATHAROPOULOS, H, T, d_k, d_v, i, k, q, t, v

(n,) = indices("n")

# A direction: what the queries, keys, values and the start move by, times ε.
eps = scalar("epsilon")
dq, dk, dv = vectors("dq", d_k), vectors("dk", d_k), vectors("dv", d_v)
dH0 = matrix("dH0", d_v, d_k)


def moved(at: Term, by: Term) -> Term:
    """An input, moved in the direction."""
    return at + eps * by


def push(at: Index) -> Term:
    """The derivative of what a token writes."""
    return dv[at] * k[at].T + v[at] * dk[at].T


H_moved = recurrence("H", moved(H0, dH0), lambda t, H: H + moved(v[t], dv[t]) * moved(k[t], dk[t]).T)
tangent = recurrence("H", dH0, lambda t, H: H + push(t))
curvature = recurrence("H", Zero(d_v, d_k), lambda t, H: H + dv[t] * dk[t].T)


def rows(moved_row: Callable[[Index], Term]) -> Term:
    """A matrix row by row."""
    return Stack(moved_row(i).T, i, 1, T)


Q = rows(lambda n: moved(q[n], dq[n]))
K = rows(lambda n: moved(k[n], dk[n]))
V = rows(lambda n: moved(v[n], dv[n]))
parallel = Hadamard(Q * K.T, M) * V + Q * moved(H0, dH0).T
final = moved(H0, dH0) + V.T * K


def slope(x: Term) -> Term:
    """The derivative in the direction, at ε = 0."""
    return At(Deriv(x, eps), eps, 0)


def agree(output: Term, state: Term = tangent[T], rate: Recurrence = tangent) -> Formula:
    """The state along ε, the slope of row t of the masked product, and that of the last state as a product."""
    return And(
        Equation(H_moved[n], H[n] + eps * rate[n] + eps**2 * curvature[n]),
        Equation(slope(Row(parallel, t)), output.T),
        Equation(slope(final), state),
    )


read_out = tangent[t] * q[t] + H[t] * dq[t]
gradients = Statement(agree(read_out), le(0, n) & le(1, t) & le(t, T))
additive = Lemma("affine/additive", part=1, families={"H0": ((), dH0), "U": ((t,), push(t))})
state = Lemma("linear-attention/state")

TRAINING_IS_INFERENCE = Claim(
    id="linear-attention/training-is-inference",
    title="the recurrence and the masked product have one derivative in every direction of queries, keys, values and start",
    statement=gradients,
    sources=(
        Source(
            KATHAROPOULOS,
            "sections 3.3 and 3.4",
            "trained in parallel, run as a recurrence; derivatives in a direction, from which every gradient follows",
        ),
    ),
    proof=Each(
        (
            Induction(n, Direct(note="the start"), Direct((Hypothesis(),), "one more write")),
            Direct((additive, state), "row t, differentiated"),
            Direct((additive,), "the sum of the writes, differentiated"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(gradients, "the state is a constant", agree(H[t] * dq[t])),
        variant(gradients, "the query is a constant", agree(tangent[t] * q[t])),
        variant(gradients, "the last write is a constant", agree(read_out, tangent[T - 1])),
        variant(gradients, "the values are constants", agree(read_out, rate=recurrence("H", dH0, lambda t, H: H + v[t] * dk[t].T))),
    ),
)

CLAIMS = (TRAINING_IS_INFERENCE,)
