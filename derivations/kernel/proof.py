"""Proofs as values: each obligation with what discharged it."""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from .formulas import Formula
from .printing import latex, text

_KEY = object()


class Unproved(ValueError):
    """A proof script does not prove its goal; the message says which obligation stays open."""


@dataclass(frozen=True)
class Obligation:
    """One thing that had to be shown, as written, how it was discharged, and by which equations.

    It ``continues`` the obligation before where that one's right side is its left side.
    """

    title: str
    formula: Formula
    method: str
    by: tuple[str, ...] = ()
    continues: bool = False

    @property
    def text(self) -> str:
        return text(self.formula)

    @property
    def latex(self) -> str:
        return latex(self.formula)


@dataclass(frozen=True)
class Proof:
    """A proved statement. Only ``prove`` of this package makes one.

    ``used`` names the assumptions that some obligation needed, ``lemmas`` the claims, ``assumed`` the textbook
    theorems; ``scope`` is "all sizes" unless a method looked at stated sizes only.
    """

    method: str
    obligations: tuple[Obligation, ...]
    used: frozenset[str]
    lemmas: frozenset[str]
    assumed: frozenset[str]
    scope: str = "all sizes"
    key: InitVar[object] = None  # not stored: a changed copy of a proof is no proof

    def __post_init__(self, key: object) -> None:
        if key is not _KEY:
            raise TypeError("a Proof is made by the kernel's prove(), not by hand")


def _seal(
    method: str,
    obligations: tuple[Obligation, ...],
    used: frozenset[str],
    lemmas: frozenset[str],
    assumed: frozenset[str],
    scope: str,
) -> Proof:
    return Proof(method, obligations, used, lemmas, assumed, scope, _KEY)
