"""Positions in the scores: rotations and a linear bias, of which only distances are left."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Statement
from ..kernel.scripts import Direct, Each, Lemma
from ..kernel.terms import Exp, Eye, Ind, Index, Sum, Term, indices, le, matrix, norm2, scalar, vector
from .operators import MASKED, d_k, j, k, q, t, v

SU = "Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, arXiv 2104.09864"
PRESS = "Press, Smith, Lewis, Train Short, Test Long (ALiBi), arXiv 2108.12409"

p = indices("p")[0]


def weighed(logit: Term) -> Term:
    """What query t reads from the tokens 1..t with these logits of token j."""
    return Sum(Exp(logit) * v[j], j, 1, t) / Sum(Exp(logit), j, 1, t)


# Rotations ------------------------------------------------------------------------------------------------

omega = matrix("Omega", d_k, d_k)
a, b = vector("a", d_k), vector("b", d_k)


def reflection(along: Term) -> Term:
    """The reflection that turns a vector around."""
    return Eye(d_k) - 2 / norm2(along) * along * along.T


orthogonal = Assumption("Ω orthogonal", Equation(omega.H * omega, Eye(d_k)), solve={omega: reflection(a) * reflection(b)})


def by_position(shift: Index = 0, keys: Index = 0) -> Term:
    """The logit of query t and key j, each rotated by its position, where those are shifted."""
    return (omega ** (t + shift) * q[t]).T * (omega ** (j + keys) * k[j])


def by_distance(distance: Index) -> Term:
    """The logit with one rotation."""
    return k[j].T * omega**distance * q[t]


def relative(logit: Term, moved: Term) -> And:
    """Rotations by position are one by distance, and positions may be shifted."""
    rotated = weighed(by_position())
    return And(Equation(rotated, weighed(logit)), Equation(weighed(moved), rotated))


rotary = Statement(relative(by_distance(t - j), by_position(p, p)), le(1, t) & le(0, p), (orthogonal,))
BY_DISTANCE = (Lemma("retention/relative-position", part=1, families={"Omega": ((), omega)}),)

ROTARY = Claim(
    id="attention/rotary",
    title="with queries and keys rotated by their positions, only the distances t - j count: all positions may be shifted",
    statement=rotary,
    sources=(Source(SU, "section 3.2: qᵀRᵀRk depends on the relative position", "any orthogonal Ω for the block-diagonal rotation"),),
    proof=Each((Direct(BY_DISTANCE, "(Ω^j)ᵀ Ω^t = Ω^{t-j}"), Direct(BY_DISTANCE, "the shift leaves every distance"))),
    operator=MASKED,
    near_misses=(
        variant(rotary, "any matrix", drop=orthogonal.name),
        variant(rotary, "the sum of the positions", relative(by_distance(t + j), by_position(p, p))),
        variant(rotary, "only the queries are shifted", relative(by_distance(t - j), by_position(p, 0))),
    ),
)

# A bias that is linear in the distance --------------------------------------------------------------------

mu = scalar("mu")


def biased(bias: Term) -> Term:
    """The logit with a bias."""
    return q[t].T * k[j] + mu * bias


def linear(bias: Term, moved: Term) -> And:
    """A bias by distance is one by the key's position alone, and positions may be shifted."""
    alibi = weighed(biased(-Ind(t - j)))
    return And(Equation(alibi, weighed(biased(bias))), Equation(alibi, weighed(biased(moved))))


alibi = Statement(linear(Ind(j), Ind(j + p)), le(1, t) & le(0, p))
CANCELS = "a bias that all keys share cancels in the softmax"

ALIBI = Claim(
    id="attention/alibi",
    title="a bias -μ(t - j) on the scores is the bias μj of the keys alone, from any first position",
    statement=alibi,
    sources=(Source(PRESS, "section 3", "the bias -m(t - j), and the translation invariance of the softmax"),),
    proof=Each((Direct(note=CANCELS), Direct(note=CANCELS))),
    operator=MASKED,
    near_misses=(
        variant(alibi, "the bias of the other sign", linear(-Ind(j), Ind(j + p))),
        variant(alibi, "a bias of the distance squared", linear(Ind(t - j) ** 2, Ind(j + p))),
        variant(alibi, "a shift that grows with the position", linear(Ind(j), Ind(2 * j + p))),
    ),
)

CLAIMS = (ROTARY, ALIBI)
