"""The memory of an encoder has a row for each of its tokens; with one row alone, every query would read the same."""

from __future__ import annotations

from ..attention.operators import NOTE, VASWANI, T, j, k, normaliser, q, read, t, v
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Direct, Each
from ..kernel.terms import Exp, Num, Sum, Term, equal, indices, le

(n,) = indices("n")
Z = normaliser(t, T)


def moved(total: Term, first: int = 1) -> Equation:
    """What query t reads, from the first value on."""
    rest = Sum(Exp(q[t].T * k[j]) * (v[j] - v[first]), j, 2, T)
    return Equation(read(t, T), v[first] + rest / total)


def alone(value: Term) -> Equation:
    """What query t reads from a memory of n = 1 row."""
    return Equation(read(t, n), value)


memory = Statement(And(moved(Z), alone(v[1])), le(1, T) & equal(n, 1))

ENCODER_OUTPUT = Claim(
    id="transformer/encoder-output",
    title="an encoder hands on a row for each of its tokens, not one: from a memory of one row every query reads V_1, and nothing else",
    statement=memory,
    as_written=Statement(Equation(read(t, T), v[1]), le(1, T)),
    expected="refuted",
    sources=(
        Source(NOTE, "encoder: the output is one token", "read as: what is handed on is one row, for memories of any length"),
        Source(VASWANI, "section 3.1: an encoder maps x_1..x_n to z_1..z_n"),
    ),
    proof=Each((Direct(note="the weights add up to 1"), Direct(note="the softmax of one number is 1"))),
    near_misses=(
        variant(memory, "the other rows are not normalised", And(moved(Num(1)), alone(v[1]))),
        variant(memory, "one row is read by its weight before the softmax", And(moved(Z), alone(Exp(q[t].T * k[1]) * v[1]))),
        variant(memory, "seen from the second value", And(moved(Z, 2), alone(v[1]))),
    ),
)

CLAIMS = (ENCODER_OUTPUT,)
