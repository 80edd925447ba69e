"""Operators whose state is a matrix S (K x V) per head, written with keys and values and read with queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from . import gates, oracle, strategies
from .bounds import OPERANDS, PRODUCTS, Bounds, beside_truth, gamma, rounded_products, stored, strength
from .gates import FLOATS, RATIONALS, Field, unit, unit_change
from .operator import Input, Instance, Operator, Reduction, Reference
from .remembering import slopes, truths
from .strategies import LARGE, SMALL, Case, normal
from .tensors import SHORT, precision, rounded

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
HeadBound = Callable[..., Bounds]
Enter = Callable[[Head, Field], Head]

QKV = (Input("q", "b t h k"), Input("k", "b t h k"), Input("v", "b t hv v"))
KEYS = ("duplicate-keys", "orthonormal-keys", "constant", "zero", "dyadic")
CAPABILITIES = frozenset({"dyadic", "long", "causal", "state", "packing", "groups", "gradient", "sequence", "quarantine", "edges", "batch"})
NORM = "use_qk_l2norm_in_kernel"
SCALED = dict.fromkeys((*strategies.SCALINGS, "dyadic"), "scale")
"""Structure that needs a scale; results are exact for a scale of 1."""
SAFE, LEAST = 2.0**-100, 2.0**-800
"""A product of decays of which nothing is lost in any dtype, and one which a complex step still holds."""
TURN = 2.0**-10
"""A relative error of the logs of decays, in place of an infinitely small one."""
VALUE, SIZE, TURNED, LOST = range(4)
"""The rows of `_slopes`."""


@dataclass(frozen=True)
class Memory:
    """An operator of this family: its declaration and what is its own.

    ``bound`` bounds one head, given its inputs (queries scaled, with ``start``), true states, a precision and the chunk
    size. ``majorant`` makes of a head's inputs those on which the declaration computes the sum of the absolute values of
    all its terms. ``enter`` makes of a head's arguments, in a field, the inputs of the declaration, of which ``decays``
    are exponentials; ``index`` among the arguments is the number of the query head. ``corrects`` says that a transition is a
    product of matrices, so that a term has one for every token that it passes.
    """

    declaration: Declaration
    bound: HeadBound
    majorant: Callable[[Head], Head] = lambda head: head
    gates: tuple[Input, ...] = ()
    draw_gates: Callable[[Case, dict[str, Array]], dict[str, Array]] = lambda case, inputs: inputs
    flags: tuple[tuple[str, ...], ...] = ()
    enter: Enter = lambda head, field: head
    decays: tuple[str, ...] = ()
    corrects: bool = False

    @cached_property
    def truth(self) -> Callable[[Instance], tuple[Array, Array]]:
        """`_truth`, remembered."""
        return truths(partial(_truth, self))

    @cached_property
    def slopes(self) -> Callable[[Instance, Mapping[str, Array], Array | None], tuple[Array, Array]]:
        """`_slopes`, remembered."""
        return slopes(partial(_slopes, self))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The arguments of the call that are tensors."""
        return (*QKV, *self.gates)

    def declared(self, x: Instance, head: Head, field: Field) -> dict[str, Array]:
        """The inputs of the declaration: queries and keys normed if asked for, queries scaled, gates as numbers."""
        q, k = (field.of(head[n]) for n in "qk")
        if x.options.get(NORM):
            q, k = unit(q, field), unit(k, field)
        found = self.enter({**head, "q": q * field.of(scale_of(x)), "k": k}, field)
        return {n: found[n] for n in self.declaration.inputs}


def memory_operator(
    declaration: Declaration,
    bound: HeadBound,
    *,
    capabilities: Iterable[str] = (),
    needed: Mapping[str, str] | None = None,
    reductions: tuple[Reduction, ...] = (),
    neutral: tuple[tuple[str, ...], ...] = (),
    **own: Any,
) -> Operator:
    """The operator of a declaration with inputs q, k, v and gates; ``own`` are the other fields of `Memory`."""
    family = Memory(declaration, bound, **own)
    shape = strategies.sizes(
        b=st.integers(1, 2),
        t=strategies.lengths,
        h=st.integers(1, 3),
        groups=st.integers(1, 3),
        k=st.integers(1, 5),
        v=st.integers(1, 5),
        chunk=strategies.chunks,
    )
    logs = tuple(g.name for g in family.gates if g.domain.startswith("<= 0"))
    structure = strategies.flags(("start",), KEYS, strategies.SCALINGS, *family.flags, (strategies.WIDE,) if logs else ())

    return Operator(
        name=declaration.operator,
        declaration=declaration,
        inputs=family.inputs,
        state_axes="b hv k v",
        capabilities=CAPABILITIES | {"memory", *capabilities},
        cases=strategies.cases(declaration.operator, shape, structure),
        corners=lambda: tuple(_corners(declaration.operator, family.flags)),
        draw=lambda case: _draw(case, family.draw_gates, logs),
        refer=lambda x: _refer(family, x),
        derive=lambda x, *toward: _derive(family, x, *toward),
        needed={**SCALED, **(needed or {})},
        reductions=reductions,
        neutral=neutral,
        silent=("v",),
    )


def _corners(name: str, flags: tuple[tuple[str, ...], ...]) -> Iterator[Case]:
    """Cases that every run has: ragged chunks, a chunk longer than the sequence, groups, a long one for a fixed chunk size."""

    def case(t: int, chunk: int, scale: str, *given: str, dtype: str = "float32", **other: int) -> Case:
        shape = tuple(({"b": 1, "t": t, "h": 2, "groups": 2, "k": 3, "v": 2, "chunk": chunk} | other).items())
        return Case(name, shape, t, dtype, scale, given)

    yield case(11, 4, SMALL, "start")
    yield case(11, 4, LARGE, "start", b=2)
    yield case(5, 16, SMALL, "other-scale", b=2, v=3)
    yield case(70, 16, LARGE, dtype="bfloat16", h=1, groups=1, k=4)  # no float32 state that would hide short sums
    yield case(7, 3, LARGE, "constant", "start", k=2, v=4)
    yield case(133, 16, LARGE, "start", h=1, groups=1, k=4)
    yield case(70, 64, SMALL, "start", h=1, groups=1, k=4)
    yield case(9, 4, LARGE, "start", dtype="bfloat16")
    yield case(9, 2, SMALL, "start", dtype="float64")
    for scale in (SMALL, LARGE):
        for dtype in SHORT:  # few terms, next to whose sum a gradient of 16 bits is known well
            yield case(3, 2, scale, "start", dtype=dtype, h=1, groups=1, k=2, v=1)
    yield case(6, 4, LARGE, "start", h=5, groups=1, k=131, v=133)
    if flags:
        yield case(10, 4, SMALL, "start", "edge", dtype="float64")
        yield case(10, 4, LARGE, "start", "edge", dtype="float64")
    for group in flags:
        for word in group:
            yield case(10, 4, LARGE, "start", word, groups=1)
        if "gates-mixed" in group:  # gates beside inputs of fewer bits
            for dtype in SHORT:
                yield case(9, 4, SMALL, "start", "gates-constant", strategies.WIDE, dtype=dtype, groups=1)
        if "gates-reset" in group:
            for scale in (SMALL, LARGE):  # a reset at the first token of a kernel's own chunk
                yield case(70, 64, scale, "start", "gates-reset", h=1, groups=1, k=2)
        if gates.SETTLING in group:
            for scale in (SMALL, LARGE):  # one whole chunk
                yield case(64, 64, scale, "start", gates.SETTLING, h=1, groups=1, k=2)
        if "long-memory" in group:  # a start that is remembered, next to which writes are small
            yield case(70, 64, SMALL, "start", "long-memory", dtype="bfloat16", h=1, groups=1, k=2)


def _draw(case: Case, draw_gates: Callable[[Case, dict[str, Array]], dict[str, Array]], wide: tuple[str, ...]) -> Instance:
    b, t, h, k, v = (case.size(n) for n in ("b", "t", "h", "k", "v"))
    hv = h * case.size("groups")
    inputs = {"q": normal(case, 0, b, t, h, k), "k": keys(case, b, t, h, k), "v": normal(case, 2, b, t, hv, v)}
    if case.has("constant"):
        inputs["v"] = rounded(np.full_like(inputs["v"], 1.5 * case.unit), case.dtype)
    if case.has("zero"):
        inputs["v"] *= case.rng(3).integers(0, 2, (b, t, hv, 1))
    inputs = draw_gates(case, inputs)
    options: dict[str, Any] = {"chunk_size": case.size("chunk"), **strategies.scaling(case)}
    options |= {NORM: True} if case.has("normed") and not case.has("dyadic") else {}
    start = normal(case, 4, b, hv, k, v, wide=True) if case.has("start") else None
    return Instance(inputs, start, options, case.dtype, wide=wide if gates.is_wide(case) else ())


def keys(case: Case, b: int, t: int, h: int, k: int) -> Array:
    """Keys of the case's structure: independent, each one twice in a row, orthonormal (cyclically, or once, then 0), or all equal."""
    drawn = normal(case, 1, b, t, h, k)
    if case.has("duplicate-keys"):
        return np.repeat(drawn[:, ::2], 2, axis=1)[:, :t]
    if case.has("few-keys"):
        return np.broadcast_to(np.eye(t, k)[None, :, None], (b, t, h, k)).copy()
    if case.has("orthonormal-keys"):
        return np.broadcast_to(np.eye(k)[np.arange(t) % k][None, :, None], (b, t, h, k)).copy()
    if case.has("constant"):
        return rounded(np.full_like(drawn, 0.75 * case.unit), case.dtype)
    return drawn


def scale_of(x: Instance) -> float:
    """The factor on the queries; without one K^-1/2."""
    given = x.options.get("scale")
    return float(x.inputs["q"].shape[-1] ** -0.5 if given is None else given)


def heads(x: Instance, inputs: tuple[Input, ...]) -> Iterator[tuple[tuple[int, int], dict[str, Array], Array]]:
    """Every (batch, value head) with its arguments time first, the number of its query head, and its start (K, V).

    Value head i reads query and key head i // (HV / H).
    """
    b, _, h, k = x.inputs["q"].shape
    hv, v = x.inputs["v"].shape[2:]
    groups = hv // h if h else 1
    for n in range(b):
        for i in range(hv):
            place = {"b": n, "h": i // groups, "hv": i}
            at = {m.name: tuple(place.get(axis, slice(None)) for axis in m.axes.split()) for m in inputs}
            head = {m: a[at[m]] for m, a in x.inputs.items()}
            yield (n, i), {**head, "index": np.array(i // groups)}, np.zeros((k, v)) if x.state is None else x.state[n, i]


def plain(x: Instance) -> Instance:
    """Queries, keys and values alone."""
    return replace(x, inputs={n: x.inputs[n] for n in "qkv"})


def token_by_token(x: Instance) -> Instance:
    """Every token as a sequence of its own, without a state: (B T, 1, …)."""
    return replace(x, inputs={n: a.reshape(-1, 1, *a.shape[2:]) for n, a in x.inputs.items()}, state=None)


def _refer(family: Memory, x: Instance) -> Reference:
    b, t = x.inputs["q"].shape[:2]
    hv, v = x.inputs["v"].shape[2:]
    k = x.inputs["q"].shape[3]
    p = precision(x.dtype, x.precision, apart=True)
    normed = {"normed": k + 5} if x.options.get(NORM) else {}
    out, states = family.truth(_meaning(x))
    sharp, terms, spread = np.zeros((3, b, t, hv, v))
    states_sharp, written = np.zeros((2, b, t + 1, hv, k, v))
    for (n, i), head, start in heads(x, family.inputs):
        given = {**family.declared(x, head, FLOATS), "start": start}
        found = beside_truth(partial(family.bound, given, states[n, :, i], span=x.options["chunk_size"], **normed), p)
        sharp[n, :, i], terms[n, :, i] = found.output, found.terms
        states_sharp[n, :, i] = found.states
        if found.written is not None:
            written[n, :, i] = found.written
            spread[n, :, i] = np.einsum("tk,tkv->tv", np.abs(given["q"]), found.written[1:])
    bound = stored(sharp, out, terms, p) + p.out * spread
    return Reference(out, bound, sharp, states, states_sharp + p.out * written, states_sharp)


def _meaning(x: Instance) -> Instance:
    """What the truth and its derivatives depend on: all but the chunk size and the dtype, whose values the arrays have already."""
    return replace(x, options={n: v for n, v in x.options.items() if n != "chunk_size"}, dtype="", precision="", wide=())


def _truth(family: Memory, x: Instance) -> tuple[Array, Array]:
    """Outputs (B, T, HV, V) and states (B, T + 1, HV, K, V)."""
    b, t, _, k = x.inputs["q"].shape
    hv, v = x.inputs["v"].shape[2:]
    out, states = np.zeros((b, t, hv, v)), np.zeros((b, t + 1, hv, k, v))
    for (n, i), head, start in heads(x, family.inputs):
        exactly = partial(family.declared, x, head, RATIONALS) if family.decays or x.options.get(NORM) else None
        out[n, :, i], states[n, :, i] = oracle.memory(family.declaration, family.declared(x, head, FLOATS), start, exactly)
    return out, states


def _derive(
    family: Memory, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array
) -> tuple[float, float]:
    """The derivative of Σ weights · o + Σ final · S_T in a direction, and its bound.

    The bound is γ_N of the same derivative of the sum of the absolute values of all terms: a backward pass evaluates
    these terms with at most three times the forward roundings. A term has the logs of a range of gates in its exponent,
    each rounded with the sum of the range: T + 3 units of the change that this makes, which is at most a difference
    quotient, since the sum is convex in the decays. Where a product of decays is too small to be held, by the form or by
    the complex step, what it multiplies is lost. In 16 bits a term's operands, with decays one more for its write, and its
    gradient are rounded once more.
    """
    steps, width = x.inputs["q"].shape[1], x.inputs["q"].shape[3]
    columns = x.inputs["v"].shape[3]
    outputs, states = family.slopes(_meaning(x), toward, push)
    value = float((weights * outputs[VALUE]).sum() + (final * states[VALUE]).sum())
    w, f = np.abs(weights), np.abs(final)
    size, turned, lost = (float((w * outputs[row]).sum() + (f * states[row]).sum()) for row in (SIZE, TURNED, LOST))
    p = precision(x.dtype, x.precision, apart=True)
    products = rounded_products(3 * PRODUCTS * (steps + 1 if family.corrects else 1), p)
    rounding = (gamma(3 * (steps + 1) * (width + columns + 6), p.unit) + products) * size + 3 * (steps + 3) * p.unit * turned
    rounding += (p.tiny + LEAST) * (steps + 1) * lost
    return value, rounding + p.out * (1 + OPERANDS + bool(family.decays)) * size


def _slopes(family: Memory, x: Instance, toward: Mapping[str, Array], push: Array | None) -> tuple[Array, Array]:
    """The derivatives of outputs (4, B, T, HV, V) and final states (4, B, HV, K, V) in a direction.

    ``VALUE``: those of the declaration; ``SIZE``: of the sum of the absolute values of all terms; ``TURNED``: what a
    relative error of the logs of decays adds to that; ``LOST``: of that sum without decays, where their product may not be held.
    """
    moves = Instance(toward, push, x.options, x.dtype)
    b, t, _, k = x.inputs["q"].shape
    hv, v = x.inputs["v"].shape[2:]
    outputs, states = np.zeros((4, b, t, hv, v)), np.zeros((4, b, hv, k, v))
    for ((n, i), head, start), (_, move, shift) in zip(heads(x, family.inputs), heads(moves, family.inputs), strict=True):
        for row, at, along in _directions(family, x, head, {m: move[m] for m in toward}):
            part = np.abs if row else np.asarray
            outputs[row, n, :, i], states[row, n, i] = oracle.slope(family.declaration, at, part(start), along, part(shift))
    if family.decays:
        outputs[TURNED], states[TURNED] = ((a[TURNED] - a[SIZE]) / TURN for a in (outputs, states))
    return outputs, states


def _directions(family: Memory, x: Instance, head: Head, move: Head) -> Iterator[tuple[int, Head, Head]]:
    """The rows of `_slopes` that are not 0, with inputs of the declaration and the direction of their change."""
    at, along, change = _tangent(family, x, head, move)
    yield VALUE, at, along
    above, change = (family.majorant({m: np.abs(a) for m, a in given.items()}) for given in (at, change))
    yield SIZE, above, change
    if not family.decays:
        return
    if min(above[m].min(initial=1.0) for m in family.decays) ** len(above["q"]) < SAFE:
        full = {m: np.ones_like(a) if m in family.decays else a for m, a in above.items()}
        free = {m: a / np.where(above[m] > 0, above[m], 1) if m in family.decays else a for m, a in change.items()}
        yield LOST, full, free
    above, change = ({m: a * (1 + TURN * strength(above[m]) * (m in family.decays)) for m, a in g.items()} for g in (above, change))
    yield TURNED, above, change


def _tangent(family: Memory, x: Instance, head: Head, move: Head) -> tuple[Head, Head, Head]:
    """The declaration's inputs, their derivative in a direction of the arguments, and the size of all terms of that."""
    moved = family.declared(x, {m: a + 1j * oracle.STEP * move[m] if m in move else a for m, a in head.items()}, FLOATS)
    at, along = ({m: part(a) for m, a in moved.items()} for part in (np.real, lambda a: np.imag(a) / oracle.STEP))
    terms = {m: unit_change(head[m], move[m]) * (abs(scale_of(x)) if m == "q" else 1.0) for m in "qk"} if x.options.get(NORM) else {}
    return at, along, {**along, **terms}
