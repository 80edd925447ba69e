"""The general recurrence: a state, its reflection, what an input adds, and a read-out.

    H_t = f_{A,t}(H_{t-1}) + f_{B,t}(x_t)        y_t = f_{C,t}(H_t)

Nothing is known of the three functions; t is one of their arguments. Source: Elman, "Finding Structure in Time",
Cognitive Science 14 (1990), for recurrent networks; the split into three functions is that of a note on transformers and
their variants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Declaration, Equation, ForAll, Implies, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Suppose, Unfold
from ..kernel.terms import Apply, Family, Ind, Index, Recurrence, Sum, Term, Where, Zero, indices, le, matrix, recurrence, vectors

d_in, d_k, d_v, d_out = indices("d_in d_k d_v d_out")
t, s, j, n, N = indices("t s j n N")
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


def run(
    inputs: Family,
    start: Term = H0,
    f_A: Callable[[Index, Term], Term] = reflect,
    f_B: Callable[[Index, Family], Term] = take_in,
    name: str = "H",
) -> Recurrence:
    """The recurrence on a sequence of inputs, with functions of which nothing is known, or with given ones."""
    return recurrence(name, start, lambda t, H: f_A(t, H) + f_B(t, inputs))


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

CLAIMS = (UNROLLED, IDENTITY, CAUSALITY)
