"""Goals, the equations that may be used on the way, and the one place where an equation is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, cast

from sympy import Basic, Expr, Symbol

from . import scripts as sc
from . import terms as tm
from .affine import Guards, feasible, implied, name, read
from .algebra import Normal, Poly, fresh_name, scale
from .assumed import ASSUMED
from .fingerprint import canonical
from .formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Invertible,
    Less,
    LessEqual,
    NonZero,
    Statement,
    plain,
)
from .instances import instantiate
from .normal import Reader, scope_of
from .printing import text
from .proof import Obligation, Unproved
from .relied import Rule, Trace
from .signs import Fact, Signs, read_fact
from .structure import ranged
from .terms import Term, Var, substitute
from .zero import Nonzero, residue

MINUS = Fraction(-1)
HYPOTHESIS = "induction hypothesis"
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
class Supposed:
    """A sign or an inverse that an induction supposes, for all values of ``varying`` that satisfy ``where``."""

    formula: Formula
    where: Guards
    varying: tuple[Symbol, ...] = ()

    def facts(self, known: Guards) -> list[Fact]:
        """What it says, under names of its own: what is known of an index here says nothing of a parameter of that name."""
        own = {s: Symbol(fresh_name(), integer=True) for s in self.varying}
        names = {s.name: name(o.name) for s, o in own.items()}
        where = frozenset(g.subs(names) for g in self.where)
        read = read_fact(HYPOTHESIS, cast(Formula, substitute(self.formula, own)), Reader(known | where))
        params = frozenset(o.name for o in own.values())
        return [replace(f, params=f.params | params, where=f.where | where) for f in read]


@dataclass(frozen=True)
class Goal:
    """A formula to show from index facts, assumptions and, inside an induction, its hypothesis.

    The equations of the hypothesis are rules, its signs and inverses are supposed.
    """

    formula: Formula
    facts: Guards
    assumptions: tuple[Assumption, ...]
    library: Library
    ledger: Ledger
    hypothesis: tuple[Rule, ...] = ()
    supposed: tuple[Supposed, ...] = ()
    unfolded: tuple[Rule, ...] = ()
    shown: tuple[Formula, ...] = ()
    title: str = ""

    def under(self, guards: Guards) -> Goal:
        return replace(self, facts=self.facts | guards)


def equation_of(goal: Goal) -> Equation:
    if not isinstance(goal.formula, Equation):
        raise Unproved(f"this method proves equations, not {text(goal.formula)}")
    return goal.formula


def rows_of(e: Equation) -> tuple[Expr, Expr]:
    """The first and the last row of both sides of an equation. Raises Unproved."""
    spans = [s for s in (ranged(cast(Term, tm.unnamed(x))) for x in (e.lhs, e.rhs)) if s]
    if not spans:
        raise Unproved(f"{text(e)} has no time axis along its rows")
    first = spans[0][0] if len(spans) == 2 else 1
    if not tm.same(first, spans[-1][0]):
        raise Unproved(f"the two sides of {text(e)} number their rows differently")
    return spans[0]


def direct(goal: Goal, script: sc.Direct) -> None:
    e = equation_of(goal)
    show_equal(goal, e.lhs, e.rhs, script.by, script.note or goal.title)


def chain(goal: Goal, script: sc.Chain) -> None:
    e = equation_of(goal)
    term = e.lhs
    for n, link in enumerate(script.links):
        show_equal(goal, term, link.term, link.by, link.note or goal.title, n > 0)
        term = link.term
    show_equal(goal, term, e.rhs, script.by, script.note or goal.title, bool(script.links))


def show_equal(goal: Goal, a: Term, b: Term, by: tuple[sc.Reason, ...], title: str, continues: bool = False) -> None:
    """The one place where an equation is accepted: its difference has no residue and its conditions hold."""
    Equation(a, b)
    if not feasible(goal.facts):
        record(goal, title, Equation(a, b), "no such indices", (), continues)
        return
    reader, extra = reader_of(goal, by, a.shape)
    left = residue(reader.read(a) + scale(reader.read(b), MINUS) + extra(reader), goal.facts, nonzero_decider(goal))
    if left:
        raise Unproved(f"{title or 'normal form'}: {text(Equation(a, b))} leaves {shown(left)}")
    discharge(goal, reader.trace)
    note_rules(goal, reader.trace)
    labels = tuple(sorted(reader.trace.rules | {label(r.equation) for r in by if isinstance(r, sc.Using)}))
    record(goal, title, Equation(a, b), "normal form", labels, continues)


def shown(left: Poly) -> str:
    return " + ".join(f"{c}*{m.key}" for m, c in left[:3]) + (" + ..." if len(left) > 3 else "")


def record(goal: Goal, title: str, f: Formula, method: str, by: tuple[str, ...], continues: bool = False) -> None:
    goal.ledger.obligations.append(Obligation(title, f, method, by, continues))


def reader_of(goal: Goal, by: tuple[sc.Reason, ...], shape: tuple[Expr, Expr]) -> tuple[Reader, Callable[[Reader], Poly]]:
    rules = [r for reason in by if not isinstance(reason, sc.Using) for r in rules_of(goal, reason)]
    reader = Reader(goal.facts, (*goal.unfolded, *rules))
    certificates = [reason for reason in by if isinstance(reason, sc.Using)]

    def extra(r: Reader) -> Poly:
        out: Poly = []
        plain = replace(r, rules=())
        for c in certificates:
            for rule in rules_of(goal, c.equation):
                if rule.params:
                    raise Unproved(f"Using({rule.label}) needs values for {[p.name for p in rule.params]}")
                if not all(implied(goal.facts, g) for g in rule.where):
                    raise Unproved(f"the conditions of {rule.label} do not hold here")
                # each side on its own: a side with a time axis would have the other one read along it
                sides = [tm.Mul(tm.lift(c.left), x, tm.lift(c.right)) for x in _used(goal, c, rule)]
                sides = [tm.Trace(x) for x in sides] if c.trace else sides
                sides = [tm.Conj(x) for x in sides] if c.conjugate else sides
                if not (sides[0].is_scalar_term or all(map(tm.same, sides[0].shape, shape))):
                    raise Unproved(f"Using({rule.label}) gives {tm.shown_shape(sides[0])}, which does not fit the goal")
                out += plain.read(sides[1]) + scale(plain.read(sides[0]), MINUS)
                cite(goal, rule.label)
        return out

    return reader, extra


def _used(goal: Goal, c: sc.Using, rule: Rule) -> tuple[Term, Term]:
    """The two sides of an equation, or their rows of one number."""
    if c.row is None:
        return rule.lhs, rule.rhs
    row = tm.index_expression(c.row)
    lo, hi = rows_of(Equation(rule.lhs, rule.rhs))
    if not all(implied(goal.facts, read(e)) for e in (row - lo, hi - row)):
        raise Unproved(f"row {row} of {rule.label} is not known to be among {lo}..{hi}")
    return tm.Row(rule.lhs, row), tm.Row(rule.rhs, row)


def label(r: sc.Reason) -> str:
    match r:
        case sc.Unfold():
            return f"definition of {r.member.name}"
        case sc.Cancels():
            return "definition of the inverse"
        case sc.Given():
            return f"assumption: {r.name}"
        case sc.Hypothesis():
            return HYPOTHESIS
        case sc.Lemma():
            return f"lemma: {r.claim}"
        case sc.Part():
            return f"part {r.number}"
        case sc.Using():
            return label(r.equation)


def cite(goal: Goal, label: str) -> None:
    kind, _, name = label.partition(": ")
    if kind == "assumption":
        goal.ledger.used.add(name)
    if kind == "lemma":
        goal.ledger.lemmas.add(name)


def note_rules(goal: Goal, trace: Trace) -> None:
    for label in trace.rules:
        cite(goal, label)
    for theorem in trace.assumed:
        assume(goal, theorem)


def assume(goal: Goal, theorem: str) -> None:
    if theorem not in ASSUMED:
        raise Unproved(f"{theorem} is not on the closed list of assumed theorems")
    goal.ledger.assumed.add(theorem)


def rules_of(goal: Goal, reason: sc.Reason) -> tuple[Rule, ...]:
    match reason:
        case sc.Unfold():
            return unfoldings(goal, cast(tm.Rec, tm.unnamed(reason.member)))
        case sc.Cancels():
            of = reason.of
            return (Rule(label(reason), of * tm.Inverse(of), tm.Num(1) if of.is_scalar_term else tm.Eye(of.rows)),)
        case sc.Hypothesis():
            if not goal.hypothesis:
                raise Unproved("there is no equation among the induction hypotheses here")
            return goal.hypothesis
        case sc.Given():
            return as_rules(_assumed(goal, reason.name), label(reason), reason.at, frozenset())
        case sc.Lemma():
            return lemma(goal, reason)
        case sc.Part():
            if not 1 <= reason.number <= len(goal.shown):
                raise Unproved(f"part {reason.number} is not shown here: {len(goal.shown)} are")
            return as_rules(goal.shown[reason.number - 1], label(reason), {}, frozenset())
    raise Unproved(f"{reason!r} is no equation")


def unfolding(member: tm.Rec, facts: Guards) -> Rule:
    if not implied(facts, read(member.at) - read(member.start) - 1):
        raise Unproved(f"{member} has no predecessor: {member.at} > {member.start} is not known here")
    previous = member.moved(member.at - 1)
    where = frozenset({read(member.at) - read(member.start) - 1})
    return Rule(f"definition of {member.name}", member, member.step_at(member.at, previous), (), where)


def unfoldings(goal: Goal, member: tm.Rec) -> tuple[Rule, ...]:
    """A member's definition, which holds at every value of a variable, and its derivatives that the goal speaks of."""
    rule = unfolding(member, goal.facts)
    orders = [by for by in _orders(goal) if by[0] in tm.free(member)]
    return (rule, *[replace(rule, lhs=_derived(rule.lhs, by), rhs=_derived(rule.rhs, by)) for by in orders])


def _orders(goal: Goal) -> list[tuple[Var, ...]]:
    """The variables of the derivatives in a goal, of a derivative of a derivative the inner one first."""
    found: dict[tuple[Var, ...], None] = {}
    for node in tm.walk(tm.unnamed(goal.formula)):
        by: tuple[Var, ...] = ()
        while isinstance(node, tm.Deriv):
            node, by = node.args[0], (cast(Var, node.args[1]), *by)
        found |= {by: None} if by else {}
    return list(found)


def _derived(x: Term, by: tuple[Var, ...]) -> Term:
    for s in by:
        x = tm.Deriv(x, s)
    return x


def supposing(f: Formula, where: Guards, varying: tuple[Symbol, ...] = ()) -> tuple[tuple[Rule, ...], tuple[Supposed, ...]]:
    """An induction hypothesis, for all values of ``varying`` that satisfy ``where``: equations as rules, and the rest."""
    parts = cast("tuple[Formula, ...]", f.args if isinstance(f, And) else (f,))
    signs = tuple(p for p in parts if isinstance(_body(p), (Less, LessEqual, NonZero, Invertible)))
    rules = tuple(r for p in parts if p not in signs for r in as_rules(p, HYPOTHESIS, {}, where, varying))
    return rules, tuple(Supposed(p, where, varying) for p in signs)


def _body(f: Formula) -> Formula:
    """What a quantified formula says of each value."""
    return _body(cast(Formula, f.args[0])) if isinstance(f, ForAll) else f


def as_rules(
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


def _assumed(goal: Goal, name: str) -> Formula:
    found = [a.formula for a in goal.assumptions if a.name == name]
    if not found:
        raise Unproved(f"no assumption is named {name!r}: there are {[a.name for a in goal.assumptions]}")
    return found[0]


def _at(goal: Goal, given: sc.Given) -> Formula:
    """An assumption at values of its first indices, which it holds for all values of."""
    f = _assumed(goal, given.name)
    for i, value in given.at.items():
        if not (isinstance(f, ForAll) and f.args[1] == i):
            raise Unproved(f"{given.name} does not hold for all {i} first: {text(f)}")
        body, _, lo, hi = cast("tuple[Formula, Symbol, Expr, tm.Tuple]", f.args)
        at = read(tm.index_expression(value))
        if not all(implied(goal.facts, g) for g in (at - read(lo), *[read(cast(Expr, e)) - at for e in hi.args])):
            raise Unproved(f"{given.name} is not known to hold at {i} = {value}")
        f = cast(Formula, substitute(body, {i: value}))
    return f


def lemma(goal: Goal, reason: sc.Lemma) -> tuple[Rule, ...]:
    families = {name: (at, cast(Term, tm.unnamed(term))) for name, (at, term) in reason.families.items()}
    statement = plain(goal.library(reason.claim))
    ranged_over = {s for e in statement.where.args for s in e.free_symbols}
    sizes = {p: tm.index_expression(v) for p, v in reason.at.items() if p in statement.sizes - ranged_over}
    statement = instantiate(sized(statement, sizes), families)
    where = scope_of(statement) | {read(v) for v in sizes.values()}
    fixed = {p: v for p, v in reason.at.items() if p in ranged_over}
    here = {canonical(p): f"part {n + 1}" for n, p in enumerate(goal.shown)}
    here |= {canonical(a.formula): a.name for a in goal.assumptions}
    here |= {canonical(_at(goal, g)): g.name for g in reason.given}
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
    at = {p: v for p, v in reason.at.items() if p not in sizes}
    # what the lemma assumes is assumed here of these very indices
    return as_rules(f, label(reason), at, where, tuple(params), spoken)


def sized(statement: Statement, sizes: Mapping[Symbol, Expr]) -> Statement:
    """The statement about atoms of the given sizes, which are no indices of it."""
    put = cast("Any", lambda x: substitute(x, sizes))
    assumptions = tuple(Assumption(a.name, put(a.formula)) for a in statement.assumptions)
    return replace(statement, conclusion=put(statement.conclusion), assumptions=assumptions)


def discharge(goal: Goal, trace: Trace) -> None:
    """Every inverse, logarithm and root that was read must exist."""
    signs = signs_of(goal)
    for c in trace.conditions.values():
        if feasible(c.facts) and not signs.holds(c):
            raise Unproved(f"{c.text} is not known to be {c.kind} here")
    goal.ledger.used |= signs.used


def nonzero_decider(goal: Goal) -> Nonzero:
    """Decides whether a scalar is known not to be zero; the assumptions that say so are used."""
    known = signs_of(goal).facts

    def decide(what: Normal, facts: Guards) -> bool:
        signs = Signs(known, facts, set())
        held = signs.nonzero(what)
        goal.ledger.used |= signs.used if held else set()
        return held

    return decide


def signs_of(goal: Goal) -> Signs:
    facts: list[Fact] = []
    for a in goal.assumptions:
        facts += read_fact(a.name, a.formula, Reader(goal.facts))
    for n, p in enumerate(goal.shown):
        facts += read_fact(f"part {n + 1}", p, Reader(goal.facts))
    facts += [f for s in goal.supposed for f in s.facts(goal.facts)]
    return Signs(tuple(facts), goal.facts, set())


def moved(goal: Goal, at: Mapping[Symbol, Any], title: str) -> Goal:
    names = {p.name: read(tm.index_expression(v)) for p, v in at.items()}
    facts = frozenset(g.subs(names) for g in goal.facts)
    # an outer hypothesis is about the value that `on` had there
    return replace(goal, formula=substitute(goal.formula, at), facts=facts, title=title, hypothesis=(), supposed=())
