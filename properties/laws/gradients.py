"""Gradients are those of the declaration: in a random direction of each input, by a complex step through the declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..operator import Form, FormRaised, Instance, Operator, invoke
from ..strategies import SMALL, Case
from ..tensors import LAYOUTS, SHORT, differentiable, gradients, offsets, precision, rounded
from .packing import on_grid
from .table import Check, Comparison, Law, instance, needs, needs_state, outputs, packs, reference, rows, state_after

Array = np.ndarray[Any, Any]
Parts = Callable[[Array], list[tuple[Any, ...]]]
"""What `Operator.derive` is asked of each part of a call, for a direction of one input."""
ENTRIES = 64
"""A gradient of so many entries can be compared entry by entry, once it is known to be wrong."""
STATE = "initial state"
FEW, LONG = 12, 28
"""Tokens, at most: of a drawn sequence, and of a corner case that has more. The bound grows with their number.

For a memory a corner case that has more keeps all, in float64: a kernel's own chunk may be one of 64."""
WEAK, STRONG = "weak", 4
"""Structure in which a delta rule corrects little, and the tokens up to which a precision below float64 does without.

The sum of the absolute values of all terms hardly grows then; else a bound that is a multiple of it would soon be blind.
"""


def _check(by_inputs: bool, by_state: bool, of_output: bool, of_state: bool) -> Check:
    def check(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
        case = _counted(operator, case)
        x, truth = instance(operator, case), reference(operator, case)
        if truth.output.size == 0 or operator.derive is None:
            return
        of_both = of_state and case.seed % 2 == 0
        weights = _weights(case, 200, truth.output) * (of_output or of_both)
        final = None if truth.states is None else _weights(case, 201, truth.states[:, -1]) * of_state
        (out, state), found, kept = _gradients(operator, form, x, weights, final, _layout(case))
        yield _left_alone(kept)
        if "sequence" in operator.capabilities:
            yield outputs("output while a gradient is recorded", out, truth)
            if truth.states is not None and state is not None:
                yield state_after("final state while a gradient is recorded", state, truth, operator.length(x))
        for number, name in enumerate(found):  # one direction an input in all laws, since the declaration's derivative is dear
            if not (by_state if name == STATE else by_inputs):
                continue
            direction = _direction(case, number, found[name])

            def parts(direction: Array, name: str = name) -> list[tuple[Any, ...]]:
                toward = {n: direction if n == name else np.zeros_like(a) for n, a in x.inputs.items()}
                push = None if x.state is None else direction if name == STATE else np.zeros_like(x.state)
                return [(x, toward, push, weights, final)]

            yield _slope(f"gradient by {name}", operator, parts, found[name], direction, _argument(operator, name))

    return check


def _layout(case: Case) -> str:
    """How inputs and weights lie in memory; among drawn cases each layout is as frequent."""
    return LAYOUTS[case.seed % len(LAYOUTS)]


def _weights(case: Case, purpose: int, result: Array) -> Array:
    """Normal numbers that the dtype holds, complex ones for a complex result x: a loss has Re(w* x).

    In an expanded layout, as behind a sum, one number for all columns.
    """
    parts = (purpose, purpose + 2) if np.iscomplexobj(result) else (purpose,)
    drawn = [rounded(case.plain(np.asarray(case.rng(p).standard_normal(result.shape))), case.dtype) for p in parts]
    found = drawn[0] + 1j * drawn[1] if len(drawn) > 1 else drawn[0]
    return np.broadcast_to(found[..., :1], result.shape) if _layout(case) == "expanded" else found


def _direction(case: Case, number: int, gradient: Array) -> Array:
    """A random direction of an input, complex for a complex one."""
    found: Array = np.asarray(case.rng(202, number).standard_normal(gradient.shape))
    return found + 1j * case.rng(204, number).standard_normal(gradient.shape) if np.iscomplexobj(gradient) else found


def _left_alone(kept: bool) -> Comparison:
    return Comparison("the backward pass changes the gradient that comes in", np.array([float(kept)]), np.ones(1), np.zeros(1))


def _counted(operator: Operator, case: Case) -> Case:
    """The case in float32 where no bound counts the roundings of 16 bits."""
    return case if case.dtype not in SHORT or "memory" in operator.capabilities else replace(case, dtype="float32")


def _argument(operator: Operator, name: str) -> str:
    """The argument of the plain call whose gradient has this name."""
    return operator.state_argument if name == STATE else name


def _slope(what: str, operator: Operator, parts: Parts, found: Array, direction: Array, by: str) -> Comparison:
    """A gradient in a direction against the sum of the declaration's over the parts of the call.

    The bound beside that of the 16-bit roundings decides whether it is blind.
    """
    value, bound = _along(operator, parts, direction)
    given = parts(direction)
    x = given[0][0]
    plain = {"dtype": "float32" if x.dtype in SHORT else x.dtype, "precision": ""}
    apart = precision(x.dtype, x.precision).out or x.precision
    assert operator.derive is not None
    wide = sum(operator.derive(replace(x, **plain), *rest)[1] for x, *rest in given) if apart else bound
    along = np.array([np.vdot(found, direction).real])
    entries = partial(_entries, what, operator, parts, found, by) if found.size <= ENTRIES else None
    return Comparison(what, along, np.array([value]), np.array([bound]), np.array([wide]), entries)


def _along(operator: Operator, parts: Parts, direction: Array) -> tuple[float, float]:
    """The declaration's derivative in a direction, and its bound."""
    assert operator.derive is not None
    given = parts(direction)
    own = [operator.derive(*part) for part in given]
    p = precision(given[0][0].dtype, given[0][0].precision)
    return sum(v for v, _ in own), sum(b for _, b in own) + p.out_tiny * np.abs(direction).sum()


def _entries(what: str, operator: Operator, parts: Parts, found: Array, by: str) -> Comparison:
    """A gradient entry by entry: a derivative of the declaration for each, of a complex entry two."""
    truth, bound = np.zeros_like(found), np.zeros(found.shape)
    for at in np.ndindex(found.shape):
        for unit in (1, 1j) if np.iscomplexobj(found) else (1,):
            direction = np.zeros_like(found)
            direction[at] = unit
            value, error = _along(operator, parts, direction)
            truth[at] += unit * value
            bound[at] += error
    return Comparison(what, found, truth, bound, by=by)


def _gradients(
    operator: Operator, form: Form, x: Instance, weights: Array, final: Array | None, layout: str, **more: Any
) -> tuple[tuple[Array, Any], Mapping[str, Array], bool]:
    """Output and state; the gradient of Σ weights · output + Σ final · state by every input and the initial state; `gradients`' flag."""
    given = operator.tensors(x, layout)
    stateless = "state" not in operator.capabilities
    leaves = {n: t for n, t in given.items() if differentiable(t) and not (stateless and n == operator.state_argument)}
    fixed = {n: t for n, t in given.items() if n not in leaves} | more
    outs = []

    def loss(given: Mapping[str, Any]) -> tuple[tuple[Any, Array], ...]:
        out, state = invoke(form.function, {**given, **fixed, **operator.arguments(form.function, x)})
        outs.append(operator.arrays(out, state))
        return tuple(operator.weighed(out, state, weights, final))

    try:
        found, kept = gradients(loss, leaves, layout)
    except FormRaised:
        raise
    except Exception as error:
        raise FormRaised(f"the backward pass raised {type(error).__name__}: {error}") from error
    return outs[0], {STATE if n == operator.state_argument else n: g for n, g in found.items()}, kept


def _packed(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """The gradient of packed sequences is, part by part, that of each alone."""
    case = _counted(operator, case)
    x, truth = instance(operator, case), reference(operator, case)
    if truth.states is None or operator.derive is None:
        return
    steps = operator.length(x)
    ends = on_grid(form, [0, steps // 3, steps // 3, steps // 2 + 1, steps], steps)
    states = None if x.state is None else np.concatenate([x.state * 0.5**n for n in range(len(ends) - 1)])
    weights = _weights(case, 200, truth.output)
    final = _weights(case, 201, np.broadcast_to(truth.states[:1, -1], (len(ends) - 1, *truth.states.shape[2:])))
    packed = replace(x, state=states)
    (out, state), found, kept = _gradients(operator, form, packed, weights, final, _layout(case), cu_seqlens=offsets(tuple(ends)))
    yield _left_alone(kept)
    for n, (a, b) in enumerate(pairwise(ends)):
        alone = operator.refer(operator.cut(x, a, b, None if states is None else states[n : n + 1]))
        yield outputs(f"output of {a}..{b} while a gradient is recorded", rows(out, a, b), alone)
        yield state_after(f"state of {a}..{b} while a gradient is recorded", None if state is None else state[n : n + 1], alone, b - a)
    for number, name in enumerate(found):
        direction = _direction(case, number, found[name])

        def parts(direction: Array, name: str = name) -> list[tuple[Any, ...]]:
            toward = {n: direction if n == name else np.zeros_like(a) for n, a in x.inputs.items()}
            push = None if states is None else direction if name == STATE else np.zeros_like(states)
            found = []
            for n, (a, b) in enumerate(pairwise(ends)):
                moves = operator.cut(replace(x, inputs=toward), a, b)
                part = operator.cut(x, a, b, None if states is None else states[n : n + 1])
                found.append((part, moves.inputs, None if push is None else push[n : n + 1], weights[:, a:b], final[n : n + 1]))
            return found

        yield _slope(f"gradient by {name}, packed at {ends}", operator, parts, found[name], direction, _argument(operator, name))


def _packs(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form) or packs(operator, form)


def _smooth(*added: str) -> Callable[[Case], Case]:
    """A case with three chunks or more, without the structure that makes derivatives vanish.

    Every other short one is in its own 16-bit dtype or in float32: a form may have another backward pass there. In float16 it
    is small, since the gradient of what is large leaves the range.
    """

    def prepare(case: Case) -> Case:
        sizes = dict(case.sizes)
        drawn = max(1, sizes.get("t", 1))
        steps = drawn if drawn > LONG and "chunk" in sizes else min(drawn, LONG if drawn > LONG else FEW)
        own = case.dtype if case.dtype in SHORT else "float32"
        dtype = own if case.seed % 2 and steps <= FEW else "float64"
        more = (*added, WEAK) if steps > (LONG if dtype == "float64" else STRONG) else added
        kept = tuple(f for f in case.flags if f not in ("complex", "hidden") and f not in more)
        shorter = case.resized(t=steps, chunk=min(sizes.get("chunk", 1), max(5, steps // 3)))
        return replace(shorter, dtype=dtype, scale=SMALL if dtype == "float16" else case.scale, flags=(*kept, *more))

    return prepare


def _needs_gradient(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form)


def _needs_both(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form) or needs_state(operator, form)


LAWS = (
    Law(
        "gradient-of-inputs",
        "the gradient by every input is the declaration's",
        _check(True, False, True, False),
        _needs_gradient,
        _smooth(),
        0.5,
        kinds=("K5",),
    ),
    Law(
        "gradient-of-initial-state",
        "the gradient by the initial state is the declaration's",
        _check(False, True, True, False),
        _needs_both,
        _smooth("start"),
        0.5,
        kinds=("K5",),
    ),
    Law(
        "gradient-of-packed",
        "the gradient of packed sequences is that of each alone",
        _packed,
        _packs,
        lambda case: _smooth("start")(case).resized(b=1),
        0.5,
        kinds=("K5", "K7"),
    ),
    Law(
        "gradient-through-final-state",
        "the gradient of the final state, alone and beside that of the outputs, is the declaration's",
        _check(True, True, False, True),
        _needs_both,
        _smooth("start"),
        0.5,
        kinds=("K5",),
    ),
)
