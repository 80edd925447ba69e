"""What acts on each token by itself: it keeps prefix invariance, and needs no length."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Less, Statement
from ..kernel.scripts import Direct, Each, Given
from ..kernel.terms import Apply, Entry, Exp, Ind, Index, Row, Stack, Sum, Term, Var, entries, indices, le, matrix, norm2, vectors
from .layers import NOTE, VASWANI, T, d, j, n, r, s, t, token, x

# Functions of a token -------------------------------------------------------------------------------------

BA = "Ba, Kiros, Hinton, Layer Normalization, arXiv 1607.06450"
center = matrix("C", d, d)


def Y(length: Index) -> Term:
    """The tokens 1..length after any layers."""
    return Var("Y", (length,), length, d)


same_rows = ForAll(ForAll(Equation(Row(Y(T), s), Row(Y(n), s)), s, 1, n), n, 1, T)
prefix = Assumption("prefix invariant so far", same_rows, solve={Y(n): Stack(x[r].T, r, 1, n)})

PerRow = Callable[[Term, Index, Index], Term]


def residual(X: Term, at: Index, length: Index) -> Term:
    """A token and any function of it, such as a feed-forward network."""
    return token(X, at) + Apply("f", (token(X, at),), d, 1)


def scaled(x: Term, square: Term) -> Term:
    """A token times any function of a mean square, such as 1/√(· + ε)."""
    return Apply("h", (square,), 1, 1) * x


def norm(X: Term, at: Index, length: Index) -> Term:
    """A norm over the features: C takes off their mean, or is 1."""
    centered = center * token(X, at)
    return scaled(centered, norm2(centered) / Ind(d))


def over_time(X: Term, at: Index, length: Index) -> Term:
    """The mean square is that of all tokens."""
    squares = Sum(norm2(center * token(X, j)), j, 1, length)
    return scaled(center * token(X, at), squares / Ind(d) / Ind(length))


def with_mean(X: Term, at: Index, length: Index) -> Term:
    """The mean of all tokens is taken off."""
    return residual(X, at, length) - Sum(token(X, j), j, 1, length) / Ind(length)


def keeps(of: PerRow) -> Equation:
    """Row t of the map on T tokens is row t of the map on t tokens."""
    whole, first = (Stack(of(Y(length), r, length).T, r, 1, length) for length in (T, t))
    return Equation(Row(whole, t), Row(first, t))


def per_token(first: PerRow, second: PerRow) -> And:
    """Two maps that keep prefix invariance."""
    return And(keeps(first), keeps(second))


pointwise = Statement(per_token(residual, norm), le(1, t) & le(t, T) & le(1, d), (prefix,))
SAME = (Given(prefix.name, at={n: t}),)

POINTWISE = Claim(
    id="transformer/pointwise",
    title="what acts on each token by itself, such as a feed-forward network, a residual or a norm over features, keeps prefix invariance",
    statement=pointwise,
    sources=(
        Source(VASWANI, "section 3.3, position-wise feed-forward networks, and section 3.1"),
        Source(BA, "section 3: over the features of one case, not over the batch", "the mean is taken off by a matrix, any one"),
    ),
    proof=Each((Direct(SAME, "row t is a function of row t"), Direct(SAME, "row t is a function of row t"))),
    near_misses=(
        variant(pointwise, "a norm over time", per_token(residual, over_time)),
        variant(pointwise, "the mean over time is taken off", per_token(with_mean, norm)),
        variant(pointwise, "rows that change with the length", drop=prefix.name),
    ),
)

# The output head ------------------------------------------------------------------------------------------

words, c, i = indices("v c i")  # the size of the vocabulary
w, y = vectors("w", d), vectors("y", d)


def head(length: Index, feature: Callable[[Index], Term] = lambda at: y[at]) -> Term:
    """softmax(y_r W) for the rows 1..length, by a matrix W of fixed size, with the columns w_c."""
    logit = Exp(w[c].T * feature(r))
    return entries(logit / Sum(Exp(w[j].T * feature(r)), j, 1, words), r, (1, length), c, (1, words))


def over_rows(length: Index) -> Term:
    """The softmax goes over the tokens."""
    return entries(Exp(w[c].T * y[r]) / Sum(Exp(w[c].T * y[j]), j, 1, length), r, (1, length), c, (1, words))


def grown(of: Callable[[Index], Term]) -> tuple[Term, Term]:
    """The probability of word i at token t, with all T tokens there and with the first t."""
    return Entry(of(T), t, i), Entry(of(t), t, i)


def kept(of: Callable[[Index], Term]) -> Equation:
    """Further tokens leave it alone."""
    return Equation(*grown(of))


late, early = grown(head)
where = le(1, t) & le(t, T) & le(1, i) & le(i, words)
fixed_head = Statement(kept(head), where)
as_written = Statement(Less(0, (late - early) ** 2), where)

FIXED_HEAD = Claim(
    id="transformer/fixed-output-head",
    title="a linear map and a softmax of fixed size serve an output of any length: they act on each row, and further rows change none",
    statement=fixed_head,
    as_written=as_written,
    expected="refuted",
    sources=(
        Source(NOTE, "decoder: how can a growing output go through a fixed Linear and Softmax?", "as if a longer output changed its rows"),
        Source(VASWANI, "section 3.4, embeddings and softmax"),
    ),
    proof=Direct(note="row t is a function of y_t"),
    near_misses=(
        variant(fixed_head, "a softmax over the tokens", kept(over_rows)),
        variant(fixed_head, "a head on the sum of all rows", kept(lambda length: head(length, lambda at: Sum(y[n], n, 1, length)))),
    ),
)

CLAIMS = (POINTWISE, FIXED_HEAD)
