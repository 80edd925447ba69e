"""Chunks of any sizes: from state to state, and all outputs of a chunk at once.

Cuts 0 = b_0 <= b_1 <= ... end the chunks: chunk i is the tokens b_i + 1, ..., b_{i+1}.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Part, Rowwise
from ..kernel.terms import Eye, Family, Hadamard, Index, Num, Recurrence, Stack, Term, Where, cuts, entries, indices, le, named, recurrence
from .forms import decay
from .operator import DAO, DECLARATION, H0, YOCO, H, d_k, d_v, gamma, k, q, t, v

i, j, n, s = indices("i j n s")
b = cuts("b")


def rows(family: Family, i: Index) -> Term:
    """The matrix whose rows are the members of a chunk, transposed."""
    return named(family.name.upper(), Stack(family[j].T, j, b[i] + 1, b[i + 1]), i)


def faded(i: Index) -> Term:
    """The values of a chunk, each faded until its end."""
    return named("V'", Stack(decay(j + 1, b[i + 1]) * v[j].T, j, b[i] + 1, b[i + 1]), i)


def states(first: Index = 1, last: Index = 0) -> Recurrence:
    """The loop over the chunks: the state passes the gates of each, from its first token to its last."""
    return recurrence("S", H0, lambda i, S: decay(b[i - 1] + first, b[i] + last) * S + faded(i - 1).T * rows(k, i - 1))


S = states()
outputs = Stack((H[n] * q[n]).T, n, b[i] + 1, b[i + 1])
weight = Where(le(j, n), decay(j + 1, n), Num(0))
D = named("D", entries(weight, n, (b[i] + 1, b[i + 1]), j, (b[i] + 1, b[i + 1])), i)


def read(S: Term, first: Index = b[i] + 1, *, mask: bool = True) -> Term:
    """All outputs of chunk i: the state at its start, faded, and the tokens of the chunk, read by its queries."""
    Q, K, V = rows(q, i), rows(k, i), rows(v, i)
    from_start = Stack(decay(first, n) * (S * q[n]).T, n, b[i] + 1, b[i + 1])
    return (Hadamard(Q * K.T, D) if mask else Q * K.T) * V + from_start


chunk_outputs = read(S[i])


def chunked(states: Term = S[i], at: Term = H[b[i]], chunk: Term = chunk_outputs) -> Formula:
    """The states at the cuts, and the outputs of a chunk."""
    return And(Equation(states, at), Equation(chunk, outputs))


chunkwise = Statement(chunked(), le(0, i))
affine = {"L": ((t,), gamma[t] * Eye(d_v)), "R": ((t,), Eye(d_k)), "U": ((t,), v[t] * k[t].T)}


def resumed(last: Index) -> Lemma:
    """The state from that at the start of chunk i and the writes since then."""
    return Lemma("affine/split-resume", part=1, at={s: b[i], t: last}, families=affine)


CHUNKWISE = Claim(
    id="gated-retention/chunkwise",
    title="chunks of any sizes: a state passes the gates of a chunk, an output reads (QKᵀ ⊙ D) V of its chunk and S_i, faded up to it",
    statement=chunkwise,
    sources=(
        Source(YOCO, "gated retention, the chunkwise recurrent representation", "chunks of any sizes, and a state at the start"),
        Source(DAO, "the block decomposition of a semiseparable matrix", "numbers for transitions"),
    ),
    proof=Each(
        (
            Induction(i, Direct(note="no chunk"), Direct((Hypothesis(), resumed(b[i + 1])), "the run, cut and resumed at the chunk")),
            Rowwise(t, Direct((Part(1), resumed(t)), "row t: the mask cuts the sum at t; resumed up to t, the run is the same")),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(chunkwise, "the state does not pass the first gate of a chunk", chunked(states(first=2)[i])),
        variant(chunkwise, "the state does not pass the last gate of a chunk", chunked(states(last=-1)[i])),
        variant(chunkwise, "the gate at the cut counts twice", chunked(states(first=0)[i])),
        variant(chunkwise, "the first token of a chunk finds a state that has not faded", chunked(chunk=read(S[i], b[i] + 2))),
        variant(chunkwise, "the state fades from the start of the sequence", chunked(chunk=read(S[i], 1))),
        variant(chunkwise, "the state after the chunk", chunked(at=H[b[i + 1]])),
        variant(chunkwise, "the outputs read the state of the next chunk", chunked(chunk=read(S[i + 1]))),
        variant(chunkwise, "no mask in the chunk", chunked(chunk=read(S[i], mask=False))),
    ),
)

CLAIMS = (CHUNKWISE,)
