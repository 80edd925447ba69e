"""What a run found, as a file that another run can check: `isoform verify --certificate FILE`.

The file says everything that `isoform.recheck` compares, and where it was found. Times are left out: the same run writes the same
bytes. Its digest finds a change to the file; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform.environment import environment
from isoform.inspection import show_to_dict
from isoform.levels import LEVELS
from isoform.outcome import Report, law_to_dict

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult

SCHEMA = 1
NOT_RUN = "cross-check"
"""The law named in the row of a column whose laws did not run."""
ROW = ("column", "operator", "form", "law")
"""What says which row of the laws is meant."""
_KINDS: dict[str, type] = {"seed": int, "level": str, "state": str, "environment": dict, "claims": list, "undecided": list, "laws": list}


class Malformed(ValueError):
    """The file is no certificate that this version of isoform can read."""


class Altered(ValueError):
    """The file was changed after it was written."""


def certificate_of(report: Report) -> dict[str, Any]:
    """Return what a report certifies; claims and columns that a run did not get through are named as undecided."""
    laws = [law_to_dict(law) for law in report.laws if law.law != NOT_RUN]
    idle = [{"where": law.column, "reason": law.detail} for law in report.laws if law.law == NOT_RUN]
    content = {
        "schema": SCHEMA,
        "seed": report.seed,
        "level": report.level,
        "state": report.state,
        "environment": environment(),
        "claims": [claim_content(claim) for claim in report.claims if claim.statement],
        "undecided": [*({"where": claim.id, "reason": claim.reason} for claim in report.claims if not claim.statement), *idle],
        "laws": laws,
    }
    return {**content, "digest": digest(content)}


def claim_content(result: ClaimResult) -> dict[str, Any]:
    """Return what is certified of one claim: all that `isoform show --json` prints, but times, and forms, which have their laws."""
    from isoform.derivations.claim import FORMS

    content = {**show_to_dict(result), "unfinished": list(result.unfinished)}
    evidence = [item for item in content["evidence"] if item["engine"] != FORMS]
    return {**{key: value for key, value in content.items() if key not in ("schema", "seconds")}, "evidence": evidence}


def result_of(content: Mapping[str, Any]) -> ClaimResult:
    """Return a claim's result without its derivation, as a certificate has it. Raises KeyError or TypeError where it has it not."""
    from isoform.derivations.claim import ClaimResult, Evidence, NearMissResult, Source

    single = ("id", "version", "fingerprint", "title", "statement", "statement_latex", "verdict", "expected", "scope", "reason")
    misses = [{**miss, "engines": tuple(miss["engines"]), "changes": tuple(miss["changes"])} for miss in content["near_misses"]["list"]]
    return ClaimResult(
        **{name: content[name] for name in single},
        assumptions=tuple(content["assumptions"]),
        assumed=tuple(content["assumed"]),
        unfinished=tuple(content["unfinished"]),
        sources=tuple(Source(**source) for source in content["sources"]),
        evidence=tuple(Evidence(**item) for item in content["evidence"]),
        near_misses=tuple(NearMissResult(**miss) for miss in misses),
    )


def digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a certificate's content, its digest apart, as 64 hex digits."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def write(report: Report, path: Path) -> None:
    """Write a report's certificate; where that fails, what the file held before is still there. Raises OSError."""
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("x", encoding="utf-8") as file:
            json.dump(certificate_of(report), file, indent=1, ensure_ascii=False, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """Return the content of a certificate.

    Raises Malformed where it is none of this schema, and Altered where the digest says that it is not as it was written.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise Malformed(f"{path} is no certificate: it cannot be read as JSON ({' '.join(str(error).split())})") from None
    problem = _problem(content)
    if problem:
        raise Malformed(f"{path} is no certificate: {problem}")
    if digest(content) != content["digest"]:
        raise Altered(f"{path} was changed after it was written: its digest is not that of its content")
    return content


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _problem(content: Any) -> str:
    """What keeps a value from being a certificate's content; empty if nothing does."""
    if not isinstance(content, dict) or "digest" not in content:
        return "it has no digest"
    if content.get("schema") != SCHEMA:
        return f"its schema is {content.get('schema')!r}, and {SCHEMA} is what this version reads"
    for key, kind in _KINDS.items():
        if type(content.get(key)) is not kind:
            return f"its {key} must be {kind.__name__}"
    if content["seed"] < 0 or content["level"] not in LEVELS:
        return f"its seed must be at least 0, and its level one of {', '.join(LEVELS)}"
    named = [(claim.get("id"), claim.get("version")) for claim in content["claims"] if isinstance(claim, dict)]
    if len(named) < len(content["claims"]) or any(type(id) is not str or type(number) is not int for id, number in named):
        return "each of its claims must have an id and a version"
    if not named:
        return "it has no claim, so there is nothing to check"
    if len({id for id, _ in named}) < len(named):
        return "two of its claims have one id"
    rows = [tuple(row.get(key) for key in ROW) for row in content["laws"] if isinstance(row, dict)]
    if len(rows) < len(content["laws"]) or any(type(part) is not str for row in rows for part in row):
        return f"each of its laws must have a {', a '.join(ROW)}"
    return "two of its laws are about one thing" if len(set(rows)) < len(rows) else ""
