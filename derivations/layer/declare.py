"""A layer in about ten lines: its inputs, the update of its state, and what is read."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from ..kernel import terms as tm
from ..kernel.formulas import Declaration
from ..kernel.terms import Family, Index, Recurrence, Term, Var, index, matrix, recurrence
from .linear import place, plus, times

Size: TypeAlias = Index | tuple[Index, Index]
Rule: TypeAlias = Callable[..., Term]


TAKEN = {"t", "s"}  # the time, and where a run is cut
CITED = {"affine", "delta-rule"}  # columns whose theorems those of a layer rest on


class LayerError(ValueError):
    """A declaration that makes no layer; one sentence says what is wrong."""


def layer(
    name: str,
    *,
    inputs: Mapping[str, Size],
    state: Mapping[str, Size],
    update: Rule | Mapping[str, Rule],
    read: Rule,
    parameters: Mapping[str, Size] | None = None,
    domains: Mapping[str, str] | None = None,
    source: str,
) -> Declaration:
    """The declaration of a layer, from its formulas at one token.

    ``inputs`` are given anew at every token and ``parameters`` once; ``state`` is what is kept. Each maps a name to its size: n
    for a column of n entries, (m, n) for an m x n matrix, 1 for a number, with sizes from ``indices("d_k d_v")``.

    ``update`` is a function whose parameters are named after what it uses: states as they were before the token, inputs and
    parameters; it returns the new state. For several states it is a mapping from each of their names to such a function.
    ``read`` is one too: it gets the states after the update, and those before it as S_before. States whose updates use each
    other are kept side by side as one state, [A B], or one above the other where the heights differ.

    ``domains`` say where a value lives, in words that start with real or complex, as ``"real, 0 <= a_i <= 1"``; what is not
    named there is real. ``source`` is the citation. Raises LayerError.
    """
    domains = _checked(name, inputs, parameters or {}, state, domains or {}, source)
    fields = {n: words.partition(",")[0].strip() for n, words in domains.items()}
    t = index("t")
    families = {n: Family(n, *_shape(size), fields[n]) for n, size in inputs.items()}
    constants = {n: Family(n, *_shape(size), fields[n])() for n, size in (parameters or {}).items()}

    def at(time: Index) -> dict[str, Term]:
        return {**{n: f[time] for n, f in families.items()}, **constants}

    rules = dict(update) if isinstance(update, Mapping) else dict.fromkeys(state, update)
    if set(rules) != set(state) or (len(state) > 1 and not isinstance(update, Mapping)):
        raise LayerError(f"update of {name!r} needs one function for each of the states {', '.join(state)}, by name")
    field = "complex" if "complex" in fields.values() else "real"
    starts = {n: matrix(f"{n}0", *_shape(size), field) for n, size in state.items()}
    used = {n: _names(rule, f"the update of {n}", {*families, *constants, *state}) for n, rule in rules.items()}
    coupled = any(other in used[n] for n in state for other in state if other != n)
    before = {n: tm.Var(n, (), *starts[n].shape, field) for n in state}
    for n in state:
        _new(n, rules[n], starts[n], {**at(t), **before})
    build = _joint if coupled else _apart
    states, start, members = build(starts, rules, at, field)
    for n, S in members(0).items():
        if t in tm.free(S):
            raise LayerError(f"the update of {n} uses a time t from outside; what depends on the time is an input")
    earlier = {f"{n}_before": S for n, S in members(t - 1).items()}
    wanted = _names(read, "read", {*families, *constants, *state, *earlier})
    output = _called(read, "read", wanted, {**at(t), **members(t), **earlier})
    return Declaration(
        operator=name,
        inputs={**families, **constants},
        output=output,
        t=t,
        state=states,
        initial_state=start,
        domains=domains,
        source=source,
    )


def _free(size: Index) -> frozenset[Any]:
    return frozenset(tm.index_expression(size).free_symbols)


def _shape(size: Size) -> tuple[Index, Index]:
    return (size[0], size[1]) if isinstance(size, tuple) else (size, 1)


def _is_size(size: Any) -> bool:
    try:
        found = tm.index_expression(size)
    except TypeError:
        return False
    symbols = found.free_symbols
    return all(s.is_integer for s in symbols) if symbols else bool(found.is_Integer and found >= 1)


def _checked(
    name: str,
    inputs: Mapping[str, Size],
    parameters: Mapping[str, Size],
    state: Mapping[str, Size],
    domains: Mapping[str, str],
    source: str,
) -> dict[str, str]:
    """The domain of every input and parameter."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise LayerError(f"a layer's name is made of small letters, digits and single hyphens, as in gated-delta-rule, not {name!r}")
    if name in CITED:
        raise LayerError(f"a layer cannot be called {name}, which its theorems would be confused with; call it my-{name}, for instance")
    if not source.strip():
        raise LayerError(f"{name} needs a source: the paper and equation that it comes from")
    if not state:
        raise LayerError(f"{name} needs a state: a name and a size for what is kept from token to token")
    for n, size in (*inputs.items(), *parameters.items(), *state.items()):
        if not all(map(_is_size, _shape(size))):
            raise LayerError(f"the size of {n} in {name} is {size!r}; it is a number from 1 on, made of indices(…), or a pair of such")
    names = [*inputs, *parameters, *state]
    if twice := {n for n in names if names.count(n) > 1}:
        raise LayerError(f"{name} uses the name {min(twice)!r} twice among its inputs, parameters and states")
    if unknown := set(domains) - {*inputs, *parameters}:
        raise LayerError(f"{name} gives a domain for {min(unknown)!r}, which is no input and no parameter of it")
    own = {f"{n}{mark}" for n in (*state, "_".join(state)) for mark in ("0", "_before")}
    if taken := own & set(names):
        raise LayerError(f"{name} uses the name {min(taken)!r}, which is that of a state before; call it something else")
    symbols = {x.name for size in (*inputs.values(), *parameters.values(), *state.values()) for e in _shape(size) for x in _free(e)}
    if taken := symbols & TAKEN:
        raise LayerError(f"{name} has a size called {min(taken)!r}, which is a time here; call it something else")
    found = {n: domains.get(n, "real") for n in (*inputs, *parameters)}
    for n, words in found.items():
        if words.partition(",")[0].strip() not in ("real", "complex"):
            raise LayerError(f"the domain of {n} in {name} starts with real or complex, as in 'real, 0 <= {n} <= 1', not {words!r}")
    return found


def _names(rule: Rule, what: str, known: set[str]) -> tuple[str, ...]:
    """The names that a function asks for."""
    if not callable(rule):
        raise LayerError(f"{what} is {rule!r}, which is no function of inputs, parameters and states")
    found = tuple(inspect.signature(rule).parameters)
    if unknown := [n for n in found if n not in known]:
        raise LayerError(f"{what} uses {unknown[0]!r}, which is no input, parameter or state; there are {', '.join(sorted(known))}")
    return found


def _called(rule: Rule, what: str, names: tuple[str, ...], values: Mapping[str, Term]) -> Term:
    try:
        return tm.lift(rule(**{n: values[n] for n in names}))
    except (TypeError, tm.BoundError) as e:
        raise LayerError(f"{what} does not fit together: {e}") from e


_Built: TypeAlias = tuple[Any, Any, Callable[[Index], dict[str, Term]]]


def _new(n: str, rule: Rule, start: Term, values: Mapping[str, Term]) -> Term:
    what = f"the update of {n}"
    found = _called(rule, what, tuple(inspect.signature(rule).parameters), values)
    if not all(map(tm.same, found.shape, start.shape)):
        raise LayerError(f"{what} gives {tm.shown_shape(found)}, but the state is {tm.shown_shape(start)}")
    return found


def _apart(starts: Mapping[str, Var], rules: Mapping[str, Rule], at: Callable[[Index], dict[str, Term]], field: str) -> _Built:
    """Each state by itself."""

    def own(n: str) -> Recurrence:
        return recurrence(n, starts[n], lambda t, S: _new(n, rules[n], starts[n], {**at(t), n: S}), field=field)

    kept = {n: own(n) for n in starts}
    several = len(kept) > 1
    states = tuple(kept.values()) if several else next(iter(kept.values()))
    start = tuple(starts.values()) if several else next(iter(starts.values()))
    return states, start, lambda t: {n: s[t] for n, s in kept.items()}


def _joint(starts: Mapping[str, Var], rules: Mapping[str, Rule], at: Callable[[Index], dict[str, Term]], field: str) -> _Built:
    """All states as one: side by side where they are equally high, else one above the other."""
    heights, widths = ({s.shape[axis] for s in starts.values()} for axis in (0, 1))
    if len(heights) > 1 and len(widths) > 1:
        shapes = ", ".join(f"{n} is {tm.shown_shape(s)}" for n, s in starts.items())
        raise LayerError(f"states that use each other are kept as one matrix, so they need one height or one width: {shapes}")
    beside = len(heights) == 1
    sizes = [s.shape[1 if beside else 0] for s in starts.values()]
    places = {n: place(sizes, i) for i, n in enumerate(starts)}
    total = sum(sizes[1:], start=sizes[0])
    name = "_".join(starts)
    shape = (next(iter(heights)), total) if beside else (total, next(iter(widths)))
    start = matrix(f"{name}0", *shape, field)

    def parts(X: Term) -> dict[str, Term]:
        return {n: times(X, p) if beside else times(p.T, X) for n, p in places.items()}

    def step(t: Index, X: Term) -> Term:
        values = {**at(t), **parts(X)}
        new = {n: _new(n, rules[n], starts[n], values) for n in starts}
        return cast(Term, plus(new[n] * p.T if beside else p * new[n] for n, p in places.items()))

    state = recurrence(name, start, step, field=field)
    return state, start, lambda t: parts(state[t])


__all__ = ["LayerError", "layer"]
