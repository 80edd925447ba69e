"""A sink: one more term in the normaliser, so that a query may read next to nothing."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Direct, Each
from ..kernel.terms import Exp, Sum, Term, Where, Zero, equal, le, scalar
from .operators import MASKED, d_v, j, k, normaliser, q, read, t, v

XIAO = "Xiao et al., Efficient Streaming Language Models with Attention Sinks, arXiv 2309.17453"
sigma = scalar("sigma")
Z = normaliser(t, t)
seen = Sum(Exp(q[t].T * k[j]) * v[j], j, 1, t)
sunk = seen / (Exp(sigma) + Z)


def with_token(value: Term) -> Term:
    """Plain softmax attention to the tokens 0..t, of which token 0 has the logit σ and a given value."""
    weight = Exp(Where(equal(j, 0), sigma, q[t].T * k[j]))
    return Sum(weight * Where(equal(j, 0), value, v[j]), j, 0, t) / Sum(weight, j, 0, t)


def gated(gate: Term) -> Equation:
    """The plain read-out, multiplied by a number."""
    return Equation(sunk, gate * read(t, t))


def nearest(token: Term, gate: Term) -> And:
    """A token with a value of its own, and a gate on the read-out."""
    return And(Equation(sunk, token), gated(gate))


gate = Z / (Exp(sigma) + Z)
no_value = with_token(Zero(d_v, 1))
sink = Statement(nearest(no_value, gate), le(1, t))
as_written = Statement(Equation(sunk, read(t, t)), le(1, t))

SINK = Claim(
    id="attention/sink",
    title="a sink is no plain softmax over the tokens: it is one more key with value 0, or a gate Z/(e^σ + Z) < 1 on the read-out",
    statement=sink,
    as_written=as_written,
    expected="refuted",
    sources=(Source(XIAO, "section 3.3, where the sink is a zero key (σ = 0) or a learned one", "as if weights still added up to 1"),),
    proof=Each((Direct(note="token 0 adds e^σ to the normaliser, and nothing to the values"), Direct(note="Z cancels"))),
    operator=MASKED,
    near_misses=(
        variant(sink, "the sink is the first token", nearest(with_token(v[1]), gate)),
        variant(sink, "the gate is the weight of the sink", nearest(no_value, Exp(sigma) / (Exp(sigma) + Z))),
        variant(sink, "the logit itself is added to the normaliser", nearest(no_value, Z / (sigma**2 + Z))),
    ),
)

CLAIMS = (SINK,)
