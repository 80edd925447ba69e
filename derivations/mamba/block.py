"""The block: a causal convolution, the selective scan, and a gate; its state is the convolution's tail and the scans' memory.

    x_t = in(e_t)        u_t = f(S_{t-1}, x_t)        S_t = shift(S_{t-1}, x_t)
    M_t = e^{Δ_t diag(A)} M_{t-1} + Δ_t B_t u_t        o_t = gate(C_tᵀ M_t + D u_t, e_t)        for each channel

e_t is a token and S the tail; Δ, B and C are functions of u, of all channels. The functions are any: in holds the projection, f the
convolution (mamba/causal-conv1d for each channel) and SiLU, and gate multiplies by SiLU(z), z another projection of the token. The last
projection acts on each token by itself (transformer/pointwise).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from ..claim import Claim, NearMiss, Source, variant
from ..discretization.operators import MAMBA
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Cases, Chain, Direct, Each, ForEach, Given, Hypothesis, Induction, Lemma, Link, Reason, Unfold, Using
from ..kernel.terms import (
    Apply,
    Diag,
    Exp,
    Family,
    Ind,
    Index,
    Num,
    Recurrence,
    Row,
    Rows,
    Stack,
    Sum,
    Term,
    Where,
    equal,
    indicator,
    indices,
    le,
    matrix,
    recurrence,
    vector,
    vectors,
)
from ..transformer.depth import Stacked, by_layers, invariant, over_time
from ..transformer.layers import T as tokens_of_all
from ..transformer.layers import d as features
from ..transformer.layers import l as layer
from ..transformer.layers import stack, theta
from .operator import CONVOLUTION, N, W, bias, t, tail, tail0, weight, x

c, d, j, l, m, n, r, s, T = indices("c d j l m n r s T")

# The convolution --------------------------------------------------------------------------------------------


def seen(at: Index) -> Term:
    """The input at a time, which is one of the tail's before the first."""
    return Where(le(1, at), x[at], Row(tail0, at + W - 1))


def holds(first: Index = t - W + 1) -> Formula:
    """The tail's entries are consecutive inputs."""
    return ForAll(Equation(Row(tail[t], n), seen(first + n)), n, 1, W - 1)


newest = Statement(holds(), le(0, t))
of_update = Using(Unfold(tail[t + 1]), left=Stack(indicator(equal(r, n)), r, 1, W - 1).T)
an_older_one = Chain((Link(Row(tail[t], n + 1), (of_update,), "an entry moves up"),), (Hypothesis(),), "the tail before")

TAIL = Claim(
    id="mamba/convolution-tail",
    title="the tail holds the last W - 1 inputs, the oldest first; at the start those that it was given",
    statement=newest,
    sources=(Source("causal_conv1d, conv_state of causal_conv1d_update", "the state is shifted, the newest input comes last"),),
    proof=Induction(
        t,
        ForEach(Direct(note="the tail that was given")),
        ForEach(Cases(((le(n, W - 2), an_older_one), (le(W - 1, n), Direct((of_update,), "the newest input"))))),
    ),
    operator=CONVOLUTION,
    near_misses=(
        variant(newest, "one input behind", holds(t - W)),
        variant(newest, "the newest first", ForAll(Equation(Row(tail[t], n), seen(t + 1 - n)), n, 1, W - 1)),
        variant(
            newest,
            "zeros at the start",
            ForAll(Equation(Row(tail[t], n), Where(le(1, t - W + 1 + n), x[t - W + 1 + n], Num(0))), n, 1, W - 1),
        ),
    ),
)


def convolved(of: Callable[[Index], Term], first: Index = 1) -> Formula:
    """The output as a sum over the taps, the last of which meets the newest input."""
    return Equation(CONVOLUTION.output, Sum(Row(weight, l) * of(l), l, first, W) + bias)


convolution = Statement(convolved(lambda l: seen(t - W + l)), le(1, t) & le(1, W))

CONV1D = Claim(
    id="mamba/causal-conv1d",
    title="the step with a tail is the causal convolution: y_t = Σ_l w_l x_{t-W+l} + b, inputs before the first from the tail",
    statement=convolution,
    sources=(
        Source(
            MAMBA,
            "section 3.4, figure 3: the convolution of the block",
            "one channel; the weight as a convolution padded on the left has it",
        ),
    ),
    proof=Direct((Lemma("mamba/convolution-tail"),), "the tail, entry by entry; the last tap by itself"),
    operator=CONVOLUTION,
    near_misses=(
        variant(convolution, "the weight read backwards", convolved(lambda l: seen(t + 1 - l))),
        variant(convolution, "a tap too few", convolved(lambda l: seen(t - W + l), 2)),
        variant(convolution, "the newest input is not seen", convolved(lambda l: seen(t - W - 1 + l))),
        variant(convolution, "the tail is forgotten", convolved(lambda l: Where(le(1, t - W + l), x[t - W + l], Num(0)))),
    ),
)

# The block ----------------------------------------------------------------------------------------------------

tokens, others, later = vectors("e", m), vectors("g", m), vectors("k", m)
tails, memories = matrix("S0", W - 1, d), matrix("M0", d, N)
rates, through = matrix("A", d, N), vector("D", d)


@dataclass(frozen=True)
class Run:
    """The block on a sequence of tokens, from a tail and a memory before the first; ``ahead`` is what the convolution sees too soon."""

    tokens: Family = tokens
    tails: Term = tails
    memories: Term = Row(memories, c).T
    start: Index = 0
    ahead: int = 0

    def inner(self, at: Index) -> Term:
        """The token as it meets the convolution."""
        return Apply("in", (self.tokens[at],), d, 1)

    def conv(self, at: Index) -> Term:
        """u_t: what is made of the tail and the newest token."""
        return Apply("f", (self.tail[at - 1], self.inner(at + self.ahead)), d, 1)

    def chosen(self, name: str, at: Index, rows: Index, cols: Index = 1) -> Term:
        """What is selected by u_t."""
        return Apply(name, (self.conv(at),), rows, cols)

    @cached_property
    def tail(self) -> Recurrence:
        """The last W - 1 inner tokens, one a row."""
        return recurrence("S", self.tails, lambda t, S: Apply("shift", (S, self.inner(t)), W - 1, d), start=self.start)

    @cached_property
    def memory(self) -> Recurrence:
        """The state of the scan of channel c."""

        def step(t: Index, M: Term) -> Term:
            delta = Row(self.chosen("Delta", t, d), c)
            return Exp(delta * Diag(Row(rates, c).T)) * M + delta * self.chosen("B", t, N) * Row(self.conv(t), c)

        return recurrence("M", self.memories, step, start=self.start)

    def output(self, at: Index) -> Term:
        """Channel c of what the last projection gets: the read-out, gated."""
        read = self.chosen("C", at, N).T * self.memory[at] + Row(through, c) * Row(self.conv(at), c)
        return Apply("gate", (Ind(c), read, self.tokens[at]), 1, 1)


run, other, early = Run(), Run(others), Run(others, ahead=1)
agree = Assumption(
    "the same tokens up to T",
    ForAll(Equation(others[j], tokens[j]), j, 1, T),
    solve={others[j]: Where(le(j, T), tokens[j], later[j])},
)


def same_states(one: Run, two: Run) -> And:
    """The tails of two runs, and what a channel has in memory."""
    return And(Equation(one.tail[t], two.tail[t]), Equation(one.memory[t], two.memory[t]))


def by_steps(start: Index, reasons: tuple[Reason, ...] = ()) -> Induction:
    """The same states take the same step."""
    step = Direct((Hypothesis(), *reasons), "the same states meet the same token")
    return Induction(t, Each((Direct(note="the same start"),) * 2), Each((step, step)), start=start)


some_channel = le(1, W) & le(1, c) & le(c, d)
in_range = le(0, t) & le(t, T) & some_channel
causal = Statement(same_states(other, run), in_range, (agree,))
resumed = Run(tails=run.tail[s], memories=run.memory[s], start=s)
whole = Statement(same_states(resumed, run), le(0, s) & le(s, t) & some_channel)

STATES = Claim(
    id="mamba/block-states",
    title="the tail of the convolution and the memory of the scan after t tokens are functions of these tokens alone",
    statement=causal,
    sources=(Source(MAMBA, "section 3.4, figure 3: the block", "any functions of a tail and a token, and of what is made of them"),),
    proof=by_steps(0, (Given(agree.name, {j: t + 1}),)),
    near_misses=(
        variant(causal, "other tokens", drop=agree.name),
        NearMiss("one token more", replace(causal, where=le(0, t) & le(t, T + 1) & some_channel)),
        variant(causal, "a convolution that is not causal", same_states(early, Run(ahead=1))),
    ),
)

RESUMED = Claim(
    id="mamba/block-resume",
    title="a block that is resumed from its tail and its memory is the whole block: these two are its state",
    statement=whole,
    sources=(Source(MAMBA, "section 3.4: the block", "as InferenceParams of mamba_ssm hold conv_state and ssm_state"),),
    proof=by_steps(s),
    near_misses=(
        variant(whole, "the tail is forgotten", same_states(Run(memories=run.memory[s], start=s), run)),
        variant(whole, "the memory is forgotten", same_states(Run(tails=run.tail[s], start=s), run)),
        variant(whole, "the tail one token old", same_states(Run(tails=run.tail[s - 1], memories=run.memory[s], start=s), run)),
    ),
)


def same_outputs(one: Run, again: Run) -> And:
    """The outputs of a run at t, and of a run that is resumed after s."""
    return And(Equation(one.output(t), run.output(t)), Equation(again.output(t), run.output(t)))


block = Statement(same_outputs(other, resumed), le(0, s) & le(s, t - 1) & le(t, T) & some_channel, (agree,))


def states(claim: str) -> tuple[Lemma, ...]:
    """The tail before t, and the memory at t."""
    return (Lemma(claim, part=0, at={t: t - 1}), Lemma(claim, part=1))


BLOCK = Claim(
    id="mamba/block",
    title="convolution, scan and gate: an output depends on the tokens up to it alone (causal, prefix invariant), and a run goes on from "
    "the state (tail of W - 1 inputs, memory)",
    statement=block,
    sources=(Source(MAMBA, "section 3.4, figure 3: the block", "in holds the projection, f the convolution and SiLU"),),
    proof=Each(
        (
            Direct((*states("mamba/block-states"), Given(agree.name, {j: t})), "the same tail, memory and token"),
            Direct(states("mamba/block-resume"), "the same tail and memory"),
        )
    ),
    near_misses=(
        variant(block, "other tokens", drop=agree.name),
        variant(block, "a convolution that is not causal", same_outputs(early, resumed)),
        variant(block, "resumed without the tail", same_outputs(other, Run(memories=run.memory[s], start=s))),
        variant(block, "resumed without the memory", same_outputs(other, Run(tails=run.tail[s], start=s))),
    ),
)

# A stack of blocks --------------------------------------------------------------------------------------------


def reading(last: Callable[[Index, Index], Index]) -> Stacked:
    """A stack of layers, each of which reads any function of its tokens up to a last one."""

    def mixing(X: Term, layer: Index, at: Index, length: Index) -> Term:
        return Apply("g", (theta, Ind(layer), Rows(X, 1, last(at, length))), features, 1)

    return lambda length: stack(length, mixing)


so_far = reading(lambda at, length: at)
depth = Statement(invariant(so_far), le(0, layer) & le(1, t) & le(t, tokens_of_all))

STACK = Claim(
    id="mamba/stack",
    title="a stack, of any depth, of layers that read any function of the tokens so far, as blocks do, leaves the rows of a prefix alone",
    statement=depth,
    sources=(Source(MAMBA, "section 3.4: the block, repeated, with norms and residuals", "that a block is such a function: mamba/block"),),
    proof=by_layers(so_far),
    near_misses=(
        variant(depth, "a function of all tokens, as of a bidirectional scan", invariant(reading(lambda at, length: length))),
        variant(depth, "a norm over time", invariant(over_time)),
    ),
)

CLAIMS = (TAIL, CONV1D, STATES, RESUMED, BLOCK, STACK)
