"""A declaration as functions of one token: the update of each state, and the read-out, with names for the states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from sympy import Basic, Expr

from ..kernel import terms as tm
from ..kernel.formulas import Declaration
from ..kernel.terms import Rec, Term, Var
from .classify import states


class NotOneToken(ValueError):
    """A declaration looks at other tokens than the current one, or at the time itself, so no step form exists."""


@dataclass(frozen=True)
class Steps:
    """The updates, in order, and the read-out of a declaration, with the names that its parts are printed under.

    ``before`` are the states that a token finds, ``now`` those that it leaves. An update speaks of all ``before`` and of the
    ``now`` that come earlier; the read-out of both.
    """

    updates: tuple[Term, ...]
    output: Term
    before: tuple[Var, ...]
    now: tuple[Var, ...]
    members: Mapping[Basic, Term]

    def opened(self, x: Term) -> Term:
        """A term in these names for the states."""
        return cast(Term, _put(x, self.members))


def steps(declaration: Declaration) -> Steps:
    """The functions of one token. Raises NotOneToken."""
    t, found = declaration.t, states(declaration)
    taken = {f.name for f in declaration.inputs.values()}
    names = [_free(s.member.name, taken) for s in found]
    now = tuple(_atom(name, s.member) for name, s in zip(names, found, strict=True))
    before = tuple(_atom(f"{name}_before", s.member) for name, s in zip(names, found, strict=True))
    members: dict[Basic, Term] = {}
    updates = []
    for s, old, new in zip(found, before, now, strict=True):
        members[s[t - 1]] = members[tm.unnamed(s[t - 1])] = old
        updates.append(_opened(s.member.step_at(t, old), members, declaration))
        members[s[t]] = members[tm.unnamed(s[t])] = new
    return Steps(tuple(updates), _opened(declaration.output, members, declaration), before, now, members)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_state"
    taken.add(name)
    return name


def _atom(name: str, member: Rec) -> Var:
    return Var(name, (), member.rows, member.cols, cast(Var, member.args[3]).field)


def _opened(x: Term, members: Mapping[Basic, Term], declaration: Declaration) -> Term:
    """A term in which the states are named and nothing depends on the time but the inputs at it."""
    opened = cast(Term, _put(x, members))
    for node in tm.walk(opened):
        if isinstance(node, Rec):
            raise NotOneToken(f"{declaration.operator}: {node} is no state at t or t - 1; only those can be used.")
        if isinstance(node, Var) and declaration.t in node.args[1].free_symbols and node.indices != (declaration.t,):
            raise NotOneToken(f"{declaration.operator}: {node} is another token's input; what a token needs of others must be in a state.")
    if any(declaration.t in e.free_symbols for e in _expressions(opened)):
        raise NotOneToken(f"{declaration.operator} depends on the time t itself, which a state handed over does not know.")
    return opened


def _expressions(x: Basic) -> list[Expr]:
    """The index expressions of a term, those of its inputs left out."""
    if isinstance(x, Expr):
        return [x]
    return [] if isinstance(x, Var) else [e for a in x.args for e in _expressions(a)]


def _put(x: Basic, members: Mapping[Basic, Term]) -> Basic:
    if x in members:
        return members[x]
    if not isinstance(x, (Term, tm.Tuple)) or not x.args:
        return x
    args = [_put(a, members) for a in x.args]
    return x if all(a is b for a, b in zip(args, x.args, strict=True)) else cast(Basic, x.func(*args))
