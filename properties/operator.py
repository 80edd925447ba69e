"""Operators: what the world implements, how it is called, and where its truth and its bounds come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import tensor, values

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from isoform.derivations.kernel.formulas import Declaration

    from .strategies import Case

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Input:
    """An argument of the plain call: its axes by name (``t`` is time) and the domain that is drawn from."""

    name: str
    axes: str
    domain: str = "real"

    @property
    def time(self) -> int | None:
        """The time axis, None for a constant."""
        names = self.axes.split()
        return names.index("t") if "t" in names else None


@dataclass(frozen=True)
class Instance:
    """The arrays of a case: inputs by name, the initial state or None, and the other arguments of the call."""

    inputs: Mapping[str, Array]
    state: Any
    options: Mapping[str, Any]
    dtype: str


@dataclass(frozen=True)
class Reference:
    """The truth of an instance and how far a form may be from it: outputs, and the state after 0, 1, …, T tokens.

    ``sharp`` is the output's bound before the rounding to a 16-bit dtype: what decides whether a comparison is blind.
    The states have time as axis 1; they are None for an operator without one.
    """

    output: Array
    bound: Array
    sharp: Array
    states: Array | None = None
    states_bound: Array | None = None


@dataclass(frozen=True)
class Form:
    """A callable under test, with the step form and the sibling forms of its operator, where there are any."""

    name: str
    function: Callable[..., Any]
    step: Callable[..., Any] | None = None
    siblings: tuple[Callable[..., Any], ...] = ()

    def takes(self, argument: str) -> bool:
        """Whether the callable has an argument of this name."""
        return _takes(self.function, argument)


def _takes(function: Callable[..., Any], argument: str) -> bool:
    return argument in inspect.signature(function).parameters


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator: its declaration, the plain call, its domain as cases, its truth, and what laws may ask of it.

    ``capabilities`` are words that laws look for: "causal", "state", "packing", "groups", "gradient", …
    ``draw`` makes the arrays of a case, ``refer`` their truth and bounds, ``derive`` a directional derivative with its
    bound. ``state_argument`` and ``step_argument`` name the state in the call of the forms and of the step.
    """

    name: str
    declaration: Declaration
    inputs: tuple[Input, ...]
    state_axes: str
    capabilities: frozenset[str]
    cases: Callable[..., SearchStrategy[Case]]
    corners: Callable[[], tuple[Case, ...]]
    draw: Callable[[Case], Instance]
    refer: Callable[[Instance], Reference]
    derive: Callable[..., tuple[float, float]] | None = None
    majorant: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None = None
    optional: tuple[str, ...] = ("chunk_size",)
    state_argument: str = "initial_state"
    final_argument: str = "output_final_state"
    step_argument: str = "state"
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def axes(self) -> dict[str, Input]:
        """The inputs by name."""
        return {i.name: i for i in self.inputs}

    def length(self, x: Instance) -> int:
        """The number of tokens."""
        first = next(i for i in self.inputs if i.time is not None)
        return int(x.inputs[first.name].shape[first.time or 0])

    def cut(self, x: Instance, start: int, stop: int, state: Any = None) -> Instance:
        """Tokens start..stop-1 of an instance, entered with the given state (the instance's own if start is 0)."""
        inputs = {}
        for i in self.inputs:
            if i.name in x.inputs:
                given = x.inputs[i.name]
                inputs[i.name] = given if i.time is None else np.take(given, range(start, stop), i.time)
        return replace(x, inputs=inputs, state=x.state if state is None and start == 0 else state)

    def tensors(self, x: Instance, layout: str = "contiguous") -> dict[str, Any]:
        """The tensor arguments of the plain call."""
        found = {n: tensor(a, x.dtype, layout) for n, a in x.inputs.items()}
        return found | ({self.state_argument: self.state_tensor(x.state, x.dtype, layout)} if x.state is not None else {})

    def state_tensor(self, state: Any, dtype: str, layout: str = "contiguous") -> Any:
        """A state as a tensor of the accumulation dtype."""
        return tensor(state, "float64" if dtype == "float64" else "float32", layout)

    def arguments(self, function: Callable[..., Any], x: Instance) -> dict[str, Any]:
        """The arguments that are no tensors of the instance: those options that the callable has, and the state if it can return one."""
        options = {n: v for n, v in x.options.items() if n not in self.optional or _takes(function, n)}
        return options | ({self.final_argument: True} if "state" in self.capabilities and _takes(function, self.final_argument) else {})

    def call(self, function: Callable[..., Any], x: Instance, layout: str = "contiguous", **more: Any) -> tuple[Any, Any]:
        """Run a form: (output, final state or None) as tensors."""
        return pair(function(**{**self.tensors(x, layout), **self.arguments(function, x), **more}))

    def run(self, function: Callable[..., Any], x: Instance, layout: str = "contiguous", **more: Any) -> tuple[Array, Any]:
        """Run a form: (output, final state or None) as arrays."""
        out, state = self.call(function, x, layout, **more)
        return values(out), values(state)

    def walk(self, step: Callable[..., Any], x: Instance) -> tuple[list[Array], list[Any]]:
        """Run a step form over all tokens: every output and every state, as arrays."""
        state = None if x.state is None else self.state_tensor(x.state, x.dtype)
        found, states = [], []
        options = {n: v for n, v in x.options.items() if n not in self.optional or _takes(step, n)}
        for t in range(self.length(x)):
            token = {}
            for i in self.inputs:
                if i.name in x.inputs:
                    given = x.inputs[i.name]
                    token[i.name] = tensor(given if i.time is None else np.take(given, t, i.time), x.dtype)
            out, state = pair(step(**token, **options, **{self.step_argument: state}))
            found.append(values(out))
            states.append(values(state))
        return found, states


def pair(result: Any) -> tuple[Any, Any]:
    """A bare output, or (output, state): as (output, state or None)."""
    if isinstance(result, tuple):
        return result[0], result[1] if len(result) > 1 else None
    return result, None
