"""The call of a declared layer: its arguments, their axes, and where they may lie.

Tensors have batch, time and head first, parameters that are the same for all tokens the head alone: (b, t, h, …) and (h, …), or
without heads (b, t, …) and (…). Then come the rows and the columns of the declaration, an axis of size 1 left out. A state has
(b, h, …); a matrix H of d_v x d_k is handed out transposed, (b, h, k, v), and several states in one tensor (b, h, s), flattened and
put one after the other.

A decay may be given by its logarithm: ``logs`` maps its name in the declaration to that of the argument.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sympy import Expr, Symbol

from ..kernel.base import index_expression
from ..kernel.formulas import Declaration
from ..kernel.terms import Var

STATE, FINAL, STEP_STATE = "initial_state", "output_final_state", "state"
RESERVED = {STATE, FINAL, STEP_STATE, "chunk_size", "torch", "where", "lead", "sizes", "dtype"}
AXES = {"b", "t", "h"}
UNDERSTOOD = "'real', 'LOW <= x <= HIGH', 'x <= HIGH', 'LOW <= x', '|x| <= HIGH', '|x| = HIGH', 'LOW <= x |y|^2 <= HIGH', '|x_i| <= HIGH'"
UNORDERED = "'complex', '|x| <= HIGH', '|x| = HIGH', '|x_i| <= HIGH', '|x_i| = HIGH'"
_NUMBER = r"(-?\d+(?:\.\d+)?(?:/\d+)?)"
_MIDDLE = re.compile(r"^(\w*|\|\w+\||\w+ \|\w+\|\^2)$")
_SHAPE = re.compile(rf"^(?:{_NUMBER} (<=?) )?(.*?)(?: ?(<=?|>=?|=) {_NUMBER})?$")


@dataclass(frozen=True)
class Domain:
    """Where the values of an input lie: low <= x <= high, entry by entry.

    ``norm`` says that it is the length that lies there (of a matrix the largest of a unit vector's image), ``modulus`` that of each
    complex entry; ``times`` names an input whose squared length multiplies x. ``endless`` says that -∞ is among the values.
    """

    low: Fraction | None = None
    high: Fraction | None = None
    norm: bool = False
    times: str = ""
    endless: bool = False
    modulus: bool = False

    @property
    def free(self) -> bool:
        """Whether every number is allowed."""
        return self.low is None and self.high is None


@dataclass(frozen=True)
class Argument:
    """An argument of the call: the input of the declaration that it is, or whose logarithm (``log``)."""

    name: str
    input: str
    atom: str
    rows: Expr
    cols: Expr
    sequence: bool
    log: bool = False
    domain: Domain = field(default_factory=Domain)
    complex: bool = False

    @property
    def sizes(self) -> tuple[Expr, ...]:
        """The sizes of its own axes."""
        return tuple(e for e in (self.rows, self.cols) if e != 1)

    def axes(self, heads: bool) -> tuple[str, ...]:
        """The names of its axes."""
        lead = (("b", "t") if self.sequence else ()) + (("h",) if heads else ())
        return (*lead, *map(axis, self.sizes))


def arguments(declaration: Declaration, logs: Mapping[str, str] | None = None) -> tuple[Argument, ...]:
    """The arguments of the call, in the declaration's order.

    Raises ValueError for a name that Python or the call has already, a domain that is not understood, the logarithm of what is complex.
    """
    logs = logs or {}
    unknown = sorted(set(logs) - set(declaration.inputs))
    if unknown:
        raise ValueError(f"{declaration.operator} has no input {', '.join(unknown)}; it has {', '.join(declaration.inputs)}.")
    found = tuple(_argument(declaration, name, family, logs.get(name)) for name, family in declaration.inputs.items())
    if not any(a.sequence for a in found):
        raise ValueError(f"{declaration.operator} has no input that tokens bring, so a call does not say how many there are.")
    called = [a.name for a in found]
    if twice := {n for n in called if called.count(n) > 1}:
        raise ValueError(f"{declaration.operator}: two arguments are called {min(twice)!r}; call the logarithm something else.")
    known = {e for a in found for e in a.sizes}
    for size in sorted({s for v in _starts(declaration) for e in v.shape for s in e.free_symbols} - known, key=str):
        raise ValueError(f"{declaration.operator}: the size {size} of a state is that of no input, so a call does not say it.")
    for a in found:
        if a.domain.times and a.domain.times not in declaration.inputs:
            raise ValueError(f"{declaration.operator}: the domain of {a.input} speaks of {a.domain.times}, which is no input.")
        for name in (a.name, a.input):
            if not name.isidentifier() or keyword.iskeyword(name) or name in RESERVED:
                raise ValueError(f"{declaration.operator}: {name!r} cannot name an argument; use an identifier that is still free.")
    return found


def _starts(declaration: Declaration) -> tuple[Var, ...]:
    given: Any = declaration.initial_state
    return () if given is None else given if isinstance(given, tuple) else (given,)


def _argument(declaration: Declaration, name: str, family: Any, log: str | None) -> Argument:
    unreal = family.field == "complex"
    if unreal and log:
        raise ValueError(f"{declaration.operator}: {name} is complex, and a logarithm is given for real decays alone.")
    sequence = not isinstance(family, Var)
    rows, cols = index_expression(family.rows), index_expression(family.cols)
    where = domain(declaration.domains.get(name, family.field), f"{declaration.operator}: the domain of {name}")
    if unreal and rows == cols == 1 and where.norm:
        where = _entries(where.low, where.high, unreal, f"{declaration.operator}: the domain of {name}")
    return Argument(log or name, name, family.name, rows, cols, sequence, log is not None, where, unreal)


def domain(words: str, where: str = "the domain") -> Domain:
    """Read a domain from its words. Raises ValueError for those that are not understood."""
    parts = [p.strip() for p in words.replace("features:", "").split(",")]
    endless = any("-inf" in p for p in parts)
    unreal = parts[0] == "complex"
    bounds = [p for p in parts if p and p not in ("real", "complex", "real or complex", "any") and "-inf" not in p]
    bounds = [p.removeprefix("real").strip() for p in bounds]
    if not bounds:
        return Domain(endless=endless)
    found = _SHAPE.match(bounds[0])
    middle = found[3].strip() if found else ""
    wrong = len(bounds) > 1 or found is None or not (found[1] or found[5]) or not _MIDDLE.match(middle)
    if found is None or wrong or (unreal and not middle.startswith("|")) or "/0" in bounds[0]:
        raise ValueError(f"{where} is {words!r}; understood are {UNORDERED if unreal else UNDERSTOOD}.")
    low, _, _, relation, high = found.groups()
    ends = [None if n is None else Fraction(n) for n in (low, high)]
    if relation in (">", ">="):
        ends = [ends[1], None]
    if relation == "=":
        ends = [ends[1], ends[1]]
    least = Fraction(0) if middle.startswith("|") else ends[0]
    if ends[1] is not None and least is not None and ends[1] < max(least, ends[0] or least):
        raise ValueError(f"{where} is {words!r}, and no number lies there.")
    if middle.startswith("|") and middle.endswith("_i|"):
        return _entries(ends[0], ends[1], unreal, f"{where} is {words!r}")
    return Domain(ends[0], ends[1], middle.startswith("|"), middle.split("|")[1] if middle.endswith("^2") else "", endless)


def _entries(low: Fraction | None, high: Fraction | None, unreal: bool, said: str) -> Domain:
    """Entries whose size lies somewhere."""
    if high is None or (low is not None and not unreal):
        raise ValueError(f"{said}; of entries it can be said that they are at most so large, '|x_i| <= HIGH'.")
    return Domain(low or Fraction(0), high, modulus=True) if unreal else Domain(-high, high)


def axis(size: Expr) -> str:
    """The name of an axis of this size; that of d_k is k."""
    return sized(size, lambda name: f"{name}_" if name in AXES else name).replace(" ", "")


def sized(size: Expr, name: Callable[[str], str]) -> str:
    """A size as an expression in the names of its symbols, that of d_k being k."""
    return str(size.xreplace({s: Symbol(name(str(s).removeprefix("d_"))) for s in size.free_symbols}))
