"""A decoder: masked attention to its own tokens, then attention to the memory that an encoder left, in every layer.

    y = x_{l-1,t} + masked attention of row t        x_{l,t} = f(l, y, Σ_{j≤M} exp(b(l, y, m_j)) w(l, m_j) / Z)

Scores, values and the layer f are any functions.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import Statement
from ..kernel.terms import Apply, Exp, Ind, Index, Recurrence, Stack, Sum, Term, index, le, recurrence, vectors
from .depth import by_layers, invariant
from .layers import NOTE, VASWANI, T, d, j, l, r, t, token, x

M = index("M")  # the length of the memory
memory = vectors("m", d)


def attend(names: str, layer: Index, query: Term, key: Term, last: Index) -> Term:
    """What a token reads from the keys j = 1..last, by a score and a value of these names."""
    score, value = names
    weight = Exp(Apply(score, (Ind(layer), query, key), 1, 1))
    return Sum(weight * Apply(value, (Ind(layer), key), d, 1), j, 1, last) / Sum(weight, j, 1, last)


def decoder(length: Index, key: Term, visible: Callable[[Index], Index] = lambda at: at) -> Recurrence:
    """The decoder's tokens 1..length after each layer; row j of the memory is ``key``."""

    def row(layer: Index, X: Term) -> Term:
        own = token(X, r)
        query = own + attend("au", layer, own, token(X, j), visible(r))
        return Apply("f", (Ind(layer), query, attend("bw", layer, query, key, M)), d, 1)

    return recurrence("X", Stack(x[r].T, r, 1, length), lambda layer, X: Stack(row(layer, X).T, r, 1, length))


def decoding(length: Index) -> Recurrence:
    """With one memory for all lengths."""
    return decoder(length, memory[j])


decoded = Statement(invariant(decoding), le(0, l) & le(1, t) & le(t, T) & le(1, M))

DECODER = Claim(
    id="transformer/decoder",
    title="with cross-attention to a fixed memory in every layer, a decoder of any depth leaves the rows of a prefix alone",
    statement=decoded,
    sources=(
        Source(NOTE, "decoder: masked self-attention, then cross-attention"),
        Source(VASWANI, "sections 3.1 and 3.2.3", "one head each; any per-token function after them"),
    ),
    proof=by_layers(decoding),
    near_misses=(
        variant(decoded, "full self-attention", invariant(lambda length: decoder(length, memory[j], lambda at: length))),
        variant(decoded, "a memory that changes with the tokens", invariant(lambda length: decoder(length, memory[j, length]))),
    ),
)

CLAIMS = (DECODER,)
