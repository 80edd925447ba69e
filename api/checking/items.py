"""One pytest item: a kernel, held to one law."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isoform.checking import expected, plan, printing, runner, setup
from isoform.checking.marking import Conformance
from isoform.checking.plan import CheckPlan
from isoform.checking.report import LawReport
from isoform.checking.session import Session
from isoform.checking.target import Kernel, Unusable


@dataclass(frozen=True)
class Item:
    """An item of a test: its law, what the test conforms to, what the command line sets, and where files are and go."""

    id: str
    law: str
    held: Conformance
    overriding: Mapping[str, Any]
    home: Path
    folder: Path | None


@dataclass(frozen=True)
class Outcome:
    """What came of an item: a verdict, the worst error over bound, and a text unless the law simply holds."""

    verdict: str
    worst: float | None = None
    text: str = ""


def laws_of(held: Conformance, overriding: Mapping[str, Any], home: Path) -> tuple[list[str], str]:
    """The laws of a test, by name, and what is wrong with the test, or ""."""
    try:
        wanted = _plan(None, "", held, overriding)
        setup.operator_named(wanted.operator)
        laws = [law.name for law in setup.laws_of(wanted)]
        _known(held, home)
    except Unusable as error:
        return [], str(error)
    return laws, ""


class Bench:
    """Where kernels are held to laws; the worker of the last one is kept for the next law."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._of: CheckPlan | None = None

    def hold(self, item: Item, kernel: Any) -> Outcome:
        """Hold a kernel to the law of an item."""
        try:
            if kernel is None:
                raise Unusable("the test returned None: it returns the kernel, or its name")
            target, name, function = runner.resolve(kernel)
            session = self._session_of(_plan(target, name, item.held, item.overriding), function)
            found = session.law(item.law)
            known = _known(item.held, item.home)
            problem = expected.judge(item.law, found.verdict, known, lambda case: session.fails(item.law, case))
        except Unusable as error:
            return Outcome("unusable", text=str(error))
        worst, entry = found.worst_error_over_bound, known.of(item.law)
        if problem:
            return Outcome("unexpected", worst, problem)
        if entry is not None:
            return Outcome("expected", worst, f"expected: {expected.sentence(entry)}")
        if found.verdict == "violated" and item.folder:
            found = session.written(found, item.folder)
        return Outcome(found.verdict, worst, _text(item, session.plan, found))

    def close(self) -> None:
        """End the worker."""
        if self._session is not None:
            self._session.close()
        self._session = self._of = None

    def _session_of(self, wanted: CheckPlan, function: Kernel | None) -> Session:
        if self._session is None or self._of != wanted or wanted.target is None:
            self.close()
            self._session, self._of = _session(wanted, function), wanted
        return self._session


def _session(wanted: CheckPlan, function: Kernel | None) -> Session:
    """A session; a function that a worker cannot import after all is called in this process."""
    try:
        return Session(wanted, function)
    except Unusable:
        if wanted.target is None or function is None:
            raise
        return Session(replace(wanted, target=None), function)


def _plan(target: Any, name: str, held: Conformance, overriding: Mapping[str, Any]) -> CheckPlan:
    try:
        return plan.make(target, name, held.operator, **{**held.options, **overriding})
    except TypeError as error:
        raise Unusable(f"isoform.conformance has no such option ({error})") from None


def _known(held: Conformance, home: Path) -> expected.Known:
    """The list of expected failures of a test. Raises Unusable for one with a flaw."""
    if held.expected is None:
        return expected.Known()
    known = expected.read(home / held.expected)
    if known.problems:
        raise Unusable("; ".join(known.problems))
    return known


def _text(item: Item, used: CheckPlan, found: LawReport) -> str:
    """What a test says: a violation in words with a case that runs again, or why there is no verdict."""
    if found.verdict == "holds":
        return ""
    if found.verdict != "violated":
        return f"{found.verdict.replace('-', ' ')}: {found.detail}"
    lines = [f"{used.name} as {used.operator} violates {found.law}: {found.says}"]
    smallest = found.smallest
    for kind, witness in (("smallest", smallest), ("worst", found.worst)):
        if witness is not None and (kind == "smallest" or witness != smallest):
            lines += [f"  {kind}: {printing.sentence(witness)}", f"    with {witness.where}"]
    if smallest is not None and smallest.snippet:
        lines += ["", *(f"  {line}".rstrip() for line in smallest.snippet.splitlines())]
    if smallest is not None and smallest.file and used.target is not None:
        lines += ["", f"  isoform replay {shlex.quote(os.path.relpath(smallest.file))}"]
    return "\n".join([*lines, f"  pytest {shlex.quote(item.id)}"])
