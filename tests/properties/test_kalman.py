"""The step of state-space/kalman beside SciPy: one solve with the joint covariance of all outputs, and the steady state."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import linalg

from isoform.derivations.evaluate import Environment, evaluate
from isoform.derivations.evaluate.floats import Floats
from isoform.derivations.kernel.terms import Eye
from isoform.derivations.state_space import kalman as claim
from isoform.impl import state_space

RNG = np.random.default_rng(0)
A = np.array([[0.9, 0.4, 0.0], [-0.3, 1.02, 0.2], [0.1, 0.0, 0.7]])
H = np.array([[1.0, 0.5, -0.25]])
Q, R = np.diag([0.3, 0.1, 0.2]), np.array([[0.5]])
START, SPREAD = np.array([[1.0], [-1.0], [0.5]]), 2 * np.eye(3)
EPS = np.finfo(float).eps
STEPS = 12

UPDATED = claim.A * claim.mean + claim.c + claim.gain() * (claim.y - claim.H * (claim.A * claim.mean + claim.c))
REMAINING = (Eye(claim.N) - claim.gain() * claim.H) * claim.ahead


def step(mean, covariance, output, noise=R):
    """The claim's own terms in float64, from a start without outputs: mean, covariance, gain."""
    values = {"A": A, "H": H, "Q": Q, "R": noise, "c": 0 * mean, "mu": mean, "Pi": covariance, "y": output}
    given = {(name, ()): [[Fraction(float(e)) for e in row] for row in x] for name, x in values.items()}
    e = Environment(Floats(), {claim.N: 3, claim.p: 1, claim.n: 0}, values=given)
    return tuple(np.asarray(evaluate(x, e), float) for x in (UPDATED, REMAINING, claim.gain()))


def filtered(outputs, noise=R):
    mean, covariance = START, SPREAD
    for y in outputs:
        mean, covariance, gain = step(mean, covariance, np.array([[y]]), noise)
    return mean, covariance, gain


def conditioned(outputs):
    """All at once: x_T and all outputs are linear in the start and the noises; SciPy solves with the covariance of the outputs."""
    steps = len(outputs)
    sources = linalg.block_diag(SPREAD, *[Q] * steps, *[R] * steps)
    x, mean, rows, means = np.eye(3, len(sources)), START, [], []
    for t in range(steps):
        x, mean = A @ x, A @ mean
        x[:, 3 + 3 * t : 6 + 3 * t] += np.eye(3)
        rows.append(H @ x)
        rows[-1][0, 3 + 3 * steps + t] += 1
        means.append((H @ mean)[0, 0])
    y = np.vstack(rows)
    joint, crossed = y @ sources @ y.T, x @ sources @ y.T
    gains = linalg.solve(joint, crossed.T, assume_a="pos").T
    condition = np.linalg.cond(joint)
    return mean + gains @ (np.array(outputs) - means)[:, None], x @ sources @ x.T - gains @ crossed.T, condition


def test_step_by_step_is_one_solve():
    """SciPy's solve loses the condition number; the filter n³ roundings a step, of the covariance of what is predicted."""
    outputs = RNG.standard_normal(STEPS)
    mean, covariance, _ = filtered(outputs)
    want, spread, condition = conditioned(outputs)
    size = 27 * STEPS * EPS * (condition + 10)
    assert np.abs(mean - want).max() <= size * np.abs(want).max()
    assert np.abs(covariance - spread).max() <= size * np.abs(spread).max() * 10
    other, wide, _ = filtered(outputs, 2 * R)
    assert np.abs(other - want).max() > 0.01 and np.abs(wide - spread).max() > 0.01, "another noise is seen"


def test_the_steady_state_is_that_of_the_riccati_equation():
    """What is predicted converges, linearly, to the solution of the discrete algebraic Riccati equation of SciPy."""
    riccati = linalg.solve_discrete_are(A.T, H.T, Q, R)
    _, covariance, gain = filtered(np.zeros(200))
    ahead = A @ covariance @ A.T + Q
    assert np.abs(ahead - riccati).max() <= 1e4 * EPS * np.abs(riccati).max()
    want = riccati @ H.T @ np.linalg.inv(H @ riccati @ H.T + R)
    assert np.abs(gain - want).max() <= 1e4 * EPS
    assert np.abs(np.linalg.eigvals((np.eye(3) - want @ H) @ A)).max() < 1
    assert np.abs(linalg.solve_discrete_are(A.T, H.T, Q, 2 * R) - riccati).max() > 0.01


@pytest.mark.parametrize("form", state_space.FORMS["lti"], ids=lambda f: f.__name__)
def test_in_the_steady_state_the_filter_is_time_invariant(form):
    """m' = (I - KH) A m + K y with one gain is a system that every form of lti runs: read by (1, 0, 0)."""
    riccati = linalg.solve_discrete_are(A.T, H.T, Q, R)
    steady = riccati - riccati @ H.T @ np.linalg.inv(H @ riccati @ H.T + R) @ H @ riccati
    outputs = RNG.standard_normal(STEPS)
    mean, covariance, means = START, steady, []
    for y in outputs:
        mean, covariance, gain = step(mean, covariance, np.array([[y]]))
        means.append(mean[0, 0])
    system = [torch.tensor(x) for x in ((np.eye(3) - gain @ H) @ A, gain[:, 0], np.array([1.0, 0.0, 0.0]))]
    found = form(torch.tensor(outputs)[None], *system, initial_state=torch.tensor(START.T))
    assert np.abs(found[0].numpy() - means).max() <= 1e4 * EPS * np.abs(means).max()
