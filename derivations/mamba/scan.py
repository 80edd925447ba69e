"""The selective scan as a sum, as a scan of pairs and as a masked matrix; with running sums; cut, resumed and in chunks.

It is the affine update with L_t = e^{Δ_t diag(A)}, R_t = 1 and U_t = Δ_t u_t B_t, of a state with one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..affine import BLELLOCH, MARTIN, d_k, d_v
from ..claim import Claim, Source, variant
from ..discretization.operators import MAMBA
from ..kernel.formulas import And, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Direct, Each, ForEach, Hypothesis, Induction, Lemma, Part, Rowwise, Using
from ..kernel.terms import (
    Diag,
    Exp,
    Ind,
    Index,
    Num,
    Prod,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    cuts,
    entries,
    equal,
    indicator,
    indices,
    le,
    matrices,
    recurrence,
    vectors,
)
from .operator import DAO, DECLARATION, H0, A, B, C, D, H, N, delta, t, transition, u, write

e, i, j, l, n, r, s, L = indices("e i j l n r s L")
b = cuts("b")


def passed(first: Index, last: Index) -> Term:
    """The transitions of a range, the latest one leftmost."""
    return Prod(transition(r), r, first, last, True)


def written(first: Index, last: Index, after: Index = j + 1) -> Term:
    """What the writes of a range are at its end, each through the transitions after it."""
    return Sum(passed(after, last) * write(j), j, first, last)


def since(start: Term, first: Index, last: Index = t) -> Term:
    """The state at the end of a range from the one before it."""
    return passed(first, last) * start + written(first, last)


AFFINE = {"L": ((t,), transition(t)), "R": ((t,), Num(1)), "U": ((t,), write(t)), "H0": ((), H0)}


def by_affine(claim: str, part: int = 0, at: Mapping[Any, Index] | None = None) -> Lemma:
    """A claim about affine updates, for a state that is one column of N entries."""
    return Lemma(f"affine/{claim}", part=part, at={d_v: N, d_k: 1, **(at or {})}, families=AFFINE)


# A sum ----------------------------------------------------------------------------------------------

unrolled = Statement(Equation(H[t], since(H0, 1)), le(0, t))

UNROLLED = Claim(
    id="mamba/unrolled",
    title="the state is the start and every write Δ_j u_j B_j, each through the transitions e^{Δ diag(A)} after it",
    statement=unrolled,
    sources=(Source(MAMBA, "algorithm 2 and equation 2a", "with a start; Ā, B̄ and C change with time"),),
    proof=Direct((by_affine("left", 1),), "the affine update with transitions on the left"),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "a write passes its own transition", Equation(H[t], passed(1, t) * H0 + written(1, t, j))),
        variant(unrolled, "the start is forgotten", Equation(H[t], written(1, t))),
        variant(unrolled, "the last write is left out", Equation(H[t], passed(1, t) * H0 + written(1, t - 1))),
    ),
)

# A scan of pairs, and a masked matrix -----------------------------------------------------------------

P, p = matrices("P", N, N), vectors("p", N)


def after(later: tuple[Term, Term], earlier: tuple[Term, Term]) -> tuple[Term, Term]:
    """The pair of two updates x → P x + p, one after the other."""
    return later[0] * earlier[0], later[0] * earlier[1] + later[1]


def pair(first: Index, last: Index) -> tuple[Term, Term]:
    """The pair of a range of tokens."""
    return passed(first, last), written(first, last)


def equal_pairs(x: tuple[Term, Term], y: tuple[Term, Term]) -> tuple[Equation, Equation]:
    """Both members of two pairs are equal."""
    return Equation(x[0], y[0]), Equation(x[1], y[1])


def rows(entry: Term) -> Term:
    """The column of an entry at the times 1..L."""
    return Stack(entry, i, 1, L)


def score(start: Index = j + 1) -> Term:
    """How output i sees input j."""
    return C[i].T * passed(start, i) * (delta[j] * B[j])


def masked(entry: Term) -> Term:
    """The matrix of the entries j <= i, and 0 for tokens to come."""
    return entries(Where(le(j, i), entry, Num(0)), i, (1, L), j, (1, L))


U = Stack(u[j], j, 1, L)
Y = rows(C[i].T * H[i] + D * u[i])
from_start = rows(C[i].T * passed(1, i) * H0)
three = [(P[k], p[k]) for k in (1, 2, 3)]
associative = equal_pairs(after(three[2], after(three[1], three[0])), after(after(three[2], three[1]), three[0]))


def scanned(halves: tuple[Term, Term], matrix: Term, start: Term = from_start) -> Formula:
    """Pairs may be combined in any bracketing, halves to a whole; the outputs are a masked matrix times the inputs."""
    return And(*associative, *equal_pairs(pair(s, e), halves), Equation(Y, matrix * U + start + D * U))


halves = after(pair(l + 1, e), pair(s, l))
ranges = le(1, s) & le(s, l + 1) & le(l, e) & le(0, L)
scan = Statement(scanned(halves, masked(score())), ranges)

SCAN = Claim(
    id="mamba/selective-scan",
    title="scan of pairs = recurrence = masked matrix: (P', p') ∘ (P, p) = (P'P, P'p + p') is associative and joins ranges; "
    "Y = M U with M_ij = C_iᵀ (the transitions after j) Δ_j B_j for j ≤ i, beside the start and D",
    statement=scan,
    sources=(
        Source(
            MAMBA, "section 3.3.2: a work-efficient parallel associative scan", "that pairs of ranges join is what any bracketing needs"
        ),
        Source(DAO, "the matrix form of an SSM", "sequentially semiseparable; with a start and D"),
        Source(BLELLOCH, "section 1.4.1, first-order recurrences"),
    ),
    proof=Each(
        (
            Direct(note="products are associative"),
            Direct(note="both are P₃P₂p₁ + P₃p₂ + p₃"),
            Direct(note="adjacent ranges"),
            Direct(note="the writes of the first half pass the second"),
            Rowwise(t, Direct((Lemma("mamba/unrolled"),), "row t: the mask cuts the sum at t")),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(scan, "the later half first", scanned(after(pair(s, l), pair(l + 1, e)), masked(score()))),
        variant(scan, "the write of the first half passes nothing", Equation(written(s, e), written(s, l) + written(l + 1, e))),
        variant(scan, "a write passes its own transition", scanned(halves, masked(score(j)))),
        variant(scan, "no mask on the tokens to come", scanned(halves, entries(score(), i, (1, L), j, (1, L)))),
        variant(scan, "a state at the start is forgotten", scanned(halves, masked(score()), rows(Num(0)))),
    ),
)

# With running sums ------------------------------------------------------------------------------------

total = recurrence("c", Num(0), lambda t, c: c + delta[t])


def sums(last: Index = t) -> Formula:
    """The running sum, and the transitions of a range by the difference of two."""
    return And(
        ForAll(Equation(total[n], Sum(delta[r], r, 1, n)), n, 0, L),
        Equation(passed(s + 1, t), Exp((total[last] - total[s]) * Diag(A))),
    )


segments = Statement(sums(), le(0, s) & le(s, t))

SEGMENTS = Claim(
    id="mamba/segment-sums",
    title="the transitions of a range are one exponential, of the difference of two running sums of Δ",
    statement=segments,
    sources=(
        Source(DAO, "listing 1, segsum", "there of Δ A, a number; exactly equal, but not in floating point"),
        Source(MAMBA, "equation 4", "transitions e^{ΔA} with one A"),
    ),
    proof=Each(
        (
            ForEach(Induction(n)),
            Induction(t, step=Direct((Using(Hypothesis(), left=transition(t + 1)),), "one more transition"), start=s),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(segments, "the last transition is left out", sums(t - 1)),
        variant(segments, "the transition at the start counted in", Equation(passed(s, t), Exp((total[t] - total[s]) * Diag(A)))),
        variant(segments, "the entries of A added up too", Equation(passed(s + 1, t), Exp((total[t] - total[s]) * Diag(Ind(t - s) * A)))),
    ),
)


def faded(start: Index, x: Term) -> Term:
    """A column from a time on, until t."""
    return Exp((total[t] - total[start]) * Diag(A)) * x


def entry(of_j: Index = j, rate: Index = n) -> Formula:
    """The state, and each of its entries by itself: numbers alone."""

    def faded_entry(start: Index, x: Term) -> Term:
        return Exp((total[t] - total[start]) * Row(A, rate)) * Row(x, n)

    return And(
        Equation(H[t], faded(0, H0) + Sum(faded(of_j, write(j)), j, 1, t)),
        Equation(Row(H[t], n), faded_entry(0, H0) + Sum(faded_entry(of_j, write(j)), j, 1, t)),
    )


unit = Stack(indicator(equal(r, n)), r, 1, N)
entrywise = Statement(entry(), le(0, t) & le(1, n) & le(n, N))

ENTRYWISE = Claim(
    id="mamba/entrywise",
    title="each entry of the state fades by itself: e^{(c_t - c_j) A_n} of what it got at j is left, c the running sum of Δ",
    statement=entrywise,
    sources=(Source(MAMBA, "section 3.2 and algorithm 2", "A is diagonal: N numbers for each channel"),),
    proof=Each(
        (
            Direct((Lemma("mamba/unrolled"), Lemma("mamba/segment-sums", part=1)), "one exponential for each range"),
            Direct((Using(Part(1), left=unit.T),), "entry n: the exponential of a diagonal matrix is one of its entries"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(entrywise, "the sum begins one step early", entry(j - 1)),
        variant(entrywise, "one rate for all entries", entry(rate=1)),
        variant(entrywise, "the start does not fade", Equation(H[t], H0 + Sum(faded(j, write(j)), j, 1, t))),
    ),
)

# Cut and resumed, and in chunks -------------------------------------------------------------------------


def resumed(start: Term, begin: Index = s) -> Term:
    """The scan from a given state at an index on."""
    return recurrence("H", start, lambda t, H: transition(t) * H + write(t), start=begin)[t]


def continues(start: Term, first: Index = s + 1) -> Formula:
    """A resumed run has the states and the outputs of the whole one, and needs nothing else of the past."""
    run = resumed(start)
    return And(
        Equation(run, H[t]),
        Equation(H[t], passed(s + 1, t) * start + written(first, t)),
        Equation(C[t].T * run + D * u[t], DECLARATION.output),
    )


split = Statement(continues(H[s]), le(0, s) & le(s, t))

SPLIT = Claim(
    id="mamba/split-resume",
    title="a scan that is cut at s and resumed from its state is the whole scan: a prompt may be prefilled and then decoded",
    statement=split,
    sources=(Source(MAMBA, "section 2, computation: the recurrent mode for autoregressive inference", "from any cut on"),),
    proof=Each(
        (
            Induction(t, step=Direct((Hypothesis(),), "one more step from the same state"), start=s),
            Direct((Using(by_affine("split-resume", 1, {s: s, t: t})),), "the affine update, cut at s"),
            Direct((Part(1),), "the same state is read"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(split, "resumed from the start", continues(H0)),
        variant(split, "the write at the cut comes again", continues(H[s], s)),
        variant(split, "the step at the cut is made twice", Equation(resumed(H[s], s - 1), H[t])),
    ),
)


def chunk_states(begin: Index = 1) -> Recurrence:
    """The loop over chunks: the state passes the transitions of each chunk, and gets its writes."""
    return recurrence("S", H0, lambda i, S: passed(b[i - 1] + begin, b[i]) * S + written(b[i - 1] + 1, b[i]))


def chunked(states: Recurrence, start: Term, first: Index = b[i] + 1) -> Formula:
    """The states of the loop are those at the cuts; inside a chunk, a state and the writes since then make the next."""
    within = passed(b[i] + 1, t) * start + written(first, t)
    return And(Equation(states[i], H[b[i]]), ForAll(Equation(H[t], within), t, b[i], b[i + 1]))


states = chunk_states()
chunkwise = Statement(chunked(states, states[i]), le(0, i))
whole_chunk = by_affine("split-resume", 1, {s: b[i], t: b[i + 1]})

CHUNKWISE = Claim(
    id="mamba/chunkwise",
    title="chunks of any sizes: each is scanned from the state at its start, and hands on the state at its end",
    statement=chunkwise,
    sources=(
        Source(MAMBA, "appendix D: long sequences in chunks", "the state at the end of one starts the next"),
        Source(MARTIN, "the parallel scan of a linear recurrence", "there in blocks of one size"),
    ),
    proof=Each(
        (
            Induction(i, Direct(note="no chunk"), Direct((Hypothesis(), whole_chunk), "the scan, cut and resumed where the chunk begins")),
            ForEach(Direct((by_affine("split-resume", 1, {s: b[i], t: t}), Part(1)), "the same up to t")),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(chunkwise, "the state does not pass the first transition of a chunk", chunked(chunk_states(2), chunk_states(2)[i])),
        variant(chunkwise, "the state of the chunk before is handed on", chunked(states, H[b[i - 1]])),
        variant(chunkwise, "the write at the cut comes again", chunked(states, states[i], b[i])),
    ),
)

CLAIMS = (UNROLLED, SCAN, SEGMENTS, ENTRYWISE, SPLIT, CHUNKWISE)
