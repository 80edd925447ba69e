"""Chunks of any sizes: from state to state, and all outputs of a chunk at once.

Cuts 0 = b_0 <= b_1 <= ... end the chunks: chunk i is the tokens b_i + 1, ..., b_{i+1}.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Lemma, Link, Part, Rowwise, Using
from ..kernel.terms import Entry, Hadamard, Index, Num, Recurrence, Row, Stack, Sum, Term, Where, cuts, entries, indices, le, recurrence
from .forms import affine, c, entry_passed, key_gates, l, passed, some_channel, unit, value_gates, write
from .operator import DECLARATION, H0, YANG, H, d_k, d_v, k, q, t, v

i, j, n = indices("i j n")
b = cuts("b")


def states(extra: Index = 0) -> Recurrence:
    """The loop over the chunks: the state and the writes pass the gates up to the end of the chunk."""
    return recurrence(
        "S",
        H0,
        lambda i, S: passed(S, b[i - 1] + 1 + extra, b[i]) + Sum(passed(write(j), j + 1, b[i]), j, b[i - 1] + 1, b[i]),
    )


S = states()


def over_chunk(entry: Term) -> Term:
    """A matrix over the queries n and the keys j of chunk i, masked."""
    span = (b[i] + 1, b[i + 1])
    return entries(Where(le(j, n), entry, Num(0)), n, span, j, span)


def weight(first: Index = j + 1) -> Term:
    """How query n sees key j."""
    return Sum(Row(q[n], l) * key_gates(l, first, n) * Row(k[j], l), l, 1, d_k)


def from_state(S: Term, first: Index = b[i] + 1) -> Term:
    """What a query reads of the state at the start of the chunk, which passes the gates since then."""
    seen = Sum(value_gates(c, first, n) * key_gates(l, first, n) * Entry(S, c, l) * Row(q[n], l), l, 1, d_k)
    return Stack(seen, n, b[i] + 1, b[i + 1])


def read(S: Term, first: Index = j + 1, since: Index = b[i] + 1) -> Term:
    """Channel c of all outputs of chunk i: the state at its start, and the tokens of the chunk."""
    V_c = Stack(Row(v[j], c), j, b[i] + 1, b[i + 1])
    return Hadamard(over_chunk(weight(first)), over_chunk(value_gates(c, j + 1, n))) * V_c + from_state(S, since)


outputs = Stack(Row(H[n] * q[n], c), n, b[i] + 1, b[i + 1])
chunk_outputs = read(S[i])


def chunked(states: Term = S[i], at: Term = H[b[i]], chunk: Term = chunk_outputs) -> Formula:
    """The states at the cuts, and the outputs of a chunk."""
    return And(Equation(states, at), Equation(chunk, outputs))


chunkwise = Statement(chunked(), le(0, i) & some_channel)
entry = Lemma("gated-linear-attention/unrolled", part=1)
by_gates = Sum(key_gates(l, b[i] + 1, t) * Row(q[t], l) * unit(l, d_k), l, 1, d_k)
at_cut = Using(Part(1), left=value_gates(c, b[i] + 1, t) * unit(c, d_v).T, right=by_gates)
since_cut = Sum(entry_passed(Row(v[j], c) * Row(k[j], l), j + 1), j, b[i] + 1, t)

CHUNKWISE = Claim(
    id="gated-linear-attention/chunkwise",
    title="chunks of any sizes: state and writes pass the gates of a chunk; an output reads (P ⊙ E) V_c of its chunk and the state",
    statement=chunkwise,
    sources=(Source(YANG, "the chunkwise form", "chunks of any sizes; gates as products; gates on the values too"),),
    proof=Each(
        (
            Direct((Lemma("affine/chunkwise", families=affine),), "diagonal transitions"),
            Rowwise(
                t,
                Chain(
                    (
                        Link(
                            Sum((entry_passed(Entry(H[b[i]], c, l), b[i] + 1) + since_cut) * Row(q[t], l), l, 1, d_k),
                            (at_cut,),
                            "row t: the mask cuts the sum at t; the state is that at the cut",
                        ),
                        Link(
                            Sum(Entry(H[t], c, l) * Row(q[t], l), l, 1, d_k), (entry,), "entry by entry: the sums join at the cut"
                        ),
                    ),
                    (Lemma("gated-linear-attention/readout", part=1),),
                    "the channels, summed",
                ),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(chunkwise, "the state passes one gate less", chunked(states(1)[i])),
        variant(chunkwise, "the state after the chunk", chunked(at=H[b[i + 1]])),
        variant(chunkwise, "a key passes its own gates", chunked(chunk=read(S[i], j))),
        variant(chunkwise, "the state passes the gates of the token before too", chunked(chunk=read(S[i], since=b[i]))),
        variant(chunkwise, "the outputs read the state of the next chunk", chunked(chunk=read(S[i + 1]))),
    ),
)

CLAIMS = (CHUNKWISE,)
