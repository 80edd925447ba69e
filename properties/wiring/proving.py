"""Prove a wiring: our own right form, disguised as a kernel and adapted again, keeps the laws; wrong ones, so treated, do not.

So an adapter that loses something, or hides what is wrong, is found before it says anything about a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any

from ..laws import LawResult, laws
from ..limits import Limits
from ..operator import Form, Operator
from ..running import run_law
from . import calls
from .adapting import adapt, shown
from .convention import Wiring
from .disguising import disguise
from .wrongs import wrongs

LAWS = ("form-equals-oracle", "state-equals-oracle", "split-and-resume", "exact-bits")
"""They suffice to see every wrong reference."""
CORNERS = 6
Call = Callable[..., Any]


@dataclass(frozen=True)
class Problem:
    """A reference that fared otherwise than it must: what it is, and what was found."""

    reference: str
    found: str

    def __str__(self) -> str:
        return f"the wiring is not proved: {self.reference} {self.found}"


def prove(operator: Operator, wiring: Wiring, right: Call, limits: Limits | None = None, spoken: Wiring | None = None) -> Problem | None:
    """None where the right form keeps the laws through the wiring and every wrong one breaks one of them; else the first problem.

    ``spoken`` is the convention in which the references are disguised, the same one unless said otherwise.
    """
    within, named = limits or Limits(), fixed(right, operator)

    def tried(reference: Call) -> Iterator[LawResult]:
        adapted = adapt(disguise(reference, operator, spoken or wiring), operator, wiring)
        form = Form(reference.__name__, adapted, limits=within)
        for law in laws():
            if law.name in LAWS:
                yield run_law(law, operator, form, examples=0, corners=CORNERS, minimise=False)

    found = list(tried(named))
    broken = next((r for r in found if r.verdict == "violated"), None)
    if broken is not None:
        return Problem("our right form", f"breaks {broken.law}: {broken.detail}")
    if not any(r.verdict == "holds" for r in found):
        return Problem("our right form", f"is seen by no law: {'; '.join(r.detail for r in found)}")
    for name, wrong in wrongs(operator, named, set(shown(wiring, operator)), wiring.single):
        if not any(r.verdict == "violated" for r in tried(wrong)):
            return Problem(f"a wrong form ({name})", "breaks no law")
    return None


def fixed(right: Call, operator: Operator) -> Call:
    """A form with those options that have one value in all calls, for a kernel that has no arguments for them."""
    taken = {n: x for n, x in calls.fixed(operator).items() if n in signature(right).parameters}

    @wraps(right)
    def form(**given: Any) -> Any:
        return right(**{**taken, **given})

    return form
