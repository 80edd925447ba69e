"""The step that state-space/kalman is about, run over several outputs, is conditioning on all of them at once."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Matrix, Rational, eye, zeros

from isoform.derivations.evaluate import Environment, evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.terms import Eye, Term
from isoform.derivations.state_space import kalman as claim

A = Matrix([[1, Rational(1, 2)], [Rational(-1, 3), 2]])
H = Matrix([[1, 2], [0, 1]])
Q, R = Matrix([[2, 1], [1, 3]]), Matrix([[1, Rational(1, 4)], [Rational(1, 4), 1]])
START = Matrix([1, -1]), Matrix([[2, Rational(1, 2)], [Rational(1, 2), 1]])
CONTROL, OUTPUTS = Matrix([Rational(1, 5), -2]), [Matrix([t, 3 - t]) / 7 for t in range(1, 5)]

FORECAST = claim.A * claim.mean + claim.c
UPDATED = FORECAST + claim.gain() * (claim.y - claim.H * FORECAST)
REMAINING = (Eye(claim.N) - claim.gain() * claim.H) * claim.ahead


def step(mean: Matrix, covariance: Matrix, output: Matrix, noise: Matrix) -> tuple[Matrix, Matrix]:
    """The claim's own terms, from a start without outputs."""
    values = {"A": A, "H": H, "Q": Q, "R": noise, "c": CONTROL, "mu": mean, "Pi": covariance, "y": output}
    given: Any = {(name, ()): x.tolist() for name, x in values.items()}

    def value(x: Term) -> Matrix:
        e = Environment(Rationals(), {claim.N: 2, claim.p: 2, claim.n: 0}, values=given)
        return Matrix([[Rational(q.numerator, q.denominator) for q in row] for row in e.system.numbers(evaluate(x, e)) or ()])

    return value(UPDATED), value(REMAINING)


def filtered(noise: Matrix = R) -> tuple[Matrix, Matrix]:
    """One output after the other."""
    state = START
    for output in OUTPUTS:
        state = step(*state, output, noise)
    return state


def conditioned() -> tuple[Matrix, Matrix]:
    """All outputs at once: x_T and every y_t as linear maps of the start and of all noises, which are independent."""
    T = len(OUTPUTS)
    sources = Matrix.diag(START[1], *[Q] * T, *[R] * T)
    place = [zeros(2, 2 * n).row_join(eye(2)).row_join(zeros(2, sources.rows - 2 * n - 2)) for n in range(2 * T + 1)]
    x, mean, maps, means = place[0], START[0], [], []
    for t in range(1, T + 1):
        x, mean = A * x + place[t], A * mean + CONTROL
        maps.append(H * x + place[T + t])
        means.append(H * mean)
    y, surprise = Matrix.vstack(*maps), Matrix.vstack(*OUTPUTS) - Matrix.vstack(*means)
    crossed, joint = x * sources * y.T, y * sources * y.T
    return mean + crossed * joint.inv() * surprise, x * sources * x.T - crossed * joint.inv() * crossed.T


def test_a_step_at_a_time_is_conditioning_on_all_outputs() -> None:
    assert filtered() == conditioned()


@pytest.mark.parametrize("part", [0, 1])
def test_another_noise_is_seen(part: int) -> None:
    assert filtered(2 * R)[part] != conditioned()[part]
