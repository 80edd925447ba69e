"""One premise of each method taken away: what it would prove without it is false, and is not proved."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import Assumption, Equation, Less, LessEqual, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Cases, Direct, Induction, Product, Script, Sign
from isoform.derivations.kernel.terms import Prod, Where, indices, le, lt, matrices, matrix, recurrence, scalar

n, s, t, c = indices("n s t c")
A, B, C = (matrix(name, n, n) for name in "ABC")
M = matrices("M", n, n)
a, b = scalar("a"), scalar("b")
powers = recurrence("P", A, lambda t, P: P * B)
one_case = Cases(((lt(0, t), Direct()),))
split = Equation(Prod(M[s], s, 2, t) * Prod(M[s], s, t + 1, c), Prod(M[s], s, 2, c))
known = Assumption("a >= 0", LessEqual(0, a), solve={a: b * b})


@dataclass(frozen=True)
class Attack:
    """A false statement, with a true one that the same script proves."""

    script: Script
    false: Statement
    true: Statement


ATTACKS = {
    "an induction without its base": Attack(
        Induction(t),
        Statement(Equation(powers[t], C * B**t), le(0, t)),
        Statement(Equation(powers[t], A * B**t), le(0, t)),
    ),
    "cases that leave one out": Attack(
        one_case,
        Statement(Equation(Where(lt(0, t), A, B), A), le(0, t)),
        Statement(Equation(Where(lt(0, t), A, B), A), lt(0, t)),
    ),
    "products joined where the first runs backwards": Attack(
        Direct(),
        Statement(split, le(0, t) & le(t, c)),
        Statement(split, le(1, t) & le(t, c)),
    ),
    "the sign of a negative multiple": Attack(
        Sign(),
        Statement(LessEqual(0, -2 * a), assumptions=(known,)),
        Statement(LessEqual(0, 2 * a), assumptions=(known,)),
    ),
    "a strict inequality from a square": Attack(
        Sign((Product((a**2,)),)),
        Statement(Less(0, a**2)),
        Statement(LessEqual(0, a**2)),
    ),
}


def no_lemmas(id: str) -> Statement:
    raise Unproved(f"there is no claim {id}")


@pytest.mark.parametrize("name", ATTACKS)
def test_a_premise_is_needed(name: str) -> None:
    attack = ATTACKS[name]
    assert certify(attack.false).holds is False
    assert certify(attack.true).holds is True
    assert prove(attack.true, attack.script, no_lemmas).scope == "all sizes"
    with pytest.raises(Unproved):
        prove(attack.false, attack.script, no_lemmas)
