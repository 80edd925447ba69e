"""The truth: the operator's own declaration, run exactly where that is quick, else in balls or float64.

Derivations write states as columns read, H (V x K); the plain call hands out S = Hᵀ (K x V). This is the one place
that transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from isoform.derivations.evaluate import oracle

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration

Array = np.ndarray[Any, Any]
EXACT_WORK = 1500
"""Multiplications of one head, with one for each entry of its start, up to which rational arithmetic is used."""
STEP = 2.0**-200
"""A complex step."""


def memory(
    declaration: Declaration, inputs: Mapping[str, Array], start: Array | None, exactly: Callable[[], Mapping[str, Array]] | None = None
) -> tuple[Array, Array]:
    """Outputs (T, V) and states (T + 1, K, V) of one head of a matrix memory, correctly rounded or in float64.

    ``inputs`` are those of the declaration, queries scaled; ``start`` is (K, V) or None for 0. Where float64 cannot
    hold the inputs, ``exactly`` gives them as fractions, which are many digits long: those are computed in balls.
    """
    steps, width = inputs["k"].shape
    columns = inputs["v"].shape[1]
    system = "float64" if (steps + 1) * width * columns > EXACT_WORK or not _finite(inputs) else "qq" if exactly is None else "arb"
    given = exactly() if system == "arb" and exactly is not None else inputs
    started = np.zeros((columns, width)) if start is None else start.T
    out, states = oracle(declaration, given, length=steps, system=system, initial_state=started, prec=256)
    shape = (steps + 1, columns, width)
    return _floats(out, (steps, columns)), _floats(states, shape).transpose(0, 2, 1)


def slope(declaration: Declaration, inputs: Mapping[str, Array], start: Array, toward: Mapping[str, Array], push: Array) -> Any:
    """The derivative of `memory` in a direction (``toward`` for the inputs, ``push`` for the start): outputs and final state.

    By a complex step of `STEP`, which subtracts nothing and is exact to rounding.
    """
    moved = {n: x + 1j * STEP * toward[n] for n, x in inputs.items()}
    steps, width = inputs["k"].shape
    columns = inputs["v"].shape[1]
    out, states = oracle(declaration, moved, length=steps, system="float64", initial_state=(start + 1j * STEP * push).T)
    out = np.asarray(out, complex).reshape(steps, columns)
    states = np.asarray(states, complex).reshape(steps + 1, columns, width)
    return out.imag / STEP, states[-1].T.imag / STEP


def normalized(declaration: Declaration, inputs: Mapping[str, Array], start: Array) -> tuple[Array, Array]:
    """Outputs (T, V) and states (T + 1, K, V + 1) of one head of a matrix memory whose last column is the normaliser."""
    steps, width = inputs["k"].shape
    columns = inputs["v"].shape[1]
    system = "float64" if (steps + 1) * width * columns > EXACT_WORK or not _finite(inputs) else "qq"
    return _normalized(declaration, inputs, start, system, _floats)


def normalized_slope(
    declaration: Declaration, inputs: Mapping[str, Array], start: Array, toward: Mapping[str, Array], push: Array
) -> tuple[Array, Array]:
    """The derivative of `normalized` in a direction: outputs and final state."""
    moved = {n: x + 1j * STEP * toward[n] for n, x in inputs.items()}
    out, states = _normalized(
        declaration, moved, start + 1j * STEP * push, "float64", lambda x, shape: np.asarray(x, complex).reshape(shape)
    )
    return out.imag / STEP, states[-1].imag / STEP


def _normalized(
    declaration: Declaration, inputs: Mapping[str, Array], start: Array, system: str, read: Callable[[Any, tuple[int, ...]], Array]
) -> tuple[Array, Array]:
    steps, width = inputs["k"].shape
    columns = inputs["v"].shape[1]
    initial = (start[:, :-1].T, start[:, -1])
    out, (states, sums) = oracle(declaration, inputs, length=steps, system=system, initial_state=initial)
    both = [read(states, (steps + 1, columns, width)).transpose(0, 2, 1), read(sums, (steps + 1, width, 1))]
    return read(out, (steps, columns)), np.concatenate(both, axis=-1)


def _finite(inputs: Mapping[str, Array]) -> bool:
    return all(bool(np.isfinite(x).all()) for x in inputs.values())


def _floats(x: Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(x, dtype=np.float64).reshape(shape)


def attention(declaration: Declaration, queries: Array, keys: Array, values: Array) -> Array:
    """All rows (T, V) of one head, queries scaled, in balls of 128 bits."""
    out, _ = oracle(declaration, {"q": queries, "k": keys, "v": values}, length=len(queries), system="arb")
    return _floats(out, (len(queries), values.shape[1]))


def last_row(declaration: Declaration, query: Array, keys: Array, values: Array) -> Array:
    """The row (V,) of a query that sees exactly these keys: the last row of the declaration on them."""
    return attention(declaration, np.tile(query, (len(keys), 1)), keys, values)[-1]


def attention_slope(declaration: Declaration, queries: Array, keys: Array, values: Array) -> Array:
    """The derivative of `attention`, by a complex step in balls: the inputs have `STEP` times their change for imaginary parts."""
    out, _ = oracle(declaration, {"q": queries, "k": keys, "v": values}, length=len(queries), system="arb")
    return np.array([complex(x).imag / STEP for x in np.ravel(out)]).reshape(len(queries), values.shape[1])


def last_row_slope(declaration: Declaration, at: tuple[Array, ...], toward: tuple[Array, ...]) -> Array:
    """The derivative of `last_row` in a direction; ``at`` and ``toward`` are query, keys, values."""
    query, keys, values = (x + 1j * STEP * d for x, d in zip(at, toward, strict=True))
    return attention_slope(declaration, np.tile(query, (len(keys), 1)), keys, values)[-1]


def system(declaration: Declaration, inputs: Mapping[str, Array], start: Array) -> tuple[Array, Array]:
    """Outputs (T,) and states (T + 1, N) of a system with one input and one output, correctly rounded or in float64."""
    steps, n = len(inputs["u"]), len(start)
    exact = "qq" if (steps + 1) * n * n <= EXACT_WORK and _finite(inputs) else "float64"
    out, states = oracle(declaration, inputs, length=steps, system=exact, initial_state=start)
    return _complex(out, (steps,)), _complex(states, (steps + 1, n))


def two_systems(declaration: Declaration, inputs: Mapping[str, Array], start: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Outputs (T,) of a shift and a diagonal system in a row, and the states (T + 1, W, K) and (T + 1, N, K) of both."""
    steps = len(inputs["v"])
    exact = "qq" if (steps + 1) * sum(x.size for x in start) <= EXACT_WORK and _finite(inputs) else "float64"
    out, (keys, modes) = oracle(declaration, inputs, length=steps, system=exact, initial_state=start)
    first, second = ((steps + 1, *x.shape) for x in start)
    return _complex(out, (steps,)), _complex(keys, first), _complex(modes, second)


def two_systems_slope(
    declaration: Declaration,
    inputs: Mapping[str, Array],
    start: tuple[Array, Array],
    toward: Mapping[str, Array],
    push: tuple[Array, Array],
) -> tuple[Array, Array, Array]:
    """The derivative of `two_systems`, real, in a direction: outputs and both final states."""
    moved = {n: x + 1j * STEP * toward[n] for n, x in inputs.items()}
    begun = tuple(x + 1j * STEP * d for x, d in zip(start, push, strict=True))
    steps = len(inputs["v"])
    out, states = oracle(declaration, moved, length=steps, system="float64", initial_state=begun)
    keys, modes = (np.asarray(x, complex).reshape(steps + 1, *y.shape)[-1].imag / STEP for x, y in zip(states, start, strict=True))
    return np.asarray(out, complex).reshape(steps).imag / STEP, keys, modes


def system_slope(
    declaration: Declaration, inputs: Mapping[str, Array], start: Array, toward: Mapping[str, Array], push: Array
) -> tuple[Array, Array]:
    """The derivative of `system`, real or complex, in a direction: outputs and final state.

    By dual numbers a + ε d, which are the matrices [[a, 0], [d, a]]: sums and products of these are a system of twice the size.
    """
    dual = {m: np.block([[a, np.zeros_like(a)], [toward[m], a]]) for m, a in inputs.items() if m != "u"}
    dual["u"] = np.concatenate([inputs["u"], toward["u"]], 1)
    steps, n = len(inputs["u"]), len(start)
    out, states = oracle(declaration, dual, length=steps, system="float64", initial_state=np.concatenate([start, push]))
    return _complex(out, (steps, 2))[:, 1], _complex(states, (steps + 1, 2 * n))[-1, n:]


def _complex(x: Any, shape: tuple[int, ...]) -> Array:
    """Real numbers, or complex ones from pairs of fractions or from complex floats."""
    entries = np.asarray(x).ravel().tolist()
    numbers = [complex(float(e[0]), float(e[1])) if isinstance(e, tuple) else e for e in entries]
    kind = complex if any(isinstance(e, complex) for e in numbers) else float
    return np.array(numbers, dtype=kind).reshape(shape)


def pair(declaration: Declaration, a: Array, b: Array, delta: complex) -> Array:
    """[Ā, B̄] of a discretisation rule, (N, N + 1) or with more columns of B̄, in balls of 512 bits."""
    n = len(b)
    given = {"A": a, "B": b.reshape(n, 1), "delta": np.asarray(delta)}
    return _floating(_balls(declaration, given), n, a, b, delta)


def pair_slope(declaration: Declaration, at: tuple[Array, Array, float], toward: tuple[Array, Array, float]) -> Array:
    """The derivative of `pair`, real or complex, in a direction; ``at`` and ``toward`` are (A, B, Δ).

    By a difference over a step of `STEP`, of which 512 bits leave more than float64 holds.
    """
    n = len(at[1])
    here, change = ({"A": np.reshape(a, (n, n)), "B": np.reshape(b, (n, 1)), "delta": np.asarray(delta)} for a, b, delta in (at, toward))
    there = {m: _moved(x, change[m]) for m, x in here.items()}
    return _floating(_balls(declaration, there) - _balls(declaration, here), n, *at, *toward) / STEP


def _balls(declaration: Declaration, given: Mapping[str, Array]) -> Array:
    out, _ = oracle(declaration, given, length=1, system="arb", prec=512)
    return np.asarray(out)


def _floating(found: Array, rows: int, *given: Any) -> Array:
    """Balls as floats, (rows, columns), real where everything given is."""
    entries = np.array([complex(e) for e in found.ravel().tolist()]).reshape(rows, -1)
    return entries if any(np.iscomplexobj(x) for x in given) else entries.real


def _moved(x: Array, toward: Array) -> Array:
    """x + `STEP` toward exactly, as pairs of fractions."""
    found = np.empty(x.shape, object)
    for i in np.ndindex(x.shape):
        z, d = complex(x[i]), complex(toward[i])
        found[i] = tuple(Fraction(a) + Fraction(STEP) * Fraction(b) for a, b in ((z.real, d.real), (z.imag, d.imag)))
    return found
