"""Operators: what the world implements, how it is called, and where its truth and its bounds come from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .limits import NO_LIMITS, Limits
from .remembering import slopes, truths
from .tensors import sum_dtype, tensor, tensors_in, values

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from isoform.derivations.kernel.formulas import Declaration

    from .decoding import Plan
    from .strategies import Case

Array = np.ndarray[Any, Any]
START = "start"
"""The structure flag of cases that have a state to begin with."""


@dataclass(frozen=True)
class Input:
    """An argument of the plain call: its axes by name and the domain that is drawn from.

    ``t`` is time; ``s`` is time of keys, of which a part has all earlier ones too, and the last T belong to the T
    tokens. Alternatives with another number of axes stand behind a bar.
    """

    name: str
    axes: str
    domain: str = "real"

    def of(self, x: Array) -> list[str]:
        """The axes of an array that is given for this argument."""
        return next((a.split() for a in self.axes.split("|") if len(a.split()) == np.ndim(x)), [])

    def other(self, x: Array) -> Array:
        """Other values of this argument, within a domain of one sign."""
        return x * (0.5 if self.domain.startswith(("<= 0", ">= 0")) else -0.5)


@dataclass(frozen=True)
class Instance:
    """The arrays of a case: inputs by name, the initial state or None, the other arguments, and what the form computes in.

    ``precision`` is a word of `isoform.properties.tensors.PRECISIONS`; inputs named in ``wide`` are in float32 whatever the dtype.
    """

    inputs: Mapping[str, Array]
    state: Any
    options: Mapping[str, Any]
    dtype: str
    precision: str = ""
    wide: tuple[str, ...] = ()

    def dtype_of(self, name: str) -> str:
        """The dtype of an input."""
        return "float32" if name in self.wide else self.dtype


@dataclass(frozen=True)
class Reference:
    """The truth of an instance and how far a form may be from it: outputs, and the state after 0, 1, …, T tokens.

    ``sharp`` and ``states_sharp`` are the bounds before roundings to a 16-bit dtype: what decides whether a comparison is
    blind. A state has none of those (None) unless a form may round what it writes.
    The states have time as axis 1; they are None for an operator without one. The arrays are shared, so read-only.
    """

    output: Array
    bound: Array
    sharp: Array
    states: Array | None = None
    states_bound: Array | None = None
    states_sharp: Array | None = None

    def __post_init__(self) -> None:
        for found in vars(self).values():
            if found is not None:
                found.flags.writeable = False


def declared(refer: Callable[[Instance], Reference]) -> Callable[[Instance], Reference]:
    """The truth and its bounds, where a declared precision widens what is compared, but not what decides whether that is blind."""

    def found(x: Instance) -> Reference:
        wide = refer(x)
        if not x.precision:
            return wide
        own = refer(replace(x, precision=""))
        states = own.states_bound if own.states_sharp is None else own.states_sharp
        return replace(wide, sharp=own.sharp, states_sharp=states)

    return found


@dataclass(frozen=True)
class Reduction:
    """A special case in which an operator is another one: of inputs with these structure flags, ``becomes`` makes the other's.

    ``single`` says that every token is a sequence of its own there.
    """

    says: str
    flags: tuple[str, ...]
    operator: str
    becomes: Callable[[Instance], Instance]
    single: bool = False


@dataclass(frozen=True)
class Form:
    """A callable under test, with the step form and the sibling forms of its operator, where there are any.

    ``chunk`` is the chunk size of a kernel that has no argument for it; bounds depend on it. ``cached`` are the functions
    that decode with a cache, by the names that `Operator.decode` knows. ``limits`` is what it cannot take, ``precision`` what it
    is declared to compute in, where that is not what the dtype of its inputs says (`isoform.properties.tensors.precision`).
    """

    name: str
    function: Callable[..., Any]
    step: Callable[..., Any] | None = None
    siblings: tuple[Callable[..., Any], ...] = ()
    chunk: int = 0
    cached: Mapping[str, Callable[..., Any]] = field(default_factory=dict, hash=False)
    limits: Limits = NO_LIMITS
    precision: str = ""

    def takes(self, argument: str) -> bool:
        """Whether the callable has an argument of this name."""
        return _takes(self.function, argument)


class FormRaised(Exception):
    """A form raised, or returned what is no tensor: a violation, whatever the law."""


def invoke(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """Call a form: (output, state or None). Raises FormRaised."""
    try:
        result = pair(function(**arguments))
    except Exception as error:
        raise FormRaised(f"raised {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not tensors_in(result[0]):
        raise FormRaised(f"returned {type(result[0]).__name__}, which is no tensor")
    return result


def _takes(function: Callable[..., Any], argument: str) -> bool:
    return argument in inspect.signature(function).parameters


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator: its declaration, the plain call, its domain as cases, its truth, and what laws may ask of it.

    ``capabilities`` are words that laws look for: "causal", "state", "packing", "groups", "gradient", …
    ``draw`` makes the arrays of a case, ``refer`` their truth and bounds, ``derive`` a directional derivative with its
    bound (both remember their results), ``independent`` the outputs by another library. ``state_argument`` and
    ``step_argument`` name the state in the call of the forms and of the step; ``optional`` names options that are left out
    where a form does not have them, and ``needed`` the argument that a structure flag needs. ``reductions`` are special
    cases; ``neutral`` names, in each way that there is, the inputs that are 0 at a token which changes nothing, or have its
    `neutral_value`. ``silent`` names the inputs that are 0 at a token which writes nothing to an empty state. ``sees`` says which keys
    a row may see, (b, t, s).
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
    independent: Callable[[Instance], Array] | None = None
    optional: tuple[str, ...] = ("chunk_size",)
    needed: Mapping[str, str] = field(default_factory=dict)
    reductions: tuple[Reduction, ...] = ()
    neutral: tuple[tuple[str, ...], ...] = ()
    silent: tuple[str, ...] = ()
    sees: Callable[[Instance], Array] | None = None
    state_argument: str = "initial_state"
    final_argument: str = "output_final_state"
    step_argument: str = "state"

    def __post_init__(self) -> None:
        object.__setattr__(self, "refer", truths(declared(self.refer)))
        if self.derive is not None:
            object.__setattr__(self, "derive", slopes(self.derive))

    @property
    def axes(self) -> dict[str, Input]:
        """The inputs by name."""
        return {i.name: i for i in self.inputs}

    def lacking(self, form: Form, flag: str) -> str:
        """The argument that a structure flag needs and that a form, its step or a sibling does not have, or ""."""
        argument = self.needed.get(flag, "")
        callables = [f for f in (form.function, form.step, *form.siblings) if f is not None]
        return "" if all(_takes(f, argument) for f in callables if argument) else argument

    def entered(self, form: Form, flags: tuple[str, ...]) -> tuple[str, ...]:
        """Structure flags, without the one of a given state where a form takes none."""
        return tuple(f for f in flags if f != START or form.takes(self.state_argument))

    def length(self, x: Instance) -> int:
        """The number of tokens."""
        return next(x.inputs[i.name].shape[i.of(x.inputs[i.name]).index("t")] for i in self.inputs if "t" in i.axes.split())

    def cut(self, x: Instance, start: int, stop: int, state: Any = None) -> Instance:
        """Tokens start..stop-1 of an instance, entered with the given state (the instance's own if start is 0)."""
        steps = self.length(x)
        inputs = {}
        for i in self.inputs:
            if i.name in x.inputs:
                a = x.inputs[i.name]
                for axis, name in enumerate(i.of(a)):
                    if name in ("t", "s"):
                        a = np.take(a, range(start if name == "t" else 0, max(0, stop + a.shape[axis] - steps)), axis)
                inputs[i.name] = a
        return replace(x, inputs=inputs, state=x.state if state is None and start == 0 else state)

    def at(self, x: Instance, t: int) -> dict[str, Array]:
        """The inputs of token t, without the time axis."""
        part = self.cut(x, t, t + 1).inputs
        found = {}
        for i in self.inputs:
            if i.name in part:
                axis = next((n for n, name in enumerate(i.of(part[i.name])) if name in ("t", "s")), None)
                found[i.name] = part[i.name] if axis is None else np.take(part[i.name], -1, axis)
        return found

    def tensors(self, x: Instance, layout: str = "contiguous") -> dict[str, Any]:
        """The tensor arguments of the plain call."""
        found = {n: tensor(a, x.dtype_of(n), layout) for n, a in x.inputs.items()}
        return found | ({self.state_argument: self.state_tensor(x, x.state, layout)} if x.state is not None else {})

    def state_tensor(self, x: Instance, state: Any, layout: str = "contiguous") -> Any:
        """A state beside an instance, as a tensor of the dtype of sums."""
        return tensor(state, sum_dtype(x.dtype, x.precision), layout)

    def arguments(self, function: Callable[..., Any], x: Instance) -> dict[str, Any]:
        """The arguments that are no tensors of the instance: those options that the callable has, and the state if it can return one."""
        options = {n: v for n, v in x.options.items() if n not in self.optional or _takes(function, n)}
        return options | ({self.final_argument: True} if "state" in self.capabilities and _takes(function, self.final_argument) else {})

    def call(self, function: Callable[..., Any], x: Instance, layout: str = "contiguous", **more: Any) -> tuple[Any, Any]:
        """Run a form: (output, final state or None) as tensors."""
        return invoke(function, {**self.tensors(x, layout), **self.arguments(function, x), **more})

    def run(self, function: Callable[..., Any], x: Instance, layout: str = "contiguous", **more: Any) -> tuple[Array, Any]:
        """Run a form: (output, final state or None) as arrays."""
        return self.arrays(*self.call(function, x, layout, **more))

    def arrays(self, out: Any, state: Any) -> tuple[Array, Any]:
        """The results of a call as arrays; an operator whose second axis is not time moves it there."""
        return values(out), values(state)

    def neutral_value(self, x: Instance, name: str) -> Any:
        """What an input named in ``neutral`` is at a token which changes nothing: a number, or an array that broadcasts to the input."""
        return 0.0

    def weighed(self, out: Any, state: Any, weights: Array, final: Array | None) -> list[tuple[Any, Array]]:
        """The results of a call beside the weights with which they enter a loss, those of weight 0 left out."""
        pairs = [(out, weights)] if np.any(weights) else []
        return pairs + ([(state, final)] if final is not None and np.any(final) else [])

    def steps(self, x: Instance) -> bool:
        """Whether a step form can compute this instance."""
        return True

    def decodes(self, x: Instance) -> bool:
        """Whether functions with a cache can compute this instance."""
        return False

    def decode(self, form: Form, plan: Plan) -> Callable[..., Any]:
        """The whole by the functions with a cache of a form, called as the form is. Raises NotImplementedError where there are none."""
        raise NotImplementedError(f"{self.name} has no cache")

    def token(self, step: Callable[..., Any], x: Instance, t: int) -> dict[str, Any]:
        """The arguments of a step form for token t, with the initial state."""
        found = {n: v for n, v in x.options.items() if n not in self.optional or _takes(step, n)}
        found |= {n: tensor(a, x.dtype_of(n)) for n, a in self.at(x, t).items()}
        return found | {self.step_argument: None if x.state is None else self.state_tensor(x, x.state)}

    def walk(self, step: Callable[..., Any], x: Instance) -> tuple[list[Array], list[Any]]:
        """Run a step form over all tokens: every output and every state, as arrays."""
        found, states = [], []
        state: Any = None
        for t in range(self.length(x)):
            token = self.token(step, x, t)
            out, state = invoke(step, token if t == 0 else {**token, self.step_argument: state})
            found.append(values(out))
            states.append(values(state))
        return found, states


def pair(result: Any) -> tuple[Any, Any]:
    """A bare output, or (output, state): as (output, state or None)."""
    if isinstance(result, tuple):
        return result[0], result[1] if len(result) > 1 else None
    return result, None
