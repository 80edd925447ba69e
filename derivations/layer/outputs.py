"""All outputs at once: a masked matrix times what the tokens write, or a sum over the tokens where no such matrix exists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from sympy import Symbol

from .. import affine
from ..claim import Claim, Source, variant
from ..kernel import terms as tm
from ..kernel.formulas import Equation, Statement
from ..kernel.scripts import Direct, Rowwise
from ..kernel.terms import Cond, Hadamard, Index, Num, Stack, Sum, Term, Where, entries, le, lt
from .linear import Product, column_and_row, is_one, times
from .run import Run
from .side import IDENTITY, SCALAR, monomials
from .subject import Subject

DAO = Source("Dao and Gu, Transformers are SSMs, arXiv 2405.21060", "the dual form of a state-space model", "for its transitions")
SUMS = Source(affine.BLELLOCH, "section 1.4.1, first-order recurrences", "the solution, read")
PLAIN = (IDENTITY, SCALAR)


def outputs(s: Subject) -> Claim | None:
    """The outputs of all tokens from the start and the writes of the tokens up to each; None where the state is not read so."""
    run = s.run
    if s.read_at != (run.t,) or len(s.read.products) != 1 or s.read.products[0].turned or not run.writes:
        return None
    form = Form(s, run, s.read.products[0])
    return form.masked() if form.weighted else form.summed()


@dataclass(frozen=True)
class Form:
    """y_t = scale · left · H_t · right + rest."""

    s: Subject
    run: Run
    read: Product

    def at(self, x: Term, time: Index) -> Term:
        """A term at another time."""
        return self.run.at(x, time)

    def seen(self, x: Term, time: Index) -> Term:
        """What is read at a time of a term in the place of the state."""
        return times(self.at(self.read.scale, time), self.at(self.read.left, time), x, self.at(self.read.right, time))

    def with_rest(self, x: Term, time: Index) -> Term:
        """With what the read-out adds without the state."""
        return x if self.s.read.rest is None else x + self.at(self.s.read.rest, time)

    # a masked matrix ----------------------------------------------------------------------------

    @cached_property
    def written(self) -> tuple[Term, Term] | None:
        """Each write as what it is weighted by, a row, and a value, a column: U = value · row; or U = column · number."""
        parts = monomials(cast(Term, self.run.update.write))
        cut = column_and_row(tm.Mul(Num(1), *parts[0][1])) if len(parts) == 1 else None
        if cut is None:
            return None
        scale, (column, row) = parts[0][0], cut
        return (times(scale, column), row) if self.by_rows else self._by_columns(scale, column)

    def _by_columns(self, scale: Term, column: Term) -> tuple[Term, Term]:
        """The last number that is an input of its own is the value; all else is in the weight."""
        factors = list(cast("tuple[Term, ...]", scale.args if isinstance(scale, tm.Mul) else (scale,)))
        moving = {v for side in (self.run.left, self.run.right) for v in tm.walk(side.matrix)}
        values = [f for f in factors if isinstance(f, tm.Var) and f not in moving]
        value = values[-1] if values else Num(1)
        if values:
            factors.remove(value)
        return value, times(*factors, Num(1), column)

    @property
    def by_rows(self) -> bool:
        """Whether a token's value comes out as it is, times a number: nothing but a number acts from the left."""
        return self.run.left.kind in PLAIN and is_one(self.read.left) and self.read.right.cols == 1 and self.run.start.cols != 1

    @property
    def weighted(self) -> bool:
        """Whether each token sees each earlier one with a number."""
        number = self.s.declaration.output.is_scalar_term and self.run.start.cols == 1
        return (self.by_rows or number) and self.written is not None

    def value(self, j: Index) -> Term:
        """What is summed."""
        return self.at(cast("tuple[Term, Term]", self.written)[0], j)

    def weight(self, i: Index, j: Index, own: int = 0) -> Term:
        """How token i sees what token j wrote."""
        other = self.at(cast("tuple[Term, Term]", self.written)[1], j)
        left, right = (
            self.run.acting(side, j + 1 - own, i, decreasing=turned) for side, turned in ((self.run.left, True), (self.run.right, False))
        )
        scale = self.at(self.read.scale, i)
        if self.by_rows:
            number = left if left.is_scalar_term else Num(1)
            numbers = [number, right] if right.is_scalar_term else [number]
            return times(scale, *numbers, other, *([] if right.is_scalar_term else [right]), self.at(self.read.right, i))
        return times(scale, self.at(self.read.left, i), left, other)

    def masked(self) -> Claim:
        """A T x T matrix of numbers times the values."""
        run, n = self.run, self.run.names
        T, i, j = (n.index(x) for x in ("T", "i", "j"))
        outputs = Stack(self.at(self.s.declaration.output, i).T, i, 1, T)
        values = Stack(self.value(j).T, j, 1, T)

        def says(seen: Cond, own: int = 0, start: bool = True) -> Equation:
            product = self._matrix(seen, T, i, j, own) * values
            before = self.seen(run.passed(run.start, 1, i), i) if start else None
            added = self.with_rest(before if before is not None else tm.Zero(*self.s.declaration.output.shape), i)
            return Equation(product + Stack(added.T, i, 1, T), outputs)

        statement = Statement(says(le(j, i)), le(0, T))
        misses = [variant(statement, "a write passes its own transition", says(le(j, i), own=1))] if run.moves else []
        misses += [variant(statement, "a token does not see its own write", says(lt(j, i)))]
        misses += [variant(statement, "a state at the start is forgotten", says(le(j, i), start=False))]
        return self.s.claim(
            "masked",
            "a matrix of weights, masked, times the values computes the recurrence for all tokens at once",
            statement,
            Rowwise(run.t, Direct((self.s.lemma("unrolled"),), "row t: the mask cuts the sum at t")),
            tuple(misses),
            DAO,
        )

    def _matrix(self, seen: Cond, T: Index, i: Symbol, j: Symbol, own: int) -> Term:
        """The weights; scores times decays where all transitions are numbers."""
        span = (1, T)
        if not (self.by_rows and self.run.right.kind in PLAIN):
            return entries(Where(seen, self.weight(i, j, own), Num(0)), i, span, j, span)
        row = self.at(cast("tuple[Term, Term]", self.written)[1], j)
        queries = times(self.at(self.read.scale, i), self.at(self.read.right, i).T)
        numbers = [self.run.acting(side, j + 1 - own, i) for side in (self.run.left, self.run.right)]
        decay = times(Num(1), *[x for x in numbers if x.is_scalar_term])
        mask = entries(Where(seen, decay, Num(0)), i, span, j, span)
        return Hadamard(Stack(queries, i, *span) * Stack(row, j, *span).T, mask)

    # a sum --------------------------------------------------------------------------------------

    def summed(self) -> Claim:
        """The output at t as what is read of the start and of every write, through the transitions after it."""
        run, t = self.run, self.run.t
        j = run.names.index("j")

        def says(first: Index = 1, last: Index = t, own: int = 0, start: Term | None = None) -> Equation:
            before = self.seen(run.passed(run.start if start is None else start, 1, t), t)
            each = self.seen(run.passed(run.write(j), j + 1 - own, t), t)
            return Equation(self.s.declaration.output, self.with_rest(before + Sum(each, j, first, last), t))

        statement = Statement(says(), le(0, t))
        misses = [variant(statement, "a write passes its own transition", says(own=1))] if run.moves else []
        misses += [variant(statement, "a token does not see its own write", says(last=t - 1))]
        misses += [variant(statement, "the first write is left out", says(first=2))]
        fixed = run.constant and not any(run.t in tm.free(x) for x in (self.read.left, self.read.right, self.read.scale))
        return self.s.claim(
            "outputs",
            "the output is a convolution: what is read of a write depends on its age" if fixed else "the output is a sum over the writes",
            statement,
            Direct((self.s.lemma("unrolled"),), "the state, unrolled"),
            tuple(misses),
            SUMS,
        )
