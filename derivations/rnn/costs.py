"""Costs, counted from the terms: what a step takes and keeps, and how deep the sum of what the inputs add is.

The conventions are those of ``derivations.cost``. Attention from cached keys and values is the declared read-out by
attention/kv-cache.
"""

from __future__ import annotations

from dataclasses import replace

from .. import cost
from ..attention import kv_cache
from ..attention.operators import q as queries
from ..attention.room import caches, keeps
from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Using
from ..kernel.terms import Ind, Index, Num, Sum, Term, Where, Zero, index, le, matrices, matrix, named, recurrence
from ..linear_attention import DECLARATION as LINEAR_ATTENTION
from .recurrence import DECLARATION, H0, NOTE, N, d_k, d_v, j, n, nest, t

T, m = index("T"), index("m")

# What a step costs --------------------------------------------------------------------------------

ATTENDED = kv_cache.attend(queries[t], t, t)
STEP, LINEAR_STEP = cost.step(DECLARATION), cost.step(LINEAR_ATTENTION)
width, height = Ind(d_k), Ind(d_v)
twice = Num(2) * height * width


def takes(computed: tuple[Term, ...], **closed: Term) -> tuple[Equation, ...]:
    """How many operations of some kinds it takes to compute the terms."""
    counted = cost.operations(*computed)
    return tuple(Equation(named(kind, counted[kind], *computed), form) for kind, form in closed.items())


def calls(function: str) -> Equation:
    """The steps 1 to T call a function T times."""
    each = cost.operations(*STEP)[f"calls of {function}"]
    return Equation(Sum(named(f"calls of {function}", each), t, 1, T), Ind(T))


each_token = Ind(t) * (width + height)


def linear_step(additions: Term) -> tuple[Equation, ...]:
    """A step of linear attention, in operations and numbers kept."""
    operations = takes(LINEAR_STEP, multiplications=twice, additions=additions)
    return (*operations, keeps(LINEAR_ATTENTION.state[t], numbers=width * height))


def cached_step(additions: Term, multiplications: Term = each_token, numbers: Term = each_token) -> tuple[Equation, ...]:
    """A step of attention from a cache, in operations and numbers kept."""
    operations = takes((ATTENDED,), additions=additions, multiplications=multiplications, exponentials=Ind(t), divisions=height)
    return (*operations, keeps(*caches(t), numbers=numbers))


any_step = (*map(calls, ("f_A", "f_B", "f_C")), *takes(STEP, additions=height * width))
linear = linear_step(twice - height)
additions = Ind(t) * Ind(d_k - 1) + Ind(t - 1) * (1 + height)
parts = (*any_step, *linear, *cached_step(additions))
step_cost = Statement(And(*parts), le(0, T) & le(1, t) & le(1, d_k) & le(0, d_v))

STEP_COST = Claim(
    id="rnn/step-cost",
    title="a recurrent step takes the same operations at every t, and its state the same room; with keys and values cached, "
    "both grow linearly in t",
    statement=step_cost,
    sources=(
        Source(NOTE, "section 1.2: RNNs and self-attention at inference", "operations as they are written; f_A, f_B and f_C are called"),
        Source(kv_cache.SHAZEER, "incremental multi-head attention", "one head; operations as they are written"),
    ),
    proof=Each((Direct(),) * len(parts)),
    operator=DECLARATION,
    near_misses=(
        variant(
            step_cost,
            "a sum of d_k products takes d_k additions",
            And(*any_step, *linear_step(twice), *cached_step(additions)),
        ),
        variant(
            step_cost,
            "the cached step costs the same at every t",
            And(*any_step, *linear, *cached_step(additions, multiplications=width + height)),
        ),
        variant(
            step_cost,
            "the scores are added up before the new one",
            And(*any_step, *linear, *cached_step(Ind(t) * Ind(d_k - 1) + Ind(t - 2) * (1 + height))),
        ),
        variant(step_cost, "the values are not kept", And(*any_step, *linear, *cached_step(additions, numbers=Ind(t) * width))),
        NearMiss("vectors of size 0", replace(step_cost, where=le(0, T) & le(1, t) & le(0, d_k) & le(0, d_v))),
    ),
)

# How deep a sum is --------------------------------------------------------------------------------

U, leaf = matrices("U", d_v, d_k), matrix("X", d_v, d_k)  # any terms
tree = recurrence("B", leaf, lambda level, below: below + below)  # balanced, with the same term in all leaves
nested = nest(H0, 0)


def deep(x: Term, additions: Term) -> Equation:
    """How many additions there are on the longest path through a term as it is written."""
    return Equation(named("depth", cost.depth(x), x), additions)


def pairs(first: Index) -> Equation:
    """The sum of N sums of neighbours, from a first term on: the sum of the terms 1 to 2N."""
    return Equation(Sum(U[2 * j + first - 2] + U[2 * j + first - 1], j, 1, N), Sum(U[j], j, 1, 2 * N))


def padded(last: Index) -> Equation:
    """The sum of n terms that are 0 after the last: the sum of the terms 1 to t."""
    return Equation(Sum(Where(le(j, last), U[j], Zero(d_v, d_k)), j, 1, n), Sum(U[j], j, 1, t))


chain = deep(nested, Ind(t))
levels = (Equation(tree[m], Num(2) ** m * leaf), deep(tree[m], Ind(m)))
parallel_depth = Statement(And(chain, pairs(1), *levels, padded(t)), le(0, t) & le(t, n) & le(0, m) & le(0, N))

PARALLEL_DEPTH = Claim(
    id="rnn/parallel-depth",
    title="the nested form as written is a chain of t additions; adding neighbours keeps a sum and halves its terms, m such levels add "
    "up 2^m terms in depth m, and zeros fill up t ≤ 2^m terms",
    statement=parallel_depth,
    sources=(Source(NOTE, "section 1.3.1: f_A(H) = H can be computed in parallel", "additions on the longest path; upper bounds"),),
    proof=Each((Induction(t), Induction(N, step=Direct((Using(Hypothesis()),))), Induction(m), Induction(m), Direct())),
    operator=DECLARATION,
    near_misses=(
        variant(parallel_depth, "neighbours from the second term on", And(chain, pairs(2), *levels, padded(t))),
        variant(parallel_depth, "a nest in depth t - 1", And(deep(nested, Ind(t - 1)), pairs(1), *levels, padded(t))),
        variant(
            parallel_depth,
            "m levels add up 2m terms",
            And(chain, pairs(1), Equation(tree[m], Num(2) * Ind(m) * leaf), levels[1], padded(t)),
        ),
        variant(parallel_depth, "the zeros begin one term late", And(chain, pairs(1), *levels, padded(t + 1))),
    ),
)

CLAIMS = (STEP_COST, PARALLEL_DEPTH)
