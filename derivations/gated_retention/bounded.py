"""A bound on the state that does not grow with time needs gates below one number c < 1; gates below 1 are not enough.

Norms enter by duality: ‖H‖ is the largest ⟨Z, H⟩ = tr(ZᵀH) over the Z of dual norm 1, so what holds of ⟨Z, ·⟩ for every Z
holds of every norm.
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Less, LessEqual, Statement
from ..kernel.scripts import Direct, Each, ForEach, Given, Hypothesis, Induction, Product, Sign, Unfold, Using
from ..kernel.terms import Ind, Index, Num, Prod, Sum, Term, Trace, Zero, indices, le, matrix, scalar, scalars, vectors
from .forms import decay
from .operator import DECLARATION, H0, NOTE, YOCO, H, d_k, d_v, gamma, k, t, v

s, j, N = indices("s j N")
Z = matrix("Z", d_v, d_k)
ceiling, M = scalar("c"), scalar("M")
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
ONE = Num(1)


def along(x: Term) -> Term:
    """⟨Z, x⟩, the sum of the products of the entries."""
    return Trace(Z.T * x)


def written(at: Index) -> Term:
    """The write at a time, seen by Z."""
    return along(v[at] * k[at].T)


def limit(at: Index) -> Term:
    """M (1 + c + c² + …), as many terms as there were steps."""
    return M * (ONE - ceiling**at) / (ONE - ceiling)


def slow(at: Index) -> Term:
    """1 - 1/(s+1)²: below 1, and ever closer to it."""
    return ONE - ONE / Ind(at + 1) ** 2


share = scalars("w")
gates = Assumption(
    "gates between 0 and 1",
    And(ForAll(Less(0, gamma[s]), s, 1, N), ForAll(Less(gamma[s], 1), s, 1, N)),
    solve={gamma[s]: (share[s] ** 2 + 1) / (share[s] ** 2 + 2)},
)
below = Assumption(
    "gates at most c < 1",
    And(ForAll(LessEqual(gamma[s], ceiling), s, 1, N), Less(ceiling, 1)),
    solve={ceiling: ONE - Prod(ONE - gamma[s], s, 1, N)},
)
writes = Assumption(
    "writes of norm at most M",
    And(ForAll(LessEqual(-M, written(s)), s, 1, N), ForAll(LessEqual(written(s), M), s, 1, N)),
    solve={M: Sum(written(s) ** 2 + Fraction(1, 4), s, 1, N)},
)
fresh_start = Assumption("H_0 = 0", Equation(H0, Zero(d_v, d_k)), solve={H0: Zero(d_v, d_k)})

state = along(H[t])
ever = M / (ONE - ceiling)


def kept(bound: Term) -> Formula:
    """The state within a bound on both sides, and the bound within one for all times."""
    return And(LessEqual(-bound, state), LessEqual(state, bound), LessEqual(bound, ever))


everywhere = le(0, t) & le(t, N) & le(1, N)
bounded = Statement(kept(limit(t)), everywhere, (fresh_start, gates, writes, below))
as_written = Statement(bounded.conclusion, everywhere, (fresh_start, gates, writes))

start = Sign(by=(Given("H_0 = 0"),))
gate = gamma[t + 1]
room = (limit(t) - state, limit(t) + state)


def step(side: int) -> Sign:
    """The room on one side after a step: that before it, faded, and what c and M leave."""
    return Sign(
        (
            Product((gate, room[side])),
            Product((ceiling - gate, room[0]), HALF),
            Product((ceiling - gate, room[1]), HALF),
            Product((M - written(t + 1) if side == 0 else M + written(t + 1),)),
        )
    )


first = tuple(Product((x, ONE / (ONE - ceiling)), HALF) for x in (M - written(1), M + written(1)))
fades = tuple(Product((x, ever - limit(t))) for x in (gate, ceiling - gate))

# the gates of the second claim below
SLOW = {gamma[s]: slow(s), ceiling: Num(HALF), k[s]: ONE, v[s]: ONE, Z: 1, M: 1, "t": 4, "N": 4, "d_k": 1, "d_v": 1}

BOUNDED = Claim(
    id="gated-retention/bounded",
    title="gates at most c < 1 and writes of norm at most M keep the state within M (1 - c^t)/(1 - c) <= M/(1 - c)",
    statement=bounded,
    as_written=as_written,
    as_written_at=SLOW,
    expected="qualified",
    sources=(
        Source(NOTE, "section 1.3.4, Gated Retention: γ_t = sigmoid(W x_t)", "a sigmoid is below 1, but has no bound below 1"),
        Source(YOCO, "gated retention"),
    ),
    proof=Induction(t, Each((start, start, Sign(first))), Each((step(1), step(0), Sign(fades)))),
    operator=DECLARATION,
    near_misses=(
        variant(bounded, "a state at the start", drop="H_0 = 0"),
        variant(bounded, "gates of any sign", drop="gates between 0 and 1"),
        variant(bounded, "writes of any size", drop="writes of norm at most M"),
        variant(bounded, "gates below 1 alone", drop="gates at most c < 1", at=SLOW),
        variant(bounded, "the bound of one step before", kept(limit(t - 1)), at={"t": 1}),
        variant(bounded, "the bound of one step later, for all times", And(*bounded.conclusion.args[:2], LessEqual(ever, limit(t + 1)))),
    ),
)

# Gates below 1 alone --------------------------------------------------------------------------------


def weight(at: Index) -> Term:
    """What is left at t of the write at a time."""
    return Ind(at + 1) * Ind(t + 2) / (Ind(at + 2) * Ind(t + 1))


u = vectors("u", d_v)
slow_gates = Assumption("γ_s = 1 - 1/(s+1)²", ForAll(Equation(gamma[s], slow(s)), s, 1, N), solve={gamma[s]: slow(s)})
unit_writes = Assumption(
    "writes that Z sees as 1", ForAll(Equation(written(s), 1), s, 1, N), solve={v[s]: u[s] / (u[s].T * Z * k[s])}
)


def grows(left: Term, floor: Fraction) -> Formula:
    """What is left of each write, no write below a floor, and a state that grows with their number."""
    each = And(Equation(decay(j + 1, t), left), Less(floor, weight(j)))
    return And(ForAll(each, j, 1, t), Less(floor * Ind(t), state))


FLOOR = Fraction(2, 3)
unbounded = Statement(grows(weight(j), FLOOR), le(1, t) & le(t, N), (fresh_start, slow_gates, unit_writes))
by = tuple(Given(a.name) for a in unbounded.assumptions)
one_more = (Using(Hypothesis(), right=gate), Using(Given(slow_gates.name, at={s: t + 1}), left=weight(j)))
denominator = Ind(j + 2) * Ind(t + 1)

UNBOUNDED = Claim(
    id="gated-retention/unbounded",
    title="gates below 1 alone do not bound the state: with γ_s = 1 - 1/(s+1)² every write keeps 2/3 of itself",
    statement=unbounded,
    sources=(Source(NOTE, "section 1.3.4, Gated Retention: γ_t = sigmoid(W x_t)", "the gates of this example are not from there"),),
    proof=Each(
        (
            ForEach(
                Each(
                    (
                        Induction(t, Direct(note="no gate after t"), Direct(one_more, "one more gate"), start=j),
                        Sign(tuple(Product((x, ONE / denominator), THIRD) for x in (Ind(j - 1) * Ind(t), Ind(4 * j + 2)))),
                    )
                )
            ),
            Induction(
                t,
                Sign(by=(Unfold(H[1]), *by)),
                Sign(
                    (
                        Product((Ind(t + 1) * Ind(t + 3) / Ind(t + 2) ** 2, state - FLOOR * Ind(t))),
                        Product((Ind(t) ** 2 + Ind(2 * t + 4), ONE / Ind(t + 2) ** 2), THIRD),
                    ),
                    by,
                ),
                start=1,
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(unbounded, "a state at the start", drop="H_0 = 0"),
        variant(unbounded, "any gates", drop="γ_s = 1 - 1/(s+1)²"),
        variant(unbounded, "any writes", drop="writes that Z sees as 1"),
        variant(unbounded, "the gate of the write itself", grows(weight(j - 1), FLOOR)),
        variant(unbounded, "every write keeps 5/6 of itself", grows(weight(j), Fraction(5, 6))),
    ),
)

CLAIMS = (BOUNDED, UNBOUNDED)
