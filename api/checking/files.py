"""Witness files: what `isoform replay` needs to run the cases of a violated law again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isoform.checking import plan as planning
from isoform.checking.plan import CheckPlan
from isoform.checking.report import CheckReport, LawReport
from isoform.checking.target import Target, Unusable, parse

SCHEMA = 1
FOLDER = "isoform-witnesses"
CALL = ("signature", "map", "precision", "chunk", "call_limit", "seed", "level")
"""Options of a check that decide how a case is run again."""


@dataclass(frozen=True)
class WitnessFile:
    """A violated law as it was written down: the plan of the check, the kernel's limits, the law and its cases."""

    plan: CheckPlan
    limits: Mapping[str, Any]
    law: str
    cases: tuple[Mapping[str, Any], ...]


def write(report: CheckReport, plan: CheckPlan, limits: Mapping[str, Any], folder: Path) -> CheckReport:
    """Write a file for each violated law, and return the report that names them. Raises Unusable where that cannot be done."""
    if not report.violated:
        return report
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return replace(report, laws=tuple(_written(report, law, plan, limits, folder) for law in report.laws))
    except OSError as error:
        reason = "it is no folder" if isinstance(error, (FileExistsError, NotADirectoryError)) else error.strerror
        raise Unusable(f"witnesses cannot be written to {folder}: {reason}") from None


def _written(report: CheckReport, law: LawReport, plan: CheckPlan, limits: Mapping[str, Any], folder: Path) -> LawReport:
    if law.verdict != "violated":
        return law
    path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', report.target).strip('-')}-{law.law}.json"
    witnesses = [w for w in (law.smallest, None if law.worst == law.smallest else law.worst) if w is not None]
    content = {
        "schema": SCHEMA,
        "version": report.version,
        "law": law.law,
        "says": law.says,
        "operator": report.operator,
        "target": None if plan.target is None else _relative(plan.target, folder),
        **{name: getattr(plan, name) for name in CALL},
        "limits": limits,
        "witnesses": [replace(w, file=str(path)).to_dict() for w in witnesses],
    }
    whole = path.with_suffix(f".{os.getpid()}.part")  # two checks may write to one folder
    whole.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    whole.replace(path)
    smallest, worst = (None if w is None else replace(w, file=str(path)) for w in (law.smallest, law.worst))
    return replace(law, smallest=smallest, worst=worst)


def _relative(target: Target, folder: Path) -> str:
    """The target as the file has it: of a kernel in a file the way there from the folder."""
    return f"{os.path.relpath(target.home, folder)}:{target.attribute}" if target.is_file else str(target)


def read(path: Path, target: Target | None = None) -> WitnessFile:
    """Read a witness file; ``target`` stands in for the kernel that it names. Raises Unusable where it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Unusable(f"{path} is no witness file: it is not JSON") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise Unusable(f"{path} is no witness file of schema {SCHEMA}")
    try:
        target = target or parse(_absolute(content["target"], path))
        plan = planning.make(target, str(target), content["operator"], laws=(content["law"],), **{n: content[n] for n in CALL})
        cases = tuple(w["case"] for w in content["witnesses"])
        if not cases or not all(isinstance(c, dict) for c in cases) or not isinstance(content["limits"], dict):
            raise TypeError
        return WitnessFile(plan, content["limits"], content["law"], cases)
    except KeyError as error:
        raise Unusable(f"{path} is no witness file: it has no {error.args[0]!r}") from None
    except (TypeError, AttributeError):
        raise Unusable(f"{path} is no witness file: a value in it is of a wrong type") from None


def _absolute(target: str | None, path: Path) -> str:
    if target is None:
        raise Unusable(f"{path} is of a function that has no name; say with --on which one it is")
    home, _, attribute = target.rpartition(":")
    return f"{(path.parent / home).resolve()}:{attribute}" if home.endswith(".py") else target
