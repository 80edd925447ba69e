"""A decoder: attention to its own tokens up to each, then to the memory that an encoder left, in every layer.

    y = g(l, x_t, Σ_{j≤t} a(l, x_t, x_j))        x'_t = f(l, y, Σ_{j≤M} b(l, y, m_j))

The functions are any. With a = exp(score) (value, 1), for each head, the sum holds the weighed values and the normaliser of
softmax attention, and g divides them; and so for b and f.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import Statement
from ..kernel.terms import Apply, Ind, Index, Recurrence, Stack, Sum, Term, indices, le, recurrence, vectors
from .depth import by_layers, invariant
from .layers import NOTE, VASWANI, T, d, j, l, r, t, token, x

M, e = indices("M e")  # the length of the memory; what is read has size e
memory = vectors("m", d)


def decoder(length: Index, key: Term, visible: Callable[[Index], Index] = lambda at: at) -> Recurrence:
    """The decoder's tokens 1..length after each layer; row j of the memory is ``key``."""

    def row(layer: Index, X: Term) -> Term:
        own, number = token(X, r), Ind(layer)
        read = Sum(Apply("a", (number, own, token(X, j)), e, 1), j, 1, visible(r))
        query = Apply("g", (number, own, read), d, 1)
        return Apply("f", (number, query, Sum(Apply("b", (number, query, key), e, 1), j, 1, M)), d, 1)

    return recurrence("X", Stack(x[r].T, r, 1, length), lambda layer, X: Stack(row(layer, X).T, r, 1, length))


def decoding(length: Index) -> Recurrence:
    """With one memory for all lengths."""
    return decoder(length, memory[j])


decoded = Statement(invariant(decoding), le(0, l) & le(1, t) & le(t, T) & le(0, M))

DECODER = Claim(
    id="transformer/decoder",
    title="with cross-attention to a fixed memory in every layer, a decoder of any depth leaves the rows of a prefix alone",
    statement=decoded,
    sources=(
        Source(NOTE, "decoder: masked self-attention, then cross-attention"),
        Source(VASWANI, "sections 3.1 and 3.2.3", "any functions; softmax attention is one choice of them"),
    ),
    proof=by_layers(decoding),
    near_misses=(
        variant(decoded, "full self-attention", invariant(lambda length: decoder(length, memory[j], lambda at: length))),
        variant(decoded, "a memory that changes with the tokens", invariant(lambda length: decoder(length, memory[j, length]))),
    ),
)

CLAIMS = (DECODER,)
