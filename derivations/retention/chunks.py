"""Chunks of any sizes: from state to state, and all outputs of a chunk at once.

Cuts 0 = b_0 <= b_1 <= ... end the chunks: chunk i is the tokens b_i + 1, ..., b_{i+1}.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Part, Rowwise
from ..kernel.terms import Eye, Family, Hadamard, Index, Num, Recurrence, Stack, Term, Where, cuts, entries, indices, le, named, recurrence
from .forms import powers
from .operator import DECLARATION, H0, SUN, H, d_k, d_v, gamma, k, q, t, v

i, j, n, s = indices("i j n s")
b = cuts("b")


def rows(family: Family, i: Index) -> Term:
    """The matrix whose rows are the members of a chunk, transposed."""
    return named(family.name.upper(), Stack(family[j].T, j, b[i] + 1, b[i + 1]), i)


def faded(i: Index) -> Term:
    """The values of a chunk, each faded until its end."""
    return named("V'", Stack(gamma ** (b[i + 1] - j) * v[j].T, j, b[i] + 1, b[i + 1]), i)


def states(age: Index = 0) -> Recurrence:
    """The loop over the chunks: the state fades over each, and a little more for an age that is not 0."""
    return recurrence("S", H0, lambda i, S: gamma ** (b[i] - b[i - 1] + age) * S + faded(i - 1).T * rows(k, i - 1))


S = states()
outputs = Stack((H[n] * q[n]).T, n, b[i] + 1, b[i + 1])
weight = Where(le(j, n), gamma ** (n - j), Num(0))
D = named("D", entries(weight, n, (b[i] + 1, b[i + 1]), j, (b[i] + 1, b[i + 1])), i)


def read(S: Term, age: Index = n - b[i], *, mask: bool = True) -> Term:
    """All outputs of chunk i: the state at its start, faded, and the tokens of the chunk, read by its queries."""
    Q, K, V = rows(q, i), rows(k, i), rows(v, i)
    from_start = Stack(gamma**age * (S * q[n]).T, n, b[i] + 1, b[i + 1])
    return (Hadamard(Q * K.T, D) if mask else Q * K.T) * V + from_start


chunk_outputs = read(S[i])


def chunked(states: Term = S[i], at: Term = H[b[i]], chunk: Term = chunk_outputs) -> Formula:
    """The states at the cuts, and the outputs of a chunk."""
    return And(Equation(states, at), Equation(chunk, outputs))


chunkwise = Statement(chunked(), le(0, i))
affine = {"L": ((t,), gamma * Eye(d_v)), "R": ((t,), Eye(d_k)), "U": ((t,), v[t] * k[t].T)}


def resumed(last: Index) -> Lemma:
    """The state from that at the start of chunk i and the writes since then."""
    return Lemma("affine/split-resume", part=1, at={s: b[i], t: last}, families=affine)


CHUNKWISE = Claim(
    id="retention/chunkwise",
    title="chunks of any sizes: the state fades over a chunk, an output reads (QKᵀ ⊙ D) V of its chunk and γ^{t-b_i} S_i q_t",
    statement=chunkwise,
    sources=(Source(SUN, "equation 7", "chunks of any sizes, and a state at the start; without rotation and normalisation"),),
    proof=Each(
        (
            Induction(
                i, Direct(note="no chunk"), Direct((Hypothesis(), resumed(b[i + 1]), powers), "the run, cut and resumed at the chunk")
            ),
            Rowwise(t, Direct((Part(1), resumed(t), powers), "row t: the mask cuts the sum at t; resumed up to t, the run is the same")),
        )
    ),
    operator=DECLARATION,
    # an exponent that is off by one shows only where the cut has a state, and never at γ = 1
    near_misses=(
        variant(chunkwise, "the state fades once less than the chunk has tokens", chunked(states(-1)[i])),
        variant(chunkwise, "the state fades once more than the chunk has tokens", chunked(states(1)[i])),
        variant(chunkwise, "the first token of a chunk finds a state that has not faded", chunked(chunk=read(S[i], n - b[i] - 1))),
        variant(chunkwise, "the last token of a chunk finds the state of the next one", chunked(chunk=read(S[i], b[i + 1] - n))),
        variant(chunkwise, "the state after the chunk", chunked(at=H[b[i + 1]])),
        variant(chunkwise, "the outputs read the state of the next chunk", chunked(chunk=read(S[i + 1]))),
        variant(chunkwise, "no mask in the chunk", chunked(chunk=read(S[i], mask=False))),
    ),
)

CLAIMS = (CHUNKWISE,)
