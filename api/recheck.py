"""Check a certificate by doing again what it says was done: `isoform verify --from FILE`.

Every claim in it is proved and certified here, with the certificate's seed, and what comes out is compared field by field. Versions
of engines must agree only in the same environment: another version that finds the same says more, and the notes name it. How close to
its bound an error came is no part of it: that depends on the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import isoform
from isoform import plan as planning
from isoform import runner
from isoform.certificate import NOT_RUN, ROW, claim_content
from isoform.environment import environment
from isoform.exits import Exit
from isoform.outcome import Failure, Report, law_to_dict
from isoform.selection import column, select

Begin = Callable[[planning.Plan], Report]
_COMPARED_OF_LAWS = ("verdict", "examples")
_SHOWN, _LISTED = 80, 8
"""How much of a value is shown, and how many differences of a claim."""


def recheck(
    certificate: Mapping[str, Any],
    *names: str,
    begin: Begin = runner.run,
    jobs: int | None = None,
    time_limit: float = 60.0,
    symbolic_only: bool = False,
    fail_fast: bool = False,
) -> Report:
    """Return the report of a run over a certificate's claims (those named, if any is), with every difference as a failure.

    The laws run again for the columns whose laws the certificate has. What is not decided here is unverified, and not compared.
    """
    theirs = {claim["id"]: claim for claim in certificate["claims"]}
    wanted = select(names, tuple(theirs))
    absent = tuple(_absent(theirs[id] for id in wanted))
    known = [id for id in wanted if id not in {failure.where for failure in absent}]
    seed, level = certificate["seed"], certificate["level"]
    if not known:
        return Report(isoform.__version__, seed, level, (), (), absent)
    plan = planning.make(known, seed=seed, level=level, jobs=jobs, time_limit=time_limit, symbolic_only=symbolic_only, fail_fast=fail_fast)
    laws = [] if symbolic_only else [law for law in certificate["laws"] if law["column"] in map(column, known)]
    plan = replace(plan, columns=tuple(name for name in plan.columns if name in {law["column"] for law in laws}))
    report = begin(plan)
    same = environment() == certificate["environment"]
    decided = [(theirs[claim.id], claim_content(claim)) for claim in report.claims if claim.statement]
    found = [_claim_differences(was, now, versions=same) for was, now in decided]
    idle = {law.column for law in report.laws if law.law == NOT_RUN}
    ours = [law_to_dict(law) for law in report.laws if law.column not in idle]
    found.append(_law_differences([law for law in laws if law["column"] not in idle], ours))
    notes = tuple(_notes(certificate))
    return replace(report, failures=(*absent, *chain.from_iterable(found), *report.failures), notes=notes)


def _absent(theirs: Iterable[Mapping[str, Any]]) -> Iterator[Failure]:
    from isoform.derivations.registry import claims

    here = {claim.id: claim.version for claim in claims()}
    for claim in theirs:
        id, version = claim["id"], claim["version"]
        if id not in here:
            yield Failure(id, Exit.VIOLATED, "the certificate has this claim, and there is none of that name here")
        elif here[id] != version:
            yield Failure(id, Exit.VIOLATED, f"the certificate has version {version}, and here it is {here[id]}")


def _claim_differences(theirs: Mapping[str, Any], ours: Mapping[str, Any], *, versions: bool) -> Iterator[Failure]:
    sides = (theirs, ours) if versions else (_without_versions(theirs), _without_versions(ours))
    found = list(differences(*sides))
    for place, was, now in found[:_LISTED]:
        yield Failure(ours["id"], Exit.VIOLATED, f"{place} differs: {was} in the certificate, {now} here")
    if len(found) > _LISTED:
        yield Failure(ours["id"], Exit.VIOLATED, f"{len(found) - _LISTED} further fields differ, {found[-1][0]} the last of them")


def _without_versions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_versions(item) for key, item in value.items() if key != "engine_version"}
    return [*map(_without_versions, value)] if isinstance(value, list) else value


def differences(theirs: Any, ours: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield where two values differ, and how each reads there; a key or an entry that only one of them has is a difference.

    >>> list(differences({"steps": [1, 2]}, {"steps": [1, 3]}))
    [('steps[1]', '2', '3')]
    >>> list(differences({"steps": [1]}, {"steps": [1, None], "id": True}))
    [('id', 'nothing', 'True'), ('steps[1]', 'nothing', 'None')]
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from _entry(theirs, ours, key, f"{place}.{key}" if place else key)
    elif isinstance(theirs, list) and isinstance(ours, list):
        for n in range(max(len(theirs), len(ours))):
            yield from _entry(dict(enumerate(theirs)), dict(enumerate(ours)), n, f"{place}[{n}]")
    elif type(theirs) is not type(ours) or theirs != ours:
        yield (place, *_around(repr(theirs), repr(ours)))


def _entry(theirs: dict[Any, Any], ours: dict[Any, Any], key: Any, place: str) -> Iterator[tuple[str, str, str]]:
    if key in theirs and key in ours:
        yield from differences(theirs[key], ours[key], place)
    else:
        was, now = (_short(repr(side[key])) if key in side else "nothing" for side in (theirs, ours))
        yield place, was, now


def _around(a: str, b: str) -> tuple[str, str]:
    """Both texts from shortly before the first sign in which they differ."""
    same = next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    start = max(0, same - _SHOWN // 2) if max(len(a), len(b)) > _SHOWN else 0
    first, second = (("…" if start else "") + _short(text[start:]) for text in (a, b))
    return first, second


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _law_differences(theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> Iterator[Failure]:
    was, now = (
        {tuple(row[key] for key in ROW): {key: row.get(key) for key in _COMPARED_OF_LAWS} for row in rows} for rows in (theirs, ours)
    )
    for key in dict.fromkeys((*was, *now)):
        _, operator, form, law = key
        for place, before, after in differences({"law": was[key]} if key in was else {}, {"law": now[key]} if key in now else {}):
            what = place.partition(".")[2] or "the row of this law"
            yield Failure(f"{operator}.{form} / {law}", Exit.VIOLATED, f"{what} differs: {before} in the certificate, {after} here")


def _notes(certificate: Mapping[str, Any]) -> Iterator[str]:
    for place, was, now in differences(certificate["environment"], environment()):
        yield f"{place} is {was} in the certificate, {now} here"
    if certificate["undecided"]:
        yield f"the certificate leaves {len(certificate['undecided'])} undecided, which are not checked"
