"""The prover: scripts in, proofs out. Every method of the allow-list is one function here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, cast

from sympy import Basic, Expr, Symbol

from . import scripts as sc
from . import terms as tm
from .affine import Guards, feasible, implied, read
from .algebra import Normal, Poly, scale
from .assumed import ASSUMED
from .fingerprint import canonical
from .formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Iff,
    Implies,
    Invertible,
    Less,
    LessEqual,
    NonZero,
    Statement,
)
from .instances import instantiate
from .language import clean, parts_of
from .normal import Reader, Rule, Trace, conditions_of
from .printing import latex, text
from .proof import Obligation, Proof, Unproved, _seal
from .signs import Fact, Signs, read_fact
from .sizes import entries_of
from .structure import ranged
from .terms import Term, substitute
from .zero import Nonzero, residue

MINUS = Fraction(-1)
Library = Callable[[str], Statement]  # a claim's statement, once it is proved; raises Unproved otherwise


@dataclass
class Ledger:
    """What a proof has relied on so far."""

    obligations: list[Obligation] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    lemmas: set[str] = field(default_factory=set)
    assumed: set[str] = field(default_factory=set)
    largest: int | None = None

    @property
    def scope(self) -> str:
        return "all sizes" if self.largest is None else f"sizes <= {self.largest}"


@dataclass(frozen=True)
class Goal:
    """A formula to show from index facts, assumptions and, inside an induction, its hypothesis."""

    formula: Formula
    facts: Guards
    assumptions: tuple[Assumption, ...]
    library: Library
    ledger: Ledger
    hypothesis: tuple[Rule, ...] = ()
    unfolded: tuple[Rule, ...] = ()
    shown: tuple[Formula, ...] = ()
    title: str = ""

    def under(self, guards: Guards) -> Goal:
        return replace(self, facts=self.facts | guards)


def prove(statement: Statement, script: sc.Script, library: Library) -> Proof:
    """Run a script on a statement. Raises Unproved where an obligation stays open."""
    well_formed(statement)
    for part in parts_of(script):
        clean(part)
    try:
        return _proof(statement, script, library)
    except RecursionError:
        raise Unproved("the terms are nested too deeply") from None


def _proof(statement: Statement, script: sc.Script, library: Library) -> Proof:
    ledger = Ledger()
    facts = frozenset(conditions_of(statement.where))
    goal = Goal(statement.conclusion, facts, statement.assumptions, library, ledger)
    _run(goal, script)
    return _seal(
        type(script).__name__.lower(),
        tuple(ledger.obligations),
        frozenset(ledger.used & {a.name for a in statement.assumptions}),
        frozenset(ledger.lemmas),
        frozenset(ledger.assumed),
        ledger.scope,
    )


def well_formed(statement: Statement) -> None:
    """Its parts are clean, a family has one shape of index, assumption names differ, nothing is trivial."""
    arity: dict[tuple[str, str], object] = {}
    parts: list[Basic] = [statement.conclusion, statement.where, *[a.formula for a in statement.assumptions]]
    for p in parts:
        clean(p)
    for node in (n for p in parts for n in tm.walk(p)):
        if isinstance(node, (tm.Var, tm.Apply)):
            kind = (type(node).__name__, node.name)
            made = (len(node.args[1].args), node.field)
            if arity.setdefault(kind, made) != made:
                raise Unproved(f"{node.name} is used with {arity[kind]} and {made} as its indices and field")
    names = [a.name for a in statement.assumptions]
    if len(set(names)) != len(names):
        raise Unproved(f"two assumptions have one name: {names}")
    if is_trivial(statement.conclusion):
        raise Unproved(f"trivial: both sides of {text(statement.conclusion)} are the same term")


def is_trivial(f: Formula) -> bool:
    """Whether every equation of a formula has one and the same term on both sides."""
    match f:
        case Equation():
            return bool(f.lhs == f.rhs)
        case And() | Iff():
            return all(is_trivial(cast(Formula, p)) for p in f.args)
        case Implies():
            return f.args[0] == f.args[1] or is_trivial(cast(Formula, f.args[1]))
        case ForAll():
            return is_trivial(cast(Formula, f.args[0]))
    return False


def _run(goal: Goal, script: sc.Script) -> None:
    methods: dict[type, Callable[[Goal, Any], None]] = {
        sc.Direct: _direct, sc.Chain: _chain, sc.Induction: _induction, sc.Rowwise: _rowwise,
        sc.Blockwise: _blockwise, sc.Cases: _cases, sc.Each: _each, sc.Both: _both, sc.Suppose: _suppose,
        sc.ForEach: _for_each, sc.Sign: _sign, sc.Contradiction: _contradiction, sc.Exists: _exists, sc.Ode: _ode,
        sc.Sizes: _sizes, sc.UniqueInverse: _unique_inverse,
    }  # fmt: skip
    if type(script) not in methods:
        raise Unproved(f"{type(script).__name__} is not on the list of proof methods")
    # what is shown of an index or a variable need not hold once a method has moved it
    kept = goal if isinstance(script, STILL) else replace(goal, shown=())
    methods[type(script)](kept, script)


STILL = (sc.Direct, sc.Chain, sc.Each, sc.Both, sc.Suppose, sc.Sign, sc.Contradiction, sc.Exists)


# equations ---------------------------------------------------------------------------------------


def _equation(goal: Goal) -> Equation:
    if not isinstance(goal.formula, Equation):
        raise Unproved(f"this method proves equations, not {text(goal.formula)}")
    return goal.formula


def _direct(goal: Goal, script: sc.Direct) -> None:
    e = _equation(goal)
    _equal(goal, e.lhs, e.rhs, script.by, script.note or goal.title)


def _chain(goal: Goal, script: sc.Chain) -> None:
    e = _equation(goal)
    term = e.lhs
    for link in script.links:
        _equal(goal, term, link.term, link.by, link.note or goal.title)
        term = link.term
    _equal(goal, term, e.rhs, script.by, script.note or goal.title)


def _equal(goal: Goal, a: Term, b: Term, by: tuple[sc.Reason, ...], title: str) -> None:
    """The one place where an equation is accepted: its difference has no residue and its conditions hold."""
    Equation(a, b)
    if not feasible(goal.facts):
        _record(goal, title, Equation(a, b), "no such indices", ())
        return
    reader, extra = _reader(goal, by, a.shape)
    left = residue(reader.read(a) + scale(reader.read(b), MINUS) + extra(reader), goal.facts, _nonzero(goal))
    if left:
        raise Unproved(f"{title or 'normal form'}: {text(Equation(a, b))} leaves {_shown(left)}")
    _conditions(goal, reader.trace)
    _note_rules(goal, reader.trace)
    labels = tuple(sorted(reader.trace.rules | {_label(r.equation) for r in by if isinstance(r, sc.Using)}))
    _record(goal, title, Equation(a, b), "normal form", labels)


def _shown(left: Poly) -> str:
    return " + ".join(f"{c}*{m.key}" for m, c in left[:3]) + (" + ..." if len(left) > 3 else "")


def _record(goal: Goal, title: str, f: Formula, method: str, by: tuple[str, ...]) -> None:
    goal.ledger.obligations.append(Obligation(title, text(f), latex(f), method, by))


def _reader(goal: Goal, by: tuple[sc.Reason, ...], shape: tuple[Expr, Expr]) -> tuple[Reader, Callable[[Reader], Poly]]:
    rules = [r for reason in by if not isinstance(reason, sc.Using) for r in _rules(goal, reason)]
    reader = Reader(goal.facts, (*goal.unfolded, *rules))
    certificates = [reason for reason in by if isinstance(reason, sc.Using)]

    def extra(r: Reader) -> Poly:
        out: Poly = []
        plain = replace(r, rules=())
        for c in certificates:
            for rule in _rules(goal, c.equation):
                if rule.params:
                    raise Unproved(f"Using({rule.label}) needs values for {[p.name for p in rule.params]}")
                if not all(implied(goal.facts, g) for g in rule.where):
                    raise Unproved(f"the conditions of {rule.label} do not hold here")
                term = tm.Mul(tm.lift(c.left), rule.lhs - rule.rhs, tm.lift(c.right))
                if not (term.is_scalar_term or all(map(tm.same, term.shape, shape))):
                    raise Unproved(f"Using({rule.label}) gives {tm.shown_shape(term)}, which does not fit the goal")
                out += scale(plain.read(term), MINUS)
                _cite(goal, rule.label)
        return out

    return reader, extra


def _label(r: sc.Reason) -> str:
    match r:
        case sc.Unfold():
            return f"definition of {r.member.name}"
        case sc.Given():
            return f"assumption: {r.name}"
        case sc.Hypothesis():
            return "induction hypothesis"
        case sc.Lemma():
            return f"lemma: {r.claim}"
        case sc.Part():
            return f"part {r.number}"
        case sc.Using():
            return _label(r.equation)


def _cite(goal: Goal, label: str) -> None:
    kind, _, name = label.partition(": ")
    if kind == "assumption":
        goal.ledger.used.add(name)
    if kind == "lemma":
        goal.ledger.lemmas.add(name)


def _note_rules(goal: Goal, trace: Trace) -> None:
    for label in trace.rules:
        _cite(goal, label)
    for theorem in trace.assumed:
        _assume(goal, theorem)


def _assume(goal: Goal, theorem: str) -> None:
    if theorem not in ASSUMED:
        raise Unproved(f"{theorem} is not on the closed list of assumed theorems")
    goal.ledger.assumed.add(theorem)


def _rules(goal: Goal, reason: sc.Reason) -> tuple[Rule, ...]:
    match reason:
        case sc.Unfold():
            return (_unfolding(reason.member, goal.facts),)
        case sc.Hypothesis():
            if not goal.hypothesis:
                raise Unproved("there is no induction hypothesis here")
            return goal.hypothesis
        case sc.Given():
            found = [a for a in goal.assumptions if a.name == reason.name]
            if not found:
                raise Unproved(f"no assumption is named {reason.name!r}: there are {[a.name for a in goal.assumptions]}")
            return _as_rules(found[0].formula, _label(reason), reason.at, frozenset())
        case sc.Lemma():
            return _lemma(goal, reason)
        case sc.Part():
            if not 1 <= reason.number <= len(goal.shown):
                raise Unproved(f"part {reason.number} is not shown here: {len(goal.shown)} are")
            return _as_rules(goal.shown[reason.number - 1], _label(reason), {}, frozenset())
    raise Unproved(f"{reason!r} is no equation")


def _unfolding(member: tm.Rec, facts: Guards) -> Rule:
    if not implied(facts, read(member.at) - read(member.start) - 1):
        raise Unproved(f"{member} has no predecessor: {member.at} > {member.start} is not known here")
    previous = member.moved(member.at - 1)
    where = frozenset({read(member.at) - read(member.start) - 1})
    return Rule(f"definition of {member.name}", member, member.step_at(member.at, previous), (), where)


def _as_rules(
    f: Formula,
    label: str,
    at: Mapping[Symbol, Any],
    where: Guards,
    varying: tuple[Symbol, ...] = (),
    fast: frozenset[Basic] = frozenset(),
) -> tuple[Rule, ...]:
    """An equation for all values of ``varying`` and of its quantified indices, except those that stand ``fast``."""
    params = list(varying)
    while isinstance(f, ForAll):
        body, i, lo, hi = cast("tuple[Formula, Symbol, Expr, tm.Tuple]", f.args)
        where |= {read(i - lo)} | ({read(cast(Expr, hi.args[0]) - i)} if hi.args else set())
        params.append(i)
        f = body
    if not isinstance(f, Equation):
        raise Unproved(f"{label} is no equation: {text(f)}")
    fixed = {p: v for p, v in at.items() if p in params}
    if len(fixed) != len(at):
        raise Unproved(f"{label} holds for all {[p.name for p in params]}: it has no {set(at) - set(params)} to fix")
    left = tuple(p for p in params if p not in fixed and p not in fast)
    names = {p.name: read(tm.index_expression(v)) for p, v in fixed.items()}
    guards = frozenset(g.subs(names) for g in where)
    return (Rule(label, substitute(f.lhs, fixed), substitute(f.rhs, fixed), left, guards),)


def _lemma(goal: Goal, reason: sc.Lemma) -> tuple[Rule, ...]:
    statement = instantiate(goal.library(reason.claim), reason.families)
    where = frozenset(conditions_of(statement.where))
    ranged_over = {s for e in statement.where.args for s in e.free_symbols}
    fixed = {p: v for p, v in reason.at.items() if p in ranged_over}
    here = {canonical(a.formula): a.name for a in goal.assumptions}
    spoken: frozenset[Basic] = frozenset()
    for a in statement.assumptions:
        assumed = cast(Formula, substitute(a.formula, fixed))
        if canonical(assumed) not in here:
            raise Unproved(f"{reason.claim} assumes {a.name}, which is not assumed here: {text(assumed)}")
        goal.ledger.used.add(here[canonical(assumed)])
        spoken |= tm.free(assumed)
    f: Formula = statement.conclusion
    if isinstance(f, And):
        f = cast(Formula, f.args[reason.part])
    if isinstance(f, Equation) and reason.reverse:
        f = Equation(f.rhs, f.lhs)
    params = sorted(ranged_over & (tm.free(f) | fixed.keys()), key=lambda s: s.name)
    # what the lemma assumes is assumed here of these very indices
    return _as_rules(f, _label(reason), reason.at, where, tuple(params), spoken)


def _conditions(goal: Goal, trace: Trace) -> None:
    """Every inverse, logarithm and root that was read must exist."""
    signs = _signs(goal)
    for c in trace.conditions.values():
        if feasible(c.facts) and not signs.holds(c):
            raise Unproved(f"{c.text} is not known to be {c.kind} here")
    goal.ledger.used |= signs.used


def _nonzero(goal: Goal) -> Nonzero:
    """Decides whether a scalar is known not to be zero; the assumptions that say so are used."""
    known = _signs(goal).facts

    def decide(what: Normal, facts: Guards) -> bool:
        signs = Signs(known, facts, set())
        held = signs.nonzero(what)
        goal.ledger.used |= signs.used if held else set()
        return held

    return decide


def _signs(goal: Goal) -> Signs:
    facts: list[Fact] = []
    for a in goal.assumptions:
        parts = a.formula.args if isinstance(a.formula, And) else (a.formula,)
        facts += [f for p in parts for f in read_fact(a.name, cast(Formula, p), Reader(goal.facts))]
    for n, p in enumerate(goal.shown):
        facts += read_fact(f"part {n + 1}", p, Reader(goal.facts))
    return Signs(tuple(facts), goal.facts, set())


# structure ---------------------------------------------------------------------------------------


def _induction(goal: Goal, script: sc.Induction) -> None:
    on, start = script.on, read(tm.index_expression(script.start))
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
        hypotheses = _as_rules(substitute(goal.formula, {on: smaller}), "induction hypothesis", {}, below, (smaller,))
        ahead = replace(goal, hypothesis=hypotheses, title=f"{on} from all smaller ones")
        _run(replace(ahead, unfolded=ahead.unfolded + _unfoldings(ahead, True)), script.step)
        return
    for k in range(script.order):
        at = {on: script.start + k}
        base = _moved(goal, at, f"base case {on} = {script.start + k}")
        base = replace(base, unfolded=base.unfolded + _unfoldings(base, k > 0))
        _run(base, script.base)
    # the step shows the claim at on + order from those at on, ..., on + order - 1
    ahead = _moved(goal, {on: on + script.order}, f"step {on} to {on + script.order}")
    ahead = ahead.under(frozenset({read(on) - start}))
    hypotheses = tuple(r for k in range(script.order) for r in _hypothesis(goal, on, k))
    ahead = replace(ahead, hypothesis=hypotheses, unfolded=ahead.unfolded + _unfoldings(ahead, True))
    _run(ahead, script.step)


def _moved(goal: Goal, at: Mapping[Symbol, Any], title: str) -> Goal:
    names = {p.name: read(tm.index_expression(v)) for p, v in at.items()}
    facts = frozenset(g.subs(names) for g in goal.facts)
    # an outer hypothesis is about the value that `on` had there
    return replace(goal, formula=substitute(goal.formula, at), facts=facts, title=title, hypothesis=())


def _hypothesis(goal: Goal, on: Symbol, k: int) -> tuple[Rule, ...]:
    f = substitute(goal.formula, {on: on + k})
    facts = frozenset(g.subs({on.name: read(on + k)}) for g in goal.facts)
    parts = f.args if isinstance(f, And) else (f,)
    return tuple(r for p in parts for r in _as_rules(cast(Formula, p), "induction hypothesis", {}, facts))


def _unfoldings(goal: Goal, step: bool) -> tuple[Rule, ...]:
    """The definitions of the recursions that occur in the goal, where they have a predecessor."""
    found: list[tm.Rec] = []
    for node in tm.walk(goal.formula):
        bound = isinstance(node, tm.Rec) and not tm.free(node) <= tm.free(goal.formula)
        if not step or bound or not isinstance(node, tm.Rec) or node in found:
            continue
        if implied(goal.facts, read(node.at) - read(node.start) - 1):
            found.append(node)
    return tuple(_unfolding(m, goal.facts) for m in found)


def _rowwise(goal: Goal, script: sc.Rowwise) -> None:
    e = _equation(goal)
    spans = [s for s in (ranged(e.lhs), ranged(e.rhs)) if s]
    if not spans:
        raise Unproved(f"{text(e)} has no time axis along its rows")
    span = spans[0]
    first = span[0] if len(spans) == 2 else 1
    if not tm.same(first, spans[-1][0]):
        raise Unproved(f"the two sides of {text(e)} number their rows differently")
    i = script.i
    spoken = tm.free(goal.formula).union(*[tm.free(a.formula) for a in goal.assumptions])
    if i in spoken or any(i.name in g.names for g in goal.facts):
        raise Unproved(f"the generic row {i} is not generic: it occurs in the goal")
    lo, hi = span
    rows = replace(goal, formula=Equation(tm.Row(e.lhs, i), tm.Row(e.rhs, i)), title=f"row {i}")
    _run(rows.under(frozenset({read(i - lo), read(hi - i)})), script.script)


def _blockwise(goal: Goal, script: sc.Blockwise) -> None:
    from .blocks import grid

    e = _equation(goal)
    left, right = grid(e.lhs), grid(e.rhs)
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


def _for_each(goal: Goal, script: sc.ForEach) -> None:
    if not isinstance(goal.formula, ForAll):
        raise Unproved(f"ForEach proves a quantified formula, not {text(goal.formula)}")
    body, i, lo, hi = cast("tuple[Formula, Symbol, Expr, tm.Tuple]", goal.formula.args)
    taken = any(i.name in g.names for g in goal.facts) or any(i in tm.free(a.formula) for a in goal.assumptions)
    if taken:
        raise Unproved(f"the quantified index {i} is already in use")
    guards = {read(i - lo)} | ({read(cast(Expr, hi.args[0]) - i)} if hi.args else set())
    _run(replace(goal, formula=body).under(frozenset(guards)), script.script)


# order -------------------------------------------------------------------------------------------


def _sign(goal: Goal, script: sc.Sign) -> None:
    f = goal.formula
    if not isinstance(f, (Less, LessEqual)):
        raise Unproved(f"a sign certificate proves an inequality, not {text(f)}")
    _real(goal, f)
    _certify_sign(goal, f.rhs - f.lhs, script.parts, isinstance(f, Less), script.by)
    _record(goal, goal.title, f, "sign certificate", ())


def _real(goal: Goal, f: Less | LessEqual) -> None:
    """Only real numbers are ordered."""
    for x in (f.lhs, f.rhs):
        if residue(Reader(goal.facts).read(x - tm.Conj(x)), goal.facts, _nonzero(goal)):
            raise Unproved(f"{text(x)} is not known to be real")


def _certify_sign(
    goal: Goal, gap: Term, parts: tuple[sc.Product, ...], strict: bool, by: tuple[sc.Reason, ...] = ()
) -> None:
    reader, extra = _reader(goal, by, gap.shape)
    signs = _signs(goal)
    if not parts:
        n = reader.normal(gap)
        if not (signs.positive(n) if strict else signs.nonneg(n)):
            raise Unproved(f"{text(gap)} is not a sum of products of terms known to be non-negative")
    else:
        total: Poly = reader.read(gap) + extra(reader)
        positive = False
        for p in parts:
            factors = [reader.normal(tm.lift(x)) for x in p.factors]
            bad = next((x for x, n in zip(p.factors, factors, strict=True) if not signs.nonneg(n)), None)
            if not isinstance(p.coefficient, (int, Fraction)):
                raise Unproved(f"a certificate's coefficient is an exact number, not {p.coefficient!r}")
            if bad is not None or p.coefficient <= 0:
                raise Unproved(f"the certificate's factor {bad} is not known to be non-negative")
            positive |= all(signs.positive(n) for n in factors)
            product = reader.read(tm.Mul(tm.Num(1), *[tm.lift(x) for x in p.factors]))
            total = total + scale(product, -p.coefficient)
        left = residue(total, goal.facts, _nonzero(goal))
        if left:
            raise Unproved(f"the certificate of {text(gap)} leaves {_shown(left)}")
        if strict and not positive:
            raise Unproved(f"{text(gap)} is not known to be positive: no product of the certificate is")
    _conditions(goal, reader.trace)
    _note_rules(goal, reader.trace)
    goal.ledger.used |= signs.used - {"premise"}


def _contradiction(goal: Goal, script: sc.Contradiction) -> None:
    """Suppose the goal fails; then the named strict assumption would fail too."""
    f = goal.formula
    if not isinstance(f, (Less, LessEqual)):
        raise Unproved(f"Contradiction proves an inequality, not {text(f)}")
    found = [a for a in goal.assumptions if a.name == script.against]
    if not found or not isinstance(found[0].formula, (Less, LessEqual)):
        raise Unproved(f"no inequality is assumed under the name {script.against!r}")
    negation = LessEqual(f.rhs, f.lhs) if isinstance(f, Less) else Less(f.rhs, f.lhs)
    denied = found[0].formula
    _real(goal, f)
    _real(goal, denied)
    others = tuple(a for a in goal.assumptions if a is not found[0])
    inner = replace(goal, assumptions=(*others, Assumption("negation", negation)))
    strict = isinstance(denied, LessEqual)
    _certify_sign(inner, denied.lhs - denied.rhs, script.parts, strict)
    goal.ledger.used.discard("negation")
    goal.ledger.used.add(script.against)
    _record(goal, goal.title, f, "sign certificate, by contradiction", (f"assumption: {script.against}",))


def _exists(goal: Goal, script: sc.Exists) -> None:
    f = goal.formula
    if not isinstance(f, (NonZero, Invertible)):
        raise Unproved(f"Exists proves that something is not zero or invertible, not {text(f)}")
    x = cast(Term, f.args[0])
    if script.parts:
        if not isinstance(f, NonZero):
            raise Unproved(f"a sign certificate shows that a scalar is not zero, not {text(f)}")
        _certify_sign(goal, tm.Conj(x) * x, script.parts, True)
    else:
        reader = Reader(goal.facts)
        reader.need("nonzero" if isinstance(f, NonZero) else "invertible", reader.read(x), text(x))
        _conditions(goal, reader.trace)
    _record(goal, goal.title or "existence", f, "sign certificate" if script.parts else "product of known factors", ())


# analysis ----------------------------------------------------------------------------------------


def _ode(goal: Goal, script: sc.Ode) -> None:
    e = _equation(goal)
    s = script.s
    for a in goal.assumptions:
        if s in tm.free(a.formula):
            raise Unproved(f"the variable {s} is not free to vary: the assumption {a.name} speaks of it")
    gap = e.lhs - e.rhs
    zero = tm.Zero(*gap.shape)
    growth = zero if script.matrix is None else script.matrix * gap
    if s in tm.free(tm.lift(script.start)):
        raise Unproved(f"the starting value {script.start} depends on {s}")
    _equal(goal, tm.Deriv(gap, s) - growth, zero, script.by, f"the same equation in {s}")
    _equal(goal, tm.At(gap, s, script.start), zero, script.by, f"the same value at {s} = {script.start}")
    _assume(goal, "zero-derivative" if script.matrix is None else "ode-uniqueness")


def _sizes(goal: Goal, script: sc.Sizes) -> None:
    e = _equation(goal)
    if not script.sizes or not all(script.sizes.values()):
        raise Unproved("a proof at stated sizes needs a size, and values for it")
    if any(set(v) - {0} != set(range(1, max(v) + 1)) for v in script.sizes.values()):
        raise Unproved("the stated sizes are all sizes up to a largest one")
    for sizes in product(*script.sizes.values()):
        at = dict(zip(script.sizes, sizes, strict=True))
        if min(sizes) < 0 or any(s in tm.free(a.formula) for a in goal.assumptions for s in at):
            raise Unproved(f"the sizes {at} are negative, or an assumption speaks of them")
        left, right = (entries_of(cast(Term, substitute(x, at))) for x in (e.lhs, e.rhs))
        title = f"at {', '.join(f'{s} = {n}' for s, n in at.items())}"
        for r, row in enumerate(left):
            for c, entry in enumerate(row):
                _equal(_moved(goal, at, title), entry, right[r][c], script.by, title)
    goal.ledger.largest = max(goal.ledger.largest or 0, *[n for v in script.sizes.values() for n in v])


def _unique_inverse(goal: Goal, script: sc.UniqueInverse) -> None:
    e = _equation(goal)
    if not isinstance(e.lhs, tm.Inverse):
        raise Unproved(f"the left side is the inverse to be found, not {e.lhs}")
    m = cast(Term, e.lhs.args[0])
    reader = Reader(goal.facts)
    reader.read(e.lhs)
    _conditions(goal, reader.trace)
    _equal(goal, m * e.rhs, tm.Eye(m.rows), script.by, "the product is the identity")
