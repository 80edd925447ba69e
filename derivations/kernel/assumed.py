"""The closed list of textbook theorems that a proof may assume, each as a statement that the second engine checks."""

from __future__ import annotations

from dataclasses import dataclass

from .formulas import Equation, Iff, Implies, Invertible, LessEqual, Statement
from .terms import Apply, Deriv, Exp, Ind, Integral, indices, matrix, scalar


@dataclass(frozen=True)
class Theorem:
    """A theorem of analysis: its name, what it says, where it stands, and an instance of it as a statement."""

    name: str
    title: str
    source: str
    statement: Statement


_n, _m = indices("n m")
_t, _s = scalar("t"), scalar("s")
_F = matrix("F", _n, _n)
_X, _Y = matrix("X", _n, _m), matrix("Y", _m, _n)


def _y(at: object) -> Apply:
    return Apply("y", (at,), _n, 1)  # type: ignore[arg-type]


ASSUMED = {
    t.name: t
    for t in (
        Theorem(
            "exp-increasing",
            "the exponential function is increasing, and is 1 at 0",
            "Rudin, Principles of Mathematical Analysis, 3rd ed., Theorem 8.6",
            Statement(Iff(LessEqual(0, _t), LessEqual(0, Exp(_t) - 1))),
        ),
        Theorem(
            "exp-above-tangent",
            "the exponential function is nowhere below its tangent at 0",
            "Rudin, Principles of Mathematical Analysis, 3rd ed., Theorem 5.15, Taylor's: exp(x) = 1 + x + exp(ξ) x²/2",
            Statement(LessEqual(0, Exp(_t) - 1 - _t)),
        ),
        Theorem(
            "leibniz-rule",
            "d/dt of an integral from 0 to t of f is f at t, plus the integral of df/dt",
            "Rudin, Principles of Mathematical Analysis, 3rd ed., Theorems 6.20 and 9.42",
            Statement(
                Equation(
                    Deriv(Integral(Exp((_t - _s) * _F) * _y(_s), _s, 0, _t), _t),
                    _y(_t) + Integral(_F * Exp((_t - _s) * _F) * _y(_s), _s, 0, _t),
                )
            ),
        ),
        Theorem(
            "null-vector",
            "a matrix with more columns than rows sends a vector other than 0 to 0; so no product through fewer dimensions is invertible",
            "Axler, Linear Algebra Done Right, 3rd ed., section 3.B: a map to a smaller space is not injective",
            Statement(Implies(Invertible(_Y * _X), LessEqual(Ind(_m), Ind(_n)))),
        ),
        Theorem(
            "zero-derivative",
            "a function with derivative 0 is constant: y(t) = y(0) + the integral of its derivative",
            "Rudin, Principles of Mathematical Analysis, 3rd ed., Theorems 5.11 and 6.21",
            Statement(Equation(_y(_t), _y(0 * _t) + Integral(Deriv(_y(_s), _s), _s, 0, _t))),
        ),
        Theorem(
            "ode-uniqueness",
            "a linear equation dx/dt = F x + g with continuous g has one solution with a given initial value",
            "Coddington and Levinson, Theory of Ordinary Differential Equations, chapter 3, section 1",
            Statement(
                Equation(
                    _y(_t),
                    Exp(_t * _F) * _y(0 * _t)
                    + Integral(Exp((_t - _s) * _F) * (Deriv(_y(_s), _s) - _F * _y(_s)), _s, 0, _t),
                )
            ),
        ),
    )
}
