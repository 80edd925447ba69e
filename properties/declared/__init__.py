"""The operator of any declaration: its cases, its exact truth, derived bounds and gradients, so that every law can be asked.

    OPERATORS = (operator_of(DECLARATION),)

The call is that of `isoform.derivations.layer.call`, and that of the forms which `isoform.derivations.layer.torch_code` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from sympy import Symbol

from isoform.derivations.layer.call import axis

from .. import strategies
from ..bounds import beside_truth, stored
from ..laws.table import outputs
from ..laws.truth import many_tokens
from ..operator import Input, Instance, Operator, Reference
from ..remembering import truths
from ..strategies import LARGE, SMALL, Case
from ..tensors import largest, precision
from . import bounds, drawing, gradients
from .layer import Layer
from .token import shaped

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration

Array = np.ndarray[Any, Any]
CAPABILITIES = frozenset({"causal", "state", "packing", "gradient", "sequence", "quarantine", "edges", "batch", "outside"})
BEGINNING = 128
"""Tokens of a long sequence on which is seen whether its bound is blind."""


@dataclass(frozen=True, eq=False)
class Declared(Operator):
    """An operator that a declaration alone makes; ``idle`` says at which values of inputs a token changes nothing."""

    idle: Mapping[tuple[str, ...], Mapping[str, float]] = field(default_factory=dict)

    def neutral_value(self, x: Instance, name: str) -> float:
        """The value of an input at a token that changes nothing."""
        return next(values[name] for names, values in self.idle.items() if name in names)


def operator_of(declaration: Declaration, *, heads: bool = True, logs: Mapping[str, str] | None = None) -> Operator:
    """The operator of a declaration with one or more states.

    Parameters
    ----------
    declaration
        A function of one token: updates and read-out use inputs at t and states at t and t - 1. ``domains`` say where inputs lie
        ('real', 'LOW <= x <= HIGH', '|x| <= HIGH', 'LOW <= x |y|^2 <= HIGH', 'complex', '|x_i| <= HIGH'). Where an input is complex
        so are states and outputs, complex64, or complex128 beside float64; a gradient is that by the real part, plus i times that
        by the imaginary part.
    heads
        Whether its tensors have an axis of heads.
    logs
        Inputs that the call is given by their logarithm, with the names of those arguments: ``{"gamma": "g"}``.

    Raises
    ------
    ValueError
        A declaration that is no function of one token, has no state, conjugates a state in an update, or has a domain that is not
        understood.
    """
    layer = Layer(declaration, heads, logs or {})
    if not layer.initial:
        raise ValueError(f"{declaration.operator} has no state: only recurrences have an operator of their own.")
    if any(map(layer.conjugates, layer.steps.updates)):
        raise ValueError(f"{declaration.operator} conjugates a state in its update, and errors of such a one are not counted.")
    idle = _consistent(drawing.neutral(layer))
    structure = drawing.flags(layer)
    symbols = dict.fromkeys(e for a in layer.arguments for e in a.sizes if isinstance(e, Symbol))
    sizes = {axis(e): st.integers(1, 3) for e in symbols}
    lead = {"b": st.integers(1, 2), "t": strategies.lengths, "h": st.integers(1, 2)}
    shape = strategies.sizes(**lead, **sizes, chunk=strategies.chunks)
    more = {"dyadic": drawing.dyadic(layer)}
    found = Declared(
        name=declaration.operator,
        declaration=declaration,
        inputs=tuple(Input(a.name, " ".join(a.axes(heads)), _words(a)) for a in layer.arguments),
        state_axes=" ".join(("b", *(("h",) if heads else ()), "…")),
        capabilities=CAPABILITIES | {word for word, holds in more.items() if holds},
        cases=strategies.cases(declaration.operator, shape, strategies.flags(("start",), *structure)),
        corners=partial(corners, declaration.operator, tuple(sizes), structure, 70 if layer.classification.affine else 28),
        draw=partial(drawing.draw, layer),
        refer=partial(refer, layer, truths(partial(_truth, layer))),
        derive=partial(gradients.derive, layer),
        optional=("chunk_size", "scale"),
        neutral=tuple(idle),
        idle=idle,
    )
    return replace(found, capabilities=found.capabilities | {"long"}) if drawing.remembers(layer) and _lasts(found) else found


def _lasts(operator: Operator) -> bool:
    """Whether errors of many tokens have a bound: one of the cases that a law of long sequences has is not blind in its beginning."""
    small, large, *_ = operator.corners()
    beginnings = (many_tokens(case).resized(t=BEGINNING) for case in (large, small))
    truths = (operator.refer(operator.draw(case)) for case in beginnings)
    return any(not outputs("output", r.output, r).blind for r in truths)


def _words(a: Any) -> str:
    """A domain of one sign, so that other values keep it."""
    d = a.domain
    if a.complex:
        return "complex"
    return "<= 0" if a.log or (d.high == 0 and d.low is None) else ">= 0" if d.low is not None and d.low >= 0 and not d.norm else "real"


def _consistent(found: Mapping[tuple[str, ...], Mapping[str, float]]) -> dict[tuple[str, ...], dict[str, float]]:
    """Choices in which an input has the value that it has in the ones before."""
    kept: dict[tuple[str, ...], dict[str, float]] = {}
    known: dict[str, float] = {}
    for names, values in found.items():
        if all(known.get(n, v) == v for n, v in values.items()):
            kept[names], known = dict(values), known | dict(values)
    return kept


def corners(name: str, sizes: tuple[str, ...], structure: tuple[tuple[str, ...], ...], many: int) -> tuple[Case, ...]:
    """Cases that every run has: ragged chunks, a chunk longer than the sequence, a long one, every dtype, every structure."""

    def case(t: int, chunk: int, scale: str, *given: str, dtype: str = "float32", h: int = 2) -> Case:
        own = {n: 3 - i % 2 for i, n in enumerate(sizes)}
        return Case(name, tuple({"b": 1, "t": t, "h": h, **own, "chunk": chunk}.items()), t, dtype, scale, given)

    return (
        case(11, 4, SMALL, "start"),
        case(11, 4, LARGE, "start"),
        case(5, 16, SMALL),
        case(9, 4, LARGE, "start", dtype="bfloat16"),
        case(9, 2, SMALL, "start", dtype="float64"),
        case(many, 16, LARGE, "start", h=1),
        case(6, 4, SMALL, "start", dtype="float16"),
        *(case(70, 64, SMALL, "start", word, h=1) for group in structure for word in group if word == "gates-reset"),
        *(case(10, 4, LARGE, "start", word) for group in structure for word in group),
    )


def _truth(layer: Layer, x: Instance) -> tuple[Array, tuple[Array, ...]]:
    return layer.truth(x)


def refer(layer: Layer, truth: Any, x: Instance) -> Reference:
    """The truth and its bounds; infinite ones, beside which every comparison is blind, where roundings are not counted.

    What is beyond the range of a form's numbers is NaN there, and so is all that comes after a state that is.
    """
    p, most = precision(x.dtype, x.precision), largest(x.dtype)
    out, states = truth(Instance(x.inputs, x.state, {}, ""))
    output, handed = layer.read_out(out), layer.handed(states)
    found = beside_truth(lambda p: bounds.bound(layer, x, states, p, x.options.get("chunk_size", 64)), p)
    sharp, terms = (layer.read_out(a.reshape(out.shape)) for a in (found.output, found.terms))
    wide = layer.handed(shaped(found.states, states))
    gone = np.isnan(sharp) | (np.abs(output) > most) | (np.isfinite(sharp) & (np.abs(output) + sharp > most))
    sharp, wide, lost = np.where(gone, np.inf, sharp), np.nan_to_num(wide, nan=np.inf, posinf=np.inf), np.isnan(wide)
    kept = stored(sharp, output, terms, p)
    return Reference(np.where(gone, np.nan, output), np.where(gone, np.inf, kept), sharp, np.where(lost, np.nan, handed), wide)
