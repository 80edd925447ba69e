"""The prover: scripts in, proofs out. Every method of the allow-list has its line in ``_run``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from sympy import Basic, Expr, Symbol

from . import scripts as sc
from . import terms as tm
from .affine import Guards, feasible, implied, read
from .analysis import at_sizes, integrands, ode, unique_inverse
from .formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Iff,
    Implies,
    Statement,
)
from .goals import Goal, Ledger, Library, Supposed, chain, direct, equation_of, moved, rows_of, supposing, unfoldings
from .language import SUPPOSED, clean, parts_of
from .normal import conditions_of, scope_of
from .nullspace import with_null_vector
from .order import contradiction, exists, sign
from .printing import text
from .proof import Proof, Unproved, _seal
from .relied import Rule
from .terms import substitute


def prove(statement: Statement, script: sc.Script, library: Library) -> Proof:
    """Run a script on a statement. Raises Unproved where an obligation stays open."""
    try:
        well_formed(statement)
        for part in parts_of(script):
            clean(part)
        return _proof(statement, script, library)
    except RecursionError:
        raise Unproved("the terms are nested too deeply") from None
    except Unproved:
        raise
    except (ValueError, tm.ShapeError) as e:
        raise Unproved(f"{type(e).__name__}: {e}") from e


def _proof(statement: Statement, script: sc.Script, library: Library) -> Proof:
    ledger = Ledger()
    goal = Goal(statement.conclusion, scope_of(statement), statement.assumptions, library, ledger)
    _run(goal, script)
    return _seal(
        type(script).__name__.lower(),
        tuple(ledger.obligations),
        frozenset(ledger.used & {a.name for a in statement.assumptions}),
        frozenset(ledger.lemmas),
        frozenset(ledger.assumed),
        ledger.scope,
    )


NAMED = (tm.Var, tm.Apply, tm.Rec)


def well_formed(statement: Statement) -> None:
    """Its parts are clean, a family has one shape of index, assumption names differ, nothing is trivial."""
    arity: dict[tuple[str, str], object] = {}
    parts: list[Basic] = [statement.conclusion, statement.where, *[a.formula for a in statement.assumptions]]
    for p in parts:
        clean(p)
    for node in (n for p in parts for n in tm.walk(tm.unnamed(p))):
        if isinstance(node, (tm.Var, tm.Apply)):
            kind = (type(node).__name__, node.name)
            made = (len(node.args[1].args), node.field)
            if arity.setdefault(kind, made) != made:
                raise Unproved(f"{node.name} is used with {arity[kind]} and {made} as its indices and field")
    if both := {c.name for c in statement.cuts} & {n.name for p in parts for n in tm.walk(p) if isinstance(n, NAMED)}:
        raise Unproved(f"the names {sorted(both)} are those of cuts and of terms")
    names = [a.name for a in statement.assumptions]
    if len(set(names)) != len(names):
        raise Unproved(f"two assumptions have one name: {names}")
    if kept := [n for n in names if SUPPOSED.fullmatch(n)]:
        raise Unproved(f"the names {kept} are reserved for what a proof supposes or has shown")
    given = frozenset(said for a in statement.assumptions for said in _parts(a.formula))
    if is_trivial(statement.conclusion, given):
        raise Unproved(f"trivial: {text(statement.conclusion)} says one thing twice, or what is assumed")


def is_trivial(f: Formula, given: frozenset[object] = frozenset()) -> bool:
    """Whether every equation of a formula has one and the same term on both sides, or is among what is given."""
    if _said(f) in given:
        return True
    match f:
        case Equation():
            return bool(tm.unnamed(f.lhs) == tm.unnamed(f.rhs))
        case And():
            return all(is_trivial(cast(Formula, p), given) for p in f.args)
        case Iff():
            a, b = cast("tuple[Formula, Formula]", f.args)
            return _parts(a) == _parts(b) or (is_trivial(a, given) and is_trivial(b, given))
        case Implies():
            return is_trivial(cast(Formula, f.args[1]), given | _parts(cast(Formula, f.args[0])))
        case ForAll():  # what is given may speak of a free index of that name
            return is_trivial(cast(Formula, f.args[0]))
    return False


def _parts(f: Formula) -> frozenset[object]:
    """The conjuncts of a formula."""
    if isinstance(f, And):
        return frozenset().union(*[_parts(cast(Formula, p)) for p in f.args])
    return frozenset((_said(f),))


def _said(f: Formula) -> object:
    """A formula without names; the sides of an equation in no order."""
    plain = tm.unnamed(f)
    return frozenset(plain.args) if isinstance(plain, Equation) else plain


def _run(goal: Goal, script: sc.Script) -> None:
    methods: dict[type, Callable[[Goal, Any], None]] = {
        sc.Direct: direct, sc.Chain: chain, sc.Induction: _induction, sc.Rowwise: _rowwise,
        sc.Blockwise: _blockwise, sc.Cases: _cases, sc.Each: _each, sc.Both: _both, sc.Suppose: _suppose,
        sc.ForEach: _for_each, sc.Sign: sign, sc.Contradiction: contradiction, sc.Exists: exists, sc.Ode: ode,
        sc.Sizes: at_sizes, sc.UniqueInverse: unique_inverse, sc.Integrands: _integrands, sc.NullVector: _null_vector, sc.Absurd: _absurd,
    }  # fmt: skip
    if type(script) not in methods:
        raise Unproved(f"{type(script).__name__} is not on the list of proof methods")
    # what is shown of an index or a variable need not hold once a method has moved it
    kept = goal if isinstance(script, STILL) else replace(goal, shown=())
    methods[type(script)](kept, script)


STILL = (
    sc.Direct, sc.Chain, sc.Rowwise, sc.Each, sc.Both, sc.Suppose, sc.ForEach, sc.Sign, sc.Contradiction, sc.Exists,
    sc.NullVector, sc.Absurd, sc.UniqueInverse,
)  # fmt: skip


def _induction(goal: Goal, script: sc.Induction) -> None:
    on, start = script.on, read(tm.index_expression(script.start))
    if not isinstance(on, Symbol):
        raise Unproved(f"an induction is on an index, not on {on}")
    if on.name in start.names:
        raise Unproved(f"induction on {on}: its start {script.start} moves with it")
    if not implied(goal.facts, read(on) - start):
        raise Unproved(f"induction on {on} from {script.start}: {on} >= {script.start} is not a condition of the goal")
    for a in goal.assumptions:
        if on in tm.free(a.formula):
            raise Unproved(f"induction on {on}: the assumption {a.name} speaks of it")
    if script.strong:
        taken = tm.free(goal.formula).union(*[tm.free(a.formula) for a in goal.assumptions])
        smaller = cast(Symbol, tm.fresh(on, taken | {Symbol(n, integer=True) for g in goal.facts for n in g.names}))
        facts = frozenset(g.subs({on.name: read(smaller)}) for g in goal.facts)
        below = facts | {read(smaller) - start, read(on) - read(smaller) - 1}
        rules, signs = supposing(cast(Formula, substitute(goal.formula, {on: smaller})), below, (smaller,))
        ahead = replace(goal, hypothesis=rules, supposed=signs, title=f"{on} from all smaller ones")
        _run(replace(ahead, unfolded=ahead.unfolded + _unfoldings(ahead, True)), script.step)
        return
    for k in range(script.order):
        at = {on: script.start + k}
        base = moved(goal, at, f"base case {on} = {script.start + k}")
        base = replace(base, unfolded=base.unfolded + _unfoldings(base, k > 0))
        _run(base, script.base)
    # the step shows the claim at on + order from those at on, ..., on + order - 1
    ahead = moved(goal, {on: on + script.order}, f"step {on} to {on + script.order}")
    ahead = ahead.under(frozenset({read(on) - start}))
    supposed = [_supposed(goal, on, k) for k in range(script.order)]
    ahead = replace(
        ahead,
        hypothesis=tuple(r for rules, _ in supposed for r in rules),
        supposed=tuple(s for _, signs in supposed for s in signs),
        unfolded=ahead.unfolded + _unfoldings(ahead, True),
    )
    _run(ahead, script.step)


def _supposed(goal: Goal, on: Symbol, k: int) -> tuple[tuple[Rule, ...], tuple[Supposed, ...]]:
    """The goal k steps after ``on``, where its conditions hold."""
    facts = frozenset(g.subs({on.name: read(on + k)}) for g in goal.facts)
    return supposing(cast(Formula, substitute(goal.formula, {on: on + k})), facts)


def _unfoldings(goal: Goal, step: bool) -> tuple[Rule, ...]:
    """The definitions of the recursions that occur in the goal, where they have a predecessor."""
    found: list[tm.Rec] = []
    for node in tm.walk(tm.unnamed(goal.formula)):
        bound = isinstance(node, tm.Rec) and not tm.free(node) <= tm.free(goal.formula)
        if not step or bound or not isinstance(node, tm.Rec) or node in found:
            continue
        if implied(goal.facts, read(node.at) - read(node.start) - 1):
            found.append(node)
    return tuple(r for m in found for r in unfoldings(goal, m))


def _rowwise(goal: Goal, script: sc.Rowwise) -> None:
    e, i = equation_of(goal), script.i
    lo, hi = rows_of(e)
    if not isinstance(i, Symbol):
        raise Unproved(f"the generic row {i} is one row: a symbol stands for every row")
    if i in tm.free(goal.formula) or _spoken(goal, i):
        raise Unproved(f"the generic row {i} is not generic: it occurs in the goal")
    rows = replace(goal, formula=Equation(tm.Row(e.lhs, i), tm.Row(e.rhs, i)), title=f"row {i}")
    _run(rows.under(frozenset({read(i - lo), read(hi - i)})), script.script)


def _spoken(goal: Goal, i: Symbol) -> bool:
    """Whether anything that is known speaks of an index."""
    known = (*[a.formula for a in goal.assumptions], *goal.shown)
    return any(i.name in g.names for g in goal.facts) or any(i in tm.free(f) for f in known)


def _blockwise(goal: Goal, script: sc.Blockwise) -> None:
    from .blocks import grid

    e = equation_of(goal)
    left, right = (grid(cast(tm.Term, tm.unnamed(x))) for x in (e.lhs, e.rhs))
    if [[b.shape for b in r] for r in left] != [[b.shape for b in r] for r in right]:
        raise Unproved(f"the blocks of the two sides of {text(e)} do not correspond")
    for n, (r, s) in enumerate(zip(left, right, strict=True)):
        for k, (a, b) in enumerate(zip(r, s, strict=True)):
            part = replace(goal, formula=Equation(a, b), title=f"block ({n + 1}, {k + 1})")
            _run(part, script.scripts.get((n, k), sc.Direct(script.by)))


def _cases(goal: Goal, script: sc.Cases) -> None:
    regions = [frozenset(conditions_of(c)) for c, _ in script.cases]
    if not _covered(goal.facts, regions):
        raise Unproved("the cases do not cover every value of the indices")
    for guards, (cond, inner) in zip(regions, script.cases, strict=True):
        _run(replace(goal.under(guards), title=f"case {text(cond)}"), inner)


def _covered(facts: Guards, regions: list[Guards]) -> bool:
    """Whether the regions cover everything that the facts allow."""
    if not feasible(facts):
        return True
    if not regions:
        return False
    return all(_covered(facts | {-g - 1}, regions[1:]) for g in regions[0])


def _each(goal: Goal, script: sc.Each) -> None:
    if not isinstance(goal.formula, And) or len(goal.formula.args) != len(script.scripts):
        raise Unproved(f"Each proves a conjunction of {len(script.scripts)} parts, not {text(goal.formula)}")
    parts = cast("tuple[Formula, ...]", goal.formula.args)
    for n, inner in enumerate(script.scripts):
        _run(replace(goal, formula=parts[n], shown=parts[:n]), inner)


def _both(goal: Goal, script: sc.Both) -> None:
    if not isinstance(goal.formula, Iff):
        raise Unproved(f"Both proves an equivalence, not {text(goal.formula)}")
    a, b = cast("tuple[Formula, Formula]", goal.formula.args)
    _run(replace(_supposing(goal, a), formula=b, title="forward"), script.forward)
    _run(replace(_supposing(goal, b), formula=a, title="backward"), script.backward)


def _supposing(goal: Goal, premise: Formula) -> Goal:
    parts = premise.args if isinstance(premise, And) else (premise,)
    names = ["premise"] if len(parts) == 1 else [f"premise {n + 1}" for n in range(len(parts))]
    new = tuple(Assumption(n, cast(Formula, p)) for n, p in zip(names, parts, strict=True))
    if {a.name for a in goal.assumptions} & set(names):
        raise Unproved("a premise is already supposed here")
    return replace(goal, assumptions=goal.assumptions + new)


def _suppose(goal: Goal, script: sc.Suppose) -> None:
    if not isinstance(goal.formula, Implies):
        raise Unproved(f"Suppose proves an implication, not {text(goal.formula)}")
    a, b = cast("tuple[Formula, Formula]", goal.formula.args)
    _run(replace(_supposing(goal, a), formula=b), script.script)


def _integrands(goal: Goal, script: sc.Integrands) -> None:
    _run(integrands(goal, script), script.script)


def _null_vector(goal: Goal, script: sc.NullVector) -> None:
    _run(with_null_vector(goal, script), script.script)


def _absurd(goal: Goal, script: sc.Absurd) -> None:
    _run(replace(goal, formula=Equation(1, 0), title="a contradiction"), script.script)


def _for_each(goal: Goal, script: sc.ForEach) -> None:
    if not isinstance(goal.formula, ForAll):
        raise Unproved(f"ForEach proves a quantified formula, not {text(goal.formula)}")
    body, i, lo, hi = cast("tuple[Formula, Symbol, Expr, tm.Tuple]", goal.formula.args)
    if _spoken(goal, i):
        raise Unproved(f"the quantified index {i} is already in use")
    guards = {read(i - lo)} | ({read(cast(Expr, hi.args[0]) - i)} if hi.args else set())
    _run(replace(goal, formula=body).under(frozenset(guards)), script.script)
