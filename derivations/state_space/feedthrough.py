"""The feedthrough D, at lag 0."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Lemma, Unfold
from ..kernel.terms import Add, Index, Sum, Term, Where, Zero, equal, le, named
from .convolution import propagated, tap
from .operator import DECLARATION, GU, Abar, Bbar, C, D, k, l, m, p, textbook, u, x, y

SCIPY = "SciPy, scipy.signal.dlsim and dimpulse"

# The kernel with D --------------------------------------------------------------------------------


def with_D(lag: Index, kernel: Term) -> Term:
    """A kernel, with D added at one lag."""
    return named("h", kernel + Where(equal(l, lag), D, Zero(p, m)), l)


late = Where(le(1, l), tap(l - 1), Zero(p, m))  # the textbook's: K̄_{l-1} at lag l


def filtered(kernel: Term, first: Index) -> Term:
    """The inputs from the first one on, by a kernel."""
    return Sum(kernel * u[k - l], l, 0, k - first)


def fed(ml: Term, book: Term, adapter: Term) -> Formula:
    """The outputs in both indices, and one step of the system that SciPy is given."""
    return And(
        Equation(y, Add(propagated, filtered(ml, 1))),
        Equation(C * textbook[k] + D * u[k], Add(propagated, filtered(book, 0))),
        Equation(y, C * Abar * x[k - 1] + adapter * u[k]),
    )


ML, BOOK, ADAPTER = with_D(0, tap(l)), with_D(0, late), D + C * Bbar
feedthrough = Statement(fed(ML, BOOK, ADAPTER), le(1, k))

FEEDTHROUGH = Claim(
    id="state-space/feedthrough",
    title="y = C x + D u adds D to the kernel at lag 0: K̄_0 + D, K̄_1, K̄_2, ...; in the textbook's index D, K̄_0, K̄_1, ...",
    statement=feedthrough,
    sources=(
        Source(GU, "equation 1 and section 2.4", "D is left out there, as a skip connection"),
        Source(SCIPY, "the textbook's index", "given (Ā, B̄, C Ā, D + C B̄) they answer what is read after the update"),
    ),
    proof=Each(
        (
            Direct((Lemma("state-space/unrolled", part=0),), "the state, unrolled; D u_k is lag 0"),
            Direct((Lemma("state-space/unrolled", part=1),), "the state, unrolled; D u_k is lag 0, all else is one later"),
            Direct((Unfold(x[k]),), "the update, read"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(feedthrough, "D at lag 1", fed(with_D(1, tap(l)), BOOK, ADAPTER)),
        variant(feedthrough, "D at every lag", fed(tap(l) + D, BOOK, ADAPTER)),
        variant(feedthrough, "the textbook's kernel begins with K̄_0", fed(ML, with_D(0, tap(l)), ADAPTER)),
        variant(feedthrough, "SciPy is given D alone", fed(ML, BOOK, D)),
    ),
)

CLAIMS = (FEEDTHROUGH,)
