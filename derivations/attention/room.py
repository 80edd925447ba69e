"""How many numbers attention keeps: all weights at once, running sums, a cache; and a recurrent state beside them."""

from __future__ import annotations

from .. import cost
from ..claim import Claim, Source, variant
from ..kernel.base import Like
from ..kernel.formulas import And, Assumption, Equation, Statement
from ..kernel.scripts import Direct, Each, Given, Using
from ..kernel.terms import Ind, Index, Stack, Term, indices, le, named
from ..linear_attention import DECLARATION as LINEAR_ATTENTION
from . import kv_cache
from .operators import FULL, NOTE, VASWANI, T, d_k, d_v, i, j, score, softmax
from .running import DAO, m, total, weighed

w = indices("w")[0]  # keys whose weights are there at once
tokens, width, height = Ind(T), Ind(d_k), Ind(d_v)


def caches(last: Index) -> tuple[Term, Term]:
    """The caches of keys and values, as stacks of their slots."""
    key, value = (Stack(slot(j)[last].T, j, 1, last) for slot in (kv_cache.key, kv_cache.value))
    return key, value


WEIGHTS = softmax(score, T, w)
RUNNING = tuple(Stack(x.T, i, 1, T) for x in (m[T], total[T], weighed[T]))  # of every query, for the online softmax


def keeps(*kept: Term, numbers: Like) -> Equation:
    """How many numbers there are in the terms."""
    return Equation(named("numbers", cost.numbers(*kept), *kept), numbers)


def room(running: Like, cached: Like, state: Like = height * width) -> And:
    """The weights take T² numbers, running sums and caches a multiple of T, a recurrent state the same at every T."""
    others = keeps(*RUNNING, numbers=running), keeps(*caches(T), numbers=cached)
    return And(keeps(WEIGHTS, numbers=tokens**2), *others, keeps(LINEAR_ATTENTION.state[T], numbers=state))


ONLINE, CACHED = tokens * (height + 2), tokens * (width + height)
materialised = Assumption("the weights of all T keys are there at once", Equation(Ind(w), tokens))
as_written = Statement(room(ONLINE, CACHED), le(0, T) & le(1, w) & le(0, d_k) & le(0, d_v))
memory = Statement(room(ONLINE, CACHED), as_written.where, (materialised,))
SIZE = "rows times columns"

QUADRATIC_MEMORY = Claim(
    id="attention/quadratic-memory",
    title="a head needs T² numbers only where all weights are there at once: running sums take T(d_v + 2), the cache T(d_k + d_v), and a "
    "recurrent state d_v·d_k at every T",
    statement=memory,
    as_written=as_written,
    as_written_at={T: 2, w: 1},
    expected="qualified",
    sources=(
        Source(NOTE, "masked self-attention: the matrix of all weights", "as if every way to compute a head held that matrix"),
        Source(VASWANI, "section 4, table 1"),
        Source(DAO, "algorithm 1: the weights of a block of keys at a time", "each query keeps its shift, its normaliser and its values"),
    ),
    proof=Each((Direct((Using(Given(materialised.name), left=tokens),), SIZE), *(Direct(note=SIZE),) * 3)),
    operator=FULL,
    near_misses=(
        variant(memory, "a block of keys at a time", drop=materialised.name),
        variant(memory, "running sums are as large as the weights", room(tokens**2, CACHED)),
        variant(memory, "the cache does not grow", room(ONLINE, width + height)),
        variant(memory, "a recurrent state grows", room(ONLINE, CACHED, tokens * height * width)),
    ),
)

CLAIMS = (QUADRATIC_MEMORY,)
