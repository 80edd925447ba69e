"""The general recurrence: a state, its reflection, what an input adds, and a read-out.

    H_t = f_{A,t}(H_{t-1}) + f_{B,t}(x_t)        y_t = f_{C,t}(H_t)

Nothing is known of the three functions; t is one of their arguments. Source: Elman, "Finding Structure in Time",
Cognitive Science 14 (1990), for recurrent networks; the split into three functions is that of a note on transformers and
their variants.
"""

from __future__ import annotations

from dataclasses import replace

from .. import cost
from ..attention import kv_cache
from ..attention.operators import q as queries
from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Declaration, Equation, ForAll, Implies, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Suppose, Unfold, Using
from ..kernel.terms import (
    Apply,
    Family,
    Ind,
    Index,
    Num,
    Recurrence,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    indices,
    le,
    matrices,
    matrix,
    named,
    recurrence,
    vectors,
)
from ..linear_attention import DECLARATION as LINEAR_ATTENTION

d_in, d_k, d_v, d_out = indices("d_in d_k d_v d_out")
t, s, j, n, N, T = indices("t s j n N T")
x = vectors("x", d_in)
H0 = matrix("H0", d_v, d_k)

NOTE = "08 - Transformer and Variants (a blog note)"
ELMAN = "Elman, Finding Structure in Time, Cognitive Science 14 (1990)"


def reflect(at: Index, state: Term) -> Term:
    """f_A at a time."""
    return Apply("f_A", (Ind(at), state), d_v, d_k)


def take_in(at: Index, inputs: Family = x) -> Term:
    """f_B at a time, of the input at that time."""
    return Apply("f_B", (Ind(at), inputs[at]), d_v, d_k)


def read(at: Index, state: Term) -> Term:
    """f_C at a time."""
    return Apply("f_C", (Ind(at), state), d_out, 1)


def run(inputs: Family) -> Recurrence:
    """The recurrence on a sequence of inputs."""
    return recurrence("H", H0, lambda t, H: reflect(t, H) + take_in(t, inputs))


H = run(x)

DECLARATION = Declaration(
    operator="rnn",
    inputs={"x": x},
    output=read(t, H[t]),
    t=t,
    state=H,
    initial_state=H0,
    domains={"x": "real"},
    source=f"{NOTE}, section 1.1",
)
DECLARATIONS = (DECLARATION,)

h = matrix("h", d_v, d_k)

# The nested form ----------------------------------------------------------------------------------

# f_t(... f_{s+2}(f_{s+1}(h)) ...) with f_i = f_{A,i} + f_{B,i}(x_i): what the layers after s make of h. From the outside in:
# it is what the layers after s + 1 make of f_{s+1}(h), and at s = t nothing is left but h.


def layer(at: Index, state: Term) -> Term:
    """One layer of the nest."""
    return reflect(at, state) + take_in(at)


def nest(innermost: Term, after: Index, upto: Index = t) -> Term:
    """What the layers after an index, up to another, make of a term."""
    return recurrence("N", innermost, layer, start=after)[upto]


def reflected(start: Term, after: Index) -> Term:
    """The reflections after an index, up to n, composed."""
    return recurrence("G", start, reflect, start=after)[n]


inwards = Equation(nest(h, s), nest(layer(s + 1, h), s + 1))
whole = Equation(H[n], nest(layer(1, H0), 1, n))
from_first = Equation(H[n], nest(take_in(1), 1, n))
silent = Implies(Equation(reflect(1, H0), Zero(d_v, d_k)), from_first)
unrolled = Statement(And(inwards, whole, silent), le(0, s) & le(s + 1, t) & le(1, n))
next_layer = Direct((Hypothesis(),), "one more layer outside")

UNROLLED = Claim(
    id="rnn/unrolled",
    title="the state is the nest of all layers, for any functions; it begins with f_B if f_A(H_0) is 0 at t = 1",
    statement=unrolled,
    sources=(Source(NOTE, "section 1.3.1: H_t = f_A(f_A(... f_A(f_B(x_1)) + f_B(x_2) ...)) + f_B(x_t)"), Source(ELMAN, "the recurrence")),
    proof=Each(
        (
            Induction(t, Direct((Unfold(nest(h, s, s + 1)),), "t = s + 1: one layer"), next_layer, start=s + 1),
            Induction(n, Direct((Unfold(H[1]),), "t = 1: one layer"), next_layer, start=1),
            Suppose(
                Induction(n, Direct((Unfold(H[1]), Given("premise")), "t = 1: the first layer reflects nothing"), next_layer, start=1),
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "f_A(H_0) is not 0", And(inwards, whole, from_first)),
        variant(
            unrolled,
            "the sum of composed reflections, as if f_A were linear",
            And(inwards, Equation(H[n], reflected(H0, 0) + Sum(reflected(take_in(j), j), j, 1, n))),
        ),
        variant(unrolled, "the outermost layer put in first", And(Equation(nest(h, s), nest(layer(t, h), s + 1)), whole)),
    ),
)

# No reflection ------------------------------------------------------------------------------------

kept = recurrence("H", H0, lambda t, H: H + take_in(t))


def inputs_up_to(last: Index) -> Term:
    """The sum of what the inputs add."""
    return Sum(take_in(j), j, 1, last)


summed = Equation(kept[t], H0 + inputs_up_to(t))
unmoved = ForAll(Equation(reflect(j, H[j - 1]), H[j - 1]), j, 1, N)
instance = Implies(unmoved, Equation(H[t], kept[t]))
identity = Statement(And(summed, instance), le(0, t) & le(t, N))

IDENTITY = Claim(
    id="rnn/identity-reflection",
    title="if f_A is the identity, at least on the states that are reached, the state is the sum of what the inputs add",
    statement=identity,
    sources=(Source(NOTE, "section 1.3.1: f_A(H) = H"),),
    proof=Each(
        (
            Direct((Lemma("affine/additive", part=1, families={"U": ((t,), take_in(t))}),), "no transitions"),
            Suppose(
                Induction(
                    t,
                    Direct(note="the same start"),
                    Chain(
                        (Link(H[t] + take_in(t + 1), (Unfold(H[t + 1]), Given("premise", {j: t + 1})), "the state is not reflected"),),
                        (Hypothesis(),),
                        "the same state before",
                    ),
                )
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(identity, "any f_A", And(summed, instance.args[1])),
        variant(identity, "the current input is left out", And(Equation(kept[t], H0 + inputs_up_to(t - 1)), instance)),
        variant(identity, "the start is forgotten", And(Equation(kept[t], inputs_up_to(t)), instance)),
    ),
)

# Causality ----------------------------------------------------------------------------------------

other, later = vectors("z", d_in), vectors("w", d_in)
H_other = run(other)
agree = Assumption(
    "the same inputs up to N",
    ForAll(Equation(other[j], x[j]), j, 1, N),
    solve={other[j]: Where(le(j, N), x[j], later[j])},
)
causal = Statement(
    And(Equation(H_other[t], H[t]), Equation(read(t, H_other[t]), read(t, H[t]))), le(0, t) & le(t, N), (agree,)
)

CAUSALITY = Claim(
    id="rnn/causality",
    title="the output at t depends on the inputs up to t only",
    statement=causal,
    sources=(Source(NOTE, "section 1: y_t may depend on t and what is before it only"),),
    proof=Each(
        (
            Induction(
                t,
                Direct(note="no input yet"),
                Direct((Hypothesis(), Given("the same inputs up to N")), "the same state meets the same input"),
            ),
            Direct((Part(1),), "the same state is read"),
        )
    ),
    near_misses=(
        variant(causal, "different inputs", drop="the same inputs up to N"),
        NearMiss("one step further", replace(causal, where=le(0, t) & le(t, N + 1))),
    ),
)

# What a step costs --------------------------------------------------------------------------------

# Attention from cached keys and values; it is the declared read-out by attention/kv-cache. A cache is the stack of its slots.
ATTENDED = kv_cache.attend(queries[t], t, t)
CACHES = tuple(Stack(slot(j)[t].T, j, 1, t) for slot in (kv_cache.key, kv_cache.value))
STEP, LINEAR_STEP = cost.step(DECLARATION), cost.step(LINEAR_ATTENTION)
width, height = Ind(d_k), Ind(d_v)


def takes(computed: tuple[Term, ...], **closed: Term) -> tuple[Equation, ...]:
    """How many operations of some kinds it takes to compute the terms."""
    counted = cost.operations(*computed)
    return tuple(Equation(named(kind, counted[kind], *computed), form) for kind, form in closed.items())


def calls(function: str) -> Equation:
    """The steps 1 to T call a function T times."""
    each = cost.operations(*STEP)[f"calls of {function}"]
    return Equation(Sum(named(f"calls of {function}", each), t, 1, T), Ind(T))


def keeps(*kept: Term, numbers: Term) -> Equation:
    """How many numbers there are in the terms."""
    return Equation(named("numbers", cost.numbers(*kept), *kept), numbers)


each_token = Ind(t) * (width + height)


def linear_step(additions: Term) -> tuple[Equation, ...]:
    """A step of linear attention, in operations and numbers kept."""
    operations = takes(LINEAR_STEP, multiplications=2 * height * width, additions=additions)
    return (*operations, keeps(LINEAR_ATTENTION.state[t], numbers=width * height))


def cached_step(additions: Term, multiplications: Term = each_token, numbers: Term = each_token) -> tuple[Equation, ...]:
    """A step of attention from a cache, in operations and numbers kept."""
    operations = takes((ATTENDED,), additions=additions, multiplications=multiplications, exponentials=Ind(t), divisions=height)
    return (*operations, keeps(*CACHES, numbers=numbers))


any_step = (*map(calls, ("f_A", "f_B", "f_C")), *takes(STEP, additions=height * width))
linear = linear_step(2 * height * width - height)
additions = Ind(t) * Ind(d_k - 1) + Ind(t - 1) * (1 + height)
parts = (*any_step, *linear, *cached_step(additions))
step_cost = Statement(And(*parts), le(0, T) & le(1, t) & le(1, d_k) & le(0, d_v))

STEP_COST = Claim(
    id="rnn/step-cost",
    title="a recurrent step takes the same operations at every t, and its state the same room; with keys and values cached, "
    "both grow linearly in t",
    statement=step_cost,
    sources=(
        Source(NOTE, "section 1.2: recurrent inference", "operations as they are written; f_A, f_B and f_C are called"),
        Source(kv_cache.SHAZEER, "incremental multi-head attention", "one head; operations as they are written"),
    ),
    proof=Each((Direct(),) * len(parts)),
    operator=DECLARATION,
    near_misses=(
        variant(
            step_cost,
            "a sum of d_k products takes d_k additions",
            And(*any_step, *linear_step(2 * height * width), *cached_step(additions)),
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

m = indices("m")[0]
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
            And(chain, pairs(1), Equation(tree[m], 2 * Ind(m) * leaf), levels[1], padded(t)),
        ),
        variant(parallel_depth, "the zeros begin one term late", And(chain, pairs(1), *levels, padded(t + 1))),
    ),
)

CLAIMS = (UNROLLED, IDENTITY, CAUSALITY, STEP_COST, PARALLEL_DEPTH)
