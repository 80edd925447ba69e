"""Inequalities by sign certificates, and what exists because it is not zero or invertible."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

from . import scripts as sc
from . import terms as tm
from .algebra import Poly, scale
from .formulas import (
    Assumption,
    Invertible,
    Less,
    LessEqual,
    NonZero,
)
from .goals import HYPOTHESIS, Goal, discharge, nonzero_decider, note_rules, reader_of, record, show_equal, shown, signs_of
from .normal import Reader
from .printing import text
from .proof import Unproved
from .squares import nonneg
from .terms import Term
from .zero import residue


def sign(goal: Goal, script: sc.Sign) -> None:
    f = goal.formula
    if not isinstance(f, (Less, LessEqual)):
        raise Unproved(f"a sign certificate proves an inequality, not {text(f)}")
    real(goal, f)
    used = certify_sign(goal, f.rhs - f.lhs, script.parts, isinstance(f, Less), script.by)
    record(goal, goal.title, f, "sign certificate", (HYPOTHESIS,) if HYPOTHESIS in used else ())


def real(goal: Goal, f: Less | LessEqual) -> None:
    """Only real numbers are ordered."""
    for x in (f.lhs, f.rhs):
        if residue(Reader(goal.facts).read(x - tm.Conj(x)), goal.facts, nonzero_decider(goal)):
            raise Unproved(f"{text(x)} is not known to be real")


def certify_sign(
    goal: Goal, gap: Term, parts: tuple[sc.Product, ...], strict: bool, by: tuple[sc.Reason, ...] = ()
) -> set[str]:
    """Show that a term is non-negative, or positive; returns the names of the facts that this used."""
    reader, extra = reader_of(goal, by, gap.shape)
    signs = signs_of(goal)
    if not parts:
        n = reader.normal(gap)
        if not (signs.positive(n) if strict else signs.nonneg(n)):
            raise Unproved(f"{text(gap)} is not a sum of products of terms known to be non-negative")
    else:
        total: Poly = reader.read(gap) + extra(reader)
        positive = False
        for p in parts:
            factors = [reader.normal(tm.lift(x)) for x in p.factors]
            bad = next((x for x in p.factors if not nonneg(tm.lift(x), reader, signs, nonzero_decider(goal))), None)
            if not isinstance(p.coefficient, (int, Fraction)):
                raise Unproved(f"a certificate's coefficient is an exact number, not {p.coefficient!r}")
            if bad is not None or p.coefficient <= 0:
                raise Unproved(f"the certificate's factor {bad} is not known to be non-negative")
            positive |= all(signs.positive(n) for n in factors)
            product = reader.read(tm.Mul(tm.Num(1), *[tm.lift(x) for x in p.factors]))
            total = total + scale(product, -p.coefficient)
        left = residue(total, goal.facts, nonzero_decider(goal))
        if left:
            raise Unproved(f"the certificate of {text(gap)} leaves {shown(left)}")
        if strict and not positive:
            raise Unproved(f"{text(gap)} is not known to be positive: no product of the certificate is")
    discharge(goal, reader.trace)
    note_rules(goal, reader.trace)
    goal.ledger.used |= signs.used - {"premise"}
    return signs.used


def contradiction(goal: Goal, script: sc.Contradiction) -> None:
    """Suppose the goal fails; then the named strict assumption would fail too."""
    f = goal.formula
    if not isinstance(f, (Less, LessEqual)):
        raise Unproved(f"Contradiction proves an inequality, not {text(f)}")
    found = [a for a in goal.assumptions if a.name == script.against]
    if not found or not isinstance(found[0].formula, (Less, LessEqual)):
        raise Unproved(f"no inequality is assumed under the name {script.against!r}")
    negation = LessEqual(f.rhs, f.lhs) if isinstance(f, Less) else Less(f.rhs, f.lhs)
    denied = found[0].formula
    real(goal, f)
    real(goal, denied)
    # what has no value does not fail either: that it has one must not rest on the negation
    reader = Reader(goal.facts)
    reader.read(f.rhs - f.lhs)
    discharge(goal, reader.trace)
    others = tuple(a for a in goal.assumptions if a is not found[0])
    inner = replace(goal, assumptions=(*others, Assumption("negation", negation)))
    strict = isinstance(denied, LessEqual)
    certify_sign(inner, denied.lhs - denied.rhs, script.parts, strict)
    goal.ledger.used.discard("negation")
    goal.ledger.used.add(script.against)
    record(goal, goal.title, f, "sign certificate, by contradiction", (f"assumption: {script.against}",))


def exists(goal: Goal, script: sc.Exists) -> None:
    f = goal.formula
    if not isinstance(f, (NonZero, Invertible)):
        raise Unproved(f"Exists proves that something is not zero or invertible, not {text(f)}")
    x = cast(Term, f.args[0])
    if isinstance(f, NonZero) and not x.is_scalar_term:
        raise Unproved(f"a matrix may be of size 0, and is not shown to be not zero: {text(f)}")
    method = "sign certificate" if script.parts else "normal form" if script.inverse else "product of known factors"
    if script.parts:
        if not isinstance(f, NonZero):
            raise Unproved(f"a sign certificate shows that a scalar is not zero, not {text(f)}")
        certify_sign(goal, tm.Conj(x) * x, script.parts, True)
    elif script.inverse:
        # square, of finite size: a right inverse is the inverse
        one = tm.Num(1) if x.is_scalar_term else tm.Eye(x.rows)
        show_equal(goal, x * script.inverse, one, script.by, goal.title or "the product is the identity")
    else:
        reader = Reader(goal.facts, goal.unfolded)
        reader.need("nonzero" if isinstance(f, NonZero) else "invertible", reader.read(x), text(x))
        discharge(goal, reader.trace)
        note_rules(goal, reader.trace)
    record(goal, goal.title or "existence", f, method, ())
