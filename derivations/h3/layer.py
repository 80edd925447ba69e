"""The layer: recurrent and convolutional, and where in it tokens meet.

o_t = Σ_{j<=t} K_{t-j} (k̃_jᵀ q_t) v_j        K_l = cᵀ diag(a)^l b        k̃_j = Σ_{l<N} c_{l+1} ⊙ k_{j-l}
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Given, Hypothesis, Induction, Lemma, Link, Unfold, Using
from ..kernel.terms import Diag, Eye, Ind, Index, Num, Row, Stack, Sum, Term, Transpose, Zero, equal, indicator, le, named, norm2, vector
from .operator import DECLARATION, FU, NOTE, S0, M, N, S, a, b, c, d, i, j, k, l, n, q, shifted, t, taps, v
from .shift import filtered, fresh_keys

o = DECLARATION.output
fresh_sums = Assumption("S_0 = 0", Equation(S0, Zero(M, d)), solve={S0: Zero(M, d)})
fresh = (fresh_keys, fresh_sums)


def kernel(lag: Index) -> Term:
    """The kernel of the diagonal SSM."""
    return named("K", c.T * Diag(a) ** lag * b, lag)


def convolved(last: Index = t, age: Index = t - j, later: Index = 0) -> Term:
    """Both SSMs as convolutions, with the products between them."""
    return Sum(kernel(age) * v[j] * (filtered(j, later=later) * q[t]), j, 1, last)


def is_output(answer: Term) -> Formula:
    """What the layer answers at step t."""
    return Equation(o, answer)


layer = Statement(is_output(convolved()), le(0, t), fresh)

unrolled_sums = Link(
    Sum(kernel(t - j) * v[j] * (shifted(j) * q[t]), j, 1, t),
    (Lemma("h3/diagonal-state"), Given(fresh_sums.name)),
    "the diagonal SSM, unrolled",
)

LAYER = Claim(
    id="h3/layer",
    title="from the zero state, Q ⊙ SSM_diag(SSM_shift(K) ⊙ V) step by step is two convolutions with the products between them",
    statement=layer,
    sources=(Source(FU, "section 3.2 and algorithm 1", "one value channel of a head; of width 1 there is nothing else"),),
    proof=Chain(
        (unrolled_sums,),
        (Lemma("h3/shift-state"), Given(fresh_keys.name)),
        "the shift SSM is a filter",
    ),
    operator=DECLARATION,
    near_misses=(
        variant(layer, "a start of the shift SSM", drop=fresh_keys.name),
        variant(layer, "a start of the diagonal SSM", drop=fresh_sums.name),
        variant(layer, "the last token is left out", is_output(convolved(last=t - 1))),
        variant(layer, "every product one step older", is_output(convolved(age=t - j + 1))),
        variant(layer, "keys one step later", is_output(convolved(later=1))),
    ),
)

# Where both SSMs are identities, or sums ----------------------------------------------------------


def single_tap(lag: int, name: str) -> Assumption:
    """The shift SSM reads one lag only, and weighs it with 1."""
    chosen = indicator(equal(i, lag + 1))
    ones = Transpose(Stack(Num(1), n, 1, d))
    tap = Equation(Diag(Row(taps, i).T), chosen * Eye(d))
    return Assumption(name, ForAll(tap, i, 1, N), solve={taps: Stack(chosen * ones, i, 1, N)})


no_shift = single_tap(0, "SSM_shift is the identity")
one_mode = vector("b0", M)
unit_gain = Assumption("cᵀb = 1", Equation(c.T * b, 1), solve={b: one_mode, c: one_mode / norm2(one_mode)})
forgets = Assumption("a = 0", Equation(Diag(a), Zero(M, M)), solve={a: Zero(M, 1)})
keeps_all = Assumption("a = 1", Equation(Diag(a), Eye(M)), solve={a: Stack(Num(1), n, 1, M)})

by_token = Statement(is_output((k[t].T * q[t]) * v[t]), le(1, t) & le(1, N), (no_shift, forgets, unit_gain))

POINTWISE = Claim(
    id="h3/pointwise",
    title="tokens meet only inside the two SSMs: with identities in their place the output at t is (k_tᵀ q_t) v_t",
    statement=by_token,
    sources=(Source(NOTE, "H3: tokens interact in the two SSMs only"), Source(FU, "section 3.2", "all else is done token by token")),
    proof=Chain(
        (Link(v[t] * (c.T * b) * (shifted(t) * q[t]), (Unfold(S[t]), Given(forgets.name)), "nothing of the state is kept"),),
        (Lemma("h3/shift-state"), Given(no_shift.name), Given(unit_gain.name)),
        "row 1 of the shift SSM is the token's own key",
    ),
    operator=DECLARATION,
    near_misses=(
        variant(by_token, "another shift SSM", drop=no_shift.name),
        variant(by_token, "a state that is kept", drop=forgets.name),
        variant(by_token, "another gain", drop=unit_gain.name),
        variant(by_token, "the value of the token before", is_output((k[t].T * q[t]) * v[t - 1])),
        variant(by_token, "the key of the token before", is_output((k[t - 1].T * q[t]) * v[t])),
    ),
)

constant = Statement(Equation(kernel(l), 1), le(0, l), (keeps_all, unit_gain))

CONSTANT = Claim(
    id="h3/sum",
    title="with a = 1 and cᵀb = 1 the diagonal SSM is a sum: its kernel is 1 at every lag",
    statement=constant,
    sources=(Source(FU, "section 3.2", "the diagonal SSM as a memory of everything"),),
    proof=Induction(
        l,
        Direct((Given(unit_gain.name),), "lag 0"),
        Direct((Using(Given(keeps_all.name), left=c.T, right=Diag(a) ** l * b), Using(Hypothesis())), "times 1"),
    ),
    near_misses=(
        variant(constant, "a that fades", drop=keeps_all.name),
        variant(constant, "another gain", drop=unit_gain.name),
        variant(constant, "the lag itself", Equation(kernel(l), Ind(l))),
    ),
)

as_sum = (Lemma("h3/shift-state"), Given(no_shift.name), Lemma("h3/sum"))


def linear_attention(last: Index = t) -> Term:
    """Linear attention from the zero state: the query meets every key so far."""
    return Sum((k[j].T * q[t]) * v[j], j, 1, last)


# Lag 1 and a sum, as for recall: the key of token 1 and the value of token 2 are multiplied.
ANOTHER_KEY = {
    **{N: 2, M: 1, d: 1, t: 2, a: 1, b: 1, c: 1, taps: [[0], [1]]},
    **{k[1]: 1, v[1]: 0, k[2]: 0, v[2]: 1, q[2]: 1},
}
limit = Statement(is_output(linear_attention()), le(0, t) & le(1, N), (fresh_sums, no_shift, keeps_all, unit_gain))

LIMIT = Claim(
    id="h3/linear-attention-limit",
    title="with the identity for SSM_shift and a sum for SSM_diag, H3 is linear attention",
    statement=limit,
    as_written=Statement(limit.conclusion, limit.where, (fresh_sums,)),
    as_written_at=ANOTHER_KEY,
    expected="qualified",
    sources=(
        Source(
            NOTE,
            "H3: unlike linear attention it does not add up K V of different tokens",
            "right in general: in the counterexample a key meets the next token's value; wrong for these SSMs",
        ),
        Source(FU, "section 3.2", "H3 as linear attention with SSMs in two places"),
    ),
    proof=Chain((unrolled_sums,), as_sum, "k_j v_j, added up"),
    operator=DECLARATION,
    near_misses=(
        variant(limit, "a start of the diagonal SSM", drop=fresh_sums.name),
        variant(limit, "another shift SSM", drop=no_shift.name),
        variant(limit, "a memory that fades", drop=keeps_all.name),
        variant(limit, "another gain", drop=unit_gain.name, at={M: 1}),
        variant(limit, "without the token itself", is_output(linear_attention(t - 1))),
    ),
)

CLAIMS = (LAYER, POINTWISE, CONSTANT, LIMIT)
