"""The second engine: evaluates statements, not proofs, by direct recursion in a number system that fits them.

It shares the term language with the kernel and nothing else.
"""

from __future__ import annotations

from typing import Any

from ..kernel.formulas import Declaration
from ..kernel.terms import Term
from .certificates import Certificate, certify
from .counterexamples import Counterexample, recheck, refute
from .drawing import fit
from .environment import Environment
from .errors import EvaluationError, Singular, Undefined, UnsupportedTerm
from .oracles import oracle
from .program import evaluate as _evaluate

__all__ = [
    "Certificate", "Counterexample", "Environment", "EvaluationError", "Singular", "Undefined", "UnsupportedTerm",
    "certify", "evaluate", "fit", "oracle", "recheck", "refute", "run",
]  # fmt: skip


def evaluate(term: Term, environment: Environment) -> Any:
    """The value of a term, a matrix of the environment's number system; EvaluationError where it has none."""
    with environment.system.context():
        return _evaluate(term, environment.frame())


def run(declared: Declaration | Term, environment: Environment) -> Any:
    """The value of a declaration's read-out, or of a term, in an environment that gives the time index."""
    return evaluate(declared.output if isinstance(declared, Declaration) else declared, environment)
