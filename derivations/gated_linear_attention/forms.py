"""The forms of gated linear attention: unrolled, by channels, in parallel, cut and resumed, and its special gates."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..gated_retention.operator import H as GATED_RETENTION
from ..gated_retention.operator import gamma
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Implies, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Rowwise, Suppose, Unfold, Using
from ..kernel.terms import (
    Diag,
    Entry,
    Eye,
    Hadamard,
    Index,
    Num,
    Prod,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    entries,
    equal,
    indicator,
    indices,
    le,
    recurrence,
)
from ..linear_attention.operator import H as LINEAR
from .operator import DECLARATION, H0, YANG, H, a, d_k, d_v, e, k, q, t, v

s, r, j, i, l, n, c, N, T = indices("s r j i l n c N T")


def write(at: Index) -> Term:
    """What a token writes."""
    return v[at] * k[at].T


def unit(place: Index, size: Index) -> Term:
    """A standard basis vector."""
    return Stack(indicator(equal(n, place)), n, 1, size)


# One gate for every entry -------------------------------------------------------------------------


def passed(x: Term, first: Index, last: Index = t) -> Term:
    """What the gates first..last leave of a term."""
    return Prod(Diag(e[r]), r, first, last, True) * x * Prod(Diag(a[r]), r, first, last)


def key_gates(channel: Index, first: Index, last: Index = t) -> Term:
    """What the gates first..last leave of one channel of the keys."""
    return Prod(Row(a[r], channel), r, first, last)


def value_gates(channel: Index, first: Index, last: Index = t) -> Term:
    """What the gates first..last leave of one channel of the values."""
    return Prod(Row(e[r], channel), r, first, last)


def entry_passed(x: Term, first: Index) -> Term:
    """What the gates first..t leave of a number in row c and column l."""
    return value_gates(c, first) * key_gates(l, first) * x


def unrolled_from(first: Index = j + 1, of_entry: Index = j + 1) -> Formula:
    """The state, and each of its entries, as a sum of the writes: write j through the gates from ``first`` on."""
    entry = entry_passed(Entry(H0, c, l), 1) + Sum(entry_passed(Row(v[j], c) * Row(k[j], l), of_entry), j, 1, t)
    return And(Equation(H[t], passed(H0, 1) + Sum(passed(write(j), first), j, 1, t)), Equation(Entry(H[t], c, l), entry))


some_entry = le(1, c) & le(c, d_v) & le(1, l) & le(l, d_k)
unrolled = Statement(unrolled_from(), le(0, t) & some_entry)
at_entry = Using(Unfold(H[t + 1]), left=unit(c, d_v).T, right=unit(l, d_k))
entry_of_update = Link(
    Row(e[t + 1], c) * Entry(H[t], c, l) * Row(a[t + 1], l) + Row(v[t + 1], c) * Row(k[t + 1], l), (at_entry,), "an entry of the update"
)
affine = {"L": ((t,), Diag(e[t])), "R": ((t,), Diag(a[t])), "U": ((t,), write(t))}

UNROLLED = Claim(
    id="gated-linear-attention/unrolled",
    title="the state is the sum of the writes, each through the gates after it; entry by entry their factors multiply",
    statement=unrolled,
    sources=(Source(YANG, "the recurrent form with G_t = α_tᵀ β_t", "the memory transposed"),),
    proof=Each(
        (
            Direct((Lemma("affine/unrolled", families=affine),), "diagonal transitions on both sides"),
            Induction(
                t,
                Direct(note="no token"),
                Chain((entry_of_update,), (Hypothesis(),), "one more gate of its row and of its column"),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "a write passes its own gates", unrolled_from(first=j)),
        variant(unrolled, "an entry passes its own gates", unrolled_from(of_entry=j)),
        variant(
            unrolled,
            "the values' gates on the columns too",
            And(unrolled.conclusion.args[0], Equation(Entry(H[t], c, l), value_gates(c, 1) * Entry(H0, c, l))),
        ),
    ),
)

# All outputs at once ------------------------------------------------------------------------------


def product(channels: Index = d_k, queries: Term = q[t]) -> Formula:
    """A query is the column of its channels, and an output the sum over them."""
    return And(
        Equation(Stack(Row(q[t], l), l, 1, d_k), q[t]),
        Equation(Row(H[t] * q[t], c), Sum(Entry(H[t], c, l) * Row(queries, l), l, 1, channels)),
    )


some_channel = le(1, c) & le(c, d_v)
readout = Statement(product(), le(0, t) & some_channel)
by_channels = Using(Part(1), left=-Row(H[t], c))

READOUT = Claim(
    id="gated-linear-attention/readout",
    title="an output is the sum over the channels of the keys",
    statement=readout,
    sources=(Source(YANG, "the recurrent form, o_t = q_t S_t", "the memory transposed, entry by entry"),),
    proof=Each((Rowwise(n), Direct((by_channels,), "the query, written as the column of its channels"))),
    operator=DECLARATION,
    near_misses=(
        variant(readout, "the last channel is left out", product(d_k - 1)),
        variant(readout, "read by the key", product(queries=k[t])),
    ),
)


def weight(first: Index = j + 1) -> Term:
    """How query i sees key j: every channel of the keys fades by its own gates."""
    return Sum(Row(q[i], l) * key_gates(l, first, i) * Row(k[j], l), l, 1, d_k)


def masked(entry: Term) -> Term:
    """The matrix of the entries j <= i, and 0 for tokens to come."""
    return entries(Where(le(j, i), entry, Num(0)), i, (1, T), j, (1, T))


def faded(first: Index = j + 1) -> Term:
    """What is left at i of channel c of value j."""
    return masked(value_gates(c, first, i))


V_c = Stack(Row(v[i], c), i, 1, T)
outputs = Stack(Row(H[i] * q[i], c), i, 1, T)
from_start = Stack(Sum(value_gates(c, 1, i) * key_gates(l, 1, i) * Entry(H0, c, l) * Row(q[i], l), l, 1, d_k), i, 1, T)


def parallel_form(weights: Term, fading: Term, start: Term = from_start) -> Equation:
    """A channel of the values: the masked matrix product, with what the start adds, is the recurrence."""
    return Equation(Hadamard(weights, fading) * V_c + start, outputs)


P = masked(weight())
parallel = Statement(parallel_form(P, faded()), le(0, T) & some_channel)
read_entries = Link(
    Sum(Entry(H[t], c, l) * Row(q[t], l), l, 1, d_k), (Lemma("gated-linear-attention/unrolled", part=1),), "row t: the entries, unrolled"
)

PARALLEL = Claim(
    id="gated-linear-attention/parallel",
    title="channel c of the outputs is (P ⊙ E) V_c: the keys' gates are in the weights P, those of the channel in E",
    statement=parallel,
    sources=(Source(YANG, "the parallel form", "gates as products, not as quotients of cumulative ones; with gates on the values too"),),
    proof=Rowwise(t, Chain((read_entries,), (Lemma("gated-linear-attention/readout", part=1),), "the channels, summed")),
    operator=DECLARATION,
    near_misses=(
        variant(parallel, "a weight passes the key's own gates", parallel_form(masked(weight(j)), faded())),
        variant(parallel, "a value passes its own gate", parallel_form(P, faded(j))),
        variant(parallel, "the values do not fade", parallel_form(P, masked(Num(1)))),
        variant(parallel, "a state at the start is forgotten", Equation(Hadamard(P, faded()) * V_c, outputs)),
    ),
)

# Cut and resumed ----------------------------------------------------------------------------------


def continues(start: Term, first: Index = s + 1) -> Formula:
    """The run that resumes from a state at s is the whole one; the state at t needs nothing else of the past."""
    run = recurrence("H", start, lambda t, H: Diag(e[t]) * H * Diag(a[t]) + write(t), start=s)
    return And(Equation(run[t], H[t]), Equation(H[t], passed(start, s + 1) + Sum(passed(write(j), j + 1), j, first, t)))


def resumed(part: int) -> Using:
    """The affine update, cut at s."""
    return Using(Lemma("affine/split-resume", part=part, at={s: s, t: t}, families=affine))


split = Statement(continues(H[s]), le(0, s) & le(s, t))

SPLIT = Claim(
    id="gated-linear-attention/split-resume",
    title="a run that is cut and resumed from its state is the whole run",
    statement=split,
    sources=(Source(YANG, "the chunkwise form", "one cut"),),
    proof=Each(tuple(Direct((resumed(part),), "diagonal transitions") for part in (0, 1))),
    operator=DECLARATION,
    near_misses=(
        variant(split, "resumed from the start", continues(H0)),
        variant(split, "the write at the cut comes again", continues(H[s], s)),
    ),
)

# Special gates ------------------------------------------------------------------------------------

open_values = Assumption("e = 1", ForAll(Equation(Diag(e[r]), Eye(d_v)), r, 1, N), solve={e[r]: Stack(Num(1), c, 1, d_v)})
one_factor = Assumption(
    "a = γ", ForAll(Equation(Diag(a[r]), gamma[r] * Eye(d_k)), r, 1, N), solve={a[r]: Stack(gamma[r], c, 1, d_k)}
)
open_gates = ForAll(Equation(gamma[r], 1), r, 1, N)
is_retention = Equation(H[n], GATED_RETENTION[n])
limits = Statement(And(is_retention, Implies(open_gates, Equation(H[n], LINEAR[n]))), le(0, n) & le(n, N), (open_values, one_factor))
gates = (Hypothesis(), Given("e = 1", {r: n + 1}), Given("a = γ", {r: n + 1}))

LIMITS = Claim(
    id="gated-linear-attention/limits",
    title="one factor for all channels is gated retention, the factor 1 linear attention",
    statement=limits,
    sources=(Source(YANG, "table of gated linear models: the parametrisations of G_t", "RetNet and Mamba-2 have one number in its place"),),
    proof=Each(
        (
            Induction(n, Direct(note="the same start"), Direct(gates, "the gates are a number")),
            Suppose(Induction(n, Direct(note="the same start"), Direct((*gates, Given("premise")), "the number is 1"))),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(limits, "any gates on the values", drop="e = 1"),
        variant(limits, "any gates on the keys", drop="a = γ"),
        variant(limits, "any factor is linear attention", And(is_retention, Equation(H[n], LINEAR[n]))),
    ),
)

CLAIMS = (UNROLLED, READOUT, PARALLEL, SPLIT, LIMITS)
