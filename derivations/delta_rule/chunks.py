"""Chunks of any sizes: from state to state, and all outputs of a chunk, by the UT transform of its tokens alone.

Cuts 0 = b_0 <= b_1 <= ... end the chunks: chunk i is the tokens b_i + 1, ..., b_{i+1}, here numbered from 1.
"""

from __future__ import annotations

from typing import cast

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.instances import instantiate
from ..kernel.scripts import Chain, Direct, Each, Hypothesis, Induction, Lemma, Link, Part, Rowwise, Unfold, Using
from ..kernel.terms import (
    Eye,
    Family,
    Hadamard,
    Index,
    Rec,
    Row,
    Stack,
    Term,
    cuts,
    entries,
    indicator,
    indices,
    le,
    named,
    recurrence,
    scalars,
)
from . import sequence
from .operator import DECLARATION, H0, ONE, YANG, H, beta, d_k, j, k, keeps, q, s, t, v
from .sequence import n

i, c, l, r, M = indices("i c l r M")
b = cuts("b")

# A run that is cut and resumed ----------------------------------------------------------------------


def resumed(start: Term, shift: Index = s) -> Rec:
    """The layer from a given state, on the tokens after a shift, numbered from 1."""
    return recurrence("H", start, lambda n, H: H * keeps(shift + n) + beta[shift + n] * v[shift + n] * k[shift + n].T)[n]


split = Statement(Equation(resumed(H[s]), H[s + n]), le(0, s) & le(0, n))

SPLIT = Claim(
    id="delta-rule/split-resume",
    title="the layer that starts from the state at s, on the tokens after it, is the whole layer",
    statement=split,
    sources=(Source(YANG, "section 3.2", "there from chunk to chunk"),),
    proof=Induction(n, Direct(note="n = 0: the state at the cut"), Direct((Hypothesis(),), "the same update of the same state")),
    operator=DECLARATION,
    near_misses=(
        variant(split, "resumed from the start", Equation(resumed(H0), H[s + n])),
        variant(split, "the token at the cut comes again", Equation(resumed(H[s], s - 1), H[s + n])),
    ),
)

# The chunks -----------------------------------------------------------------------------------------

T = scalars("T")


def size(i: Index) -> Index:
    """How many tokens chunk i has."""
    return b[i + 1] - b[i]


def rows(family: Family, i: Index) -> Term:
    """The matrix whose rows are the members of a chunk, transposed."""
    return named(family.name.upper(), Stack(family[b[i] + j].T, j, 1, size(i)), i)


def solved(i: Index) -> Term:
    """The UT transform of a chunk as a matrix."""
    return named("T", entries(T[i, n, j], n, (1, size(i)), j, (1, size(i))), i)


tokens = {"k": ((t,), k[b[c] + t]), "beta": ((t,), beta[b[c] + t]), "T": ((n, j), T[c, n, j])}
row_by_row = cast(Equation, instantiate(Statement(Equation(sequence.T[n, j], sequence.substituted(n, j))), tokens).conclusion)
ut_transform = Assumption(
    "UT transform of every chunk",
    ForAll(ForAll(ForAll(row_by_row, j, 1, size(c)), n, 1, size(c)), c, 0, M),
    solve={T[c, n, j]: row_by_row.rhs},
)


def step(S: Term, i: Index, *, turned: bool = True) -> Term:
    """The state after a chunk from the state before it."""
    K, V, T = rows(k, i), rows(v, i), solved(i)
    return S * (Eye(d_k) - K.T * (T.T if turned else T) * K) + (T * V).T * K


S = recurrence("S", H0, lambda i, S: step(S, i - 1))
not_turned = recurrence("S", H0, lambda i, S: step(S, i - 1, turned=False))
next_tokens = recurrence("S", H0, lambda i, S: step(S, i))
outputs = Stack((H[b[i] + n] * q[b[i] + n]).T, n, 1, size(i))
causal = named("M", entries(indicator(le(j, n)), n, (1, size(i)), j, (1, size(i))), i)


def read(S: Term, *, mask: bool = True, corrected: bool = True) -> Term:
    """All outputs of chunk i: the state at its start, and what its tokens have written, read by its queries."""
    Q, K, V, T = rows(q, i), rows(k, i), rows(v, i), solved(i)
    scores = Hadamard(Q * K.T, causal) if mask else Q * K.T
    return Q * S.T + scores * (T * V - T * K * S.T if corrected else T * V)


chunk_outputs = read(S[i])


def chunked(states: Term = S[i], at: Term = H[b[i]], chunk: Term = chunk_outputs) -> Formula:
    """The states at the cuts, and the outputs of a chunk."""
    return And(Equation(states, at), Equation(chunk, outputs))


def gated_step(S: Term, i: Index) -> Term:
    """The same step, as the gated delta rule has it at gates that are 1."""
    K, V, T = rows(k, i), rows(v, i), solved(i)
    return S * (Eye(d_k) - (T * K).T * K) + (T * V).T * K


def without_gates(part: int, at: Index = i) -> Lemma:
    """What the gated delta rule says of chunk i at gates that are 1."""
    return Lemma("gated-delta-rule/chunkwise", part, {i: at}, {"gamma": ((t,), ONE)})


gated = recurrence("S", H0, lambda i, S: gated_step(S, i - 1))
chunkwise = Statement(chunked(), le(0, i) & le(i, M), (ut_transform,))

CHUNKWISE = Claim(
    id="delta-rule/chunkwise",
    title="chunks of any sizes: S_{i+1} = S_i (I - KᵀTᵀK) + (TV)ᵀK is the state, Q Sᵀ + (QKᵀ ⊙ M)(TV - TKSᵀ) the outputs",
    statement=chunkwise,
    sources=(Source(YANG, "section 3.2", "T for each chunk by itself; chunks of any sizes, and a state at the start"),),
    proof=Each(
        (
            Induction(
                i,
                Direct(note="no chunk"),
                Chain(
                    (
                        Link(step(H[b[i]], i), (Hypothesis(),), "the step of the chunk, from the state of the layer"),
                        Link(gated[i + 1], (Unfold(gated[i + 1]), without_gates(0)), "that of the gated delta rule with γ = 1"),
                    ),
                    (without_gates(0, i + 1),),
                    "whose states are those of the layer",
                ),
            ),
            Rowwise(
                r,
                Chain(
                    (Link(Row(read(gated[i]), r), (Part(1), without_gates(0)), "row r, from the same state at the start"),),
                    (Using(without_gates(1), row=r),),
                    "the gated delta rule with γ = 1",
                ),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(chunkwise, "T not transposed in the transition", chunked(not_turned[i])),
        variant(chunkwise, "the tokens of the next chunk", chunked(next_tokens[i])),
        variant(chunkwise, "the state after the chunk", chunked(at=H[b[i + 1]])),
        variant(chunkwise, "the outputs read the state of the next chunk", chunked(chunk=read(S[i + 1]))),
        variant(chunkwise, "no mask in the chunk", chunked(chunk=read(S[i], mask=False))),
        variant(chunkwise, "the values are not corrected by the state", chunked(chunk=read(S[i], corrected=False))),
        variant(chunkwise, "any T", drop="UT transform of every chunk"),
    ),
)

CLAIMS = (SPLIT, CHUNKWISE)
