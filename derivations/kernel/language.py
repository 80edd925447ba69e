"""What may stand in a statement or a script: nodes of the language itself, under names that it does not keep for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from sympy import Basic, Symbol

from . import formulas as fm
from . import terms as tm
from .proof import Unproved

RESERVED = frozenset("#$\u0307")  # bound names of the normal form, and the dot of a derivative
NODES = frozenset(
    v for m in (tm, fm) for v in vars(m).values() if isinstance(v, type) and issubclass(v, (tm.Term, tm.Cond, tm.Cut, fm.Formula))
)
PLAIN = re.compile(r"[^\s*+;,|()<>\[\]{}]+")  # names of indices are written into expressions
# names of what a proof supposes or has shown
SUPPOSED = re.compile(r"negation|premise( \d+)?|part \d+|induction hypothesis|null vector|length 1")


def clean(part: Basic) -> None:
    """Raise Unproved unless a part is made of nodes as their constructors make them, under free names."""
    seen: dict[int, Basic] = {}  # what is met again is the same object, and has been looked at
    ahead = [part]
    while ahead:
        node = ahead.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            _node(node)
            ahead += reversed(node.args)
    for name in tm.free(part):
        if tm.PRIME in str(name):
            raise Unproved(f"the name {name} is reserved for what a recursion binds")


def _node(node: Basic) -> None:
    if not (type(node) in NODES or type(node).__module__.startswith("sympy.")):
        raise Unproved(f"{type(node).__name__} is no node of the language: {node!r}")
    if type(node) in NODES and node.func(*node.args) != node:
        raise Unproved(f"{node} is not as its constructor makes it")
    if isinstance(node, Symbol) and (node != Symbol(node.name, integer=True) or not PLAIN.fullmatch(node.name)):
        raise Unproved(f"{node} is no index: those are integer symbols with a plain name")
    if isinstance(node, tm.Cut) and not PLAIN.fullmatch(node.name):
        raise Unproved(f"{node} is no cut: their families have plain names")
    if isinstance(node, (Symbol, tm.Cut, tm.Var, tm.Rec, tm.Apply)) and RESERVED & set(node.name):
        raise Unproved(f"the name {node.name} is reserved: names contain none of {sorted(RESERVED)}")
    binders = [] if isinstance(node, tm.Rec) else [node.args[b] for b in getattr(node, "binds", {})]
    named = [node] if isinstance(node, (tm.Rec, tm.Apply, tm.Cut)) or (isinstance(node, tm.Var) and node.indices) else []
    if any(tm.PRIME in x.name for x in [*binders, *named]):  # type: ignore[attr-defined]
        raise Unproved(f"the mark {tm.PRIME} is reserved for what a recursion binds: {node}")


def parts_of(x: Any) -> Iterator[Basic]:
    """The terms, conditions and indices in a script."""
    if isinstance(x, Basic):
        yield x
    elif is_dataclass(x) and not isinstance(x, type):
        for f in fields(x):
            yield from parts_of(getattr(x, f.name))
    elif isinstance(x, Mapping):
        for k, v in x.items():
            yield from parts_of(k)
            yield from parts_of(v)
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from parts_of(y)
    elif not isinstance(x, (str, int, float, Fraction, type(None))):
        raise Unproved(f"{x!r} is no part of a proof script")


__all__ = ["RESERVED", "SUPPOSED", "clean", "parts_of"]
