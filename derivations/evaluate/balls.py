"""Ball arithmetic: every value is an enclosure of the true one.

Derivatives come from Cauchy's integral formula on a circle, integrals from Gauss-Legendre quadrature;
both errors are bounded by the modulus on a region where the integrand has been evaluated, as a ball,
without meeting a pole or a branch cut, so that it is analytic there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from typing import Any, cast

from flint import acb, acb_mat, arb, ctx, fmpq

from .errors import Singular, Undefined
from .systems import Comparison, Number, Numbers, Real, System, Truth, Value

BLIND = 2.0**-30
TINY = 2.0**-60
HALVINGS = 16
Function = Callable[[Value], Value]


def _arb(x: Real) -> Any:
    return arb(fmpq(x.numerator, x.denominator))


def _acb(x: Number) -> Any:
    return acb(*map(_arb, x)) if isinstance(x, tuple) else acb(_arb(x))


def _box(width: Any, height: Any) -> Any:
    """A ball around 0 with the given half sides."""
    return acb(arb(0, width), arb(0, height))


@cache
def _gauss(n: int, prec: int) -> list[tuple[Any, Any]]:
    return [cast("tuple[Any, Any]", arb.legendre_p_root(n, k, weight=True)) for k in range(n)]


ARB = "arb"
"""How the names of ball arithmetic begin, and of no other number system."""


@dataclass(frozen=True)
class Balls(System):
    """Complex balls with ``prec`` bits."""

    prec: int = 128
    complex = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{ARB} {self.prec} bits"

    @contextmanager
    def context(self) -> Iterator[None]:
        with ctx.workprec(self.prec):
            yield

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        return self.build(rows, cols, [_acb(x) for r in numbers for x in r])

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        return acb_mat(rows, cols, flat)

    def zeros(self, rows: int, cols: int) -> Value:
        return acb_mat(rows, cols)

    def shape(self, a: Value) -> tuple[int, int]:
        return a.nrows(), a.ncols()

    def table(self, a: Value) -> list[list[Any]]:
        return cast("list[list[Any]]", a.tolist())

    def conj(self, a: Value) -> Value:
        return a.conjugate()

    def inverse(self, a: Value) -> Value:
        if self.shape(a) == (1, 1):
            if a[0, 0].contains(0):
                raise Singular("the reciprocal of a ball that contains 0")
            return acb_mat(1, 1, [1 / a[0, 0]])
        try:
            return a.inv()
        except ZeroDivisionError:
            raise Singular("the inverse of a matrix that may be singular") from None

    def exp(self, a: Value) -> Value:
        return a.exp() if a.nrows() != 1 else acb_mat(1, 1, [a[0, 0].exp()])

    def _branched(self, a: Value, name: str, zero: bool) -> Value:
        x = a[0, 0]
        if zero and x.is_zero():
            return a
        if x.imag.is_zero() and not x.real > 0:
            raise Singular(f"the {name} of a number that may be negative or 0")
        y = getattr(x, name)(analytic=True)
        if not y.is_finite():
            raise Singular(f"the {name} of a ball that meets its branch cut")
        return acb_mat(1, 1, [y])

    def log(self, a: Value) -> Value:
        return self._branched(a, "log", False)

    def sqrt(self, a: Value) -> Value:
        return self._branched(a, "sqrt", True)

    def root_of_unity(self, n: int) -> Value:
        return acb_mat(1, 1, [acb(fmpq(2, n)).exp_pi_i()])

    def equal(self, a: Value, b: Value) -> Comparison:
        entries = [(x, y) for r, s in zip(a.tolist(), b.tolist(), strict=True) for x, y in zip(r, s, strict=True)]
        radius = max((_radius(x) for pair in entries for x in pair), default=0.0)
        if not all(x.is_finite() and y.is_finite() for x, y in entries):
            return Comparison(None, float("inf"))
        if not all(x.overlaps(y) for x, y in entries):
            return Comparison(False, radius)
        size = max((float(x.abs_upper()) for x, _ in entries), default=0.0)
        return Comparison(True if radius <= BLIND * max(size, TINY) else None, radius)

    def nonzero(self, a: Value) -> Truth:
        return _excludes_zero(a[0, 0])

    def invertible(self, a: Value) -> Truth:
        return _excludes_zero(a.det())

    def less(self, a: Value, b: Value, strict: bool) -> Truth:
        d = b[0, 0] - a[0, 0]
        if not d.imag.contains(0):
            raise Undefined("an order between numbers that are not real")
        if d.real > 0 or (not strict and d.real >= 0):
            return True
        return False if d.real < 0 or (strict and d.real <= 0) else None

    def numbers(self, a: Value) -> Numbers | None:
        if not all(x.is_exact() for r in a.tolist() for x in r):
            return None
        return tuple(tuple(_exact(x) for x in r) for r in a.tolist())

    def entry_text(self, x: Any) -> str:
        return str(x.real.str(20)) if x.imag.contains(0) else f"{x.real.str(20)} + {x.imag.str(20)}i"

    def derivative(self, f: Function, at: Value) -> Value:
        """f'(at) from the values of f on a circle, with the aliasing error bounded by |f| on a wider disc.

        Raises Singular where f is found analytic on no disc around the point.
        """
        z, radius = at[0, 0], arb(fmpq(1, 4))
        for _ in range(HALVINGS):
            bound = self._bound(f, z + _box(radius, radius))
            if bound is not None:
                return self._cauchy(f, z, radius, bound)
            radius = radius / 2
        raise Singular("a derivative at a point where the function may not be analytic")

    def _cauchy(self, f: Function, z: Any, radius: Any, bound: Any) -> Value:
        n = self.prec // 3 + 8
        circle = radius / 8
        turns = [acb(fmpq(2 * k, n)).exp_pi_i() for k in range(n)]
        total = _total(f(acb_mat(1, 1, [z + circle * turn])) * (1 / turn) for turn in turns)
        ratio = arb(fmpq(1, 8)) ** n
        error = (bound / radius * ratio / (1 - ratio)).abs_upper()
        return _widened(total * acb(1 / (n * circle)), error)

    def integral(self, f: Function, lo: Value, hi: Value) -> Value:
        """The integral along the straight line from lo to hi.

        Raises Singular where the integrand is not found analytic around the line.
        """
        start, length = lo[0, 0], hi[0, 0] - lo[0, 0]

        def along(u: Value) -> Value:
            return f(acb_mat(1, 1, [start + u[0, 0] * length])) * length

        pieces, found = [(fmpq(1, 2), fmpq(1, 2), 0)], []
        while pieces:
            centre, half, depth = pieces.pop()
            # the ellipse with foci at the ends of the piece and semi-axes of sum 4 half
            ellipse = acb(centre) + _box(arb(half * fmpq(17, 8)), arb(half * fmpq(15, 8)))
            bound = self._bound(along, ellipse)
            if bound is not None:
                found.append(self._quadrature(along, centre, half, bound))
            elif depth == HALVINGS // 2:
                raise Singular("an integral whose integrand may not be analytic")
            else:
                pieces += [(centre + s * half / 2, half / 2, depth + 1) for s in (1, -1)]
        return _total(found)

    def _quadrature(self, f: Function, centre: Any, half: Any, bound: Any) -> Value:
        """Gauss-Legendre with n nodes is exact on T_0..T_{2n-1}; |a_k| <= 2 M 4^-k bounds the rest of the series."""
        n = self.prec // 4 + 8
        total = _total(f(acb_mat(1, 1, [acb(arb(centre) + x * arb(half))])) * acb(w) for x, w in _gauss(n, self.prec))
        error = (8 * bound * arb(fmpq(1, 4)) ** (2 * n) / (1 - arb(fmpq(1, 4)))).abs_upper()
        return _widened(total, error) * acb(half)

    def _bound(self, f: Function, region: Any) -> Any:
        """A bound on |f| over a region, or None where f may have a singularity in it or the bound is useless."""
        try:
            values = [x for r in f(acb_mat(1, 1, [region])).tolist() for x in r]
        except Singular:
            return None
        if not all(x.is_finite() for x in values):
            return None
        bound = arb(0)
        for x in values:
            bound = bound.max(arb(x.abs_upper()))
        return bound if bound < 2**40 else None


def _total(values: Iterable[Value]) -> Value:
    return reduce(lambda a, b: a + b, values)


def _widened(a: Value, error: Any) -> Value:
    ball = _box(error, error)
    return acb_mat(a.nrows(), a.ncols(), [x + ball for r in a.tolist() for x in r])


def _radius(x: Any) -> float:
    return max(float(x.real.rad()), float(x.imag.rad()))


def _excludes_zero(x: Any) -> Truth:
    if x.is_zero():
        return False
    return None if x.contains(0) else True


def _exact(x: Any) -> Number:
    re, im = (_dyadic(p) for p in (x.real, x.imag))
    return (re, im) if im else re


def _dyadic(x: Any) -> Fraction:
    mantissa, exponent = (int(n) for n in x.mid().man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
