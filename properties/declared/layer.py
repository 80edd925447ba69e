"""A declared layer as it is called: arrays of a call as values of its terms, and back, and its truth by the oracle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from sympy import Basic, Symbol

from isoform.derivations.evaluate import oracle
from isoform.derivations.evaluate.frame import index_code
from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import Conj, Exp, Inverse, Log, Power, Sqrt, Term, Var, unnamed, walk
from isoform.derivations.layer.call import Argument, arguments
from isoform.derivations.layer.classify import Classification, classify
from isoform.derivations.layer.steps import Steps, steps

from ..gates import RATIONALS
from ..operator import Instance
from ..oracle import EXACT_WORK

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
COMPLEX_PRODUCT = 4
"""Roundings of a product of complex numbers, next to which their sum has one."""
PRECISION = 256
"""Bits of the balls in which what is not rational is evaluated."""
TRANSCENDENTAL = (Exp, Log, Sqrt)


@dataclass(frozen=True, eq=False)
class Layer:
    """A declaration, whether its tensors have an axis of heads, and which inputs are given by their logarithms."""

    declaration: Declaration
    heads: bool = True
    logs: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the call."""
        return arguments(self.declaration, self.logs)

    @cached_property
    def steps(self) -> Steps:
        """The functions of one token."""
        return steps(self.declaration)

    @cached_property
    def classification(self) -> Classification:
        """What kind of recurrence it is."""
        return classify(self.declaration)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The updates and the read-out."""
        return tuple(cast(Term, unnamed(x)) for x in (*self.steps.updates, self.steps.output))

    @cached_property
    def rational(self) -> bool:
        """Whether every value of a term is rational."""
        return not any(isinstance(n, TRANSCENDENTAL) for x in self.terms for n in walk(x))

    @cached_property
    def polynomial(self) -> bool:
        """Whether numbers grow by a fixed number of digits a token: a rational layer, affine in its states, without quotients."""
        quotients = any(isinstance(n, (Inverse, Power)) for x in self.terms for n in walk(x))
        return self.rational and self.classification.affine and not quotients

    @cached_property
    def initial(self) -> tuple[Var, ...]:
        """The initial states."""
        given: Any = self.declaration.initial_state
        return () if given is None else given if isinstance(given, tuple) else (given,)

    @cached_property
    def complex(self) -> bool:
        """Whether an input or a state is complex; then states and outputs are."""
        return any(a.complex for a in self.arguments) or any(v.field == "complex" for v in self.initial)

    @property
    def kind(self) -> type[Any]:
        """The numbers that states and outputs are."""
        return complex if self.complex else float

    @property
    def roundings(self) -> int:
        """The roundings of a product of two numbers."""
        return COMPLEX_PRODUCT if self.complex else 1

    def conjugates(self, x: Term) -> bool:
        """Whether a term takes the conjugate of a state."""
        states = {*self.steps.before, *self.steps.now}
        return any(isinstance(n, Conj) and not states.isdisjoint(walk(n)) for n in walk(x))

    def sizes(self, x: Instance) -> dict[Basic, int]:
        """The size of every symbol that an axis of an input has."""
        found: dict[Basic, int] = {}
        for a in self.arguments:
            own = x.inputs[a.name].shape[x.inputs[a.name].ndim - len(a.sizes) :]
            found.update({e: n for e, n in zip(a.sizes, own, strict=True) if isinstance(e, Symbol)})
        return found

    # into values (batch, head, time, rows, cols), and back

    def entered(self, x: Instance, own: Mapping[str, Array] | None = None) -> Arrays:
        """The arrays of a call by argument, as (b, h, t, rows, cols); what is the same for all has 1 in their place."""
        own = x.inputs if own is None else own
        size = self.sizes(x)
        found = {}
        for a in self.arguments:
            shape = tuple(index_code(e)(size) for e in (a.rows, a.cols))
            given = own[a.name] if self.heads else np.expand_dims(own[a.name], 2 if a.sequence else 0)
            given = given.reshape(*given.shape[: 3 if a.sequence else 1], *shape)
            found[a.name] = given.swapaxes(1, 2) if a.sequence else given[None, :, None]
        return found

    def begun(self, x: Instance) -> tuple[Array, ...]:
        """The initial states (b, h, rows, cols)."""
        lead = self.lead(x)
        shapes = self.state_shapes(x)
        if x.state is None:
            return tuple(np.zeros((*lead, *s), self.kind) for s in shapes)
        return self.split(np.reshape(x.state, (*lead, sum(r * c for r, c in shapes))), shapes)

    def lead(self, x: Instance) -> tuple[int, int]:
        """How many sequences and heads there are."""
        found = [v.shape[:2] for v in self.entered(x).values()]
        return max(n for n, _ in found) if all(n for n, _ in found) else 0, max(h for _, h in found) if all(h for _, h in found) else 0

    def state_shapes(self, x: Instance) -> list[tuple[int, int]]:
        """Rows and columns of every state."""
        size = self.sizes(x)
        return [(index_code(v.rows)(size), index_code(v.cols)(size)) for v in self.initial]

    def output_shape(self, x: Instance) -> tuple[int, ...]:
        """Rows and columns of the output."""
        size = self.sizes(x)
        return tuple(index_code(e)(size) for e in self.declaration.output.shape)

    @staticmethod
    def split(flat: Array, shapes: Sequence[tuple[int, int]]) -> tuple[Array, ...]:
        """States (…, rows, cols) from all of them in one axis, as they are handed over: transposed, one after the other."""
        ends = np.cumsum([r * c for r, c in shapes])[:-1]
        parts = np.split(flat, ends, -1)
        return tuple(p.reshape(*p.shape[:-1], c, r).swapaxes(-1, -2) for p, (r, c) in zip(parts, shapes, strict=True))

    def handed(self, found: Sequence[Array]) -> Array:
        """States (b, h, …, rows, cols) as they are handed over: (b, …, h, own axes)."""
        turned = [s.swapaxes(-1, -2) for s in found]
        if len(turned) > 1:
            joined = np.concatenate([s.reshape(*s.shape[:-2], s.shape[-2] * s.shape[-1]) for s in turned], -1)
        else:
            own = tuple(n for n, e in zip(turned[0].shape[-2:], (self.initial[0].cols, self.initial[0].rows), strict=True) if e != 1)
            joined = turned[0].reshape(*turned[0].shape[:-2], *own)
        return self.by_head(joined, found[0].ndim - 4)

    def by_head(self, x: Array, times: int = 1) -> Array:
        """(b, h, t, …) as (b, t, h, …), without an axis of heads where there is none."""
        if not self.heads:
            return x[:, 0]
        return x.swapaxes(1, 2) if times else x

    def read_out(self, x: Array) -> Array:
        """An output (b, h, t, rows, cols) as it is handed over."""
        own = tuple(n for n, e in zip(x.shape[-2:], self.declaration.output.shape, strict=True) if e != 1)
        return self.by_head(x.reshape(*x.shape[:3], *own))

    # the truth

    def runs(self, x: Instance) -> Iterator[tuple[tuple[int, int], Arrays, tuple[Array, ...]]]:
        """Every sequence and head with its inputs, as the oracle takes them, and its start."""
        entered, begun = self.entered(x), self.begun(x)
        for place in np.ndindex(*self.lead(x)):
            yield place, {a.input: _plain(_at(entered[a.name], place), a) for a in self.arguments}, tuple(s[place] for s in begun)

    def truth(self, x: Instance) -> tuple[Array, tuple[Array, ...]]:
        """Outputs (b, h, t, rows, cols) and states (b, h, t + 1, rows, cols), correctly rounded or in float64."""
        length = self.length(x)
        out = np.zeros((*self.lead(x), length, *self.output_shape(x)), self.kind)
        states = tuple(np.zeros((*self.lead(x), length + 1, *s), self.kind) for s in self.state_shapes(x))
        for place, given, start in self.runs(x):
            system = self._system(given, start, length)
            exact = {a.input: RATIONALS.exp(given[a.input]) for a in self.arguments if a.log and system == "arb"}
            decayed = exact or {a.input: np.exp(given[a.input]) for a in self.arguments if a.log}
            y, found = self.oracle({**given, **decayed}, start, length, system)
            out[place] = self._numbers(y).reshape(out.shape[2:])
            for s, f in zip(states, found, strict=True):
                s[place] = self._numbers(f).reshape(s.shape[2:])
        return out, states

    def _system(self, given: Arrays, start: tuple[Array, ...], length: int) -> str:
        """Rational numbers where they stay short, balls where not, float64 where either is slow or a number is infinite."""
        work = (length + 1) * sum(s.size * max(s.shape) for s in start)
        if work > EXACT_WORK or not all(np.isfinite(a).all() for a in (*given.values(), *start)):
            return "float64"
        return "qq" if self.polynomial and not self.logs else "arb"

    def _numbers(self, x: Any) -> Array:
        """Floats, or complex ones from pairs of fractions and balls."""
        found = np.asarray(x).ravel().tolist()
        if not self.complex:
            return np.array([_float(e) for e in found], dtype=np.float64)
        return np.array([complex(*map(_float, e)) if isinstance(e, tuple) else complex(e) for e in found], dtype=np.complex128)

    def oracle(self, given: Arrays, start: tuple[Array, ...], length: int, system: str) -> tuple[Any, tuple[Any, ...]]:
        """The declaration on data: outputs, and all members of each state."""
        begun = tuple(_without_axes(s, v.rows == 1, v.cols == 1) for s, v in zip(start, self.initial, strict=True))
        several = isinstance(self.declaration.state, tuple)
        y, found = oracle(
            self.declaration, given, length=length, system=system, initial_state=begun if several else begun[0], prec=PRECISION
        )
        return y, tuple(found) if several else (found,)

    def length(self, x: Instance) -> int:
        """The number of tokens."""
        return next(int(x.inputs[a.name].shape[1]) for a in self.arguments if a.sequence)


def _at(x: Array, place: tuple[int, int]) -> Array:
    """One sequence and head of what may be the same for all."""
    n, h = place
    return x[min(n, x.shape[0] - 1), min(h, x.shape[1] - 1)]


def _plain(x: Array, a: Argument) -> Array:
    """(t, rows, cols) as the oracle takes it; a parameter has no time."""
    return _without_axes(x if a.sequence else x[0], a.rows == 1, a.cols == 1)


def _float(x: Any) -> float:
    """The nearest float, infinite beyond their range."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _without_axes(x: Array, one_row: bool, one_column: bool) -> Array:
    """(…, rows, cols) as the oracle takes it."""
    return x[..., 0, 0] if one_row and one_column else x[..., 0] if one_column else x
