"""An architecture's operators: what is declared, the functions that compute it, and how they fare under the laws."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoform import plan
from isoform.selection import column

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration
    from isoform.outcome import Law


@dataclass(frozen=True)
class Input:
    """An argument as it is declared: its name in the call, the LaTeX of its value at one time, and where it lives."""

    name: str
    latex: str
    size: str
    domain: str


@dataclass(frozen=True)
class Declared:
    """An operator as it is declared, in LaTeX, and what one token of it costs, or why that is not counted."""

    definitions: tuple[str, ...]
    output: str
    inputs: tuple[Input, ...]
    source: str
    cost: tuple[tuple[str, str], ...]
    uncounted: str


@dataclass(frozen=True)
class Function:
    """A function in PyTorch: its part (a form, the step, or one that decodes with a cache), and its own words on itself."""

    name: str
    part: str
    summary: str
    details: str
    place: str
    code: str


@dataclass(frozen=True)
class Operator:
    """What the world implements, with all that this house has of it; ``declared`` is None for one without a declaration."""

    name: str
    declared: Declared | None
    functions: tuple[Function, ...]
    laws: tuple[Law, ...]

    @property
    def forms(self) -> tuple[str, ...]:
        """The names of the forms that were held against laws."""
        return tuple(dict.fromkeys(law.form for law in self.laws))

    @property
    def rows(self) -> dict[str, dict[str, Law]]:
        """The laws that applied to at least one form: by law, then by form."""
        table: dict[str, dict[str, Law]] = {}
        for law in self.laws:
            table.setdefault(law.law, {})[law.form] = law
        return {name: row for name, row in table.items() if any(law.verdict != "not-applicable" for law in row.values())}

    @property
    def idle(self) -> tuple[str, ...]:
        """The laws that apply to no form."""
        return tuple(dict.fromkeys(law.law for law in self.laws if law.law not in self.rows))


def operators(architecture: str, laws: Iterable[Law]) -> tuple[Operator, ...]:
    """Return the operators of an architecture: those declared, and those that it has forms of."""
    from isoform.derivations.registry import declarations

    name, laws = column(architecture), tuple(laws)
    module = plan.forms(name) if name in plan.implemented() else None
    declared = {d.operator: d for d in declarations(architecture)}
    names = dict.fromkeys([*declared, *getattr(module, "FORMS", {}), *(law.operator for law in laws if law.column == name)])
    return tuple(
        Operator(
            operator,
            _declared(declared[operator]) if operator in declared else None,
            _functions(module, operator),
            tuple(law for law in laws if (law.column, law.operator) == (name, operator)),
        )
        for operator in names
    )


def _declared(d: Declaration) -> Declared:
    import sympy

    from isoform.derivations.cost import Uncounted
    from isoform.derivations.kernel.naming import Names
    from isoform.derivations.kernel.printing import defined, latex
    from isoform.derivations.layer import costs

    values = {name: _at(given, d) for name, given in d.inputs.items()}
    names = Names((d.output, *values.values()))
    try:
        found = costs(d)
        counts = {**dict(sorted(found.operations.items())), "numbers kept": found.numbers}
        cost, uncounted = tuple((kind, sympy.latex(count)) for kind, count in counts.items()), ""
    except Uncounted as error:
        cost, uncounted = (), str(error)
    return Declared(
        definitions=tuple(defined(x, names)[1] for x in names.definitions((d.output,))),
        output=latex(d.output, names),
        inputs=tuple(Input(name, latex(x, names), _size(x, latex), d.domains.get(name, "")) for name, x in values.items()),
        source=d.source,
        cost=cost,
        uncounted=uncounted,
    )


def _at(given: Any, d: Declaration) -> Any:
    """An input at one time: families are indexed, what is constant is itself."""
    return given[d.t] if hasattr(given, "__getitem__") and not hasattr(given, "shape") else given


def _size(x: Any, latex: Callable[..., str]) -> str:
    rows, cols = (latex(n) for n in x.shape)
    return "1" if rows == cols == "1" else rows if cols == "1" else rf"{rows} \times {cols}"


def _functions(module: Any, operator: str) -> tuple[Function, ...]:
    forms = [("form", f) for f in getattr(module, "FORMS", {}).get(operator, ())]
    step = getattr(module, "STEPS", {}).get(operator)
    cached = [("cache", f) for f in getattr(module, "CACHED", {}).get(operator, {}).values()]
    return tuple(_function(part, f) for part, f in (*forms, *([("step", step)] if step else []), *cached))


def _function(part: str, f: Callable[..., Any]) -> Function:
    first, _, rest = (inspect.getdoc(f) or "").partition("\n\n")
    return Function(f.__name__, part, " ".join(first.split()), _flowing(rest), f.__module__, _code(f))


def _flowing(text: str) -> str:
    """Text in which full lines go on with the next one, and a heading has no rule under it."""
    return re.sub(r"(?<=[^\n]{70})\n(?=\S)", " ", re.sub(r"\n-{3,}(?=\n)", ":", text))


def _code(f: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(f)
    except (OSError, TypeError):
        return ""
