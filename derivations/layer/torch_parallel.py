"""The form of an affine layer that is not a loop over tokens: a chunk form, or a scan of its states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ..kernel import terms as tm
from ..kernel.terms import Exp, Num, Rec, Term, Var
from .call import FINAL, STATE, Argument
from .classify import Classification, Update, classify
from .linear import column_and_row, times
from .side import GENERAL, IDENTITY, RANK_ONE, Side, monomials
from .torch_call import Call
from .torch_terms import ATOM, SUM, UNARY, CannotWrite, Writer

SCANNED = '''def _scanned(decay: Tensor, write: Tensor, state: Tensor) -> Tensor:
    """All states, the one before the first token among them, where decays multiply entries."""
    decay = torch.broadcast_to(decay, (*write.shape[:-2], *decay.shape[-2:]))
    states, _ = scan(decay, write, state)
    return torch.cat([state.unsqueeze(1), states], 1)
'''
BY_MATRICES = '''def _by_matrices(gate: Tensor, write: Tensor, state: Tensor) -> Tensor:
    """All states, the one before the first token among them, where matrices multiply from the left."""
    gates = gate.unsqueeze(-3).expand(*write.shape[:-2], write.shape[-1], *gate.shape[-2:]).movedim(1, -3)
    columns, first = write.mT.movedim(1, -2), state.mT
    states, _ = matrix_scan(gates.flatten(0, -4), columns.flatten(0, -3), first.flatten(0, -2))
    states = states.unflatten(0, first.shape[:-1]).movedim(-2, 1).mT
    return torch.cat([state.unsqueeze(1), states], 1)
'''


@dataclass(frozen=True)
class Parallel:
    """A form: the lines of its body between the checks and the read-out (all of it if ``whole``), and what it needs."""

    name: str
    says: str
    lines: tuple[str, ...]
    imports: tuple[str, ...]
    functions: tuple[str, ...] = ()
    whole: bool = False


def parallel(call: Call) -> Parallel | None:
    """The chunk form of a layer, or else its scan, or None."""
    return next((form for _, form in attempts(call) if isinstance(form, Parallel)), None)


def attempts(call: Call) -> Iterator[tuple[str, Parallel | str]]:
    """The forms by name, in the order in which they are preferred; a sentence for one that cannot be."""
    kind = classify(call.declaration)
    for name, form in {"chunkwise": _chunkwise, "parallel_scan": _scan}.items():
        try:
            if not kind.affine:
                raise CannotWrite("the update is no single product with the state")
            yield name, form(kind, _Parts(call))
        except CannotWrite as reason:
            yield name, str(reason)


@dataclass(frozen=True)
class _Parts:
    """Writes parts of updates, in which states that came before are there for every token at once."""

    call: Call

    @property
    def given(self) -> tuple[Argument, ...]:
        return self.call.arguments

    @property
    def writer(self) -> Writer:
        now = {v.name: f"{v.name}[:, 1:]" for v in self.call.steps.now}
        old = {b.name: f"{n.name}[:, :-1]" for b, n in zip(self.call.steps.before, self.call.steps.now, strict=True)}
        return self.call.writer(now | old, *self.call.steps.updates)

    def text(self, x: Term, level: int = SUM) -> str:
        return self.writer.text(self.call.steps.opened(x), level)

    def by_token(self, x: Term) -> bool:
        """Whether a term is another one at every token."""
        sequences = {a.atom for a in self.given if a.sequence}
        return any(isinstance(n, (Var, Rec)) and (isinstance(n, Rec) or n.name in sequences) for n in tm.walk(x))

    def column(self, x: Term, need: str = "a column") -> str:
        """A column as the vector that a call takes."""
        if not self.by_token(x):
            raise CannotWrite(f"{need} that is no token's own")
        return f"{self.text(x, ATOM)}.squeeze(-1)"


# chunks ------------------------------------------------------------------------------------------


def _chunkwise(kind: Classification, parts: _Parts) -> Parallel:
    """The chunk form of a memory: H = H (diag(d) + a bᵀ) + v kᵀ, or diag(e) H diag(d) + v kᵀ, read by a query."""
    if not parts.call.heads or parts.call.complex:
        raise CannotWrite("a chunk form is of real numbers, with an axis of heads")
    if len(kind.updates) != 1 or not kind.read.linear or kind.read.rest is not None or len(kind.read.products) != 1:
        raise CannotWrite("a chunk form needs one state and one query")
    (u,), (read,) = kind.updates, kind.read.products
    left, right = cast(Side, u.left), cast(Side, u.right)
    if read.turned or read.of != u.state[u.t] or read.left != tm.Eye(u.before.rows) or u.before.cols == 1 or u.write is None:
        raise CannotWrite("a chunk form reads the state after the update by a column")
    query = times(read.scale, read.right)
    writes = monomials(u.write)
    if len(writes) != 1 or (cut := column_and_row(tm.Mul(*writes[0][1]))) is None:
        raise CannotWrite("a chunk form writes one outer product")
    value, key = times(writes[0][0], cut[0]), tm.Transpose(cut[1]) if not isinstance(cut[1], tm.Transpose) else cast(Term, cut[1].args[0])
    lines = [f"{n} = {parts.column(x)}" for n, x in (("queries", query), ("keys", key), ("values", value))]
    more = f"scale=1.0, {STATE}={STATE}, {FINAL}={FINAL}, chunk_size=chunk_size"
    if right.outers:
        if left.kind != IDENTITY or len(right.outers) != 1:
            raise CannotWrite("a chunk form has one matrix of rank one")
        (o,) = right.outers
        row = cast(Term, o.row.args[0]) if isinstance(o.row, tm.Transpose) else tm.Transpose(o.row)
        lines += [f"decays = torch.broadcast_to({_log(right, parts) or 'keys.new_zeros(1)'}, keys.shape)"]
        lines += [f"a, b = {parts.column(times(o.scale, o.column))}, {parts.column(row)}"]
        call, imported = f"wkv7.chunkwise(queries, keys, values, decays, a, b, {more})", "from isoform.impl.rwkv import wkv7"
        says = "Parallel inside chunks of ``chunk_size``: the memory of RWKV-7, S = diag(e^w) S + b (aᵀ S) + k vᵀ, under other names."
    elif left.kind == right.kind == IDENTITY:
        call, imported = f"linear_attention.chunkwise(queries, keys, values, {more})", "from isoform.impl import linear_attention"
        says = "Parallel inside chunks of ``chunk_size``: linear attention under other names."
    else:
        given = [f"gk=torch.broadcast_to({_log(right, parts) or 'keys.new_zeros(1)'}, keys.shape)"]
        given += [] if left.kind == IDENTITY else [f"gv=torch.broadcast_to({_log(left, parts)}, values.shape)"]
        call = f"gated_linear_attention.chunkwise(queries, keys, values, {', '.join(given)}, {more})"
        imported = "from isoform.impl import gated_linear_attention"
        says = "Parallel inside chunks of ``chunk_size``: gated linear attention under other names."
    lines += [f"o, state = {call}", "return o.to(dtype), state"]
    return Parallel("chunkwise", says, tuple(lines), (imported,), whole=True)


def _log(side: Side, parts: _Parts) -> str:
    """The logarithms of what a side keeps, (b, t, h, n or 1); "" for 1. Raises CannotWrite where they are not known."""
    if side.diagonal is not None:
        return _log_of(side.diagonal, parts)
    return _log_of(side.number, parts) if side.number is not None else _unknown(side.matrix)


def _log_of(x: Term, parts: _Parts) -> str:
    x = cast(Term, tm.unnamed(x))
    if x == Num(1) or isinstance(x, tm.Eye):
        return ""
    if isinstance(x, tm.Mul):
        found = [_log_of(cast(Term, f), parts) for f in x.args]
        return " + ".join(filter(None, found))
    if isinstance(x, tm.Diag):
        return _log_of(cast(Term, x.args[0]), parts)
    if isinstance(x, tm.Stack) and isinstance(x.args[0], Exp):
        return f"{parts.text(tm.Stack(x.args[0].args[0], *x.args[1:]), ATOM)}.squeeze(-1)"
    if isinstance(x, Exp):
        inner = cast(Term, x.args[0])
        own = cast(Term, inner.args[0]) if isinstance(inner, tm.Diag) else inner
        if own.cols != 1 or (isinstance(inner, tm.Mul) and not inner.is_scalar_term):
            return _unknown(x)
        return f"{parts.text(own, ATOM)}.squeeze(-1)"
    if isinstance(x, Var):
        for a in parts.given:
            if a.atom == x.name and a.log and a.sequence:
                return f"{a.name}.unsqueeze(-1)" if x.is_scalar_term else a.name
    return _unknown(x)


def _unknown(x: Term) -> str:
    raise CannotWrite(f"the logarithm of {x} is not known")


# scans -------------------------------------------------------------------------------------------


def _scan(kind: Classification, parts: _Parts) -> Parallel:
    """Every state by a scan over time, in the order in which they need each other."""
    ways: list[tuple[str, str, str]] = [_one_scan(u, v.name, parts) for u, v in zip(kind.updates, parts.call.steps.now, strict=True)]
    functions = {f: None for _, f, _ in ways}
    imports = sorted({i for *_, i in ways})
    says = "All tokens at once, by a first-order scan of the states."
    named = f"from isoform.impl._scan import {', '.join(imports)}"
    return Parallel("parallel_scan", says, tuple(line for line, _, _ in ways), (named,), tuple(functions))


def _one_scan(u: Update, name: str, parts: _Parts) -> tuple[str, str, str]:
    left, right = cast(Side, u.left), cast(Side, u.right)
    if u.write is None or not parts.by_token(u.write):
        raise CannotWrite("a scan needs a write at every token")
    write = parts.text(u.write)
    if not any(s.outers or s.kind == GENERAL for s in (left, right)):
        factors = [_kept(left, parts, False), _kept(right, parts, True)]
        decay = " * ".join(f for f in factors if f) or "1"
        decay = decay if re.search(r"[^\W\d]", decay) else f"{name}.new_full((1, 1), {decay})"
        return f"{name} = _scanned({decay}, {write}, {name})", SCANNED, "scan"
    if RANK_ONE in (left.kind, right.kind):
        raise CannotWrite("a matrix of rank one is for a chunk form")
    if right.kind == IDENTITY:
        return f"{name} = _by_matrices({parts.text(left.matrix)}, {write}, {name})", BY_MATRICES, "matrix_scan"
    if left.kind != IDENTITY:
        raise CannotWrite("matrices on both sides")
    gate = parts.text(right.matrix)
    return f"{name} = _by_matrices(({gate}).mT, ({write}).mT, {name}.mT).mT", BY_MATRICES, "matrix_scan"


def _kept(side: Side, parts: _Parts, turned: bool) -> str:
    """What a side keeps of each entry; "" for 1."""
    if side.kind == IDENTITY:
        return ""
    if side.diagonal is None:
        return parts.text(cast(Term, side.number), UNARY)
    found = parts.writer.diagonal([parts.call.steps.opened(side.diagonal)])
    found = found if found.isidentifier() else f"({found})"
    return f"{found}.mT" if turned else found
