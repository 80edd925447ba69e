"""The convolution by fast Fourier transforms: circular, of padded sequences.

out_s = Σ_{l<n} K_l u_{(s-l) mod n}        K_l = 0 for l >= L,  u_s = 0 for s >= L,  n >= 2L - 1
"""

from __future__ import annotations

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import Equation, Formula, Statement
from ..kernel.scripts import Chain, Given, Lemma, Link, Using
from ..kernel.terms import Add, Index, Sum, Term, Where, Zero, index, le
from ..state_space.convolution import convolved, fresh_start, propagated, tap
from ..state_space.operator import D, m, p, u, y
from .systems import GU, NOTE, L, k, l

n = index("n")


def padded(at: Index) -> Term:
    """Input ``at``, counted from 0; there are L, and zeros follow."""
    return Where(le(at, L - 1), u[at + 1], Zero(m, 1))


def padded_tap(lag: Index) -> Term:
    """Tap ``lag``; there are L, and zeros follow."""
    return Where(le(lag, L - 1), tap(lag), Zero(p, m))


def circular(last: Index = n - 1, period: Index = n, at: Index = k - 1) -> Term:
    """Entry ``at``, counted from 0, of the circular convolution of the padded sequences."""
    return Sum(padded_tap(l) * Where(le(l, at), padded(at - l), padded(at - l + period)), l, 0, last)


def answers(answer: Term, *start: Term) -> Formula:
    """The output at step k."""
    return Equation(y, Add(*start, answer, D * u[k]))


long_enough = le(1, k) & le(k, L) & le(2 * L - 1, n)
transformed = Statement(answers(circular()), long_enough, (fresh_start,))
longer_run = Statement(answers(circular()), le(1, k) & le(2 * L - 1, n) & le(k, n) & le(0, L), (fresh_start,))

CONVOLUTION = Claim(
    id="s4/convolution-is-recurrence",
    title="from the zero state, L steps of the recurrence are a circular convolution of sequences padded to 2L - 1 or more",
    statement=transformed,
    as_written=Statement(answers(circular()), long_enough),
    expected="qualified",
    sources=(
        Source(
            GU,
            "section 2.4 and algorithm 1",
            "the convolution by fast Fourier transforms; how long the padding is stands in the released code",
        ),
        Source(NOTE, "convolutional representation: y = x * K̄"),
    ),
    proof=Chain(
        (
            Link(
                Add(propagated, convolved(k), D * u[k]),
                (Using(Lemma("state-space/response", at={k: k, L: L})),),
                "the response",
            ),
        ),
        (Given(fresh_start.name),),
        "no input wraps around: where one would, the padding is 0",
    ),
    near_misses=(
        variant(transformed, "a state at the start", drop=fresh_start.name),
        NearMiss("unpadded", Statement(answers(circular()), le(1, k) & le(k, L) & le(L, n), (fresh_start,))),
        NearMiss("one short", Statement(answers(circular()), le(1, k) & le(k, L) & le(2 * L - 2, n) & le(1, n), (fresh_start,))),
        NearMiss("more steps than taps", longer_run, at={L: 1, k: 2, n: 2}),
        variant(transformed, "the output one step late", answers(circular(at=k))),
        variant(transformed, "the last tap left out", answers(circular(last=L - 2))),
    ),
)

CLAIMS = (CONVOLUTION,)
