"""The plain call itself, with the other names that flash-linear-attention has for some arguments."""

from __future__ import annotations

from ..operator import Operator
from . import calls
from .convention import Argument, Wiring

ALIASES = {"q": ("r",), "gk": ("g",)}
"""Receptance is a query; some kernels have one gate per channel of the keys and call it g."""
CONSTANTS = (Argument("normalize", value=False),)
"""A linear attention that can be normalised is not."""


def plain(operator: Operator) -> Wiring:
    """The plain call of an operator."""
    names = calls.arguments(operator)
    aliases = {n: tuple(a for a in ALIASES.get(n, ()) if a not in names) for n in names}
    return Wiring("plain", (*(Argument(n, n, aliases=aliases[n]) for n in names), *(c for c in CONSTANTS if c.name not in names)))
