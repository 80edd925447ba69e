"""Costs of decoding and of training, counted from the terms by the conventions of ``derivations.cost``."""

from __future__ import annotations

from .. import cost
from ..claim import Claim, Source, variant
from ..kernel.base import Like
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Using
from ..kernel.terms import Ind, Sum, Term, le, named
from . import kv_cache
from .operators import MASKED, NOTE, VASWANI, T, d_k, d_v, masked, q, t

CACHED = kv_cache.attend(q[t], t, t)
KINDS = (cost.EXPONENTIALS, cost.MULTIPLICATIONS)
steps, width, height = Ind(T), Ind(d_k), Ind(d_v)


def count(kind: str, x: Term) -> Term:
    """The operations of one kind that a term takes."""
    return named(kind, cost.operations(x)[kind], x)


def over_all(kind: str, x: Term, times: int, closed: Term) -> Equation:
    """The steps t = 1..T take closed / times operations of a kind."""
    return Equation(times * Sum(count(kind, x), t, 1, T), closed)


def cached(products: Like) -> tuple[Equation, Equation]:
    """Decoding T tokens from the cache."""
    pairs = steps * (steps + 1)
    return over_all(cost.EXPONENTIALS, CACHED, 2, pairs), over_all(cost.MULTIPLICATIONS, CACHED, 2, pairs * products)


def rerun(exponentials: Like, values: Like) -> tuple[Equation, Equation]:
    """A whole masked pass over the tokens up to t, at every step t."""
    scores = steps * (steps + 1) * (steps + 2) * width
    whole = masked(t)
    return over_all(cost.EXPONENTIALS, whole, 6, exponentials), over_all(cost.MULTIPLICATIONS, whole, 6, values * height + scores)


BY_STEPS = Induction(T, Direct(note="no token"), Direct((Using(Hypothesis()),), "one more token"))

# One masked pass ------------------------------------------------------------------------------------------


def one_pass(exponentials: Like, scores: Like = steps * (steps + 1)) -> tuple[Equation, Equation]:
    """The masked pass over all T tokens."""
    multiplied = Equation(2 * count(cost.MULTIPLICATIONS, masked(T)), 2 * steps**2 * height + scores * width)
    return Equation(count(cost.EXPONENTIALS, masked(T)), exponentials), multiplied


pass_cost = Statement(And(*one_pass(steps**2)), le(0, T))

PASS_COST = Claim(
    id="attention/pass-cost",
    title="a masked pass takes T² exponentials, T(T+1)/2 scores of d_k products, and T² products for each channel of the values",
    statement=pass_cost,
    sources=(Source(VASWANI, "section 4, table 1: complexity per layer", "one head; as written, masked weights are 0 and multiplied"),),
    proof=Each((Direct(note="a square of weights"), BY_STEPS)),
    operator=MASKED,
    near_misses=(
        variant(pass_cost, "linear in T", And(*one_pass(steps))),
        variant(pass_cost, "a score for each pair", And(*one_pass(steps**2, 2 * steps**2))),
    ),
)

# Decoding -------------------------------------------------------------------------------------------------

squares = steps * (steps + 1) * (2 * steps + 1)  # six times the sum of t²
again = rerun(squares, squares)
cache_cost = Statement(And(*cached(width + height), *again), le(0, T))
AGAIN = Using(Lemma("attention/pass-cost", part=1, at={T: T + 1}), left=3)
BY_PASSES = Induction(T, Direct(note="no token"), Direct((Using(Hypothesis()), AGAIN), "one more pass"))

KV_CACHE_COST = Claim(
    id="attention/kv-cache-cost",
    title="decoding T tokens takes T(T+1)/2 exponentials and (d_k + d_v) times as many products from a cache, and of the order of T³ "
    "where each step runs the whole masked pass",
    statement=cache_cost,
    sources=(
        Source(NOTE, "masked self-attention: KV cache", "one head and one layer; exponentials and multiplications as they are written"),
        Source(kv_cache.SHAZEER, "incremental multi-head attention"),
    ),
    proof=Each((BY_STEPS, BY_STEPS, BY_STEPS, BY_PASSES)),
    operator=MASKED,
    near_misses=(
        variant(cache_cost, "every step attends to all T tokens", And(*cached(2 * (width + height)), *again)),
        variant(
            cache_cost,
            "a pass costs as much as a cached step",
            And(*cached(width + height), *rerun(3 * steps * (steps + 1), squares)),
        ),
        variant(cache_cost, "the masked half of the weights is left out", And(*cached(width + height), *rerun(squares, squares / 2))),
    ),
)

CLAIMS = (PASS_COST, KV_CACHE_COST)
