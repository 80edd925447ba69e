"""Chunks of any sizes: from state to state, and all outputs of a chunk, by the UT transform with the decays of its tokens alone.

Cuts 0 = b_0 <= b_1 <= ... end the chunks: chunk i is the tokens b_i + 1, ..., b_{i+1}, here numbered from 1.
"""

from __future__ import annotations

from typing import cast

from ..claim import Claim, Source, variant
from ..delta_rule.chunks import M, T, b, c, i, l, r, size, solved
from ..delta_rule.operator import H0, ONE, beta, d_k, j, k, keeps, q, s, t, v
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.instances import Families, instantiate
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Rowwise
from ..kernel.terms import Eye, Family, Hadamard, Index, Num, Prod, Rec, Stack, Sum, Term, Where, entries, le, named, recurrence
from . import sequence
from .operator import DECLARATION, YANG, H, gamma
from .sequence import N, n

# A run that is cut and resumed ----------------------------------------------------------------------


def resumed(start: Term, shift: Index = s, last: Index = n) -> Rec:
    """The layer from a given state, on the tokens after a shift, numbered from 1."""

    def step(n: Index, H: Term) -> Term:
        return H * (gamma[shift + n] * keeps(shift + n)) + beta[shift + n] * v[shift + n] * k[shift + n].T

    return recurrence("H", start, step)[last]


split = Statement(Equation(resumed(H[s]), H[s + n]), le(0, s) & le(0, n))

SPLIT = Claim(
    id="gated-delta-rule/split-resume",
    title="the layer that starts from the state at s, on the tokens after it, is the whole layer",
    statement=split,
    sources=(Source(YANG, "the chunkwise form", "there from chunk to chunk"),),
    proof=Induction(n, Direct(note="n = 0: the state at the cut"), Direct((Hypothesis(),), "the same update of the same state")),
    operator=DECLARATION,
    near_misses=(
        variant(split, "resumed from the start", Equation(resumed(H0), H[s + n])),
        variant(split, "the token at the cut comes again", Equation(resumed(H[s], s - 1), H[s + n])),
    ),
)

# The chunks -----------------------------------------------------------------------------------------


def fading(i: Index, first: Index, last: Index) -> Term:
    """What the gates of some tokens of chunk i leave."""
    return Prod(gamma[b[i] + s], s, first, last)


def rows(family: Family, i: Index, gate: Term = ONE) -> Term:
    """The matrix whose rows are the members of a chunk, transposed, each times a gate."""
    return Stack(gate * family[b[i] + j].T, j, 1, size(i))


def from_start(i: Index) -> Term:
    """The keys of a chunk, each faded since its start."""
    return named("K'", rows(k, i, fading(i, 1, j)), i)


def to_end(i: Index, first: Index = j + 1) -> Term:
    """The keys of a chunk, each faded until its end."""
    return named("K''", rows(k, i, fading(i, first, size(i))), i)


def of_chunk(i: Index) -> Families:
    """What is said of the tokens 1, 2, ... from H_0, said of those of a chunk from the state at its start."""
    tokens = {"k": k, "v": v, "beta": beta, "gamma": gamma}
    return {
        **{name: ((t,), family[b[i] + t]) for name, family in tokens.items()},
        "T": ((n, j), T[i, n, j]),
        "H0": ((), H[b[i]]),
    }


row_by_row = cast(Equation, instantiate(Statement(Equation(sequence.T[n, j], sequence.substituted(n, j))), of_chunk(c)).conclusion)
ut_transform = Assumption(
    "UT transform with decay of every chunk",
    ForAll(ForAll(ForAll(row_by_row, j, 1, size(c)), n, 1, size(c)), c, 0, M),
    solve={T[c, n, j]: row_by_row.rhs},
)


def step(S: Term, i: Index, first: Index = j + 1) -> Term:
    """The state after a chunk from the state before it."""
    V, T, end = rows(v, i), solved(i), to_end(i, first)
    return S * (fading(i, 1, size(i)) * Eye(d_k) - (T * from_start(i)).T * end) + (T * V).T * end


S = recurrence("S", H0, lambda i, S: step(S, i - 1))
own_gates = recurrence("S", H0, lambda i, S: step(S, i - 1, j))
outputs = Stack((H[b[i] + n] * q[b[i] + n]).T, n, 1, size(i))


def decays(first: Index = j + 1) -> Term:
    """D: the gates after token j up to n, and 0 for tokens to come."""
    return named("D", entries(Where(le(j, n), fading(i, first, n), Num(0)), n, (1, size(i)), j, (1, size(i))), i)


def read(S: Term, *, first: Index = j + 1, keys: Term | None = None) -> Term:
    """All outputs of chunk i: the faded state at its start, and what its tokens have written, read by its queries."""
    Q, K, V, T = rows(q, i), rows(k, i), rows(v, i), solved(i)
    from_state = Stack(fading(i, 1, j) * (S * q[b[i] + j]).T, j, 1, size(i))
    return from_state + Hadamard(Q * K.T, decays(first)) * (T * V - T * (from_start(i) if keys is None else keys) * S.T)


chunk_outputs = read(S[i])


def chunked(states: Term = S[i], at: Term = H[b[i]], chunk: Term = chunk_outputs) -> Formula:
    """The states at the cuts, and the outputs of a chunk."""
    return And(Equation(states, at), Equation(chunk, outputs))


def transform(part: int, last: Index) -> Lemma:
    """The UT transform of chunk i, up to one of its tokens."""
    given = (Given("UT transform with decay of every chunk", {c: i}),)
    return Lemma("gated-delta-rule/wy", part, {t: last, N: size(i)}, of_chunk(i), given=given)


chunkwise = Statement(chunked(), le(0, i) & le(i, M), (ut_transform,))
query = q[b[i] + r]
pseudo_value = T[i, l, j] * (v[b[i] + j] - fading(i, 1, j) * H[b[i]] * k[b[i] + j]).T


def seen(first: Index, last: Index) -> Term:
    """What query r reads of the tokens up to it: faded scores times rows of T with the corrected values first..last."""
    return Sum(fading(i, l + 1, r) * (query.T * k[b[i] + l]) * Sum(pseudo_value, j, first, last), l, 1, r)


faded_state = fading(i, 1, r) * query.T * H[b[i]].T

CHUNKWISE = Claim(
    id="gated-delta-rule/chunkwise",
    title="chunks of any sizes: one UT transform with decay for each gives the state after it, and all its outputs from the state before",
    statement=chunkwise,
    sources=(Source(YANG, "the chunkwise form", "chunks of any sizes, a state at the start; one T for keys and values"),),
    proof=Each(
        (
            Induction(
                i,
                Direct(note="no chunk"),
                Chain(
                    (
                        Link(step(H[b[i]], i), (Hypothesis(),), "the step of the chunk, from the state of the layer"),
                        Link(
                            resumed(H[b[i]], b[i], size(i)),
                            (transform(2, size(i)), transform(1, size(i))),
                            "the layer on the tokens of the chunk",
                        ),
                    ),
                    (Lemma("gated-delta-rule/split-resume", at={s: b[i], n: size(i)}),),
                    "the whole layer",
                ),
            ),
            Rowwise(
                r,
                Chain(
                    (
                        Link(faded_state + seen(1, size(i)), (Part(1),), "row r: the mask cuts the sum at r"),
                        Link(faded_state + seen(1, r) + seen(r + 1, size(i)), note="the columns of T up to r, and the others"),
                        Link(faded_state + seen(1, r), (transform(0, r),), "T is lower triangular"),
                        Link(
                            (resumed(H[b[i]], b[i], r) * query).T,
                            (transform(2, r), transform(1, r)),
                            "the layer on the first r tokens of the chunk",
                        ),
                    ),
                    (Lemma("gated-delta-rule/split-resume", at={s: b[i], n: r}),),
                    "the whole layer",
                ),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(chunkwise, "the writes pass their own gates", chunked(own_gates[i])),
        variant(chunkwise, "the state after the chunk", chunked(at=H[b[i + 1]])),
        variant(chunkwise, "a score passes the key's own gate", chunked(chunk=read(S[i], first=j))),
        variant(chunkwise, "the values are corrected by the state before it fades", chunked(chunk=read(S[i], keys=rows(k, i)))),
        variant(chunkwise, "the outputs read the state of the next chunk", chunked(chunk=read(S[i + 1]))),
        variant(chunkwise, "any T", drop="UT transform with decay of every chunk"),
    ),
)

CLAIMS = (SPLIT, CHUNKWISE)
