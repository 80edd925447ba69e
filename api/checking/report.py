"""What a check found, as one value: the tables, the JSON and the witness files are all made of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from isoform.checking.containment import Tried
from isoform.exits import Exit, worst
from isoform.outcome import LAW_VERDICTS

SCHEMA = 1
_EXITS = {"violated": Exit.VIOLATED, "unverified": Exit.UNVERIFIED, "holds": Exit.HELD, "not-applicable": Exit.HELD}


@dataclass(frozen=True)
class Witness:
    """One case in which a law does not hold.

    ``index`` is the first bad entry of what was compared, with ``axes`` for names, in order; ``found`` came out there,
    ``right`` is right, within ``bound``. ``case`` is what `isoform replay` needs, ``file`` where it was written, if it was.
    """

    case: dict[str, Any]
    what: str
    breaks: str
    axes: tuple[str, ...] = ()
    index: tuple[int, ...] = ()
    found: float | None = None
    right: float | None = None
    bound: float | None = None
    error_over_bound: float = math.inf
    snippet: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        """The first bad entry in words, or ""."""
        if not self.axes:
            return f"index {list(self.index)}" if self.index else ""
        return ", ".join(f"{axis} {i}" for axis, i in zip(self.axes, self.index, strict=True))

    @property
    def where(self) -> str:
        """The case in words: sizes by axis, dtype, scale and structure."""
        sizes = " ".join(f"{axis}={size}" for axis, size in self.case["sizes"])
        flags = list(self.case["flags"])
        size = next((f for f in ("huge", "vanishing") if f in flags), self.case["scale"])
        return ", ".join((sizes, self.case["dtype"], f"{size} inputs", *(f for f in flags if f != size)))

    def to_dict(self) -> dict[str, Any]:
        """The witness as JSON has it; numbers that JSON cannot say are null."""
        numbers = {n: _finite(getattr(self, n)) for n in ("found", "right", "bound", "error_over_bound")}
        return {**vars(self), **numbers, "axes": list(self.axes), "index": list(self.index), "place": self.place, "where": self.where}


@dataclass(frozen=True)
class LawReport:
    """How the kernel fared under one law; ``tried`` are its comparisons, those of the search for small cases included."""

    law: str
    says: str
    verdict: str
    examples: int = 0
    worst_error_over_bound: float | None = None
    detail: str = ""
    seconds: float = 0.0
    smallest: Witness | None = None
    worst: Witness | None = None
    tried: tuple[Tried, ...] = ()
    kinds: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The law's row as JSON has it."""
        return {
            "law": self.law,
            "says": self.says,
            "kinds": list(self.kinds),
            "verdict": self.verdict,
            "examples": self.examples,
            "worst_error_over_bound": _finite(self.worst_error_over_bound),
            "detail": self.detail,
            "seconds": round(self.seconds, 3),
            "witness": self.smallest.to_dict() if self.smallest else None,
            "worst_witness": self.worst.to_dict() if self.worst else None,
        }


@dataclass(frozen=True)
class Diagnosis:
    """One sentence on where a kernel fails and where it does not, and the violated laws that it is about."""

    says: str
    laws: tuple[str, ...]


@dataclass(frozen=True)
class CheckReport:
    """The result of a check; it is to be read, so it has no truth value.

    ``expected`` are laws that are known to be violated, each with the reason; ``problems`` what is wrong with the list of them.
    """

    version: str
    operator: str
    target: str
    signature: str
    map: str
    level: str
    seed: int
    precision: str
    chunk: int
    laws: tuple[LawReport, ...]
    wiring: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    diagnosis: tuple[Diagnosis, ...] = ()
    state: Literal["complete", "stopped", "interrupted"] = "complete"
    seconds: float = 0.0
    first_violation: float | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        raise TypeError("a CheckReport is neither true nor false: read its exit_code, or its violated laws")

    @property
    def violated(self) -> tuple[LawReport, ...]:
        """The laws that are violated."""
        return tuple(law for law in self.laws if law.verdict == "violated")

    @property
    def summary(self) -> dict[str, int]:
        """The number of laws by verdict, and their total."""
        counts = Counter(law.verdict for law in self.laws)
        return {**{verdict: counts[verdict] for verdict in LAW_VERDICTS}, "total": len(self.laws)}

    @property
    def exit_code(self) -> int:
        """0 if a law ran, none but those expected was violated, and none is unverified, else the code of what weighs most."""
        if self.state == "interrupted":
            return int(Exit.INTERRUPTED)
        nothing = () if any(law.verdict in ("holds", "violated") for law in self.laws) else (Exit.UNVERIFIED,)
        wrong = (Exit.VIOLATED,) if self.problems else ()
        return int(worst(*(_EXITS[law.verdict] for law in self.laws if law.law not in self.expected), *nothing, *wrong))

    def _repr_html_(self) -> str:
        from isoform.notebook import check_html

        return check_html(self)

    def to_dict(self) -> dict[str, Any]:
        """What `isoform check --json` prints."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "operator": self.operator,
            "target": self.target,
            "signature": self.signature,
            "map": self.map,
            "level": self.level,
            "seed": self.seed,
            "precision": self.precision,
            "chunk": self.chunk,
            "state": self.state,
            "wiring": list(self.wiring),
            "limits": list(self.limits),
            "notes": list(self.notes),
            "laws": [law.to_dict() for law in self.laws],
            "diagnosis": [{"says": d.says, "laws": list(d.laws)} for d in self.diagnosis],
            "expected": dict(self.expected),
            "problems": list(self.problems),
            "summary": self.summary,
            "seconds": round(self.seconds, 3),
            "seconds_to_first_violation": None if self.first_violation is None else round(self.first_violation, 3),
            "exit_code": self.exit_code,
        }


def _finite(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None
