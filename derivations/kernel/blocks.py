"""Block matrices, written out block by block."""

from __future__ import annotations

from typing import cast

from . import terms as tm
from .terms import Term

Grid = list[list[Term]]


class NotBlocks(ValueError):
    """A term cannot be written as a block matrix."""


def grid(x: Term) -> Grid:
    """The blocks of a term made of block matrices. Raises NotBlocks."""
    match x:
        case tm.Block():
            return [list(r) for r in x.grid]
        case tm.Add():
            return _add([grid(cast(Term, a)) for a in x.args], x)
        case tm.Transpose():
            g = grid(cast(Term, x.args[0]))
            return [[tm.Transpose(g[r][c]) for r in range(len(g))] for c in range(len(g[0]))]
        case tm.Mul():
            return _product(x)
        case tm.Deriv() | tm.At() | tm.Integral() | tm.Sum():
            return [[cast(Term, x.func(b, *x.args[1:])) for b in r] for r in grid(cast(Term, x.args[0]))]
    raise NotBlocks(f"{x} is not made of block matrices")


def _add(grids: list[Grid], x: Term) -> Grid:
    if any([[b.shape for b in r] for r in g] != [[b.shape for b in r] for r in grids[0]] for g in grids):
        raise NotBlocks(f"the blocks of {x} do not correspond")
    return [[tm.Add(*[g[r][c] for g in grids]) for c in range(len(grids[0][0]))] for r in range(len(grids[0]))]


def _product(x: tm.Mul) -> Grid:
    args = cast("tuple[Term, ...]", x.args)
    scalars = [a for a in args if a.is_scalar_term]
    blocks = [grid(a) for a in args if not a.is_scalar_term]
    if not blocks:
        raise NotBlocks(f"{x} is a scalar")
    out = blocks[0]
    for g in blocks[1:]:
        if any(len(r) != len(g) for r in out):
            raise NotBlocks(f"the blocks of {x} do not correspond")
        out = [
            [tm.Add(*[out[r][k] * g[k][c] for k in range(len(g))]) for c in range(len(g[0]))] for r in range(len(out))
        ]
    return [[tm.Mul(*scalars, b) for b in r] for r in out]
