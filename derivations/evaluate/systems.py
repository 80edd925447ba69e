"""Number systems: the exact ones, and what every system offers.

A value is a matrix of the system; a scalar is a 1 x 1 matrix. Operations trust the shapes, which the
term classes have checked. Inputs come as rows of rational numbers, or of pairs (re, im) of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, cast

from flint import fmpq, fmpq_mat, nmod, nmod_mat

from .errors import Singular, Undefined, UnsupportedTerm

Real = int | Fraction
Number = Real | tuple[Real, Real]
Numbers = tuple[tuple[Number, ...], ...]
Value = Any
Truth = bool | None
MERSENNE = 2**61 - 1


class Comparison(NamedTuple):
    """Whether two values are equal (None: cannot be told), and the radius of the enclosure."""

    holds: Truth
    radius: float = 0.0


class System(ABC):
    """Matrices over one number system."""

    name: str
    complex: bool = False

    @contextmanager
    def context(self) -> Iterator[None]:
        """Whatever must be set while values of this system are computed."""
        yield

    @abstractmethod
    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        """The matrix of the given numbers; UnsupportedTerm for complex ones in a real system."""

    @abstractmethod
    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        """The matrix of the given entries of this system, row by row."""

    @abstractmethod
    def shape(self, a: Value) -> tuple[int, int]: ...

    @abstractmethod
    def table(self, a: Value) -> list[list[Any]]:
        """The entries of this system, as a list of rows."""

    @abstractmethod
    def inverse(self, a: Value) -> Value:
        """The inverse; Singular if there is none."""

    @abstractmethod
    def equal(self, a: Value, b: Value) -> Comparison: ...

    @abstractmethod
    def nonzero(self, a: Value) -> Truth: ...

    @abstractmethod
    def invertible(self, a: Value) -> Truth: ...

    @abstractmethod
    def entry_text(self, x: Any) -> str: ...

    def add(self, a: Value, b: Value) -> Value:
        return a + b

    def mul(self, a: Value, b: Value) -> Value:
        return a * b

    def scale(self, s: Value, a: Value) -> Value:
        return a * s[0, 0]

    def transpose(self, a: Value) -> Value:
        return a.transpose()

    def conj(self, a: Value) -> Value:
        return a

    def number(self, x: Number) -> Value:
        return self.of(1, 1, ((x,),))

    def zeros(self, rows: int, cols: int) -> Value:
        return self.of(rows, cols, ((0,) * cols,) * rows)

    def eye(self, n: int) -> Value:
        return self.of(n, n, [[int(i == j) for j in range(n)] for i in range(n)])

    def hadamard(self, a: Value, b: Value) -> Value:
        rows, cols = self.shape(a)
        pairs = zip(self.table(a), self.table(b), strict=True)
        return self.build(rows, cols, [x * y for r, s in pairs for x, y in zip(r, s, strict=True)])

    def power(self, a: Value, n: int) -> Value:
        """The n-th power by repeated squaring; the identity at n = 0."""
        if n < 0:
            return self.power(self.inverse(a), -n)
        result = self.eye(self.shape(a)[0])
        while n:
            result = self.mul(result, a) if n & 1 else result
            n >>= 1
            a = self.mul(a, a) if n else a
        return result

    def trace(self, a: Value) -> Value:
        total = self.zeros(1, 1)
        for i in range(self.shape(a)[0]):
            total = self.add(total, self.part(a, i, i + 1, i, i + 1))
        return total

    def part(self, a: Value, top: int, bottom: int, left: int, right: int) -> Value:
        """The rows top..bottom-1 and columns left..right-1, counted from 0."""
        entries = [a[i, j] for i in range(top, bottom) for j in range(left, right)]
        return self.build(bottom - top, right - left, entries)

    def stack(self, rows: Sequence[Value], cols: int) -> Value:
        return self.build(len(rows), cols, [x for r in rows for x in self.table(r)[0]])

    def block(self, grid: Sequence[Sequence[Value]]) -> Value:
        flat = []
        for blocks in grid:
            tables = [self.table(b) for b in blocks]
            flat += [x for i in range(self.shape(blocks[0])[0]) for t in tables for x in t[i]]
        return self.build(sum(self.shape(r[0])[0] for r in grid), sum(self.shape(b)[1] for b in grid[0]), flat)

    def diag(self, v: Value) -> Value:
        n = self.shape(v)[0]
        zero = self.table(self.zeros(1, 1))[0][0]
        entries = [r[0] for r in self.table(v)]
        return self.build(n, n, [entries[i] if i == j else zero for i in range(n) for j in range(n)])

    def reshape(self, a: Value, rows: int, cols: int) -> Value:
        return a if self.shape(a) == (rows, cols) else self.build(rows, cols, [x for r in self.table(a) for x in r])

    def less(self, a: Value, b: Value, strict: bool) -> Truth:
        raise UnsupportedTerm(f"{self.name} is not ordered")

    def exp(self, a: Value) -> Value:
        """The exponential; an exact system knows that of zero only."""
        if self.equal(a, self.zeros(*self.shape(a))).holds:
            return self.eye(self.shape(a)[0])
        raise UnsupportedTerm(f"exp has no value in {self.name}")

    def log(self, a: Value) -> Value:
        raise UnsupportedTerm(f"log has no value in {self.name}")

    def sqrt(self, a: Value) -> Value:
        raise UnsupportedTerm(f"a square root has no value in {self.name}")

    def derivative(self, f: Callable[[Value], Value], at: Value) -> Value:
        raise UnsupportedTerm(f"{self.name} has no derivatives")

    def integral(self, f: Callable[[Value], Value], lo: Value, hi: Value) -> Value:
        raise UnsupportedTerm(f"{self.name} has no integrals")

    def root_of_unity(self, n: int) -> Value:
        """A primitive n-th root of unity."""
        raise UnsupportedTerm(f"{self.name} has no roots of unity")

    def numbers(self, a: Value) -> Numbers | None:
        """The entries as rational numbers, where they are exactly that."""
        return None

    def text(self, a: Value) -> str:
        """A scalar as a number, a column as a list, any other matrix as a list of rows."""
        rows, cols = self.shape(a)
        t = [[self.entry_text(x) for x in r] for r in self.table(a)]
        if (rows, cols) == (1, 1):
            return t[0][0]
        if cols == 1:
            return f"[{', '.join(r[0] for r in t)}]"
        return f"[{', '.join('[' + ', '.join(r) + ']' for r in t)}]"


def real(x: Number) -> Real:
    """A number that must be real; UnsupportedTerm if it is not."""
    if isinstance(x, tuple):
        if x[1] != 0:
            raise UnsupportedTerm("a complex number in a real system")
        return x[0]
    return x


class _Exact(System):
    """What the exact matrices of FLINT have in common."""

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        return self.build(rows, cols, [self._entry(real(x)) for r in numbers for x in r])

    @abstractmethod
    def _entry(self, x: Real) -> Any: ...

    def shape(self, a: Value) -> tuple[int, int]:
        return a.nrows(), a.ncols()

    def table(self, a: Value) -> list[list[Any]]:
        return cast("list[list[Any]]", a.tolist())

    def inverse(self, a: Value) -> Value:
        try:
            return a.inv()
        except ZeroDivisionError:
            raise Singular("the inverse of a singular matrix") from None

    def equal(self, a: Value, b: Value) -> Comparison:
        return Comparison(bool(a == b))

    def nonzero(self, a: Value) -> Truth:
        return bool(a[0, 0] != 0)

    def invertible(self, a: Value) -> Truth:
        return bool(a.det() != 0)

    def entry_text(self, x: Any) -> str:
        return str(x)


@dataclass(frozen=True)
class Prime(_Exact):
    """The integers modulo a prime p, p = 3 mod 4 where complex numbers are to be built on it."""

    p: int = MERSENNE

    @property
    def name(self) -> str:  # type: ignore[override]
        return "GF(2^61-1)" if self.p == MERSENNE else f"GF({self.p})"

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        return nmod_mat(rows, cols, flat, self.p)

    def zeros(self, rows: int, cols: int) -> Value:
        return nmod_mat(rows, cols, self.p)

    def _entry(self, x: Real) -> Any:
        if x.denominator == 1:
            return nmod(x.numerator, self.p)
        return nmod(x.numerator, self.p) / nmod(x.denominator, self.p)


@dataclass(frozen=True)
class Rationals(_Exact):
    """The rational numbers."""

    name: str = "QQ"

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        return fmpq_mat(rows, cols, flat)

    def zeros(self, rows: int, cols: int) -> Value:
        return fmpq_mat(rows, cols)

    def _entry(self, x: Real) -> Any:
        return fmpq(x.numerator, x.denominator)

    def less(self, a: Value, b: Value, strict: bool) -> Truth:
        return bool(a[0, 0] < b[0, 0] if strict else a[0, 0] <= b[0, 0])

    def numbers(self, a: Value) -> Numbers | None:
        return tuple(tuple(Fraction(int(x.p), int(x.q)) for x in r) for r in a.tolist())


class Pair(NamedTuple):
    """The matrix re + i im."""

    re: Any
    im: Any


@dataclass(frozen=True)
class Gaussian(System):
    """The numbers a + ib over a field in which -1 is no square."""

    base: _Exact
    complex = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return "GF((2^61-1)^2)" if self.base == Prime() else f"{self.base.name}(i)"

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        pairs = [[x if isinstance(x, tuple) else (x, 0) for x in r] for r in numbers]
        re, im = ([[x[n] for x in r] for r in pairs] for n in (0, 1))
        return Pair(self.base.of(rows, cols, re), self.base.of(rows, cols, im))

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        re, im = ([x[n] for x in flat] for n in (0, 1))
        return Pair(self.base.build(rows, cols, re), self.base.build(rows, cols, im))

    def shape(self, a: Value) -> tuple[int, int]:
        return self.base.shape(a.re)

    def table(self, a: Value) -> list[list[Any]]:
        return [list(zip(r, s, strict=True)) for r, s in zip(a.re.tolist(), a.im.tolist(), strict=True)]

    def add(self, a: Value, b: Value) -> Value:
        return Pair(a.re + b.re, a.im + b.im)

    def mul(self, a: Value, b: Value) -> Value:
        return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)

    def scale(self, s: Value, a: Value) -> Value:
        x, y = s.re[0, 0], s.im[0, 0]
        return Pair(a.re * x - a.im * y, a.re * y + a.im * x)

    def transpose(self, a: Value) -> Value:
        return Pair(a.re.transpose(), a.im.transpose())

    def conj(self, a: Value) -> Value:
        return Pair(a.re, -a.im)

    def hadamard(self, a: Value, b: Value) -> Value:
        h = self.base.hadamard
        return Pair(h(a.re, b.re) - h(a.im, b.im), h(a.re, b.im) + h(a.im, b.re))

    def part(self, a: Value, top: int, bottom: int, left: int, right: int) -> Value:
        return Pair(*(self.base.part(x, top, bottom, left, right) for x in a))

    def _embedded(self, a: Pair) -> Value:
        """a as a real matrix of twice the size: a ring homomorphism, so inverses and singularity agree."""
        return self.base.block([[a.re, -a.im], [a.im, a.re]])

    def inverse(self, a: Value) -> Value:
        n = self.shape(a)[0]
        inverse = self.base.inverse(self._embedded(a))
        return Pair(self.base.part(inverse, 0, n, 0, n), self.base.part(inverse, n, 2 * n, 0, n))

    def equal(self, a: Value, b: Value) -> Comparison:
        return Comparison(bool(a.re == b.re and a.im == b.im))

    def nonzero(self, a: Value) -> Truth:
        return bool(a.re[0, 0] != 0 or a.im[0, 0] != 0)

    def invertible(self, a: Value) -> Truth:
        return self.base.invertible(self._embedded(a))

    def less(self, a: Value, b: Value, strict: bool) -> Truth:
        if a.im[0, 0] != 0 or b.im[0, 0] != 0:
            raise Undefined("an order between numbers that are not real")
        return self.base.less(a.re, b.re, strict)

    def numbers(self, a: Value) -> Numbers | None:
        re, im = self.base.numbers(a.re), self.base.numbers(a.im)
        if re is None or im is None:
            return None
        return tuple(tuple(zip(r, s, strict=True)) for r, s in zip(re, im, strict=True))  # type: ignore[arg-type]

    def entry_text(self, x: Any) -> str:
        if x[1] == 0:
            return str(x[0])
        return f"{x[1]}i" if x[0] == 0 else f"{x[0]} + {x[1]}i"

    def root_of_unity(self, n: int) -> Value:
        if not isinstance(self.base, Prime) or n < 1 or (self.base.p**2 - 1) % n:
            raise UnsupportedTerm(f"no primitive root of unity of order {n} in {self.name}")
        primes = [q for q in range(2, n + 1) if n % q == 0 and all(q % r for r in range(2, q))]
        one = self.number(1)
        for a in range(1, 1000):
            root = self.power(self.number((a, 1)), (self.base.p**2 - 1) // n)
            if not any(self.equal(self.power(root, n // q), one).holds for q in primes):
                return root
        raise UnsupportedTerm(f"no primitive root of unity of order {n} was found")
