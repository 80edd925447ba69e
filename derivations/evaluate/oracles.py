"""The oracle: an operator's own declaration, run on given data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from sympy import Basic, Expr, Symbol

from ..kernel import formulas as fm
from ..kernel import terms as k
from .balls import Balls
from .environment import numbers
from .errors import Undefined, UnsupportedTerm
from .floats import Floats
from .frame import TOP, Code, Frame, index_code
from .program import compiled
from .systems import Gaussian, Rationals, System, Value

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Input:
    """The data of one family: a sequence over t = 1..T, or a single matrix."""

    rows: Expr
    cols: Expr
    data: Array
    sequence: bool

    @staticmethod
    def of(family: Any, data: Any) -> _Input:
        given = np.asarray(data)
        rows, cols = (k.index_expression(family.rows), k.index_expression(family.cols))
        plain = 0 if (rows, cols) == (1, 1) else 1 if cols == 1 else 2
        single = isinstance(family, k.Var) and not family.indices
        if given.ndim not in ((plain,) if single else (plain, plain + 1)):
            raise ValueError(f"{family.name} has {given.ndim} axes, not {plain} (or {plain + 1} with time)")
        return _Input(rows, cols, given, given.ndim == plain + 1)

    @cached_property
    def floats(self) -> Array:
        """The data in the dtype of the arithmetic, converted once."""
        return np.asarray(self.data, dtype=complex if np.iscomplexobj(self.data) else float)

    def sizes(self) -> list[tuple[Expr, int]]:
        """What its shape says about the sizes."""
        axes = self.data.shape[1:] if self.sequence else self.data.shape
        return list(zip((self.rows, self.cols), axes, strict=False))

    def at(self, indices: tuple[int, ...], data: Array) -> Array:
        """The entry of ``data``, which is its own in some dtype."""
        if not self.sequence:
            return data
        if len(indices) != 1 or not 1 <= indices[0] <= len(data):
            raise Undefined(f"no input at {indices}: the sequence has {len(data)} steps")
        return data[indices[0] - 1]


@dataclass(frozen=True)
class _Data:
    """The atoms of a run: inputs by name."""

    system: System
    inputs: Mapping[str, _Input]

    def atom(self, name: str, indices: tuple[int, ...], rows: int, cols: int, field: str) -> Value:
        if name not in self.inputs:
            raise Undefined(f"{name} is no input of the declaration")
        given = self.inputs[name]
        if isinstance(self.system, Floats):
            return given.at(indices, given.floats).reshape(rows, cols)
        return self.system.of(rows, cols, numbers(given.at(indices, given.data), rows, cols))

    def function(self, name: str, arguments: list[Value], rows: int, cols: int, field: str) -> Value:
        raise UnsupportedTerm(f"the uninterpreted function {name} cannot be run")


def oracle(
    declaration: fm.Declaration,
    inputs: Mapping[str, Any],
    *,
    length: int,
    system: str = "qq",
    initial_state: Any = None,
    prec: int = 128,
) -> tuple[Array, Any]:
    """Run a declaration: the outputs at t = 1..length, and every state from the start on.

    ``inputs`` maps the declaration's names to arrays: time first for a sequence, ``(T,)`` for scalars,
    ``(T, rows)`` for columns, ``(T, rows, cols)`` for matrices; one axis less for a constant. An absent initial
    state is 0. Outputs and states have time first, without axes of fixed size 1; their entries are Fractions
    (pairs re, im if complex) in ``qq``, balls in ``arb``, floats in ``float64``. The states are None for an
    operator without one, a tuple of arrays for several.

    Raises ValueError for inputs that do not fit, EvaluationError where the declaration has no value.
    """
    if set(inputs) != set(declaration.inputs):
        raise ValueError(f"the inputs are {', '.join(declaration.inputs)}, not {', '.join(inputs)}")
    found = {declaration.inputs[name].name: _Input.of(declaration.inputs[name], x) for name, x in inputs.items()}
    found |= _initial(declaration, initial_state)
    index = _sizes(found, declaration.length, length)
    found |= _zeros(declaration, found, index)
    numbers_ = _system(system, declaration, found, prec)
    frame = Frame(numbers_, _Data(numbers_, found), index)
    with numbers_.context():
        return _run(declaration, frame, length)


def _run(declaration: fm.Declaration, frame: Frame, length: int) -> tuple[Array, Any]:
    out = _collect(_plainly(declaration.output), declaration.t, range(1, length + 1), frame)
    if declaration.state is None:
        return out, None
    several = isinstance(declaration.state, (tuple, list))
    found = []
    for s in declaration.state if several else (declaration.state,):
        first, state = _state(s.member if isinstance(s, k.Recurrence) else s, declaration.t)
        found.append(_collect(state, declaration.t, range(index_code(first)(frame.index), length + 1), frame))
    return out, tuple(found) if several else found[0]


@lru_cache(maxsize=256)
def _plainly(output: k.Term) -> k.Term:
    """An output as it is run; the same object each time, whose program is found fast."""
    return cast(k.Term, k.unnamed(output))


@lru_cache(maxsize=256)
def _state(member: k.Rec, t: Symbol) -> tuple[Expr, k.Term]:
    """The start of a state, and its member at t; the same object each time."""
    plain = cast(k.Rec, k.unnamed(member))
    return plain.start, plain.moved(t)


def _collect(x: k.Term, t: Symbol, times: range, frame: Frame) -> Array:
    code: Code = compiled(x, TOP | {t})
    values = [code(frame) for _ in frame.each(t, times)]
    frame.index[t] = times.start
    shape = [max(0, index_code(e)(frame.index)) for e in x.shape]
    del frame.index[t]
    kept = tuple(n for n, e in zip(shape, x.shape, strict=True) if e != 1)
    plain = _plain(frame.system)
    if plain is None:
        return np.array(values).reshape(len(times), *kept)
    out = np.empty((len(times), *shape), dtype=object)
    for n, value in enumerate(values):
        for i, row in enumerate(frame.system.table(value)):
            for j, entry in enumerate(row):
                out[n, i, j] = plain(entry)
    return out.reshape(len(times), *kept)


def _plain(system: System) -> Callable[[Any], Any] | None:
    if isinstance(system, Floats):
        return None
    if isinstance(system, Balls):
        return lambda x: x.real if x.imag.is_zero() else x
    if isinstance(system, Gaussian):
        return lambda x: (_fraction(x[0]), _fraction(x[1]))
    return _fraction


def _fraction(x: Any) -> Fraction:
    return Fraction(int(x.p), int(x.q))


def _states(declaration: fm.Declaration) -> tuple[k.Var, ...]:
    given: Any = declaration.initial_state
    return () if given is None else tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _initial(declaration: fm.Declaration, initial_state: Any) -> dict[str, _Input]:
    if initial_state is None:
        return {}
    atoms = _states(declaration)
    if not atoms:
        raise ValueError(f"{declaration.operator} has no initial state")
    given = initial_state if isinstance(declaration.initial_state, (tuple, list)) else (initial_state,)
    return {v.name: _Input.of(v, x) for v, x in zip(atoms, given, strict=True)}


def _sizes(found: Mapping[str, _Input], length: Symbol | None, steps: int) -> dict[Basic, int]:
    index: dict[Basic, int] = {} if length is None else {length: steps}
    pairs = [p for x in found.values() for p in x.sizes()]
    for e, n in pairs:
        if isinstance(e, Symbol):
            index.setdefault(e, n)
    for e, n in pairs:
        if index_code(e)(index) != n:
            raise ValueError(f"an axis has {n} entries where {e} = {index_code(e)(index)} are needed")
    for name, x in found.items():
        if x.sequence and len(x.data) < steps:
            raise ValueError(f"{name} has {len(x.data)} steps, not {steps}")
    return index


def _zeros(declaration: fm.Declaration, found: Mapping[str, _Input], index: Mapping[Basic, int]) -> dict[str, _Input]:
    missing = [v for v in _states(declaration) if v.name not in found]
    return {v.name: _Input(v.rows, v.cols, np.zeros([index_code(e)(index) for e in v.shape], dtype=int), False) for v in missing}


def _system(name: str, declaration: fm.Declaration, found: Mapping[str, _Input], prec: int) -> System:
    if name == "float64":
        return Floats()
    if name == "arb":
        return Balls(prec)
    if name != "qq":
        raise ValueError(f"the number system is qq, arb or float64, not {name!r}")
    atoms = [*declaration.inputs.values(), *_states(declaration)]
    is_complex = any(v.field == "complex" for v in atoms) or any(np.iscomplexobj(x.data) for x in found.values())
    return Gaussian(Rationals()) if is_complex else Rationals()
