"""The second engine: evaluates statements, not proofs, by direct recursion in a number system that fits them."""

from .certificates import Certificate, certify
from .counterexamples import Counterexample, recheck, refute
from .drawing import fit
from .environment import Environment
