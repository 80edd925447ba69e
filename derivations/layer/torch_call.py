"""The call of generated forms: their signatures, what is checked and made of arguments, and how states are handed out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sympy import Expr

from ..kernel import terms as tm
from ..kernel.formulas import Declaration
from ..kernel.terms import Term, Var
from .call import FINAL, STATE, STEP_STATE, Argument, arguments, axis, sized
from .folding import body
from .steps import Steps, steps
from .torch_terms import CannotWrite, Writer, is_complex

FLOAT, INEXACT = "Float", "Inexact"
"""The types of real numbers, and of real or complex ones."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Call:
    """A declaration, whether its tensors have an axis of heads, and which inputs are given by their logarithms."""

    declaration: Declaration
    heads: bool
    logs: Mapping[str, str]

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the call."""
        return arguments(self.declaration, self.logs)

    @cached_property
    def steps(self) -> Steps:
        """The functions of one token."""
        found = steps(self.declaration)
        if not found.now:
            raise CannotWrite(f"{self.declaration.operator} has no state")
        return found

    @cached_property
    def complex(self) -> bool:
        """Whether an input or a state is complex; then states, outputs and all in between are."""
        return any(a.complex for a in self.arguments) or any(map(is_complex, self.steps.now))

    @property
    def states(self) -> list[str]:
        """The names of the states."""
        return [v.name for v in self.steps.now]

    def writer(self, states: Mapping[str, str], *terms: Term) -> Writer:
        """A writer for these terms in the inputs and in states of these names."""
        kept = {v: states[v.name].partition("[")[0] for v in (*self.steps.before, *self.steps.now) if v.name in states}
        atoms: list[tuple[str, Expr, Expr]] = [(n, v.rows, v.cols) for v, n in kept.items()]
        atoms += [(a.input, a.rows, a.cols) for a in self.arguments if a.input in self.used(*terms)]
        if not atoms:
            raise CannotWrite(f"{', '.join(map(str, terms))} speaks of no input and no state")
        sizes = {e: f"{n}.shape[{i}]" for n, rows, cols in reversed(atoms) for i, e in ((-2, rows), (-1, cols))}
        return Writer({**{a.atom: a.input for a in self.arguments}, **states}, sizes, atoms[0][0], complex=self.complex)

    def used(self, *terms: Term) -> list[str]:
        """The inputs that terms speak of, in the order of the call."""
        found = {n.name for x in terms for n in tm.walk(x) if isinstance(n, Var)}
        return [a.input for a in self.arguments if a.atom in found]

    @property
    def first(self) -> str:
        """The argument whose dtype the output has."""
        return next(a.name for a in self.arguments if a.sequence)

    # signatures

    def _axes(self, lead: tuple[str, ...], *own: Expr) -> str:
        return " ".join((*lead, *(("h",) if self.heads else ()), *(axis(e) for e in own if e != 1)))

    @property
    def state_axes(self) -> str:
        """The axes of a state as it is handed over."""
        (v, *others) = self.steps.now
        return f"{self._axes(('b',))} s" if others else self._axes(("b",), v.cols, v.rows)

    def signature(self, name: str, *, token: bool = False, more: str = "") -> str:
        """The head of a form, or of the step form for one ``token``."""
        lead = ("b",) if token else ("b", "t")
        axes = {a.name: self._axes(lead if a.sequence else (), *a.sizes) for a in self.arguments}
        given = "".join(f"    {a.name}: {_tensor(axes[a.name], a.complex)},\n" for a in self.arguments)
        state, out = (_tensor(a, self.complex) for a in (self.state_axes, self._axes(lead, *self.declaration.output.shape)))
        if token:
            return f"def {name}(\n{given}    {STEP_STATE}: {state} | None = None,\n) -> tuple[{out}, {state}]:\n"
        options = f"    {STATE}: {state} | None = None,\n    {FINAL}: bool = False,\n{more}"
        return f"def {name}(\n{given}{options}) -> tuple[{out}, {state} | None]:\n"

    def entering(self, form: str, state: str, lines: Iterable[str]) -> list[str]:
        """The lines with which a form begins whose others are these; what they do not speak of has no name."""
        lead = self._axes(("b",) if state == STEP_STATE else ("b", "t"))
        spoken = set(_WORD.findall(" ".join(lines)))
        found = [_tuple([n if n in spoken else "_" for n in names]) for names in ([a.input for a in self.arguments], self.states)]
        where = f"{self.declaration.operator.replace('-', '_')}.{form}"
        given = ", ".join([*(a.name for a in self.arguments), state])
        dtype = f"torch.promote_types({self.first}.dtype, torch.complex64)" if self.complex else f"{self.first}.dtype"
        return [f"dtype = {dtype}", f'{found[0]}, {found[1]} = _enter("{where}", "{lead}", {given})', *lines]

    # what goes in and out

    def enter(self) -> str:
        """The function that checks the arguments and makes matrices of them."""
        names = [a.name for a in self.arguments]
        checked = {a.name: f'"{a.name}": ({a.name}, {self._checked(a)})' for a in self.arguments}
        real = [checked[a.name] for a in self.arguments if not a.complex]
        allowed = ", (*REAL, *COMPLEX)" if self.complex else ""
        total = f"accumulator({', '.join(names)}, state)"
        found = _tuple([a.input for a in self.arguments])
        shapes = [f"({self._lead}, {self._sized(v.rows)}, {self._sized(v.cols)})" for v in self.steps.now]
        begun = _tuple([f"{self.first}.new_zeros{s}" for s in shapes])
        lines = [
            '"""Check, and bring all to the accumulation dtype: matrices (…, rows, cols), columns (…, n, 1), numbers (…, 1, 1)."""',
            f"sizes = check(where, {{{', '.join(checked.values())}}}{allowed})",
            *([f"check(where, {{{', '.join(real)}}})"] if self.complex and real else []),
            "if state is not None:",
            f'    name = "{STATE}" if " t" in lead else "{STEP_STATE}"',
            f"    check_state(where, {self.first}, state, {{{self._state_sizes}}}{allowed}, name=name)",
            f"dtype = {f'torch.promote_types({total}, torch.complex64)' if self.complex else total}",
        ]
        wide = [(a, f"{a.name}.to(dtype){'.exp()' if a.log else ''}") for a in self.arguments]
        lines += [f"{a.input} = {_matrix(x, a.rows, a.cols)}" for a, x in wide]
        first = next(a.input for a in self.arguments if a.sequence)
        lines += ["if state is None:", f"    return {found}, {begun.replace(f'{self.first}.new', f'{first}.new')}"]
        lines += [f"return {found}, {self._begun()}"]
        given = "".join(f"    {n}: Tensor,\n" for n in names)
        head = f"def _enter(\n    where: str,\n    lead: str,\n{given}    state: Tensor | None,\n)"
        return f"{head} -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:\n{body(*lines)}"

    @property
    def _lead(self) -> str:
        return 'sizes["b"], sizes["h"]' if self.heads else 'sizes["b"]'

    def _checked(self, a: Argument) -> str:
        own = " ".join(map(axis, a.sizes))
        return (f'f"{{lead}} {own}"' if own else "lead") if a.sequence else f'"{self._axes((), *a.sizes)}"'

    @staticmethod
    def _sized(e: Expr) -> str:
        return sized(e, lambda name: f'sizes["{name}"]').replace("*", " * ")

    @property
    def _state_sizes(self) -> str:
        """The sizes of a state, by the names of its axes."""
        own = [(axis(e), self._sized(e)) for e in (self.steps.now[0].cols, self.steps.now[0].rows) if e != 1]
        if len(self.steps.now) > 1:
            own = [("s", " + ".join(" * ".join(self._sized(e) for e in (v.cols, v.rows) if e != 1) or "1" for v in self.steps.now))]
        lead = [("b", 'sizes["b"]'), *([("h", 'sizes["h"]')] if self.heads else [])]
        return ", ".join(f'"{n}": {size}' for n, size in (*lead, *own))

    def _begun(self) -> str:
        if len(self.steps.now) == 1:
            (v,) = self.steps.now
            return f"({'state.to(dtype).mT' if v.rows != 1 and v.cols != 1 else _matrix('state.to(dtype)', v.rows, v.cols)},)"
        sizes = ", ".join(f"({self._sized(v.cols)}, {self._sized(v.rows)})" for v in self.steps.now)
        return f"_split(state.to(dtype), {sizes})"

    def leave(self) -> str:
        """The function that hands states out."""
        head = f"def _leave({', '.join(f'{n}: Tensor' for n in self.states)}) -> Tensor:\n"
        if len(self.states) > 1:
            parts = ", ".join(f"{n}.mT.flatten(-2)" for n in self.states)
            return head + body('"""The states in one tensor, transposed and one after the other."""', f"return torch.cat([{parts}], -1)")
        (v,) = self.steps.now
        out = f"{v.name}.mT" if v.rows != 1 and v.cols != 1 else vector(v.name, v.rows, v.cols)
        return head + body('"""The state as it is handed out, in memory of its own."""', f"return {out}.clone()")


def vector(x: str, rows: Expr, cols: Expr) -> str:
    """Undo `_matrix`."""
    less = {(True, True): "[..., 0, 0]", (False, True): ".squeeze(-1)", (True, False): ".squeeze(-2)"}
    return x + less.get((rows == 1, cols == 1), "")


def _matrix(x: str, rows: Expr, cols: Expr) -> str:
    """A tensor of the call as a matrix."""
    more = {(True, True): "[..., None, None]", (False, True): ".unsqueeze(-1)", (True, False): ".unsqueeze(-2)"}
    return x + more.get((rows == 1, cols == 1), "")


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _tensor(axes: str, unreal: bool) -> str:
    """The type of a tensor; a single axis begins with a space, as linters want it."""
    return f'{INEXACT if unreal else FLOAT}[Tensor, "{"" if " " in axes or not axes else " "}{axes}"]'
