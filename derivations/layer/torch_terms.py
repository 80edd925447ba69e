"""Terms as torch expressions: matrices are tensors (…, rows, cols), columns (…, n, 1), numbers (…, 1, 1).

The text is Python whose operators are those of the term; a diagonal matrix multiplies entry by entry. What has no such text
raises CannotWrite.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from sympy import Basic, Expr, Symbol

from ..evaluate.labels import groups
from ..kernel import terms as tm
from ..kernel.terms import Term, Var
from .linear import is_one
from .side import is_diagonal

SUM, PRODUCT, UNARY, ATOM = range(4)
Text = tuple[str, int]
"""Python text, and how tightly it binds."""


@dataclass(frozen=True)
class Place:
    """One of some parts of a size, the block that is I in a column of blocks."""

    sizes: tuple[Expr, ...]
    at: int

    @property
    def before(self) -> tuple[Expr, ...]:
        return self.sizes[: self.at]

    @property
    def after(self) -> tuple[Expr, ...]:
        return self.sizes[self.at + 1 :]


def place_of(x: Term, turned: bool = False) -> Place | None:
    """The place that a column of blocks 0 and I, or its transpose, chooses; None for another term."""
    if turned:
        return place_of(cast(Term, x.args[0])) if isinstance(x, tm.Transpose) else None
    if not isinstance(x, tm.Block) or any(len(r) != 1 for r in x.grid) or len(x.grid) < 2:
        return None
    blocks = [r[0] for r in x.grid]
    ones = [n for n, b in enumerate(blocks) if is_one(b)]
    if len(ones) != 1 or not all(is_one(b) or isinstance(b, tm.Zero) for b in blocks):
        return None
    return Place(tuple(b.rows for b in blocks), ones[0])


def _placed(x: Term, first: bool) -> tuple[Place, Term] | None:
    """A product with a place for its first factor, or transposed for its last: the place, and the rest."""
    if not isinstance(x, tm.Mul) or len(x.args) < 2:
        return None
    factors = cast("tuple[Term, ...]", x.args)
    matrices = [n for n, f in enumerate(factors) if not f.is_scalar_term]
    if not matrices:
        return None
    n = matrices[0] if first else matrices[-1]
    place = place_of(factors[n], turned=not first)
    return None if place is None else (place, tm.Mul(*factors[:n], *factors[n + 1 :]))


def is_complex(x: Basic) -> bool:
    """Whether a term has complex atoms."""
    return any(isinstance(n, Var) and n.field == "complex" for n in tm.walk(x))


class CannotWrite(ValueError):
    """A term that has no torch expression here."""


@dataclass(frozen=True)
class Writer:
    """Writes terms: ``names`` are the texts of atoms, ``sizes`` those of sizes, ``like`` a tensor of the right dtype and device.

    ``rows`` are the indices that stand for all rows at once. ``complex`` says that all tensors are, those of real numbers too.
    """

    names: Mapping[str, str]
    sizes: Mapping[Expr, str]
    like: str
    rows: frozenset[Symbol] = frozenset()
    complex: bool = False

    def text(self, x: Term, level: int = SUM) -> str:
        """The text of a term, in parentheses where its place binds tighter."""
        found, own = self._text(x)
        return found if own >= level else f"({found})"

    def tensor(self, x: Term, level: int = SUM) -> str:
        """The text of a term where a number needs to be a tensor too."""
        found = self.text(x)
        return self.text(x, level) if re.search(r"\b[^\W\d]", found) else f"{self.like}.new_full((1, 1), {found})"

    def _text(self, x: Term) -> Text:
        for kind, rule in _RULES.items():
            if isinstance(x, kind):
                return rule(self, x)
        raise CannotWrite(f"{type(x).__name__} has no torch expression: {x}")

    def named(self, x: tm.Named) -> Text:
        """What torch has a function for, by that; anything else by what it stands for."""
        given = cast("tuple[Term, ...]", x.arguments)
        if x.label not in FUNCTIONS:
            return self._text(x.body)
        if x.label == "max" and isinstance(given[1], tm.Num):
            return self._real(given[:1], f"{{}}.clamp(min={self.text(given[1])})", ATOM)
        return self._real(given, FUNCTIONS[x.label], SUM)

    def _real(self, given: tuple[Term, ...], call: str, level: int) -> Text:
        """The call of a function of real numbers, in which each argument stands at a level."""
        if not self.complex:
            return call.format(*(self.tensor(x, level) for x in given)), ATOM
        if any(map(is_complex, given)):
            raise CannotWrite(f"a function of real numbers has a complex argument: {call.format(*given)}")
        return f"{call.format(*(self.tensor(x, ATOM) + '.real' for x in given))} + 0j", SUM

    def size(self, e: Expr) -> str:
        if not e.is_Integer and e not in self.sizes:
            raise CannotWrite(f"the size {e} is not that of an argument")
        return str(e) if e.is_Integer else self.sizes[e]

    # atoms

    def var(self, x: Var) -> Text:
        if x.name not in self.names:
            raise CannotWrite(f"{x} is neither an input nor a state")
        return self.names[x.name], ATOM

    def number(self, x: tm.Num) -> Text:
        p, q = int(x.value.p), int(x.value.q)
        if q == 1 or float(p / q).as_integer_ratio() == (p, q):
            return str(p if q == 1 else p / q), ATOM if p >= 0 else SUM
        return f"{p} / {q}", PRODUCT

    def eye(self, x: tm.Eye) -> Text:
        return f"_eye({self.size(x.rows)}, {self.like})", ATOM

    def zero(self, x: tm.Zero) -> Text:
        return f"{self.like}.new_zeros({self.size(x.rows)}, {self.size(x.cols)})", ATOM

    # sums and products

    def add(self, x: tm.Add) -> Text:
        side_by_side = self._side_by_side(cast("tuple[Term, ...]", x.args))
        if side_by_side:
            return side_by_side, ATOM
        out = ""
        for n, a in enumerate(cast("tuple[Term, ...]", x.args)):
            negative, body = self._signed(a)
            out += (f" {'-' if negative else '+'} " if n else "-" if negative else "") + body
        return out, SUM

    def _side_by_side(self, parts: tuple[Term, ...]) -> str:
        """Parts that are put each in its own place of a matrix, and fill it."""
        for first, dim in ((False, -1), (True, -2)):
            found = [_placed(p, first) for p in parts]
            places = [f[0] for f in found if f is not None]
            if len(places) == len(parts) and [p.at for p in places] == list(range(len(places[0].sizes))):
                return f"_joined([{', '.join(self.tensor(f[1]) for f in found if f is not None)}], {dim})"
        return ""

    def _signed(self, x: Term) -> tuple[bool, str]:
        if isinstance(x, tm.Num) and x.value < 0:
            return True, self.text(tm.Num(-x.value), PRODUCT)
        if isinstance(x, tm.Mul) and isinstance(x.args[0], tm.Num) and x.args[0].value < 0:
            return True, self.text(_positive(x), PRODUCT)
        return False, self.text(x, PRODUCT)

    def mul(self, x: tm.Mul) -> Text:
        first = x.args[0]
        if isinstance(first, tm.Num) and first.value < 0:
            return f"-{self.text(_positive(x), PRODUCT)}", SUM
        numbers = [f for f in cast("tuple[Term, ...]", x.args) if f.is_scalar_term]
        chains = groups(x)
        above = [self.text(f, UNARY) for f in numbers if not isinstance(f, tm.Inverse) or self._sigmoid(f)]
        below = [self.text(cast(Term, f.args[0]), UNARY) for f in numbers if isinstance(f, tm.Inverse) and not self._sigmoid(f)]
        above += [f"({self.chain(c)})" for c in chains[:-1]]
        above = [a for a in above if a != "1"] if len(above) > 1 or chains else above
        last = self.chain(chains[-1]) if chains else ""
        out = " * ".join([*above, *([last] if last else [])]) or "1"
        return " / ".join([out, *below]), PRODUCT

    def chain(self, factors: list[Term]) -> str:
        """A product of matrices from left to right; diagonal ones multiply entries."""
        if all(map(is_diagonal, factors)):
            return f"torch.diag_embed(({self.diagonal(factors)}).squeeze(-1))"
        first, last = place_of(factors[0]), place_of(factors[-1], turned=True)
        if len(factors) > 1 and (first or last):
            rest = self.tensor(tm.Mul(*factors[1:]) if first else tm.Mul(*factors[:-1]))
            ends = [self._total(p) for p in ((first or last).before, (first or last).after)]  # type: ignore[union-attr]
            return f"torch.nn.functional.pad({rest}, ({'0, 0, ' if first else ''}{', '.join(ends)}))"
        out = ""
        ahead: list[Term] = []
        for f in factors:
            chosen, among = place_of(f), place_of(f, turned=True)
            if chosen and out:
                out = f"{out if out.isidentifier() else f'({out})'}[..., {self._slice(chosen)}]"
            elif among and not out and len(factors) > 1 and not ahead:
                out = f"{self.chain(factors[1:]) if len(factors) == 2 else f'({self.chain(factors[1:])})'}[..., {self._slice(among)}, :]"
                return out
            elif is_diagonal(f) and not out:
                ahead.append(f)
            elif is_diagonal(f):
                out += f" * {self._turned(self.diagonal([f]))}"
            else:
                own = self.text(f, UNARY)
                out = f"{out} @ {own}" if out else f"{self.diagonal(ahead)} * {own}" if ahead else own
        return out

    def _total(self, sizes: tuple[Expr, ...]) -> str:
        return " + ".join(map(self.size, sizes)) or "0"

    def _slice(self, place: Place) -> str:
        start = self._total(place.before)
        stop = self._total((*place.before, place.sizes[place.at])) if place.after else ""
        return f"{'' if start == '0' else f'{start} '}:{stop and f' {stop}'}"

    def diagonal(self, factors: list[Term]) -> str:
        """The entries of a product of diagonal matrices, a column."""
        return " * ".join(self._entries(f) for f in factors)

    def _entries(self, x: Term) -> str:
        if isinstance(x, tm.Diag):
            return self.tensor(cast(Term, x.args[0]), UNARY)
        if x.is_scalar_term:
            return self.text(x, UNARY)
        if isinstance(x, tm.Eye):
            return "1"
        if isinstance(x, tm.Exp):
            return f"({self._entries(cast(Term, x.args[0]))}).exp()"
        if isinstance(x, tm.Transpose):
            return self._entries(cast(Term, x.args[0]))
        if isinstance(x, tm.Conj):
            return f"({self._entries(cast(Term, x.args[0]))}).conj_physical()" if self.complex else self._entries(cast(Term, x.args[0]))
        if isinstance(x, tm.Inverse):
            return f"(1 / {self._entries(cast(Term, x.args[0]))})"
        if isinstance(x, (tm.Add, tm.Mul)):
            return f"({(' + ' if isinstance(x, tm.Add) else ' * ').join(self._entries(cast(Term, a)) for a in x.args)})"
        raise CannotWrite(f"a diagonal matrix without a torch expression: {x}")

    @staticmethod
    def _turned(text: str) -> str:
        return f"{text}.mT" if text.isidentifier() else f"({text}).mT"

    def hadamard(self, x: tm.Hadamard) -> Text:
        return " * ".join(self.text(cast(Term, a), UNARY) for a in x.args), PRODUCT

    def diag(self, x: Term) -> Text:
        return self.chain([x]), ATOM

    # functions

    def method(self, call: str) -> Callable[[Term], Text]:
        return lambda x: (f"{self.tensor(cast(Term, x.args[0]), ATOM)}.{call}", ATOM)

    def transpose(self, x: tm.Transpose) -> Text:
        inner = cast(Term, x.args[0])
        if any(isinstance(n, tm.Row) and n.args[1] in self.rows for n in tm.walk(inner)) and not inner.is_scalar_term:
            raise CannotWrite(f"a transpose of one of many rows: {x}")
        return self._text(inner) if inner.is_scalar_term else self.method("mT")(x)

    def exp(self, x: tm.Exp) -> Text:
        if not x.is_scalar_term and not is_diagonal(x):
            return f"torch.linalg.matrix_exp({self.text(cast(Term, x.args[0]))})", ATOM
        return self.method("exp()")(x) if x.is_scalar_term else self.diag(x)

    def inverse(self, x: tm.Inverse) -> Text:
        if not x.is_scalar_term:
            return self.diag(x) if is_diagonal(x) else (f"torch.linalg.inv({self.text(cast(Term, x.args[0]))})", ATOM)
        inside = self._sigmoid(x)
        return self._real((inside,), FUNCTIONS["sigmoid"], SUM) if inside else (f"1 / {self.text(cast(Term, x.args[0]), UNARY)}", PRODUCT)

    @staticmethod
    def _sigmoid(x: Term) -> Term | None:
        """y where the term is 1 / (1 + e^{-y}) of a real y: as a quotient it would overflow."""
        below = x.args[0]
        if not is_complex(x) and isinstance(below, tm.Add) and len(below.args) == 2:
            one, other = sorted(below.args, key=lambda a: isinstance(a, tm.Exp))
            if one == tm.Num(1) and isinstance(other, tm.Exp) and other.is_scalar_term:
                y = cast(Term, other.args[0])
                negative = isinstance(y, tm.Mul) and isinstance(y.args[0], tm.Num) and y.args[0].value < 0
                return _positive(cast(tm.Mul, y)) if negative else tm.Mul(tm.Num(-1), y)
        return None

    def power(self, x: tm.Power) -> Text:
        base, n = cast(Term, x.args[0]), cast(Expr, x.args[1])
        if not n.is_Integer:
            raise CannotWrite(f"a power whose exponent is no number: {x}")
        if base.is_scalar_term:
            return f"{self.text(base, ATOM)} ** {n}", UNARY
        return f"torch.linalg.matrix_power({self.text(base)}, {n})", ATOM

    def trace(self, x: tm.Trace) -> Text:
        return f"{self.text(cast(Term, x.args[0]), ATOM)}.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]", ATOM

    # parts

    def block(self, x: tm.Block) -> Text:
        rows = [f"_joined([{', '.join(map(self.tensor, r))}], -1)" if len(r) > 1 else self.tensor(r[0]) for r in x.grid]
        return (f"_joined([{', '.join(rows)}], -2)" if len(rows) > 1 else rows[0]), ATOM

    def row(self, x: tm.Row) -> Text:
        at = cast(Expr, x.args[1])
        if at in self.rows:
            return self._text(cast(Term, x.args[0]))
        return f"{self.text(cast(Term, x.args[0]), ATOM)}[..., {self._place(at)}, :]", ATOM

    def entry(self, x: tm.Entry) -> Text:
        i, j = cast("tuple[Expr, Expr]", x.args[1:])
        return f"{self.text(cast(Term, x.args[0]), ATOM)}[..., {self._place(i)}, {self._place(j)}]", ATOM

    def some_rows(self, x: tm.Rows) -> Text:
        low, high = cast("tuple[Expr, Expr]", x.args[1:])
        if not low.is_Integer:
            raise CannotWrite(f"rows from a place that is no number: {x}")
        return f"{self.text(cast(Term, x.args[0]), ATOM)}[..., {int(low) - 1}:{self.size(high)}, :]", ATOM

    @staticmethod
    def _place(e: Expr) -> str:
        if not e.is_Integer:
            raise CannotWrite(f"an entry at {e}, which is no number")
        return f"{int(e) - 1}:{int(e)}"

    def stack(self, x: tm.Stack) -> Text:
        return self._of_rows(x)._text(cast(Term, x.args[0]))

    def sum(self, x: tm.Sum) -> Text:
        return f"({self._of_rows(x).text(x.body)}).sum(-2, keepdim=True)", ATOM

    def _of_rows(self, x: Term) -> Writer:
        """A writer for a body in which a row stands for all of them."""
        body, i, low, high = cast("tuple[Term, Symbol, Expr, Expr]", x.args[:4])
        held = [n for n in tm.walk(body) if isinstance(n, tm.Row) and n.args[1] == i]
        if low != 1 or not held or any(cast(Term, n.args[0]).rows != high for n in held) or _elsewhere(body, i, held):
            raise CannotWrite(f"a sum or stack that is not over all rows of its matrices: {x}")
        return replace(self, rows=self.rows | {i})


def _elsewhere(body: Basic, i: Symbol, held: list[Basic]) -> bool:
    """Whether an index is used beside the rows that it numbers."""
    if body in held:
        return i in tm.free(body.args[0])
    return body == i or any(_elsewhere(a, i, held) for a in body.args)


def _positive(x: tm.Mul) -> Term:
    """A product without the sign of the number in front."""
    number, *rest = cast("tuple[Term, ...]", x.args)
    value = -cast(tm.Num, number).value
    kept = rest if value == 1 and rest else [tm.Num(value), *rest]
    return kept[0] if len(kept) == 1 else tm.Mul(*kept)


FUNCTIONS = {
    "sigmoid": "torch.sigmoid({})",
    "tanh": "torch.tanh({})",
    "softplus": "torch.nn.functional.softplus({}, threshold=60.0)",
    "abs": "torch.abs({})",
    "max": "torch.maximum({}, {})",
}
"""The functions of `isoform.derivations.layer.functions`, which as they are spelled overflow; by the labels that they have there."""
_RULES: dict[type, Callable[[Writer, Term], Text]] = {
    tm.Named: lambda w, x: w.named(cast(tm.Named, x)),
    tm.Var: lambda w, x: w.var(cast(Var, x)),
    tm.Num: lambda w, x: w.number(cast(tm.Num, x)),
    tm.Eye: lambda w, x: w.eye(cast(tm.Eye, x)),
    tm.Zero: lambda w, x: w.zero(cast(tm.Zero, x)),
    tm.Add: lambda w, x: w.add(cast(tm.Add, x)),
    tm.Mul: lambda w, x: w.mul(cast(tm.Mul, x)),
    tm.Hadamard: lambda w, x: w.hadamard(cast(tm.Hadamard, x)),
    tm.Diag: lambda w, x: w.diag(x),
    tm.Transpose: lambda w, x: w.transpose(cast(tm.Transpose, x)),
    tm.Conj: lambda w, x: w.method("conj_physical()")(x) if w.complex else w._text(cast(Term, x.args[0])),
    tm.Exp: lambda w, x: w.exp(cast(tm.Exp, x)),
    tm.Log: lambda w, x: w.method("log()")(x),
    tm.Sqrt: lambda w, x: w.method("sqrt()")(x),
    tm.Inverse: lambda w, x: w.inverse(cast(tm.Inverse, x)),
    tm.Power: lambda w, x: w.power(cast(tm.Power, x)),
    tm.Trace: lambda w, x: w.trace(cast(tm.Trace, x)),
    tm.Block: lambda w, x: w.block(cast(tm.Block, x)),
    tm.Row: lambda w, x: w.row(cast(tm.Row, x)),
    tm.Rows: lambda w, x: w.some_rows(cast(tm.Rows, x)),
    tm.Entry: lambda w, x: w.entry(cast(tm.Entry, x)),
    tm.Stack: lambda w, x: w.stack(cast(tm.Stack, x)),
    tm.Sum: lambda w, x: w.sum(cast(tm.Sum, x)),
}
