"""A stack of layers of which nothing is known but what they read.

    x_{l,t} = f(θ, l, x_{l-1,t}, Σ_n Σ_{j≤t} exp(a(θ, l, n, x_{l-1,t}, x_{l-1,j})) u(θ, l, n, x_{l-1,j}) / Z_n)

The scores a, the values u and the layer f are any functions: projections, heads n = 1..N with their part of W_O, scale, positions
that are part of x, residual, norms over features, and a feed-forward network are some. θ holds the parameters of all layers.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernel.terms import Apply, Exp, Ind, Index, Recurrence, Row, Stack, Sum, Term, indices, recurrence, vector, vectors

VASWANI = "Vaswani et al., Attention Is All You Need, arXiv 1706.03762"
NOTE = "Transformer结构 (a blog note on the architecture)"

d, p, N = indices("d p N")  # features, parameters, heads
t, s, S, T, l, r, j, n = indices("t s S T l r j n")
x, theta = vectors("x", d), vector("theta", p)

Mixing = Callable[[Term, Index, Index, Index], Term]
Layer = Callable[[Index, Term, Term], Term]


def token(X: Term, at: Index) -> Term:
    """Row ``at`` of a matrix, as a column."""
    return Row(X, at).T


def attend(own: Term, X: Term, layer: Index, last: Index, name: str = "") -> Term:
    """What a token reads from the rows 1..last of X in a layer, summed over the heads."""
    weight = Exp(Apply(f"a{name}", (theta, Ind(layer), Ind(n), own, token(X, j)), 1, 1))
    value = Apply(f"u{name}", (theta, Ind(layer), Ind(n), token(X, j)), d, 1)
    return Sum(Sum(weight * value, j, 1, last) / Sum(weight, j, 1, last), n, 1, N)


def causal(X: Term, layer: Index, at: Index, length: Index) -> Term:
    """The tokens up to the own one are read."""
    return attend(token(X, at), X, layer, at)


def full(X: Term, layer: Index, at: Index, length: Index) -> Term:
    """All tokens are read."""
    return attend(token(X, at), X, layer, length)


def pointwise(layer: Index, own: Term, read: Term) -> Term:
    """What a layer makes of a token and of what it has read."""
    return Apply("f", (theta, Ind(layer), own, read), d, 1)


def stack(length: Index, mixing: Mixing = causal, of: Layer = pointwise) -> Recurrence:
    """The tokens 1..length after each layer, one row a token; layer 0 are the inputs."""

    def step(layer: Index, X: Term) -> Term:
        return Stack(of(layer, token(X, r), mixing(X, layer, r, length)).T, r, 1, length)

    return recurrence("X", Stack(x[r].T, r, 1, length), step)
