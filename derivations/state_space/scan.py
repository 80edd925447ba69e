"""The recurrence as a scan: pairs (transition, input) compose, in any grouping; and its gradient is a scan backwards.

Two steps x -> A₁ x + b₁ and then x -> A₂ x + b₂ are one, x -> (A₂A₁) x + (A₂b₁ + b₂). The transitions may vary and need not
commute; (Ā, B̄ u_k) is a pair of that kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from ..affine import BLELLOCH, MARTIN, d_k, d_v, t
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Unfold, Using
from ..kernel.terms import (
    Block,
    Index,
    Num,
    Prod,
    Recurrence,
    Sum,
    Term,
    Zero,
    indices,
    le,
    matrices,
    matrix,
    named,
    recurrence,
    vectors,
)
from .operator import DECLARATION, Abar, Bbar, N, j, k, s, u, x

SMITH = "Smith, Warrington, Linderman, Simplified State Space Layers for Sequence Modeling, arXiv 2208.04933"

A, b = matrices("A", N, N), vectors("b", N)
q, r, n = indices("q r n")
Pair: TypeAlias = tuple[Term, Term]


def after(second: Pair, first: Pair) -> Pair:
    """Two steps as one, the first one first."""
    return second[0] * first[0], second[0] * first[1] + second[1]


def swapped(second: Pair, first: Pair) -> Pair:
    """With the product of the transitions the other way round."""
    return first[0] * second[0], second[0] * first[1] + second[1]


def pair(at: Index) -> Pair:
    """The transition and the input of one step."""
    return A[at], b[at]


def segment(first: Index, last: Index, *, decreasing: bool = True) -> Pair:
    """Steps first + 1..last as one: their transitions, the latest leftmost, and every input through those after it."""

    def product(since: Index) -> Term:
        return Prod(A[r], r, since, last, decreasing)

    return named("A", product(first + 1), first, last), named("b", Sum(product(j + 1) * b[j], j, first + 1, last), first, last)


h0 = matrix("H0", N, 1)
h = recurrence("H", h0, lambda t, h: A[t] * h + b[t])
constant = named("b", Sum(Abar ** (n - j) * Bbar * u[j], j, s + 1, n), s, n)


def composes(compose: Callable[[Pair, Pair], Pair] = after, *, decreasing: bool = True, since: Index = s) -> Formula:
    """Pairs compose in any grouping, as block matrices do; neighbouring segments make one, and one makes a state of a state."""

    def part(first: Index, last: Index) -> Pair:
        return segment(first, last, decreasing=decreasing)

    left, right = (compose(pair(q), compose(pair(r), pair(n))), compose(compose(pair(q), pair(r)), pair(n)))
    joined, whole = compose(part(n, k), part(since, n)), part(s, k)
    return And(
        *map(Equation, left, right),
        Equation(block(pair(q)) * block(pair(r)), block(compose(pair(q), pair(r)))),
        *map(Equation, joined, whole),
        Equation(h[k], whole[0] * h[s] + whole[1]),
        Equation(x[n], Abar ** (n - s) * x[s] + constant),
    )


def block(of: Pair) -> Term:
    """A pair as one matrix, which takes (x, 1) to (A x + b, 1)."""
    return Block(of, (Zero(1, N), Num(1)))


scanned = Statement(composes(), le(0, s) & le(s, n) & le(n, k))
one_column = {"L": ((t,), A[t]), "R": ((t,), Num(1)), "U": ((t,), b[t]), "H0": ((), h0)}
from_the_cut = Lemma("affine/split-resume", part=1, at={t: k, s: s, d_v: N, d_k: 1}, families=one_column)

SCAN = Claim(
    id="state-space/scan",
    title="pairs (A, b) compose as (A₂A₁, A₂b₁ + b₂), in any grouping: a tree of them over a segment takes its first state to its last",
    statement=scanned,
    sources=(
        Source(BLELLOCH, "section 1.4.1, first-order recurrences", "matrices that need not commute: the later one on the left"),
        Source(MARTIN, "the parallel scan of a linear recurrence"),
        Source(SMITH, "appendix H, the binary operator of the scan", "there diagonal"),
    ),
    proof=Each(
        (
            Direct(note="a product of three"),
            Direct(note="every input through the transitions after it"),
            Direct(note="block by block"),
            Direct(note="neighbouring products are one"),
            Direct(note="the inputs of the first segment pass the second one"),
            Direct((from_the_cut,), "affine updates, from the cut on"),
            Induction(n, Direct(note="nothing after the cut"), Direct((Using(Hypothesis(), left=Abar),), "one more step"), start=s),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(scanned, "the transitions the other way round", composes(swapped)),
        variant(scanned, "segments in the order of time", composes(decreasing=False)),
        variant(scanned, "segments that overlap", composes(since=s - 1)),
    ),
)

# The gradient -------------------------------------------------------------------------------------

# For the loss Σ g_tᵀ h_t the gradients by b_t are λ_t = A_{t+1}ᵀ λ_{t+1} + g_t: the same scan from the last step to the first,
# with transposed transitions, shifted by one. Its i-th state is λ_{T-i+1}.
T, i = indices("T i")
g, E = vectors("g", N), matrices("E", N, N)
moved = recurrence("H", h0, lambda t, h: (A[t] + E[t]) * h + b[t])


def backwards(transition: Callable[[Index], Term]) -> Recurrence:
    """A scan from the last step to the first."""
    return recurrence("l", Zero(N, 1), lambda i, l: transition(T - i + 2) * l + g[T - i + 1])


def gradients(l: Recurrence, before: int = 1) -> Formula:
    """The last i terms of the loss: as inputs and a state see them, and what a change E of the transitions makes of them."""
    at, first = T - i, T - i + 1
    loss = Sum(g[t].T * h[t], t, first, T)
    change = Sum(g[t].T * (moved[t] - h[t]), t, first, T)
    return And(
        Equation(loss, Sum(l[T - t + 1].T * b[t], t, first, T) + l[i].T * A[first] * h[at]),
        Equation(change, Sum(l[T - t + 1].T * E[t] * moved[t - before], t, first, T) + l[i].T * A[first] * (moved[at] - h[at])),
    )


l = backwards(lambda at: A[at].T)
reversed_scan = Statement(gradients(l), le(0, i) & le(i, T))
step_back = l.member.step_at(i + 1, l[i]).T
of_l = Using(Unfold(l[i + 1]), left=-b[T - i].T)
of_l_moved = replace(of_l, left=-(E[T - i] * moved[T - i - 1]).T)
of_h, of_moved = Using(Unfold(h[T - i]), left=step_back), Using(Unfold(moved[T - i]), left=step_back)

REVERSE = Claim(
    id="state-space/reverse-scan",
    title="the gradient of a linear recurrence is its scan from the last step to the first, with transposed transitions shifted by one: "
    "λ_t = A_{t+1}ᵀ λ_{t+1} + g_t by b_t, λ_t h_{t-1}ᵀ by A_t",
    statement=reversed_scan,
    sources=(
        Source(MARTIN, "back-propagation through a linear recurrence", "matrices; all transitions change at once, in full"),
        Source(SMITH, "appendix H, the binary operator of the scan", "backwards"),
    ),
    proof=Each(
        (
            Induction(i, Direct(note="no step"), Direct((Using(Hypothesis()), of_h, of_l), "one more step, transposed")),
            Induction(
                i,
                Direct(note="no step"),
                Direct((Using(Hypothesis()), of_moved, replace(of_h, left=-step_back), of_l_moved), "one more step of both, transposed"),
            ),
        )
    ),
    near_misses=(
        variant(reversed_scan, "not shifted", gradients(backwards(lambda at: A[at - 1].T))),
        variant(reversed_scan, "not transposed", gradients(backwards(lambda at: A[at]))),
        variant(reversed_scan, "the transition's gradient by the state after it", gradients(l, before=0)),
    ),
)

CLAIMS = (SCAN, REVERSE)
