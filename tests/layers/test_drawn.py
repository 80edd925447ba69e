"""Layers put together by chance: their theorems are proved, and one that is spoilt by one small change is proved only where it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from sympy import Basic

from isoform.derivations.claim import Claim
from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import And, Declaration, Equation, Formula, Less, LessEqual, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct
from isoform.derivations.kernel.terms import (
    Add,
    Diag,
    Eye,
    Family,
    Hadamard,
    Mul,
    Num,
    Power,
    Prod,
    Rec,
    Sum,
    Term,
    Transpose,
    Var,
    indices,
    unnamed,
    vector,
)
from isoform.derivations.layer import derive, layer
from isoform.derivations.layer.correction import correction
from isoform.derivations.layer.functions import entrywise, exp, sigmoid, tanh
from isoform.derivations.layer.linear import times
from isoform.derivations.layer.subject import subjects
from isoform.derivations.verification import prove_claim, verify_claim

m, n, p = indices("m n p")
INPUTS = {"q": n, "k": n, "l": n, "v": m, "w": m, "a": n, "e": m, "b": 1, "g": 1, "c": 1, "x": p}
PARAMETERS = {"A": (n, n), "B": (m, m), "P": (n, p), "Q": (m, p), "d": n}
Rule = Callable[[Any], Term]


def rest(x: Term) -> Term:
    return entrywise(lambda y: 1 - y, x)


def correcting(rate: Term, key: Term) -> Term:
    return Eye(key.rows) - rate * key * key.T


RIGHT: tuple[Rule, ...] = (
    lambda o: Diag(o.a),
    lambda o: Diag(exp(o.a)),
    lambda o: Diag(rest(o.a)),
    lambda o: Diag(o.d),
    lambda o: o.g * Eye(n),
    lambda o: -o.g * Eye(n),
    lambda o: o.A,
    lambda o: Eye(n) + o.k * o.l.T,
    lambda o: correcting(o.b, o.k),
    lambda o: sigmoid(o.g) * correcting(o.b, o.k),
    lambda o: Diag(o.a) * correcting(o.b, o.k),
    lambda o: correcting(o.b, o.k) * Diag(o.a),
    lambda o: correcting(o.b, o.k) * correcting(o.c, o.l),
    lambda o: Diag(o.a) - o.b * o.k * o.k.T,
    lambda o: o.g * Eye(n) - o.b * o.k * o.k.T,
)
LEFT: tuple[Rule, ...] = (lambda o: Eye(m), lambda o: Diag(o.e), lambda o: o.B, lambda o: correcting(o.b, o.v), lambda o: o.g * Eye(m))
UPDATES: tuple[Callable[[Any, Rule, Rule], Term], ...] = (
    lambda o, left, right: left(o) * o.S * right(o),
    lambda o, left, right: Hadamard(o.e * o.a.T, o.S),
    lambda o, left, right: o.g * o.S - o.b * (o.g * o.S * o.k - o.v) * o.k.T,
    lambda o, left, right: o.S - o.b * (o.S * o.k - o.v) * o.k.T,
    lambda o, left, right: o.S * Diag(o.a) - o.b * (o.S * Diag(o.a) * o.k - o.v) * o.k.T,
)
COLUMN_UPDATES: tuple[Callable[[Any, Rule], Term], ...] = (
    lambda o, right: right(o) * o.S,
    lambda o, right: Hadamard(o.a, o.S),
    lambda o, right: Hadamard(rest(sigmoid(o.a)), o.S),
    lambda o, right: o.S - Hadamard(o.a, o.S),
    lambda o, right: o.S - o.b * o.k * (o.k.T * o.S - o.c),
)
WRITES: tuple[Rule, ...] = (
    lambda o: o.v * o.k.T,
    lambda o: o.b * o.v * o.k.T,
    lambda o: o.v * rest(o.a).T,
    lambda o: o.v * o.k.T - o.w * o.l.T,
    lambda o: (o.Q * o.x) * Hadamard(o.k, o.l).T,
)
COLUMNS: tuple[Rule, ...] = (
    lambda o: o.k, lambda o: Hadamard(rest(o.a), o.k), lambda o: o.P * o.x, lambda o: Hadamard(sigmoid(o.a), tanh(o.l)),
)  # fmt: skip
READS: tuple[Rule, ...] = (lambda o: o.S * o.q, lambda o: o.S * o.q + o.v, lambda o: o.B * o.S * Hadamard(o.q, o.l), lambda o: o.w.T * o.S)
COLUMN_READS: tuple[Rule, ...] = (lambda o: o.S, lambda o: o.q.T * o.S, lambda o: Hadamard(o.q, o.S), lambda o: o.A * o.S)


def rule(f: Rule) -> Callable[..., Term]:
    """A function of everything that there is, by name."""
    names = ["S", *INPUTS, *PARAMETERS]
    made: dict[str, Any] = {"f": f, "Names": SimpleNamespace}
    exec(f"def made({', '.join(names)}): return f(Names({', '.join(f'{x}={x}' for x in names)}))", made)
    return made["made"]  # type: ignore[no-any-return]


def drawn(seed: int) -> Declaration:
    """A layer with a matrix or a column for a state."""
    rng = Random(seed)
    left, right = rng.choice(LEFT) if rng.random() < 0.4 else LEFT[0], rng.choice(RIGHT)
    if rng.random() < 0.3:
        column, write, read = rng.choice(COLUMN_UPDATES), rng.choice(COLUMNS), rng.choice(COLUMN_READS)
        state, update = n, rule(lambda o: column(o, right) + write(o))
    else:
        matrix, write, read = rng.choice(UPDATES), rng.choice(WRITES), rng.choice(READS)
        state, update = (m, n), rule(lambda o: matrix(o, left, right) + write(o))
    given: Any = {"inputs": INPUTS, "parameters": PARAMETERS, "state": {"S": state}}
    return layer("drawn", **given, update=update, read=rule(read), source="none")


def signs(declaration: Declaration) -> tuple[Claim, ...]:
    """The claims of which a false one would be the worst."""
    return tuple(c for c in derive(declaration) if c.id.partition("/")[2] in ("stable", "gradient-step"))


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[] if s in (2, 4) else [pytest.mark.deep]) for s in range(60)])
def test_what_is_derived_is_proved(seed: int) -> None:
    claims = derive(drawn(seed))
    assert {c.id.partition("/")[2] for c in claims} >= {"update", "unrolled", "split-resume", "chunkwise", "scan"}
    for claim in claims:
        assert prove_claim(claim, claims).scope == "all sizes"


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[] if s < 4 else [pytest.mark.deep]) for s in range(60)])
def test_losses_and_conditions_hold(seed: int) -> None:
    for claim in signs(drawn(seed)):
        found = verify_claim(claim)
        assert (found.holds, found.reason) == (True, "")


@pytest.mark.parametrize("seed", range(30))
def test_a_correction_is_the_transition(seed: int) -> None:
    """What conditions and losses speak of is the matrix that the update has."""
    (s,) = subjects(drawn(seed))
    found = correction(s.run)
    if found is None or (found.number is None and found.diagonal is None):
        return
    side = s.run.left if found.turned else s.run.right
    z = vector("z", found.key.rows)
    z = z if found.turned else z.T
    step = times(found.rate, found.key, found.key.T)
    read = found.decayed(z) if found.inside else z
    whole = found.decayed(z) - (step * read if found.turned else read * step)
    prove(Statement(Equation(side.matrix * z if found.turned else z * side.matrix, whole)), Direct(), lambda _: pytest.fail("a lemma"))


# spoilt -------------------------------------------------------------------------------------------


def places(x: Basic, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Basic]]:
    yield path, x
    if not isinstance(x, (Var, Rec)):
        for i, a in enumerate(x.args):
            yield from places(a, (*path, i))


def put(x: Any, path: tuple[int, ...], new: Any) -> Any:
    if not path:
        return new
    args = list(x.args)
    args[path[0]] = put(args[path[0]], path[1:], new)
    return x.func(*args)


def changes(x: Any, rng: Random) -> list[Callable[[], Any]]:
    """Small changes of a node: a sign, a factor, an order, an index, an end, a bound."""
    found: list[Callable[[], Any]] = []
    args = list(x.args)
    if isinstance(x, (Add, Mul)) and len(args) > 1:
        at = rng.randrange(len(args) - 1)
        left = [*args[:at], *args[at + 1 :]]
        found += [lambda: x.func(*left) if len(left) > 1 else left[0]]
        swapped = [*args[:at], args[at + 1], args[at], *args[at + 2 :]]
        found += [lambda: Mul(*swapped)] if isinstance(x, Mul) else [lambda: Add(*args[:-1], -args[-1])]
    if isinstance(x, (Sum, Prod)):
        found += [lambda: x.func(*args[:2], args[2] + 1, *args[3:]), lambda: x.func(*args[:3], args[3] - 1, *args[4:])]
    if isinstance(x, Power):
        found += [lambda: Power(args[0], args[1] + 1)]
    if isinstance(x, Var) and len(x.indices) == 1:
        found += [lambda: Family(x.name, x.rows, x.cols, x.field)[x.indices[0] - 1]]
    if isinstance(x, Rec):
        found += [lambda: x.moved(x.at - 1)]
    if isinstance(x, (LessEqual, Less)):
        found += [lambda: x.func(args[1], args[0])]
    if isinstance(x, Num):
        found += [lambda: Num(x.value + 1), lambda: Num(-x.value)]
    if isinstance(x, And) and len(args) > 1:
        found += [lambda: And(*args[:-1])]
    if isinstance(x, Transpose):
        found += [lambda: args[0]]
    return found


def spoilt(f: Formula, rng: Random) -> Formula:
    f = unnamed(f)  # type: ignore[assignment]
    while True:
        path, x = rng.choice(list(places(f)))
        for change in rng.sample(found := changes(x, rng), len(found)):
            try:
                new = put(f, path, change())
            except (TypeError, ValueError):
                continue
            if new != f and isinstance(new, Formula) and all(len(y.shape) == 2 for y in _terms(new)):
                return new


def _terms(f: Basic) -> Iterator[Term]:
    for _, x in places(f):
        if isinstance(x, Term):
            yield x


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[] if s < 12 else [pytest.mark.deep]) for s in range(120)])
def test_a_spoilt_theorem_is_proved_only_where_it_holds(seed: int) -> None:
    declaration, rng = drawn(seed), Random(seed)
    claims = derive(declaration)
    for claim in signs(declaration) or (rng.choice(claims[:2]),):
        for _ in range(3):
            statement = replace(claim.statement, conclusion=spoilt(claim.statement.conclusion, rng))
            try:
                prove_claim(replace(claim, statement=statement), claims)
            except Unproved:
                continue
            found = certify(statement, seed=seed, draws=40)
            assert found.holds is not False, f"{statement.conclusion}: {found.counterexample}"
