"""RWKV-7: a diagonal decay and a rank-one correction that reads the state before it decays; the delta rule is a special case."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ..claim import Claim, Source, variant
from ..delta_rule.operator import H as DELTA
from ..delta_rule.operator import beta
from ..gated_delta_rule.operator import H as GATED_DELTA
from ..gated_delta_rule.operator import gamma
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Implies, Statement
from ..kernel.instances import instantiate
from ..kernel.scripts import Direct, Each, ForEach, Given, Hypothesis, Induction, Lemma, Part, Suppose, Unfold, Using
from ..kernel.terms import Diag, Eye, Index, Prod, Rec, Recurrence, Stack, Sum, Term, cuts, indices, le, named, recurrence, vectors
from .operators import GOOSE, H0, WKV7, G, a, b, d, d_k, d_v, k, q, t, transition, v

r, s, j, i, n, m, N = indices("r s j i n m N")
cut = cuts("b")
z = vectors("z", d_v)


def write(at: Index, value: Term | None = None) -> Term:
    """What a token writes."""
    return (v[at] if value is None else value) * k[at].T


def passed(x: Term, since: Index, last: Index = t, *, decreasing: bool = False) -> Term:
    """What the transitions of a range make of a term, the earliest leftmost."""
    return x * Prod(transition(r), r, since, last, decreasing)


# The recurrence, as written and unrolled ----------------------------------------------------------


def forms(find: Term, first: Index = j + 1, *, decreasing: bool = False) -> Formula:
    """An update as decay, correction of what a_t finds in the state before, and write; and the state as a sum."""
    start = passed(H0, 1, decreasing=decreasing)
    writes = Sum(passed(write(j), first, decreasing=decreasing), j, 1, t)
    update = G[t] * Diag(d[t + 1]) + find * b[t + 1].T + write(t + 1)
    return And(Equation(G[t + 1], update), Equation(G[t], start + writes))


found = G[t] * a[t + 1]
wkv7 = Statement(forms(found), le(0, t))
affine = {"R": ((t,), transition(t)), "U": ((t,), write(t))}

WKV_7 = Claim(
    id="rwkv/wkv7",
    title="the state decays, what a_t finds in the undecayed one comes back along b_t; each write passes the transitions after it",
    statement=wkv7,
    sources=(Source(GOOSE, "the weighted key-value state evolution", "the state transposed; with a state at the start"),),
    proof=Each(
        (
            Direct((Unfold(G[t + 1]),), "the transition, multiplied out"),
            Direct((Lemma("affine/right", part=1, families=affine),), "transitions on the right"),
        )
    ),
    operator=WKV7,
    near_misses=(
        variant(wkv7, "what is found in the decayed state", forms(G[t] * Diag(d[t + 1]) * a[t + 1])),
        variant(wkv7, "a write passes its own transition", forms(found, j)),
        variant(wkv7, "transitions in reversed order", forms(found, decreasing=True)),
    ),
)

# The corrections as writes ------------------------------------------------------------------------


def found_at(at: Index) -> Term:
    """u: what a token finds in the state before it."""
    return named("u", G[at - 1] * a[at], at)


def added(first: Index, start: Term, last: Index = t) -> Term:
    """Corrections and writes that only decay, each by the decays after it."""
    return start + Sum((found_at(j) * b[j].T + write(j)) * decays(first, last), j, 1, last)


def decays(first: Index, last: Index = t) -> Term:
    """The decays of a range."""
    return Prod(Diag(d[r]), r, first, last)


def triangular(first: Index = j + 1, start: Term | None = None, last: Index = t) -> Formula:
    """The state as what was added, and what the next token finds as a sum over the tokens before it."""
    start = H0 * decays(1) if start is None else start
    found = H0 * decays(1) * a[t + 1] + Sum(
        found_at(j) * (b[j].T * decays(j + 1, last) * a[t + 1]) + v[j] * (k[j].T * decays(j + 1, last) * a[t + 1]), j, 1, t
    )
    return And(Equation(G[t], added(first, start)), Equation(found_at(t + 1), found))


corrections = Statement(triangular(), le(0, t))

CORRECTIONS = Claim(
    id="rwkv/wkv7-corrections",
    title="what the tokens find solves a triangular system of decayed products of tokens; writes and corrections then only decay",
    statement=corrections,
    sources=(
        Source(GOOSE, "the weighted key-value state evolution", "the UT transform of the delta rule, for a diagonal decay and any a and b"),
    ),
    proof=Each(
        (
            Induction(
                t,
                Direct(note="the start"),
                Direct((Using(Hypothesis(), right=Diag(d[t + 1])),), "everything decays, and u bᵀ + v kᵀ comes in"),
            ),
            Direct((Using(Part(1), right=a[t + 1]),), "the state, read by a"),
        )
    ),
    operator=WKV7,
    near_misses=(
        variant(corrections, "its own decay too", triangular(j)),
        variant(corrections, "the start does not decay", triangular(start=H0)),
        variant(corrections, "the next decay is in between", triangular(last=t + 1)),
    ),
)

# Chunks of any sizes ------------------------------------------------------------------------------


def since(start: Term, begin: Index, last: Index) -> Term:
    """The state after a token from one at a cut, and the writes since then."""
    return passed(start, begin + 1, last) + Sum(passed(write(j), j + 1, last), j, begin + 1, last)


def states(shift: Index = 0) -> Recurrence:
    """The loop over the chunks."""
    return recurrence("S", H0, lambda i, S: since(S, cut[i - 1], cut[i] + shift))


S = states()


def chunked(states: Term = S[i], start: Term = S[i], begin: Index = cut[i]) -> Formula:
    """The states at the cuts; every output of a chunk from the state at its start and the tokens of the chunk."""
    return And(Equation(states, G[cut[i]]), ForAll(Equation(G[t] * q[t], since(start, begin, t) * q[t]), t, cut[i], cut[i + 1]))


chunkwise = Statement(chunked(), le(0, i))
right = {"L": ((t,), Eye(d_v)), **affine}
up_to_t = Lemma("affine/split-resume", part=1, at={s: cut[i], t: t}, families=right)

CHUNKWISE = Claim(
    id="rwkv/wkv7-chunkwise",
    title="RWKV-7 in chunks of any sizes: an output needs the state where its chunk begins and the tokens of the chunk up to its own",
    statement=chunkwise,
    sources=(Source(GOOSE, "the parallel form of the appendix on the kernel", "cut anywhere: the affine theorem"),),
    proof=Each(
        (
            Direct((Lemma("affine/chunkwise", families=right),), "the affine update"),
            ForEach(Direct((up_to_t, Part(1)), "the run, cut where the chunk begins")),
        )
    ),
    operator=WKV7,
    near_misses=(
        variant(chunkwise, "the state after the chunk", chunked(start=S[i + 1])),
        variant(chunkwise, "the write at the cut comes again", chunked(begin=cut[i] - 1)),
        variant(chunkwise, "the chunk reaches one token too far", chunked(states(1)[i])),
    ),
)

# The delta rule -----------------------------------------------------------------------------------


def with_values(state: Term) -> Rec:
    """A state of another column, which writes values z."""
    return cast(Rec, cast(Equation, instantiate(Statement(Equation(state, state)), {"v": ((t,), z[t])}).conclusion).lhs)


one_gate = Assumption("d = γ", ForAll(Equation(Diag(d[r]), gamma[r] * Eye(d_k)), r, 1, N), solve={d[r]: Stack(gamma[r], m, 1, d_k)})
along_keys = Assumption("b = k", ForAll(Equation(b[r], k[r]), r, 1, N), solve={b[r]: k[r]})
strength = Assumption("values βz", ForAll(Equation(v[r], beta[r] * z[r]), r, 1, N), solve={v[r]: beta[r] * z[r]})
no_gate = ForAll(Equation(gamma[r], 1), r, 1, N)


def back(found: Term) -> Assumption:
    """What is found comes back with this factor."""
    return Assumption("a = -γβk", ForAll(Equation(a[r], found), r, 1, N), solve={a[r]: found})


correction = back(-gamma[r] * beta[r] * k[r])
is_gated = Equation(G[n], with_values(GATED_DELTA[n]))
is_delta = Implies(no_gate, Equation(G[n], with_values(DELTA[n])))
delta = Statement(And(is_gated, is_delta), le(0, n) & le(n, N), (one_gate, correction, along_keys, strength))
now = tuple(Given(x.name, {r: n + 1}) for x in delta.assumptions)

DELTA_RULE = Claim(
    id="rwkv/wkv7-delta",
    title="with one decay γ for all channels, a = -γβk, b = k and values βz RWKV-7 is the gated delta rule; with γ = 1 the delta rule",
    statement=delta,
    sources=(Source(GOOSE, "the generalised delta rule", "the cases by name; there a = -κ̂ and b = κ̂ ⊙ a"),),
    proof=Each(
        (
            Induction(n, Direct(note="the same start"), Direct((Hypothesis(), *now), "the same update")),
            Suppose(Induction(n, Direct(note="the same start"), Direct((Hypothesis(), *now, Given("premise", {r: n + 1})), "no gate"))),
        )
    ),
    operator=WKV7,
    near_misses=(
        variant(delta, "decays of the channels", drop=one_gate.name),
        variant(delta, "any correction", drop=correction.name),
        variant(delta, "along other keys", drop=along_keys.name),
        variant(delta, "values without strength", drop=strength.name),
        variant(delta, "what is found does not fade", drop=correction.name, add=(replace(back(-beta[r] * k[r]), name="a = -βk"),)),
        variant(delta, "any gate is the delta rule", Equation(G[n], with_values(DELTA[n]))),
    ),
)

CLAIMS = (WKV_7, CORRECTIONS, CHUNKWISE, DELTA_RULE)
