"""RWKV-6: gated linear attention that reads before it writes, with a bonus for the current token."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..gated_linear_attention.operator import H as GATED
from ..gated_linear_attention.operator import e
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Direct, Each, ForEach, Given, Hypothesis, Induction, Lemma, Part, Rowwise, Unfold
from ..kernel.terms import (
    Diag,
    Eye,
    Hadamard,
    Index,
    Num,
    Prod,
    Recurrence,
    Stack,
    Sum,
    Term,
    Where,
    cuts,
    entries,
    equal,
    indices,
    le,
    lt,
    recurrence,
    substitute,
)
from .operators import FINCH, H0, WKV6, F, a, d_v, first, k, q, t, v

r, s, j, i, n, m, N, T = indices("r s j i n m N T")
cut = cuts("b")


def faded(x: Term, since: Index, last: Index = t) -> Term:
    """What the decays of a range leave of a term."""
    return x * Prod(Diag(a[r]), r, since, last)


def write(at: Index) -> Term:
    """What a token writes."""
    return v[at] * k[at].T


def output(at: Index) -> Term:
    """What the operator puts out."""
    there: Term = substitute(WKV6.output, {t: at})
    return there


def own(at: Index) -> Term:
    """What a query reads of its own token."""
    return v[at] * (Hadamard(first, k[at]).T * q[at])


# The recurrence, unrolled -------------------------------------------------------------------------


def sums(last: Index, since: Index = j + 1) -> Term:
    """The state after a token: the start and the writes, each through the decays after it."""
    return faded(H0, 1, last) + Sum(faded(write(j), since, last), j, 1, last)


def read(state: Term, bonus: Term) -> Formula:
    """The state as a sum, and the next output, which reads it before its own token is written."""
    return And(Equation(F[t], state), Equation(output(t + 1), state * q[t + 1] + bonus))


def reads(value: Term) -> Formula:
    """The same state, and another next output."""
    return And(Equation(F[t], sums(t)), Equation(output(t + 1), value))


wkv6 = Statement(read(sums(t), own(t + 1)), le(0, t))
affine = {"R": ((t,), Diag(a[t])), "U": ((t,), write(t))}

WKV_6 = Claim(
    id="rwkv/wkv6",
    title="token t reads every write before it through the decays strictly in between, and its own token through the bonus",
    statement=wkv6,
    sources=(Source(FINCH, "time mixing of Finch: wkv_t as a sum and as a recurrence", "the state transposed, with a start"),),
    proof=Each(
        (
            Direct((Lemma("affine/right", part=1, families=affine),), "transitions on the right, diagonal ones"),
            Direct((Part(1),), "read before the write"),
        )
    ),
    operator=WKV6,
    near_misses=(
        variant(wkv6, "a write passes its own decay", read(sums(t, j), own(t + 1))),
        variant(
            wkv6,
            "read through the current decay",
            And(wkv6.conclusion.args[0], Equation(output(t + 1), sums(t) * Diag(a[t + 1]) * q[t + 1] + own(t + 1))),
        ),
        variant(wkv6, "no bonus", read(sums(t), write(t + 1) * q[t + 1])),
        variant(wkv6, "the current token twice", reads(F[t + 1] * q[t + 1] + own(t + 1))),
    ),
)

# All outputs at once ------------------------------------------------------------------------------


def weights(before: Term, now: Term) -> Term:
    """The weights of the keys j before a query i, that of its own key, and 0 for those to come."""
    return entries(Where(lt(j, i), before, Where(equal(j, i), now, Num(0))), i, (1, T), j, (1, T))


def seen(since: Index = j + 1, last: Index = i - 1) -> Term:
    """How query i sees the key j: channel by channel through the decays of a range."""
    return k[j].T * Prod(Diag(a[r]), r, since, last) * q[i]


V = Stack(v[j].T, j, 1, T)
outputs = Stack(output(i).T, i, 1, T)
from_start = Stack((faded(H0, 1, i - 1) * q[i]).T, i, 1, T)
bonus = Hadamard(first, k[i]).T * q[i]
late = Stack((faded(H0, 1, i) * q[i]).T, i, 1, T)


def parallel_form(matrix: Term, start: Term | None = None) -> Equation:
    """The masked matrix product, with what the start adds, is the recurrence."""
    return Equation(matrix * V + (from_start if start is None else start), outputs)


parallel = Statement(parallel_form(weights(seen(), bonus)), le(0, T))

PARALLEL = Claim(
    id="rwkv/wkv6-parallel",
    title="P V with P_ij = k_jᵀ (Π_{j<r<i} diag(a_r)) q_i below the diagonal and (u ⊙ k_i)ᵀ q_i on it computes RWKV-6",
    statement=parallel,
    sources=(Source(FINCH, "the time mixing of Finch: wkv_t as a sum", "as a matrix; with a state at the start"),),
    proof=Rowwise(
        n,
        Direct((Lemma("rwkv/wkv6", at={t: n - 1}),), "row n: the mask cuts the sum before n, the diagonal adds the bonus"),
    ),
    operator=WKV6,
    near_misses=(
        variant(parallel, "a key passes its own decay", parallel_form(weights(seen(j), bonus))),
        variant(parallel, "a query passes its own decay", parallel_form(weights(seen(last=i), bonus))),
        variant(parallel, "no bonus", parallel_form(weights(seen(), k[i].T * q[i]))),
        variant(
            parallel,
            "a start that passes the decay of the query",
            parallel_form(weights(seen(), bonus), Stack((faded(H0, 1, i) * q[i]).T, i, 1, T)),
        ),
    ),
)

# Chunks of any sizes ------------------------------------------------------------------------------


def since(start: Term, begin: Index, last: Index) -> Term:
    """The state after a token from one at a cut, and the writes since then."""
    return faded(start, begin + 1, last) + Sum(faded(write(j), j + 1, last), j, begin + 1, last)


def states(shift: Index = 0) -> Recurrence:
    """The loop over the chunks."""
    return recurrence("S", H0, lambda i, S: since(S, cut[i - 1], cut[i] + shift))


S = states()


def chunked(states: Term = S[i], start: Term = S[i], begin: Index = cut[i]) -> Formula:
    """The states at the cuts; every output of a chunk from the state at its start and the tokens of the chunk."""
    each = Equation(output(t + 1), since(start, begin, t) * q[t + 1] + own(t + 1))
    return And(Equation(states, F[cut[i]]), ForAll(each, t, cut[i], cut[i + 1] - 1))


chunkwise = Statement(chunked(), le(0, i))
right = {"L": ((t,), Eye(d_v)), **affine}
up_to_t = Lemma("affine/split-resume", part=1, at={s: cut[i], t: t}, families=right)

CHUNKWISE = Claim(
    id="rwkv/wkv6-chunkwise",
    title="RWKV-6 in chunks of any sizes: an output needs the state where its chunk begins and the tokens of the chunk up to its own",
    statement=chunkwise,
    sources=(Source(FINCH, "the time mixing of Finch", "cut anywhere: the affine theorem, whose transitions are diagonal"),),
    proof=Each(
        (
            Direct((Lemma("affine/chunkwise", families=right),), "the affine update"),
            ForEach(Direct((up_to_t, Part(1)), "the run, cut where the chunk begins")),
        )
    ),
    operator=WKV6,
    near_misses=(
        variant(chunkwise, "the state after the chunk", chunked(start=S[i + 1])),
        variant(chunkwise, "the write at the cut comes again", chunked(begin=cut[i] - 1)),
        variant(chunkwise, "the chunk reaches one token too far", chunked(states(1)[i])),
    ),
)

# Beside gated linear attention --------------------------------------------------------------------

open_values = Assumption("e = 1", ForAll(Equation(Diag(e[r]), Eye(d_v)), r, 1, N), solve={e[r]: Stack(Num(1), m, 1, d_v)})


def beside(query: Term, state: Term = GATED[n]) -> Formula:
    """The state is that of gated linear attention; its outputs are those of RWKV-6 for faded queries, but for the own token."""
    return And(
        Equation(F[n], state),
        Equation(output(n + 1), GATED[n] * q[n + 1] + own(n + 1)),
        Equation(GATED[n + 1] * q[n + 1], F[n] * query + write(n + 1) * q[n + 1]),
    )


faded_query = Diag(a[n + 1]) * q[n + 1]
gated = Statement(beside(faded_query), le(0, n) & le(n + 1, N), (open_values,))

GATED_LINEAR = Claim(
    id="rwkv/wkv6-gated",
    title="RWKV-6 is gated linear attention read one token earlier, plus the bonus; faded queries without bonus make up for the shift",
    statement=gated,
    sources=(Source(FINCH, "the time mixing of Finch", "the relation to gated linear attention is not stated there"),),
    proof=Each(
        (
            Induction(n, Direct(note="the same start"), Direct((Hypothesis(), Given("e = 1", {r: n + 1})), "the same update")),
            Direct((Part(1),), "the same state"),
            Direct((Unfold(GATED[n + 1]), Part(1), Given("e = 1", {r: n + 1})), "one update more before the read"),
        )
    ),
    operator=WKV6,
    near_misses=(
        variant(gated, "any gates on the values", drop="e = 1"),
        variant(gated, "queries that are not faded", beside(q[n + 1])),
        variant(gated, "the state one token later", beside(faded_query, GATED[n + 1])),
    ),
)

CLAIMS = (WKV_6, PARALLEL, CHUNKWISE, GATED_LINEAR)
