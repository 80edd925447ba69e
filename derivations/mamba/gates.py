"""The selective scan as a gated recurrence: one channel and entry with zero-order hold, and many channels with one gate each.

With A = -1 and Δ = softplus(z) the transition is a forget gate. Several channels with the same B and C are one memory, a row a
channel, with a gate for every entry.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ..claim import Claim, NearMiss, Source, variant
from ..discretization.operators import LSSL, MAMBA, m
from ..gated_retention.operator import NOTE
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Rowwise, Unfold, Using
from ..kernel.terms import (
    Block,
    Diag,
    Entry,
    Exp,
    Hadamard,
    Index,
    Integral,
    Log,
    Num,
    Row,
    Stack,
    Sum,
    Term,
    entries,
    equal,
    indicator,
    indices,
    le,
    matrix,
    named,
    recurrence,
    scalar,
    scalars,
    vector,
    vectors,
)
from .discretization import ONE, step, tau
from .operator import B, C, N, t, x

# One entry ------------------------------------------------------------------------------------------------

logits, weight, h0 = scalars("z"), scalars("lambda"), scalar("h0")
r, T = indices("r T")


def sigmoid(x: Term) -> Term:
    """The logistic function."""
    return named("σ", ONE / (ONE + Exp(-x)), x)


def softplus(x: Term) -> Term:
    """The Δ of a logit."""
    return named("softplus", Log(ONE + Exp(x)), x)


def hold(at: Index) -> Term:
    """B̄ of zero-order hold with A = -1 and B = 1."""
    return Integral(Exp(-tau), tau, 0, softplus(logits[at]))


def drive(at: Index) -> Term:
    """The paper's B̄ for the weight 1, the released code's for 0."""
    return weight[at] * hold(at) + (ONE - weight[at]) * softplus(logits[at])


def gate(at: Index) -> Term:
    """How far the gate is open."""
    return sigmoid(logits[at])


scan = recurrence("h", h0, lambda t, h: Exp(-softplus(logits[t])) * h + drive(t) * x[t])


def is_gate(forget: Term, write: Term) -> Formula:
    """The scan is a gated recurrence."""

    def at(of: Term, time: Index) -> Term:
        return of.subs({t: time})

    return Equation(scan[t], recurrence("g", h0, lambda time, g: at(forget, time) * g + at(write, time) * x[time])[t])


def weights(name: str, value: int) -> Assumption:
    """The weight is one number at all times."""
    return Assumption(name, ForAll(Equation(weight[r], value), r, 1, T), solve={weight[r]: Num(value)})


by_hold = weights("B̄ is zero-order hold's", 1)
some_time = le(0, t) & le(t, T)
gating = Statement(is_gate(ONE - gate(t), gate(t)), some_time, (by_hold,))
at_one = {"A": ((), Num(-1)), "B": ((), ONE), step.name: ((), softplus(logits[t + 1]))}
integrated = Using(Lemma("mamba/hold-expansion", at={N: 1, m: 1}, families=at_one), left=-x[t + 1])

GATING = Claim(
    id="mamba/gating",
    title="N = 1, A = -1, B = 1, Δ = softplus(z): h_t = (1 - σ(z_t)) h_{t-1} + σ(z_t) x_t with the B̄ of zero-order hold, not with ΔB",
    statement=gating,
    as_written=Statement(gating.conclusion, gating.where),
    as_written_at={weight[r]: Num(0), "t": 1, "T": 1},
    expected="qualified",
    sources=(
        Source(MAMBA, "theorem 1", "true for equation 4; the released code has B̄ = softplus(z) in the place of σ(z)"),
        Source(LSSL, "lemma 3.1", "there backward Euler, with Δ = e^z"),
    ),
    proof=Induction(
        t,
        Direct(note="the same start"),
        Chain(
            (
                Link(
                    (ONE - gate(t + 1)) * scan[t] + hold(t + 1) * x[t + 1],
                    (Unfold(scan[t + 1]), Given(by_hold.name, {r: t + 1})),
                    "e^{-softplus(z)} = 1 - σ(z)",
                ),
                Link(
                    (ONE - gate(t + 1)) * scan[t] + gate(t + 1) * x[t + 1],
                    (integrated,),
                    "the integral of e^{-s} up to softplus(z) is σ(z)",
                ),
            ),
            (Hypothesis(),),
            "the same state before",
        ),
    ),
    near_misses=(
        variant(gating, "any mix of the two", drop=by_hold.name),
        NearMiss("B̄ = ΔB, as in the released code", Statement(gating.conclusion, some_time, (weights("B̄ = ΔB", 0),))),
        variant(gating, "the gate keeps what it should write", is_gate(gate(t), ONE - gate(t))),
        variant(gating, "the write is not gated", is_gate(ONE - gate(t), ONE)),
    ),
)

# Many channels ----------------------------------------------------------------------------------------------

d, b, c, l, n = indices("d b c l n")
R, M0 = matrix("A", d, N), matrix("M0", d, N)
delta, inputs = vectors("Delta", d), vectors("x", d)


def fades(channel: Index, place: Index, at: Index = t) -> Term:
    """The gate of an entry: e^{Δ A} of its channel and place."""
    return Exp(Row(delta[at], channel) * Entry(R, channel, place))


def gates(at: Index) -> Term:
    """The gates of all entries."""
    return entries(fades(c, n, at), c, (1, d), n, (1, N))


def write(at: Index) -> Term:
    """Δ ⊙ x, for all channels."""
    return Diag(delta[at]) * inputs[at]


memory = recurrence("M", M0, lambda t, M: Hadamard(gates(t), M) + write(t) * B[t].T)
channel = recurrence(
    "h",
    Row(M0, c).T,
    lambda t, h: Exp(Row(delta[t], c) * Diag(Row(R, c).T)) * h + Row(delta[t], c) * B[t] * Row(inputs[t], c),
)


def unit(place: Index, size: Index) -> Term:
    """A standard basis vector."""
    return Stack(indicator(equal(r, place)), r, 1, size)


def same_rows(state: Term, output: Term) -> Formula:
    """Row c of the memory is the state of channel c, and read by C it is its output."""
    return And(
        Equation(Entry(memory[t], c, n), state),
        Equation(Stack(Row(C[t], n), n, 1, N), C[t]),
        Equation(Row(memory[t] * C[t], c), output),
    )


some_channel = le(1, c) & le(c, d)
some_entry = some_channel & le(1, n) & le(n, N)
entrywise = Statement(Equation(Entry(memory[t], c, n), Row(channel[t], n)), le(0, t) & some_entry)
updates = (
    Using(Unfold(memory[t + 1]), left=unit(c, d).T, right=unit(n, N)),
    Using(Unfold(channel[t + 1]), left=-unit(n, N).T),
    Using(Hypothesis(), left=fades(c, n, t + 1)),
)
wrong_rates = recurrence("M", M0, lambda t, M: Hadamard(entries(fades(c, 1, t), c, (1, d), n, (1, N)), M) + write(t) * B[t].T)

CHANNELS = Claim(
    id="mamba/channels",
    title="channels that share B and C are one gated memory: H_t = G_t ⊙ H_{t-1} + (Δ_t ⊙ x_t) B_tᵀ with G_{cn} = e^{Δ_{t,c} A_{cn}}",
    statement=entrywise,
    sources=(Source(MAMBA, "algorithm 2: A is D x N, B and C are shared by the channels", "with B̄ = ΔB; row c is channel c"),),
    proof=Induction(t, step=Direct(updates, "an entry of both updates")),
    near_misses=(
        variant(entrywise, "one gate for all entries of a channel", Equation(Entry(wrong_rates[t], c, n), Row(channel[t], n))),
        variant(entrywise, "another channel", Equation(Entry(memory[t], 1, n), Row(channel[t], n))),
        variant(entrywise, "another entry", Equation(Entry(memory[t], c, n), Row(channel[t], 1))),
    ),
)


def minor(of: Callable[[Index, Index], Term]) -> Equation:
    """A minor of two rows and two columns vanishes: all of them do where the matrix is e sᵀ."""
    return Equation(of(c, n) * of(b, l), of(c, l) * of(b, n))


def held(channel: Index, place: Index) -> Term:
    """An entry of what zero-order hold would write."""
    return Integral(Exp(tau * Entry(R, channel, place)), tau, 0, Row(delta[t], channel)) * Row(B[t], place) * Row(inputs[t], channel)


def by_code(channel: Index, place: Index) -> Term:
    """An entry of what the released code writes."""
    return Entry(write(t) * B[t].T, channel, place)


log2 = Log(Num(2))
witness = Exp(-log2) * Exp(-(Num(4) * log2)) - Exp(-(Num(2) * log2)) * Exp(-(Num(2) * log2))
a = vector("a", d)
one_rate = Assumption(
    "one rate for each channel",
    ForAll(ForAll(Equation(Entry(R, c, n), Row(a, c)), n, 1, N), c, 1, d),
    solve={R: a * Stack(ONE, n, 1, N).T},
)


def factors(writes: Callable[[Index, Index], Term] = by_code, determinant: Fraction = Fraction(-1, 32)) -> Formula:
    """The outputs are those of the channels; the write is v kᵀ, and the gates are e sᵀ; a determinant of gates with two rates."""
    return And(
        Equation(Stack(Row(C[t], n), n, 1, N), C[t]),
        Equation(Row(memory[t] * C[t], c), C[t].T * channel[t]),
        minor(writes),
        Equation(witness, Num(determinant)),
        minor(fades),
    )


two_entries = some_entry & le(1, b) & le(b, d) & le(1, l) & le(l, N)
gated_state = Statement(factors(), le(0, t) & two_entries, (one_rate,))
rate_of = tuple(Given(one_rate.name, {c: row, n: column}) for row in (c, b) for column in (n, l))
two_rates = Block((Num(-1), Num(-2)), (Num(-1), Num(-2)))
two_steps = Block((Num(1),), (Num(2),))
WITNESS = {R: two_rates, delta[r]: two_steps, "d": 2, "N": 2, "b": 2, "c": 1, "l": 2, "n": 1, "t": 0}

AS_GATED = Claim(
    id="mamba/as-gated-state",
    title="with B̄ = ΔB the scan is H_t = G_t ⊙ H_{t-1} + v_t k_tᵀ, v = Δ ⊙ x, k = B, q = C; G_t = e_t s_tᵀ if each channel has one rate, "
    "but Δ = (ln 2, 2 ln 2) and A = (-1, -2) give G of determinant -1/32",
    statement=gated_state,
    as_written=Statement(gated_state.conclusion, gated_state.where),
    as_written_at=WITNESS,
    expected="qualified",
    sources=(
        Source(
            NOTE, "Mamba among the gated memories: G = e sᵀ", "true of the write, and of the gates for one rate a channel (Mamba-2) only"
        ),
        Source(MAMBA, "algorithm 2", "the rates A are D x N"),
    ),
    proof=Each(
        (
            Rowwise(r),
            Chain(
                (
                    Link(
                        Sum(Entry(memory[t], c, n) * Row(C[t], n), n, 1, N),
                        (Using(Part(1), left=-Row(memory[t], c)),),
                        "C as the column of its entries",
                    ),
                    Link(
                        Sum(Row(channel[t], n) * Row(C[t], n), n, 1, N), (Lemma("mamba/channels"),), "entry by entry, the channel's state"
                    ),
                ),
                (Using(Part(1), left=channel[t].T),),
                "read by C",
            ),
            Direct(note="a column times a row"),
            Direct(note="1/32 - 1/16"),
            Direct(rate_of, "one rate for each channel"),
        )
    ),
    near_misses=(
        variant(gated_state, "any rates", drop=one_rate.name),
        variant(gated_state, "zero-order hold, whose write is no v kᵀ", minor(held), drop=one_rate.name),
        variant(gated_state, "a determinant of 1/32", factors(determinant=Fraction(1, 32))),
        variant(gated_state, "read by B", Equation(Row(memory[t] * B[t], c), C[t].T * channel[t])),
    ),
)

CLAIMS = (GATING, CHANNELS, AS_GATED)
