"""Affine updates of a state: the one theorem behind linear attention, retention, gates, the delta rule and scans.

    H_t = L_t H_{t-1} R_t + U_t

Every write is seen through the transitions after it, and a run that is cut resumes from its state. An architecture
is an instance: linear attention has L = R = I and U_t = v_t k_tᵀ, gated retention L_t = γ_t I, the delta rule
R_t = I - β_t k_t k_tᵀ, an outer-product gate L_t = diag(e_t) and R_t = diag(s_t).

Sources: Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, section 1.4 (first-order recurrences as scans);
Martin and Cundy, "Parallelizing Linear Recurrent Neural Nets Over Sequence Length", arXiv 1709.04057. Both have one
transition, on the left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .claim import Claim, NearMiss, Source, variant
from .kernel.formulas import And, Equation, ForAll, Formula, Statement
from .kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Lemma, Link, Part, Script, Using
from .kernel.terms import (
    Eye,
    Index,
    Prod,
    Recurrence,
    Sum,
    Term,
    cuts,
    indices,
    le,
    matrices,
    matrix,
    recurrence,
    scalar,
    scalars,
    substitute,
)

d_k, d_v = indices("d_k d_v")
t, i, j, s, r = indices("t i j s r")
b = cuts("b")
L, R, U = matrices("L", d_v, d_v), matrices("R", d_k, d_k), matrices("U", d_v, d_k)
a = scalars("a")
H0 = matrix("H0", d_v, d_k)

BLELLOCH = "Blelloch, Prefix Sums and Their Applications, CMU-CS-90-190"
MARTIN = "Martin and Cundy, Parallelizing Linear Recurrent Neural Nets Over Sequence Length, arXiv 1709.04057"
NOTE = "08 - Transformer and Variants (a blog note)"

H = recurrence("H", H0, lambda t, H: L[t] * H * R[t] + U[t])


def left(first: Index, last: Index, *, decreasing: bool = True) -> Term:
    """The transitions on the left over a range, the latest one leftmost."""
    return Prod(L[r], r, first, last, decreasing)


def right(first: Index, last: Index, *, decreasing: bool = False) -> Term:
    """The transitions on the right over a range, the earliest one leftmost."""
    return Prod(R[r], r, first, last, decreasing)


def passed(x: Term, first: Index, last: Index) -> Term:
    """What a range of updates makes of a term."""
    return left(first, last) * x * right(first, last)


def scaling(first: Index, last: Index) -> Term:
    """The product of numbers over a range."""
    return Prod(a[r], r, first, last)


def since(start: Term, first: Index, last: Index = t) -> Term:
    """The state at an index from a state and the writes first..last."""
    return passed(start, first, last) + written(first, last)


def written(first: Index, last: Index) -> Term:
    """The writes first..last, each through the transitions after it up to the last."""
    return Sum(passed(U[j], j + 1, last), j, first, last)


# A write is seen through the transitions after it -------------------------------------------------

unrolled = Statement(Equation(H[t], since(H0, 1)), le(0, t))

UNROLLED = Claim(
    id="affine/unrolled",
    title="the state is the start and every write, each through the transitions after it",
    statement=unrolled,
    sources=(
        Source(BLELLOCH, "section 1.4.1, first-order recurrences", "there one transition, on the left"),
        Source(NOTE, "section 1.3.1: the unrolled RNN", "the transitions are linear"),
    ),
    proof=Induction(
        t,
        Direct(note="t = 0: no update, no write"),
        Chain(
            (
                Link(L[t + 1] * H[t] * R[t + 1] + U[t + 1], note="the update, as declared"),
                Link(
                    L[t + 1] * since(H0, 1) * R[t + 1] + U[t + 1],
                    (Hypothesis(),),
                    "the state before, unrolled",
                ),
            ),
            note="the new transitions join every product; the last write has none after it",
        ),
    ),
    near_misses=(
        variant(unrolled, "a write passes its own transitions", Equation(H[t], passed(H0, 1, t) + Sum(passed(U[j], j, t), j, 1, t))),
        variant(
            unrolled,
            "left transitions in the order of time",
            Equation(
                H[t],
                left(1, t, decreasing=False) * H0 * right(1, t)
                + Sum(left(j + 1, t, decreasing=False) * U[j] * right(j + 1, t), j, 1, t),
            ),
        ),
        variant(
            unrolled,
            "right transitions against the order of time",
            Equation(
                H[t],
                left(1, t) * H0 * right(1, t, decreasing=True)
                + Sum(left(j + 1, t) * U[j] * right(j + 1, t, decreasing=True), j, 1, t),
            ),
        ),
        variant(unrolled, "the start is not transformed", Equation(H[t], H0 + Sum(passed(U[j], j + 1, t), j, 1, t))),
    ),
)

# Cut and resumed ----------------------------------------------------------------------------------


def resumed(start: Term, begin: Index = s) -> Term:
    """The same update from a given state at index s on."""
    return recurrence("H", start, lambda t, H: L[t] * H * R[t] + U[t], start=begin)[t]


def continues(run: Term, start: Term) -> Formula:
    """A resumed run is the whole one, and the state at t is what the state at the cut and the later writes make."""
    return And(Equation(run, H[t]), Equation(H[t], since(start, s + 1)))


split = Statement(continues(resumed(H[s]), H[s]), le(0, s) & le(s, t))

SPLIT = Claim(
    id="affine/split-resume",
    title="a run that is cut at s and resumed from its state is the whole run, and needs nothing else of the past",
    statement=split,
    sources=(
        Source(BLELLOCH, "section 1.4.1", "the pairs (transition, write) compose associatively; here in one cut"),
        Source(MARTIN, "the parallel scan of a linear recurrence", "there by blocks"),
    ),
    proof=Each(
        (
            Induction(t, step=Direct((Hypothesis(),), "one more step from the same state"), start=s),
            Induction(
                t,
                Direct(note="t = s: nothing after the cut"),
                Chain(
                    (
                        Link(L[t + 1] * H[t] * R[t + 1] + U[t + 1], note="the update, as declared"),
                        Link(L[t + 1] * since(H[s], s + 1) * R[t + 1] + U[t + 1], (Hypothesis(),), "the state before, from the cut"),
                    ),
                    note="the new transitions join every product",
                ),
                start=s,
            ),
        )
    ),
    near_misses=(
        variant(split, "resumed from the start", continues(resumed(H0), H0)),
        variant(split, "the write at the cut comes again", And(Equation(resumed(H[s]), H[t]), Equation(H[t], since(H[s], s)))),
        variant(split, "the update at the cut is made twice", continues(resumed(H[s], s - 1), H[s])),
    ),
)

# Chunk after chunk --------------------------------------------------------------------------------

# b_i is the end of chunk i: b_i = min(iC, T) for chunks of size C.
S = recurrence("S", H0, lambda i, S: since(S, b[i - 1] + 1, b[i]))


def chunked(states: Recurrence = S, start: Term = S[i], begin: Index = b[i]) -> Formula:
    """The states of the chunk loop are those at the cuts; inside a chunk, a state and the writes since then make the next."""
    return And(Equation(states[i], H[b[i]]), ForAll(Equation(H[t], since(start, begin + 1)), t, b[i], b[i + 1]))


chunkwise = Statement(chunked(), le(0, i))
whole_chunk = Lemma("affine/split-resume", part=1, at={s: b[i], t: b[i + 1]})
up_to_t = Lemma("affine/split-resume", part=1, at={s: b[i], t: t})

CHUNKWISE = Claim(
    id="affine/chunkwise",
    title="chunks of any sizes: each needs the state at its start and its own updates, and hands on the state at its end",
    statement=chunkwise,
    sources=(
        Source(BLELLOCH, "section 1.4.1", "the pairs (transition, write) compose; here over the updates of a chunk"),
        Source(MARTIN, "the parallel scan of a linear recurrence", "there in blocks of one size"),
    ),
    proof=Each(
        (
            Induction(i, Direct(note="no chunk"), Direct((Hypothesis(), whole_chunk), "the run, cut and resumed where the chunk begins")),
            ForEach(Direct((up_to_t, Part(1)), "the same up to t")),
        )
    ),
    near_misses=(
        variant(chunkwise, "the state of the chunk before is handed on", chunked(start=H[b[i - 1]])),
        variant(chunkwise, "the state at the end of the chunk", chunked(start=S[i + 1])),
        variant(chunkwise, "the write at the cut comes again", chunked(begin=b[i] - 1)),
        variant(chunkwise, "chunks overlap in one update", chunked(recurrence("S", H0, lambda i, S: since(S, b[i - 1], b[i])))),
        variant(chunkwise, "the state passes nothing", chunked(recurrence("S", H0, lambda i, S: S + written(b[i - 1] + 1, b[i])))),
    ),
)

# Products of special transitions ------------------------------------------------------------------

I_k, I_v = Eye(d_k), Eye(d_v)
c, C = scalar("c"), matrix("C", d_k, d_k)


def over(factor: Term, first: Index = j + 1) -> Term:
    """The product of a factor over the indices first..t."""
    return Prod(factor, r, first, t)


def products(first: Index = j + 1, power: Index = t - j) -> Formula:
    """Products of identities, of one matrix, of one number, and of multiples of the identity."""
    return And(
        Equation(over(I_k, first), I_k),
        Equation(over(I_v, first), I_v),
        Equation(over(C, first), C**power),
        Equation(over(c, first), c**power),
        Equation(over(a[r] * I_k, first), over(a[r], first) * I_k),
    )


def one_more(factor: Term) -> Script:
    """By induction: times one more factor."""
    return Induction(t, Direct(note="t = j: no factor"), Direct((Using(Hypothesis(), right=factor),), "one more factor"), start=j)


special = Statement(products(), le(0, j) & le(j, t))

PRODUCTS = Claim(
    id="affine/products",
    title="products of identities, of one matrix, of one number and of multiples of the identity",
    statement=special,
    sources=(Source(MARTIN, "the transitions of the models there: numbers and diagonal matrices", "the laws of powers"),),
    proof=Each((one_more(I_k), one_more(I_v), one_more(C), one_more(c), one_more(a[t + 1] * I_k))),
    near_misses=(
        variant(special, "one factor more", products(first=j)),
        variant(special, "one power more", products(power=t - j + 1)),
        NearMiss("one number for all", Statement(Equation(over(a[r] * I_k), a[t] ** (t - j) * I_k), special.where)),
    ),
)

# One transition only ------------------------------------------------------------------------------


def instance(on_left: Term, on_right: Term) -> Term:
    """The affine state at t with terms, which may depend on t, for the transitions."""
    return recurrence("H", H0, lambda n, H: at(on_left, n) * H * at(on_right, n) + U[n])[t]


def at(x: Term, n: Index) -> Term:
    """A term at another time."""
    return substitute(x, {t: n})


def unrolled_by(on_left: Term, on_right: Term) -> Script:
    """The update is the affine one with these transitions, and so is the sum."""
    put = {"L": ((t,), on_left), "R": ((t,), on_right)}
    return Each(
        (
            Induction(t, Direct(note="the same start"), Direct((Hypothesis(),), "the same update")),
            Direct((Lemma("affine/unrolled", families=put),), "the affine update, unrolled"),
        )
    )


SCANS = (
    Source(BLELLOCH, "section 1.4.1, first-order recurrences", "the transition on the left"),
    Source(MARTIN, "the linear recurrence", "the transition on the left, diagonal there"),
)


def one_transition(run: Recurrence, like: Term, start: Term, write: Callable[[Index], Term]) -> Statement:
    """A state is the affine one, and the sum of its start and its writes."""
    return Statement(And(Equation(run[t], like), Equation(run[t], start + Sum(write(j + 1), j, 1, t))), le(0, t))


def misses(statement: Callable[[Callable[[Index], Term]], Statement], write: Callable[[Index], Term]) -> tuple[NearMiss, ...]:
    """A transition too many, and one too few."""
    return (
        NearMiss("a write passes its own transition", statement(lambda first: write(first - 1))),
        NearMiss("a write passes one transition too few", statement(lambda first: write(first + 1))),
    )


from_right = recurrence("H", H0, lambda t, H: H * R[t] + U[t])
from_left = recurrence("H", H0, lambda t, H: L[t] * H + U[t])
scaled = recurrence("H", H0, lambda t, H: a[t] * H + U[t])

right_sum = partial(one_transition, from_right, instance(I_v, R[t]), H0 * right(1, t))
left_sum = partial(one_transition, from_left, instance(L[t], I_k), left(1, t) * H0)
scaled_sum = partial(one_transition, scaled, instance(I_v, a[t] * I_k), scaling(1, t) * H0)


def right_write(first: Index) -> Term:
    """Write j times the transitions first..t."""
    return U[j] * right(first, t)


def left_write(first: Index) -> Term:
    """The transitions first..t times write j."""
    return left(first, t) * U[j]


def scaled_write(first: Index) -> Term:
    """Write j times the numbers first..t."""
    return scaling(first, t) * U[j]


RIGHT = Claim(
    id="affine/right",
    title="transitions on the right only: H_t = H_{t-1} R_t + U_t",
    statement=right_sum(right_write),
    sources=SCANS,
    proof=unrolled_by(I_v, R[t]),
    near_misses=misses(right_sum, right_write),
)

LEFT = Claim(
    id="affine/left",
    title="transitions on the left only: H_t = L_t H_{t-1} + U_t",
    statement=left_sum(left_write),
    sources=SCANS,
    proof=unrolled_by(L[t], I_k),
    near_misses=misses(left_sum, left_write),
)

SCALED = Claim(
    id="affine/scaled",
    title="numbers for transitions: H_t = a_t H_{t-1} + U_t",
    statement=scaled_sum(scaled_write),
    sources=SCANS,
    proof=unrolled_by(a[t] * I_v, I_k),
    near_misses=misses(scaled_sum, scaled_write),
)

additive = recurrence("H", H0, lambda t, H: H + U[t])


def additive_sum(first: Index = 1, last: Index = t) -> Statement:
    """The state is the affine one with identities, and the sum of the start and the writes first..last."""
    return Statement(And(Equation(additive[t], instance(I_v, I_k)), Equation(additive[t], H0 + Sum(U[j], j, first, last))), le(0, t))


ADDITIVE = Claim(
    id="affine/additive",
    title="no transitions: H_t = H_{t-1} + U_t",
    statement=additive_sum(),
    sources=(Source(BLELLOCH, "section 1.3, sums of prefixes"), Source(NOTE, "section 1.3.1: the reflection is the identity")),
    proof=unrolled_by(I_v, I_k),
    near_misses=(
        NearMiss("the last write is left out", additive_sum(last=t - 1)),
        NearMiss("the first write is left out", additive_sum(first=2)),
    ),
)

CLAIMS = (UNROLLED, SPLIT, CHUNKWISE, PRODUCTS, RIGHT, LEFT, SCALED, ADDITIVE)
