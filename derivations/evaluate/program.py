"""Terms as programs: each term is compiled once into closures over a frame, then run in any number system."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, cast

from sympy import Basic, Expr, Symbol

from ..kernel import terms as k
from .errors import Undefined, UnsupportedTerm
from .frame import TOP, Code, Frame, Index, Scope, condition_code, index_code, size_code
from .labels import groups, labels
from .systems import Value

ROOT_OF_UNITY = "root_of_unity"
KEPT = 1 << 14
MOST = 1 << 17  # values that one frame keeps
CHEAP = (k.Var, k.Num, k.Ind, k.Zero, k.Eye, k.Rec)  # a Rec keeps its states itself
COSTLY = (k.Sum, k.Prod, k.Stack, k.Inverse, k.Block, k.Power, k.Exp, k.Log, k.Sqrt, k.Apply, k.At, k.Integral, k.Deriv)


def evaluate(x: k.Term, frame: Frame) -> Value:
    """The value of a term; EvaluationError where it has none."""
    return compiled(cast(k.Term, k.unnamed(x)), TOP)(frame)


@lru_cache(maxsize=KEPT)
def compiled(x: k.Term, scope: Scope) -> Code:
    """The program of a term; ``scope`` holds the indices and variables bound around it."""
    rule = RULES.get(type(x))
    if rule is None:
        raise UnsupportedTerm(f"{type(x).__name__} cannot be evaluated: {x}")
    code = rule(x, scope)
    return _remembered(x, scope, code) if _worth(x, scope) else code


@lru_cache(maxsize=KEPT)
def _name(*parts: Any) -> object:
    """A name for what is kept, cheap to compare: equal parts have one, different parts different ones."""
    return object()


def _captured(outer: frozenset[Basic], scope: Scope) -> tuple[list[Symbol], bool]:
    """The indices that a value depends on, and whether it depends on nothing else that varies."""
    return sorted((s for s in outer if isinstance(s, Symbol)), key=str), not any(isinstance(v, k.Var) for v in outer & scope)


def _worth(x: k.Term, scope: Scope) -> bool:
    """Whether a value is kept: that of a costly node, or of one that some loop around it leaves as it is."""
    if isinstance(x, CHEAP):
        return False
    captured, alone = _captured(k.free(x), scope)
    return alone and (isinstance(x, COSTLY) or any(s not in captured for s in scope if isinstance(s, Symbol)))


def _remembered(x: k.Term, scope: Scope, code: Code) -> Code:
    key = _key(_name(x), _captured(k.free(x), scope)[0])

    def run(f: Frame) -> Value:
        at = key(f)
        value = f.kept.get(at)
        if value is None:
            value = code(f)
            if len(f.kept) < MOST:
                f.kept[at] = value
        return value

    return run


def _key(name: object, captured: list[Symbol]) -> Callable[[Frame], Any]:
    """Where a value is kept: under its name and the values of the indices that it depends on."""
    return lambda f: (name, *map(f.index.get, captured))


def _sub(x: Any, n: int, scope: Scope) -> Code:
    return compiled(x.args[n], scope)


def _range(x: Any) -> tuple[Symbol, Callable[[Frame], range]]:
    lo, hi = index_code(x.args[2]), index_code(x.args[3])
    return x.args[1], lambda f: range(lo(f.index), hi(f.index) + 1)


def _var(x: k.Var, scope: Scope) -> Code:
    if x in scope:
        return lambda f: f.bound[x]
    family, name, field = _name(x.args[0], *x.args[2:]), x.name, x.field
    ixs = [index_code(e) for e in x.indices]
    size = size_code(x)
    own = frozenset().union(*[e.free_symbols for e in x.indices]) if x.indices else frozenset()
    constant_shape = not any((e.free_symbols & scope) - own for e in x.shape)

    def run(f: Frame) -> Value:
        at = tuple([i(f.index) for i in ixs])
        if not constant_shape:
            return f.atoms.atom(name, at, *size(f.index), field)
        value = f.kept.get((family, at))
        if value is None:
            value = f.kept[family, at] = f.atoms.atom(name, at, *size(f.index), field)
        return value

    return run


def _num(x: k.Num, scope: Scope) -> Code:
    value = Fraction(int(x.value.p), int(x.value.q))

    def run(f: Frame) -> Value:
        found = f.kept.get(value)
        if found is None:
            found = f.kept[value] = f.system.number(value)
        return found

    return run


def _ind(x: k.Ind, scope: Scope) -> Code:
    e = index_code(x.expr)
    return lambda f: f.system.number(e(f.index))


def _zero(x: k.Zero, scope: Scope) -> Code:
    size = size_code(x)
    return lambda f: f.system.zeros(*size(f.index))


def _eye(x: k.Eye, scope: Scope) -> Code:
    size = size_code(x)
    return lambda f: f.system.eye(size(f.index)[0])


def _add(x: k.Add, scope: Scope) -> Code:
    first, *rest = [compiled(cast(k.Term, a), scope) for a in x.args]

    def run(f: Frame) -> Value:
        total = first(f)
        for c in rest:
            total = f.system.add(total, c(f))
        return total

    return run


def _mul(x: k.Mul, scope: Scope) -> Code:
    scalars = [compiled(a, scope) for a in cast("tuple[k.Term, ...]", x.args) if a.is_scalar_term]
    chains = [_chain([compiled(a, scope) for a in g]) for g in groups(x)]
    *factors, body = [*scalars, *chains]

    def run(f: Frame) -> Value:
        value = body(f)
        for s in factors:
            value = f.system.scale(s(f), value)
        return value

    return run


def _chain(factors: list[Code]) -> Code:
    first, *rest = factors

    def run(f: Frame) -> Value:
        value = first(f)
        for c in rest:
            value = f.system.mul(value, c(f))
        return value

    return run


def _unary(method: str) -> Callable[[Any, Scope], Code]:
    def rule(x: Any, scope: Scope) -> Code:
        a = _sub(x, 0, scope)
        return lambda f: getattr(f.system, method)(a(f))

    return rule


def _conj(x: k.Conj, scope: Scope) -> Code:
    """The conjugate; of a function of a real variable s that moves off the line it is conj(f(conj s))."""
    a = _sub(x, 0, scope)
    captured = [v for v in scope & k.free(x) if isinstance(v, k.Var)]

    def run(f: Frame) -> Value:
        if not f.analytic:
            return f.system.conj(a(f))
        if not f.analytic.issuperset(captured):
            raise UnsupportedTerm(f"a conjugate under an integral or a derivative: {x}")
        mirrored = {v: f.system.conj(f.bound[v]) for v in captured}
        with f.binding(mirrored, f.analytic):
            return f.system.conj(a(f))

    return run


def _hadamard(x: k.Hadamard, scope: Scope) -> Code:
    a, b = _sub(x, 0, scope), _sub(x, 1, scope)
    return lambda f: f.system.hadamard(a(f), b(f))


def _power(x: k.Power, scope: Scope) -> Code:
    a, n = _sub(x, 0, scope), index_code(cast(Expr, x.args[1]))
    return lambda f: f.system.power(a(f), n(f.index))


def _exponent(x: Basic, scope: Scope) -> Code:
    """An exponent, None for the logarithm of zero."""
    if isinstance(x, k.NegInf):
        return lambda f: None
    if isinstance(x, k.Where):
        return _choice(x, _exponent(x.args[1], scope), _exponent(x.args[2], scope))
    if isinstance(x, k.Add):
        parts = [_exponent(a, scope) for a in x.args]

        def run(f: Frame) -> Value:
            values = [p(f) for p in parts]
            return None if any(v is None for v in values) else reduce(f.system.add, values)

        return run
    return compiled(cast(k.Term, x), scope)


def _exp(x: k.Exp, scope: Scope) -> Code:
    exponent = _exponent(x.args[0], scope)

    def run(f: Frame) -> Value:
        value = exponent(f)
        return f.system.zeros(1, 1) if value is None else f.system.exp(value)

    return run


def _where(x: k.Where, scope: Scope) -> Code:
    return _choice(x, _sub(x, 1, scope), _sub(x, 2, scope))


def _choice(x: k.Where, a: Code, b: Code) -> Code:
    cond = condition_code(cast(k.Cond, x.args[0]))
    return lambda f: a(f) if cond(f.index) else b(f)


def _sum(x: k.Sum, scope: Scope) -> Code:
    """A sum from its first index up."""
    i, values = _range(x)
    body, size, partial = compiled(x.body, scope | {i}), size_code(x), _partial(x, scope)

    def run(f: Frame) -> Value:
        order = values(f)
        totals = partial(f, order)
        for _ in f.each(i, order[len(totals) :]):
            new = body(f)
            totals.append(f.system.add(totals[-1], new) if totals else new)
        return totals[len(order) - 1] if order else f.system.zeros(*size(f.index))

    return run


def _prod(x: k.Prod, scope: Scope) -> Code:
    """A product from the end that stays where it is, from the last index if neither or both do."""
    i, values = _range(x)
    body, size, partial = _sub(x, 0, scope | {i}), size_code(x), _partial(x, scope)
    lo, hi = (e.free_symbols for e in x.args[2:4])
    upward = not lo or (not lo & scope and bool(hi & scope))
    to_the_left = upward == x.decreasing

    def run(f: Frame) -> Value:
        order = values(f)[:: 1 if upward else -1]
        totals = partial(f, order)
        for _ in f.each(i, order[len(totals) :]):
            new = body(f)
            if totals:
                new = f.system.mul(new, totals[-1]) if to_the_left else f.system.mul(totals[-1], new)
            totals.append(new)
        return totals[len(order) - 1] if order else f.system.eye(size(f.index)[0])

    return run


def _partial(x: Any, scope: Scope) -> Callable[[Frame, range], list[Value]]:
    """The partial values of a loop from one end, kept where an end moves while the body stays what it is."""
    captured, alone = _captured(k.free(x.args[0]) - {x.args[1]}, scope)
    if not alone or (x.args[2].free_symbols | x.args[3].free_symbols) <= set(captured):
        return lambda f, order: []
    key = _key(_name(x.func, *x.args[:2], *x.args[4:]), captured)
    return lambda f, order: f.kept.setdefault((key(f), order[0], order.step), []) if order else []


def _stack(x: k.Stack, scope: Scope) -> Code:
    i, values = _range(x)
    body, cols = _sub(x, 0, scope | {i}), index_code(x.cols)

    def run(f: Frame) -> Value:
        rows = [body(f) for _ in f.each(i, values(f))]
        return f.system.stack(rows, f.system.shape(rows[0])[1] if rows else max(0, cols(f.index)))

    return run


def _offset(label: int, first: int, size: int) -> int:
    if not first <= label < first + size:
        raise Undefined(f"row or column {label} of {first}..{first + size - 1}")
    return label - first


def _row(x: k.Row, scope: Scope) -> Code:
    at = index_code(cast(Expr, x.args[1]))
    inner = x.args[0]
    if isinstance(inner, k.Stack):
        return _row_of_stack(inner, at, scope)
    a, first = _sub(x, 0, scope), index_code(labels(cast(k.Term, inner))[0])

    def run(f: Frame) -> Value:
        value = a(f)
        rows, cols = f.system.shape(value)
        n = _offset(at(f.index), first(f.index), rows)
        return f.system.part(value, n, n + 1, 0, cols)

    return run


def _row_of_stack(x: k.Stack, at: Index, scope: Scope) -> Code:
    i, values = _range(x)
    body = _sub(x, 0, scope | {i})

    def run(f: Frame) -> Value:
        n, rows = at(f.index), values(f)
        _offset(n, rows.start, len(rows))
        return next(body(f) for _ in f.each(i, range(n, n + 1)))

    return run


def _entry(x: k.Entry, scope: Scope) -> Code:
    inner = cast(k.Term, x.args[0])
    row = compiled(k.Row(inner, cast(Expr, x.args[1])), scope)
    at, first = index_code(cast(Expr, x.args[2])), index_code(labels(inner)[1])

    def run(f: Frame) -> Value:
        value = row(f)
        n = _offset(at(f.index), first(f.index), f.system.shape(value)[1])
        return f.system.part(value, 0, 1, n, n + 1)

    return run


def _rows(x: k.Rows, scope: Scope) -> Code:
    a, first = _sub(x, 0, scope), index_code(labels(cast(k.Term, x.args[0]))[0])
    lo, hi = index_code(cast(Expr, x.args[1])), index_code(cast(Expr, x.args[2]))

    def run(f: Frame) -> Value:
        value, start = a(f), first(f.index)
        rows, cols = f.system.shape(value)
        top, bottom = lo(f.index), hi(f.index)
        if bottom < top:
            return f.system.zeros(0, cols)
        return f.system.part(value, _offset(top, start, rows), _offset(bottom, start, rows) + 1, 0, cols)

    return run


def _block(x: k.Block, scope: Scope) -> Code:
    grid = [[compiled(b, scope) for b in r] for r in x.grid]
    return lambda f: f.system.block([[b(f) for b in r] for r in grid])


def _apply(x: k.Apply, scope: Scope) -> Code:
    if x.name == ROOT_OF_UNITY and isinstance(x.arguments[0], k.Ind):
        order = index_code(x.arguments[0].expr)
        return lambda f: f.system.root_of_unity(order(f.index))
    arguments, size = [compiled(a, scope) for a in x.arguments], size_code(x)
    name, field = x.name, x.field
    return lambda f: f.atoms.function(name, [a(f) for a in arguments], *size(f.index), field)


def _rec(x: k.Rec, scope: Scope) -> Code:
    """A loop from the start; the states are kept as long as nothing but indices is captured."""
    t, prev = cast(Symbol, x.args[2]), x.args[3]
    at, start = index_code(x.at), index_code(x.start)
    init, step = _sub(x, 5, scope), _sub(x, 6, scope | {t, prev})
    outer = (k.free(x.args[6]) - {t, prev}) | k.free(x.args[5]) | k.free(x.args[4])
    captured, kept = _captured(outer, scope)
    key = _key(_name(x.args[0], *x.args[2:]), captured)

    def run(f: Frame) -> Value:
        first, n = start(f.index), at(f.index)
        if n < first:
            raise Undefined(f"{x.name} at {n}, before its start at {first}")
        states = f.kept.setdefault(key(f), []) if kept else []
        if not states:
            states.append(init(f))
        for _ in f.each(t, range(first + len(states), n + 1)):
            with f.binding({prev: states[-1]}, f.analytic - {prev}):
                states.append(step(f))
        return states[n - first]

    return run


def _at(x: k.At, scope: Scope) -> Code:
    s, value, body = x.args[1], _sub(x, 2, scope), _sub(x, 0, scope | {x.args[1]})

    def run(f: Frame) -> Value:
        with f.binding({s: value(f)}, f.analytic - {s}):
            return body(f)

    return run


def _moving(f: Frame, s: Basic, body: Code) -> Callable[[Value], Value]:
    def at(z: Value) -> Value:
        f.steps += 1
        with f.binding({s: z}, f.analytic | {s}):
            return body(f)

    return at


def _integral(x: k.Integral, scope: Scope) -> Code:
    s, body = x.args[1], _sub(x, 0, scope | {x.args[1]})
    lo, hi = _sub(x, 2, scope), _sub(x, 3, scope)
    return lambda f: f.system.integral(_moving(f, s, body), lo(f), hi(f))


def _deriv(x: k.Deriv, scope: Scope) -> Code:
    s, point, body = x.args[1], _sub(x, 1, scope), _sub(x, 0, scope | {x.args[1]})
    return lambda f: f.system.derivative(_moving(f, s, body), point(f))


RULES: dict[type, Callable[[Any, Scope], Code]] = {
    k.Var: _var, k.Num: _num, k.Ind: _ind, k.Zero: _zero, k.Eye: _eye, k.Add: _add, k.Mul: _mul,
    k.Transpose: _unary("transpose"), k.Conj: _conj, k.Hadamard: _hadamard, k.Diag: _unary("diag"),
    k.Power: _power, k.Inverse: _unary("inverse"), k.Exp: _exp, k.Log: _unary("log"), k.Sqrt: _unary("sqrt"),
    k.Trace: _unary("trace"), k.Where: _where, k.Sum: _sum, k.Prod: _prod, k.Stack: _stack, k.Row: _row,
    k.Entry: _entry, k.Rows: _rows, k.Block: _block, k.Apply: _apply, k.Rec: _rec, k.At: _at,
    k.Integral: _integral, k.Deriv: _deriv,
}  # fmt: skip
