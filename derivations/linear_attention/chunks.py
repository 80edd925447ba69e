"""Chunks of any sizes: from state to state, and all outputs of a chunk at once.

Cuts 0 = b_0 <= b_1 <= ... end the chunks: chunk i is the tokens b_i + 1, ..., b_{i+1}.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Part, Rowwise
from ..kernel.terms import Eye, Family, Hadamard, Index, Stack, Term, cuts, entries, indicator, indices, le, named, recurrence
from .operator import DECLARATION, H0, KATHAROPOULOS, H, d_k, d_v, i, j, k, q, s, t, v

YANG = "Yang et al., Gated Linear Attention Transformers with Hardware-Efficient Training, arXiv 2312.06635"

(n,) = indices("n")
b = cuts("b")


def rows(family: Family, i: Index) -> Term:
    """The matrix whose rows are the members of a chunk, transposed."""
    return named(family.name.upper(), Stack(family[j].T, j, b[i] + 1, b[i + 1]), i)


def step(S: Term, i: Index) -> Term:
    """The state after a chunk from the state before it."""
    return S + rows(v, i).T * rows(k, i)


S = recurrence("S", H0, lambda i, S: step(S, i - 1))
outputs = Stack((H[n] * q[n]).T, n, b[i] + 1, b[i + 1])
causal = named("M", entries(indicator(le(j, n)), n, (b[i] + 1, b[i + 1]), j, (b[i] + 1, b[i + 1])), i)


def read(S: Term, *, mask: bool = True) -> Term:
    """All outputs of chunk i: the state at its start and the tokens of the chunk, read by its queries."""
    Q, K, V = rows(q, i), rows(k, i), rows(v, i)
    return Q * S.T + (Hadamard(Q * K.T, causal) if mask else Q * K.T) * V


chunk_outputs = read(S[i])


def chunked(at: Term = H[b[i]], chunk: Term = chunk_outputs) -> Formula:
    """The states at the cuts, and the outputs of a chunk."""
    return And(Equation(S[i], at), Equation(chunk, outputs))


chunkwise = Statement(chunked(), le(0, i))
affine = {"L": ((t,), Eye(d_v)), "R": ((t,), Eye(d_k)), "U": ((t,), v[t] * k[t].T)}


def resumed(last: Index) -> Lemma:
    """The state from that at the start of chunk i and the writes since then."""
    return Lemma("affine/split-resume", part=1, at={s: b[i], t: last}, families=affine)


CHUNKWISE = Claim(
    id="linear-attention/chunkwise",
    title="chunks of any sizes: S_{i+1} = S_i + VᵀK is the state, Q Sᵀ + (QKᵀ ⊙ M) V the outputs of a chunk",
    statement=chunkwise,
    sources=(
        Source(YANG, "section 2.2, the chunkwise form", "chunks of any sizes, and a state at the start"),
        Source(KATHAROPOULOS, "equations 16 to 20", "the recurrence"),
    ),
    proof=Each(
        (
            Induction(i, Direct(note="no chunk"), Direct((Hypothesis(), resumed(b[i + 1])), "the run, cut and resumed at the chunk")),
            Rowwise(t, Direct((Part(1), resumed(t)), "row t: the mask cuts the sum at t; resumed up to t, the run is the same")),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(chunkwise, "the state after the chunk", chunked(at=H[b[i + 1]])),
        variant(chunkwise, "the outputs read the state of the next chunk", chunked(chunk=read(S[i + 1]))),
        variant(chunkwise, "the outputs read the state at the start", chunked(chunk=read(H0))),
        variant(chunkwise, "no mask in the chunk", chunked(chunk=read(S[i], mask=False))),
    ),
)

CLAIMS = (CHUNKWISE,)
