"""Hold a column's forms against its declaration and every law, at a level of effort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from isoform.derivations.claim import FORMS, Evidence

from .columns import operators
from .laws import LawResult, laws
from .operator import Form, Operator
from .running import run_law


@dataclass(frozen=True)
class Effort:
    """How much is tried: drawn cases per law, and how many of the corner cases come first (None: all)."""

    examples: int
    corners: int | None


LEVELS = {"quick": Effort(3, 5), "default": Effort(30, None), "deep": Effort(300, None)}


@dataclass(frozen=True)
class CrosscheckResult:
    """What the laws say about a column's forms, and the evidence for its claims that follows."""

    column: str
    laws: tuple[LawResult, ...]
    evidence: Mapping[str, tuple[Evidence, ...]]


def crosscheck(
    column: str,
    forms: Mapping[str, tuple[Callable[..., Any], ...]],
    steps: Mapping[str, Callable[..., Any]],
    cached: Mapping[str, Mapping[str, Callable[..., Any]]] | None = None,
    *,
    level: str,
    seed: int,
) -> CrosscheckResult:
    """Check every form of a column, by operator name, under every law; ``cached`` are functions that decode with a cache.

    Raises ValueError for an unknown level, and for forms of an operator that the column does not declare: they would
    go unchecked.
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    known = {o.name: o for o in operators(column)}
    unknown = sorted(set(forms) - set(known))
    if unknown:
        raise ValueError(f"{column} has forms of {', '.join(unknown)}, but no such operator")
    beside = {name: forms_of(given, steps.get(name), (cached or {}).get(name)) for name, given in forms.items()}
    results = tuple(r for name, given in beside.items() for r in check_forms(known[name], given, LEVELS[level], seed))
    return CrosscheckResult(column, results, {name: evidence([r for r in results if r.operator == name]) for name in forms})


def check_forms(operator: Operator, forms: Sequence[Form], effort: Effort, seed: int) -> Iterable[LawResult]:
    """Every law on every form of an operator; all forms under one law after another, since they share its truths."""
    by_law = [[run_law(law, operator, f, examples=effort.examples, seed=seed, corners=effort.corners) for f in forms] for law in laws()]
    return [result for own in zip(*by_law, strict=True) for result in own]


def forms_of(
    functions: tuple[Callable[..., Any], ...],
    step: Callable[..., Any] | None,
    cached: Mapping[str, Callable[..., Any]] | None = None,
) -> tuple[Form, ...]:
    """The forms of an operator, each beside its siblings; the step and the functions with a cache go with the first."""
    first, *others = (Form(f.__name__, f, siblings=tuple(g for g in functions if g is not f)) for f in functions)
    return (replace(first, step=step, cached=cached or {}), *others)


def evidence(results: Sequence[LawResult]) -> tuple[Evidence, ...]:
    """What the laws that hold of an operator's forms amount to: within the derived bound, exact where every bit was right.

    It is evidence about the forms that it names, for claims about their operator; not a further proof of a claim.
    """
    held = [r for r in results if r.verdict == "holds"]
    out = []
    for kind, chosen in (
        ("bounded", [r for r in held if r.law != "exact-bits"]),
        ("exact", [r for r in held if r.law == "exact-bits"]),
    ):
        if chosen:
            names = ", ".join(dict.fromkeys(f"{r.operator}.{r.form}" for r in chosen))
            worst = max(r.worst_error_over_bound or 0.0 for r in chosen)
            counts = f"{len(chosen)} checks of laws, {sum(r.examples for r in chosen)} examples, worst error/bound {worst:.2g}"
            detail = f"of the forms {names}: {counts}"
            out.append(Evidence(kind, FORMS, f"Hypothesis {version('hypothesis')}", detail))
    return tuple(out)
