"""What `isoform show` and `isoform trust` print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from isoform.outcome import verdict_line
from isoform.tables import COLOURS, console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from isoform.derivations.claim import ClaimResult, Evidence, NearMissResult, Source, Step
    from isoform.inspection import Trust

_ESCAPES = str.maketrans(
    {
        **{character: "\\" + character for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
    }
)
Section = tuple[str, list[str]]


def print_claim(result: ClaimResult) -> None:
    """Print a claim: definitions, statement, assumptions, sources, steps, near misses with their counterexamples."""
    _print(
        result.id, result.title, (f"version {result.version}", result.scope), result.verdict, verdict_line(result), _claim_sections(result)
    )


def print_trust(trust: Trust) -> None:
    """Print what a verdict rests on."""
    _print(trust.id, "", (trust.scope,), trust.verdict.partition(",")[0], trust.verdict, _trust_sections(trust))


def latex(result: ClaimResult) -> str:
    """Return a claim as a LaTeX fragment: the definitions, the statement, and the steps where they have formulas."""
    lines = [f"% {result.id} (version {result.version}): {verdict_line(result)}, {result.scope}", rf"\paragraph{{{_escape(result.title)}}}"]
    for _, definition in result.definitions:
        lines += _display(definition)
    lines += ["", r"\emph{Statement}", *_display(result.statement_latex)]
    for step in result.steps:
        formula = f"{{}} = {step.sides_latex[1]}" if step.continues else step.latex
        how = ", ".join((step.method, *step.discharged))
        lines += ["", rf"\emph{{{_escape(step.title)}}} ({_escape(how)})", *(_display(formula) or [_escape(step.text)])]
    return "\n".join(lines)


def _print(id: str, title: str, notes: tuple[str, ...], verdict: str, line: str, sections: Iterator[Section]) -> None:
    screen = console()
    screen.print(Text.assemble((id, "bold"), f"  {title}" if title else ""))
    facts = "".join(f", {note}" for note in notes if note)
    screen.print(Text.assemble((line, COLOURS.get(verdict, "red")), facts))
    for heading, lines in sections:
        if lines:
            screen.print()
            screen.print(Text(heading, style="bold"))
            for text in lines:
                screen.print(_indented(text))


def _claim_sections(result: ClaimResult) -> Iterator[Section]:
    yield "Definitions", [text for text, _ in result.definitions]
    yield "Statement", _conjunction(result.parts or (result.statement,))
    yield "As written in the source", [result.as_written] if result.as_written else []
    yield "Counterexample to it", [result.counterexample] if result.counterexample else []
    yield "Assumptions", list(result.assumptions)
    yield "Assumptions that the proof does not use", list(result.unneeded)
    yield "Sources", [_source(source) for source in result.sources]
    yield "Derivation", list(_derivation(result.steps))
    yield "Near misses", [line for miss in result.near_misses for line in _near_miss(miss)]
    yield "Evidence", [_evidence(item) for item in result.evidence]
    yield "Why it is not decided" if result.verdict == "unknown" else "Note", [result.reason] if result.reason else []


def _trust_sections(trust: Trust) -> Iterator[Section]:
    yield "Methods of proof", list(trust.methods)
    yield "Obligations and what discharged them", [_obligation(step) for step in trust.obligations]
    yield "Engines", [_evidence(item) for item in trust.evidence]
    yield "Claims used as lemmas", list(trust.lemmas) or ["none"]
    yield "Assumptions that the proof does not use", list(trust.unneeded)
    yield "Textbook lemmas assumed", list(trust.assumed) or ["none"]
    yield "What keeps it from holding", [failure.reason for failure in trust.failures]
    yield "Trusted", [trust.trusted]


def _conjunction(parts: tuple[str, ...]) -> list[str]:
    return [("∧ " if n else "") + part for n, part in enumerate(parts)]


def _derivation(steps: tuple[Step, ...]) -> Iterator[str]:
    """The steps with their reasons; in a chain of equations every line is the next right side."""
    for n, step in enumerate(steps):
        if step.title:
            yield f"{n + 1}. {step.title}"
        how = ", by ".join(filter(None, (step.method, ", ".join(step.discharged))))
        chained = n + 1 < len(steps) and steps[n + 1].continues
        if chained and not step.continues:
            yield f"   {step.sides[0]}"
        formula = f"  = {step.sides[1]}" if step.continues or chained else step.text
        lead = "  " if step.title else f"{n + 1}."
        yield f"{lead} {formula}" + (f"  [{how}]" if how else "")


def _obligation(step: Step) -> str:
    return f"{step.title}: {step.method}" + (f", by {', '.join(step.discharged)}" if step.discharged else "")


def _near_miss(miss: NearMissResult) -> Iterator[str]:
    yield f"{'rejected' if miss.rejected else 'NOT REJECTED'}: {miss.name}"
    yield from (f"   {line}" for line in miss.changes)
    if miss.counterexample:
        how = ", ".join(filter(None, (miss.kind, *miss.engines)))
        yield f"   fails at {miss.counterexample}" + (f"  [{how}]" if how else "")
    if miss.reason:
        yield f"   {miss.reason}"


def _source(source: Source) -> str:
    return ", ".join(filter(None, (source.citation, source.where))) + (f" ({source.note})" if source.note else "")


def _evidence(item: Evidence) -> str:
    return f"{item.kind}: {item.engine} ({item.engine_version})" + (f", {item.detail}" if item.detail else "")


def _indented(text: str) -> RenderableType:
    extra = len(text) - len(text.lstrip(" "))
    return Padding(Text(text.strip()), (0, 0, 0, 2 + extra), expand=False)


def _display(formula: str) -> list[str]:
    return [r"\[", f"  {formula}", r"\]"] if formula else []


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)
