"""Queries and keys rotated by their position: only the distance of two tokens is seen.

    S_t = γ S_{t-1} Ω + v_t k_tᴴ        y_t = S_t q_t        with Ω unitary

Ω = diag(e^{iθ}) is the paper's rotation (xPos without its scale), plane rotations in 2 x 2 blocks its real form.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Script, Unfold, Using
from ..kernel.terms import (
    Conj,
    Eye,
    Family,
    Index,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    equal,
    indicator,
    indices,
    le,
    matrix,
    norm2,
    recurrence,
    vector,
    vectors,
)
from . import operator
from .operator import SUN, d_k, d_v, gamma, t

j, c, r = indices("j c r")
q, k, v = vectors("q", d_k, "complex"), vectors("k", d_k, "complex"), vectors("v", d_v, "complex")
H0 = matrix("H0", d_v, d_k, "complex")
omega = matrix("Omega", d_k, d_k, "complex")

DAO = "Dao and Gu, Transformers are SSMs, arXiv 2405.21060"

# A product of two reflections is unitary.
a, b = vector("a", d_k, "complex"), vector("b", d_k, "complex")


def reflection(along: Term) -> Term:
    """The reflection that turns a vector around."""
    return Eye(d_k) - 2 / norm2(along) * along * along.H


unitary = Assumption("Ω unitary", Equation(omega.H * omega, Eye(d_k)), solve={omega: reflection(a) * reflection(b)})

inverse_power = Equation((omega**j).H * omega**j, Eye(d_k))


def relative_to(power: Index) -> Formula:
    """Powers of a unitary matrix are unitary, and two of them leave the difference of their exponents."""
    return And(inverse_power, Equation((omega**j).H * omega**t, omega**power))


relative = Statement(relative_to(t - j), le(0, j) & le(j, t), (unitary,))

RELATIVE = Claim(
    id="retention/relative-position",
    title="(Ω^j)ᴴ Ω^t = Ω^{t-j}: two rotations by position leave one by distance",
    statement=relative,
    sources=(Source(SUN, "section 2.1, between equations 3 and 4", "there Ω = diag(e^{iθ})"),),
    proof=Each(
        (
            Induction(
                j,
                Direct(note="j = 0: no rotation"),
                Direct(
                    (Using(Given("Ω unitary"), left=omega.H**j, right=omega**j), Using(Hypothesis())),
                    "the innermost pair is the identity",
                ),
            ),
            Direct((Using(Part(1), right=omega ** (t - j)),), "Ω^t = Ω^j Ω^{t-j}"),
        )
    ),
    near_misses=(
        variant(relative, "the sum of the positions", relative_to(t + j)),
        variant(relative, "any matrix", drop="Ω unitary"),
    ),
)

rotated = recurrence("S", H0, lambda t, H: gamma * H * omega + v[t] * k[t].H, field="complex")


def turned(x: Term, at: Index) -> Term:
    """A query or key, rotated by its position."""
    return omega**at * x


def faded(x: Term, at: Index) -> Term:
    """What is left of a term after some steps."""
    return gamma**at * x * omega**at


def attention(score: Term) -> Term:
    """What is left of the start, and the values weighed by faded scores."""
    return faded(H0, t) * q[t] + Sum(gamma ** (t - j) * score * v[j], j, 1, t)


state = Equation(rotated[t], faded(H0, t) + Sum(faded(v[j] * k[j].H, t - j), j, 1, t))
by_position = turned(k[j], j).H * turned(q[t], t)


def read_as(score: Term) -> Formula:
    """The state as a sum, and the read-out with a score of query and key."""
    return And(state, Equation(rotated[t] * q[t], attention(score)))


rotation = Statement(read_as(by_position), le(0, t), (unitary,))

ROTATION = Claim(
    id="retention/rotation",
    title="queries Ω^t q_t and keys Ω^j k_j, conjugated, are the recurrence with γΩ: only the distance t - j counts",
    statement=rotation,
    sources=(Source(SUN, "equations 3 and 4", "any unitary Ω for diag(e^{iθ}); with a state at the start; xPos without its scale"),),
    proof=Each(
        (
            Induction(t, Direct(note="no token"), Direct((Hypothesis(),), "one more rotation and fading")),
            Chain(
                (
                    Link((faded(H0, t) + Sum(faded(v[j] * k[j].H, t - j), j, 1, t)) * q[t], (Part(1),), "the state, unrolled"),
                    Link(attention(k[j].H * omega ** (t - j) * q[t]), note="the score depends on the distance"),
                ),
                (Lemma("retention/relative-position", part=1),),
                "a rotation by distance is two by position",
            ),
        )
    ),
    near_misses=(
        variant(rotation, "no conjugate on the key", read_as(turned(k[j], j).T * turned(q[t], t))),
        variant(rotation, "the query is not rotated", read_as(turned(k[j], j).H * q[t])),
        variant(rotation, "the query one position ahead", read_as(turned(k[j], j).H * turned(q[t], t + 1))),
        variant(rotation, "any matrix", drop="Ω unitary"),
    ),
)

# One state-space model per value channel ----------------------------------------------------------

pick = Stack(indicator(equal(r, c)), r, 1, d_v).T


def per_channel(state: Recurrence, query: Family, channel: Recurrence) -> Formula:
    """Row c of the state is the state of channel c, a column, and entry c of the output its output."""
    return And(
        Equation(Row(state[t], c), channel[t].T),
        Equation(Row(state[t] * query[t], c), query[t].T * channel[t]),
    )


def by_rows(state: Recurrence, row: Term) -> Script:
    """By induction: row c of the update is the update of the channel."""
    update = Link(row, (Using(Unfold(state[t + 1]), left=pick),), "row c of the update")
    states = Induction(t, Direct(note="the same start"), Chain((update,), (Hypothesis(),), "the update of the channel"))
    return Each((states, Direct((Part(1),), "row c of the read-out")))


def channel(transition: Term, key: Family) -> Recurrence:
    """The state of channel c."""
    return recurrence("x", Row(operator.H0, c).T, lambda t, x: transition * x + key[t] * Row(operator.v[t], c))


def turned_channel(transition: Term, conjugated: Callable[[Term], Term] = Conj) -> Recurrence:
    """The state of channel c with a rotation; Ωᵀ is Ω where it is diagonal."""
    return recurrence("x", Row(H0, c).T, lambda t, x: transition * x + conjugated(k[t]) * Row(v[t], c), field="complex")


some_channel = le(0, t) & le(1, c) & le(c, d_v)
channels = Statement(per_channel(operator.H, operator.q, channel(gamma * Eye(d_k), operator.k)), some_channel)
turned_channels = Statement(per_channel(rotated, q, turned_channel(gamma * omega.T)), some_channel)

STATE_SPACE = Claim(
    id="retention/as-state-space",
    title="each value channel is a state-space model with Ā = γI, B̄_t = k_t, C_t = q_tᵀ",
    statement=channels,
    sources=(
        Source(SUN, "equations 1 to 3", "from a state-space model to retention"),
        Source(DAO, "state-space models whose A is a number times the identity"),
    ),
    proof=by_rows(operator.H, gamma * Row(operator.H[t], c) + Row(operator.v[t + 1], c) * operator.k[t + 1].T),
    operator=operator.DECLARATION,
    near_misses=(
        variant(channels, "the query for the key", per_channel(operator.H, operator.q, channel(gamma * Eye(d_k), operator.q))),
        variant(channels, "no fading", per_channel(operator.H, operator.q, channel(Eye(d_k), operator.k))),
    ),
)

ROTATED_STATE_SPACE = Claim(
    id="retention/rotation-as-state-space",
    title="rotated, each value channel is a state-space model with Ā = γΩᵀ, B̄_t = conj(k_t), C_t = q_tᵀ, for any Ω",
    statement=turned_channels,
    sources=(Source(SUN, "equations 1 to 3", "there Ω = diag(e^{iθ}), which is its own transpose"),),
    proof=by_rows(rotated, gamma * Row(rotated[t], c) * omega + Row(v[t + 1], c) * k[t + 1].H),
    near_misses=(
        variant(turned_channels, "Ω not transposed", per_channel(rotated, q, turned_channel(gamma * omega))),
        variant(turned_channels, "the key not conjugated", per_channel(rotated, q, turned_channel(gamma * omega.T, lambda key: key))),
    ),
)

CLAIMS = (RELATIVE, ROTATION, STATE_SPACE, ROTATED_STATE_SPACE)
