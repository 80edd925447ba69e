"""What the attacks on the kernel share: a few atoms, and the check of a false statement beside a true one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from isoform.derivations.kernel.formulas import Assumption, Formula, Statement
from isoform.derivations.kernel.proof import Proof
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Script
from isoform.derivations.kernel.terms import Apply, Cond, Eye, Term, indices, matrices, matrix, scalar, scalars, vector

REFUSALS = (ValueError, TypeError)
ANYWHERE = Cond()

d, n, m, k, i, j, t, T = indices("d n m k i j t T")
A, B = matrix("A", d, d), matrix("B", d, d)
M, N = matrices("M", d, d), matrices("N", d, d)
u, v = vector("u", d), vector("v", d)
x, y, a, b, s = map(scalar, ("x", "y", "a", "b", "s"))
z = scalar("z", "complex")
al, be, ga = scalars("al"), scalars("be"), scalars("ga")
identity = Eye(d)


def f(at: Term) -> Term:
    return Apply("f", (at,), 1, 1)


def given(name: str, formula: Formula) -> Assumption:
    return Assumption(name, formula)


def prover(lemmas: Mapping[str, Statement]) -> Callable[[Statement, Script], Proof]:
    def library(id: str) -> Statement:
        return lemmas[id]

    return lambda statement, script: prove(statement, script, library)


def check(false: Statement, true: Statement, script: Script) -> None:
    attempt = prover({})
    assert isinstance(attempt(true, script), Proof)
    with pytest.raises(REFUSALS):
        attempt(false, script)
