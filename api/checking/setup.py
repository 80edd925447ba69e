"""From a plan to the form under test, in the process that will call it: loaded, called as its signature says, its limits known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isoform.checking.containment import Notes, contained
from isoform.checking.plan import CheckPlan
from isoform.checking.target import Kernel, Unusable, load, nearest

if TYPE_CHECKING:
    from isoform.properties.laws import Law
    from isoform.properties.limits import Limits
    from isoform.properties.operator import Form, Operator

FIRST = (
    "form-equals-oracle",
    "state-equals-oracle",
    "split-and-resume",
    "empty-and-single",
    "finite-at-the-edges",
    "gradient-of-inputs",
    "packed-equals-alone",
    "prefix-invariance",
)
"""Laws that tell most, so that a violation is found soon; the others follow."""


@dataclass(frozen=True)
class Prepared:
    """What is known before any law is tried: the laws by name, with what they say, and what was found out on the way.

    ``fitted`` are the kernel's limits, as `form_of` takes them, ``limits`` the same in words.
    """

    operator: str
    laws: tuple[tuple[str, str], ...]
    fitted: Mapping[str, Any] = field(default_factory=dict)
    wiring: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def prepare(plan: CheckPlan, function: Kernel | None = None, notes: Notes | None = None, probe: bool = True) -> Prepared:
    """Load the kernel, prove its wiring, find its limits; ``probe`` says whether by calls. Raises Unusable."""
    from isoform.properties.tensors import PRECISIONS
    from isoform.properties.wiring import both, detect, parse_limits, prove, wire

    operator = operator_named(plan.operator)
    if plan.precision not in PRECISIONS:
        raise Unusable(f"there is no precision {plan.precision!r}; {nearest(plan.precision, filter(None, PRECISIONS))}")
    chosen = laws_of(plan)
    call = contained(kernel(plan, function), notes or Notes())
    with wirings():
        wiring = wire(call, operator, plan.signature, plan.map)
        limits = both(wiring.limits, parse_limits(plan.limits, operator))
        right = right_form(operator)
        problem = prove(operator, wiring, right, limits) if right else None
        if problem is not None:
            raise RuntimeError(str(problem))
        found = detect(call, operator, wiring, limits, plan.precision) if probe else None
    kept = found.wiring if found else wiring
    within = found.limits if found else limits
    without = [a.carries for a in wiring.arguments if a not in kept.arguments]
    return Prepared(
        operator=operator.name,
        laws=tuple((law.name, law.says) for law in chosen),
        fitted={**asdict(within), "without": without},
        wiring=wiring.notes,
        limits=(*within.reasons, *(found.notes if found else ())),
    )


@contextmanager
def wirings() -> Iterator[None]:
    """What is wrong with a wiring, as a check that cannot be made; settings of torch that a first call changes are set back."""
    from isoform.properties.tensors import kept_surroundings
    from isoform.properties.wiring import WiringError

    try:
        with kept_surroundings():
            yield
    except WiringError as error:
        raise Unusable(str(error)) from None


def operator_named(name: str) -> Operator:
    """The operator. Raises Unusable."""
    from isoform.properties.columns import columns, operators

    known: list[str] = []
    for column in sorted(columns(), key=lambda column: column != name):  # others take seconds to load
        for operator in operators(column):
            known.append(operator.name)
            if operator.name == name:
                return operator
    raise Unusable(f"there is no operator {name!r}; {nearest(name, known)}")


def laws_of(plan: CheckPlan) -> tuple[Law, ...]:
    """The laws that are to be tried, those that tell most first. Raises Unusable for a name that none has."""
    from isoform.properties.laws import laws

    known = {law.name: law for law in laws()}
    for name in plan.laws:
        if name not in known:
            raise Unusable(f"there is no law {name!r}; {nearest(name, known)}")
    order = dict.fromkeys((*(n for n in FIRST if n in known), *known))
    return tuple(known[n] for n in order if not plan.laws or n in plan.laws)


def kernel(plan: CheckPlan, function: Kernel | None) -> Kernel:
    """The function itself: the one at hand, or the one that the plan names."""
    if function is not None:
        return function
    assert plan.target is not None
    return load(plan.target)


def form_of(plan: CheckPlan, operator: Operator, function: Kernel, fitted: Mapping[str, Any]) -> Form:
    """The form under test: the kernel called as its signature says, within its limits. Raises Unusable."""
    from isoform.properties.operator import Form
    from isoform.properties.wiring import adapt, wire

    with wirings():
        wiring = wire(function, operator, plan.signature, plan.map).without(*fitted.get("without", ()))
        form = Form(plan.name, adapt(function, operator, wiring), limits=read_limits(fitted), precision=plan.precision)
    return replace(form, chunk=0 if form.takes("chunk_size") else plan.chunk)


def read_limits(found: Mapping[str, Any]) -> Limits:
    """Limits from what `asdict` makes of them."""
    from isoform.properties.limits import Limits, Sizes

    return Limits(tuple(Sizes(**s) for s in found.get("sizes", ())), found.get("refuses", {}))


def right_form(operator: Operator) -> Any:
    """The reference form of an operator in its column, or None."""
    from isoform.plan import forms, implemented
    from isoform.properties.columns import columns, operators

    for column in sorted(columns(), key=lambda column: column != operator.name):  # others take seconds to load
        if operator.name in [o.name for o in operators(column)]:
            there = column.replace("-", "_") in implemented()
            return forms(column).FORMS.get(operator.name, (None,))[0] if there else None
    return None
