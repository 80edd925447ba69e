"""The torch source of a declaration's forms: as text, to be read, run, checked and committed like any other code.

Every layer gets ``recurrent`` and ``step``. One with a matrix of rank one beside a decay whose logarithm is known gets ``chunkwise``,
the chunk form of RWKV-7 under other names, and one with a decay alone that of gated linear attention, if it writes one outer product
and reads by one query. Other layers get ``parallel_scan``, a first-order scan of their states: entry by entry where transitions are
numbers or diagonals, by matrices where such of a higher rank stand on one side. A layer that is not affine has no such form.

The call is that of `isoform.derivations.layer.call`: keyword arguments, ``initial_state``, ``output_final_state``, and (o, state or
None). Sums and states are kept in float32 for 16-bit inputs; arguments are left as they are. Where an input or a state is complex,
so are all states and outputs, and a transpose takes no conjugate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..kernel import terms as tm
from ..kernel.formulas import Declaration
from ..kernel.printing import text
from ..kernel.terms import Var
from .call import FINAL, STATE, STEP_STATE
from .classify import states
from .folding import body, paragraph
from .torch_call import FLOAT, INEXACT, Call, vector
from .torch_parallel import Parallel, parallel

HEADER = '''"""{title}, written from its declaration.

{formulas}

{source}{symbols}
"""

from __future__ import annotations

import torch
from jaxtyping import {types}
from torch import Tensor

{imports}'''
HELPERS = {
    "_split": '''def _split(state: Tensor, *sizes: tuple[int, int]) -> tuple[Tensor, ...]:
    """The states that one tensor holds, each transposed."""
    parts = state.split([rows * cols for rows, cols in sizes], -1)
    return tuple(x.unflatten(-1, own).mT for x, own in zip(parts, sizes, strict=True))''',
    "_eye": '''def _eye(n: int, like: Tensor) -> Tensor:
    """The identity."""
    return torch.eye(n, dtype=like.dtype, device=like.device)''',
    "_joined": '''def _joined(parts: list[Tensor], dim: int) -> Tensor:
    """Matrices beside or below each other, whose leading axes are spread."""
    lead = torch.broadcast_shapes(*(x.shape[:-2] for x in parts))
    return torch.cat([x.expand(*lead, *x.shape[-2:]) for x in parts], dim)''',
}


def torch_code(declaration: Declaration, *, heads: bool = True, logs: Mapping[str, str] | None = None) -> str:
    """The source of a module with the forms of a declaration, ``FORMS`` and ``STEPS``.

    ``heads`` and ``logs`` are those of `isoform.properties.declared.operator_of`. Raises CannotWrite for a term without a torch
    expression, NotOneToken for a declaration that is no function of one token, ValueError for arguments that cannot be.
    """
    call = Call(declaration, heads, dict(logs or {}))
    form = parallel(call)
    parts = [_recurrent(call), *([_parallel(call, form)] if form else []), _step(call), _exported(call, form)]
    parts += [call.enter(), call.leave(), _update(call), _read(call), *(form.functions if form else ())]
    parts += [code for name, code in HELPERS.items() if any(f"{name}(" in p for p in parts)]
    types = [name for name in (FLOAT, INEXACT) if any(f"{name}[" in p for p in parts)]
    return "\n\n\n".join([_header(call, form, types), *(p.rstrip() for p in parts)]) + "\n"


def _header(call: Call, form: Parallel | None, types: list[str]) -> str:
    d, t = call.declaration, call.declaration.t
    formulas = [f"{text(s[t])} = {text(s.member.step_at(t, s[t - 1]))}" for s in states(d)] + [f"o_t = {text(d.output)}"]
    logs = [f"``{a.name}`` is the logarithm of {a.input}." for a in call.arguments if a.log]
    domains = [f"{n} is {words}." for n, words in d.domains.items() if words != "real"]
    several = "States are handed over in one tensor, each transposed and flattened, one after the other."
    state = [several] if len(call.states) > 1 else ["A state is handed over transposed."] if call.state_axes.count(" ") > 2 else []
    unreal = ["States and outputs are complex: complex128 if an argument has 64 bits a number, else complex64."] if call.complex else []
    symbols = [f"Symbols: b batch, t time{', h heads' if call.heads else ''}.", *logs, *domains, *state, *unreal]
    common = "COMPLEX, REAL, accumulator, check, check_state" if call.complex else "accumulator, check, check_state"
    return HEADER.format(
        title=d.operator,
        formulas="\n".join(paragraph(f, "    ") for f in formulas),
        source=paragraph(f"Source: {d.source}.") + "\n\n" if d.source else "",
        symbols="\n".join(map(paragraph, symbols)),
        types=", ".join(types),
        imports="\n".join([f"from isoform.impl._common import {common}", *(form.imports if form else ())]),
    )


def _recurrent(call: Call) -> str:
    used = call.used(*call.steps.updates)
    each = [a.input for a in call.arguments if a.sequence and a.input in used]
    source = f"{each[0]}.unbind(1)" if len(each) == 1 else f"zip({', '.join(f'{n}.unbind(1)' for n in each)}, strict=True)"
    if not each:  # the update uses no input: there are as many tokens as of any
        source = f"range({next(a.input for a in call.arguments if a.sequence)}.shape[1])"
    given = [*call.states, *(f"{n}_t" if n in each else n for n in used)]
    lines = [f"all_{n} = [{n}]" for n in call.states]
    lines += [f"for {', '.join(f'{n}_t' for n in each) or '_'} in {source}:", f"    {', '.join(call.states)} = _update({', '.join(given)})"]
    lines += [f"    all_{n}.append({n})" for n in call.states]
    lines += [f"{n} = torch.stack(all_{n}, 1)" for n in call.states]
    lines = call.entering("recurrent", STATE, [*lines, *_results(call)])
    return call.signature("recurrent") + body('"""Token by token, as the recurrence is written."""', *lines)


def _results(call: Call) -> list[str]:
    """The read-out of all states at once, the first of which is that before the first token, and what is returned."""
    last = ", ".join(f"{n}[:, -1]" for n in call.states)
    read = _read_by(call, lambda n: f"{n}[:, :-1]", lambda n: f"{n}[:, 1:]")
    return [f"o = {read}", f"return o.to(dtype), _leave({last}) if {FINAL} else None"]


def _parallel(call: Call, form: Parallel) -> str:
    signature = call.signature(form.name, more="    chunk_size: int = 32,\n" if form.whole else "")
    lines = call.entering(form.name, STATE, [*form.lines, *([] if form.whole else _results(call))])
    return signature + body(f'"""{form.says}"""', *lines)


def _step(call: Call) -> str:
    old = [f"{v.name} = {n}" for v, n in zip(call.steps.before, call.states, strict=True) if v in _states_read(call)]
    given = ", ".join([*call.states, *call.used(*call.steps.updates)])
    read = _read_by(call, lambda n: f"{n}_before", lambda n: n)
    lines = [*old, f"{', '.join(call.states)} = _update({given})", f"return {read}.to(dtype), _leave({', '.join(call.states)})"]
    lines = call.entering("step", STEP_STATE, lines)
    return call.signature("step", token=True) + body('"""One token. The old state is left as it was; None is 0."""', *lines)


def _exported(call: Call, form: Parallel | None) -> str:
    name = call.declaration.operator
    return f'FORMS = {{"{name}": (recurrent, {form.name if form else ""})}}\nSTEPS = {{"{name}": step}}'.replace(", )", ",)")


def _states_read(call: Call) -> list[Var]:
    found = {n for n in tm.walk(call.steps.output) if isinstance(n, Var)}
    return [v for v in (*call.steps.before, *call.steps.now) if v in found]


def _read_by(call: Call, before: Callable[[str], str], now: Callable[[str], str]) -> str:
    """The call of the read-out."""
    old = dict(zip(call.steps.before, call.states, strict=True))
    shown = [before(old[v]) if v in old else now(v.name) for v in _states_read(call)]
    return f"_read({', '.join([*shown, *call.used(call.steps.output)])})"


def _update(call: Call) -> str:
    """The next states, each as a function of the old ones and of the new ones before it."""
    updates, old, new = call.steps.updates, call.steps.before, call.steps.now
    late = {n.name for i, (o, n) in enumerate(zip(old, new, strict=True)) if any(o in set(tm.walk(u)) for u in updates[i + 1 :])}
    after = {n.name: f"{n.name}_new" if n.name in late else n.name for n in new}
    writer = call.writer({**{o.name: n.name for o, n in zip(old, new, strict=True)}, **after}, *updates)
    rows = [writer.text(u) for u in updates]
    lines = [f"{after[n]} = {r}" for n, r in zip(call.states, rows, strict=True)] + [f"return {', '.join(after.values())}"]
    lines = [f"return {rows[0]}"] if len(rows) == 1 else lines
    kind = "Tensor" if len(rows) == 1 else f"tuple[{', '.join(['Tensor'] * len(rows))}]"
    given = ", ".join(f"{n}: Tensor" for n in (*call.states, *call.used(*updates)))
    return f"def _update({given}) -> {kind}:\n" + body('"""The next state."""', *lines)


def _read(call: Call) -> str:
    found = _states_read(call)
    given = ", ".join(f"{n}: Tensor" for n in (*(v.name for v in found), *call.used(call.steps.output)))
    writer = call.writer({v.name: v.name for v in found}, call.steps.output)
    rows, cols = call.declaration.output.shape
    lines = [f"o = {writer.text(call.steps.output)}", f"return {vector('o', rows, cols)}"]
    return f"def _read({given}) -> Tensor:\n" + body('"""The output."""', *lines)
