"""Where a kernel fails and where it does not: conditions on the cases that were tried, with counts, and what else holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isoform.checking.containment import Tried
from isoform.checking.report import Diagnosis, LawReport

MODULI = (2, 3, 4, 8, 16, 32, 64, 128)
CONJUNCTS = 3
"""Conditions, at most, that are joined into one."""
STRAY = 0.05
"""The share of passing cases, beside failing ones, up to which a condition is said to be it."""
TOLD = 0.5
"""The share of passing cases, beside failing ones, from which on conditions that are joined tell nothing."""
_TOKENS = re.compile(r"(?:state after|state after step|output of|the first) (\d+)(?: tokens?)?(?: alone|$|,)")
_COUNTS = re.compile(r"\[[\d, ]*\]|\d+")


@dataclass(frozen=True)
class Condition:
    """Something that is so in a case or not, in words; None where it cannot be said of a case.

    One that ``only`` lacks something says little beside others.
    """

    says: str
    holds: Callable[[dict[str, Any], int | None], bool | None]
    only: bool = False


@dataclass(frozen=True)
class Seen:
    """A condition without which a kernel did not fail: how often it failed of how many cases with it, and how many others there were."""

    says: str
    failed: int
    inside: int
    outside: int

    @property
    def fine(self) -> int:
        """The cases with the condition in which it did not fail."""
        return self.inside - self.failed


def diagnose(laws: Sequence[LawReport]) -> tuple[Diagnosis, ...]:
    """Of all violated laws: what the laws that hold say beside them, then those that fail under one condition together."""
    seen = {law.law: separations(law.tried) for law in laws if law.verdict == "violated"}
    votes = Counter(s.says for found in seen.values() for s in found)
    groups: dict[str, list[tuple[str, Seen]]] = {}
    for law, found in seen.items():
        if found:
            chosen = max(found, key=lambda s: votes[s.says])
            groups.setdefault(chosen.says, []).append((law, chosen))
    return (*_patterns(laws), *(Diagnosis(_sentence(group), tuple(law for law, _ in group)) for group in groups.values()))


def separations(tried: Iterable[Tried]) -> list[Seen]:
    """Conditions that all cases have in which a law fails, and of the others none or as good as none; the simplest first.

    Of all comparisons those are looked at that are of a kind of which one fails. Where no condition does alone, the fewest
    are joined; a case in which nothing shows, as where nothing is written, may pass with them. Where many do, none is told.
    """
    cases = _alike(tried)
    failing = [c for c, fine in cases if not fine]
    passing = [c for c, fine in cases if fine]
    if not failing:
        return []
    necessary = [c for c in _conditions([c for c, _ in cases]) if all(c.holds(*case) for case in failing)]
    needed = [c for c in necessary if not all(c.holds(*case) for case in passing)]
    if not needed:
        return [_count((), cases)]
    alone = [_count((c,), cases) for c in needed]
    few = STRAY * len(failing)
    best = min(s.fine for s in alone)
    if best <= few:
        return [s for s in alone if s.fine == best]
    joined = _count(_joined([c for c in needed if not c.only] or needed, passing, few), cases)
    return [joined if joined.fine <= TOLD * joined.failed else _count((), cases)]


def _alike(tried: Iterable[Tried]) -> list[tuple[tuple[dict[str, Any], int | None], bool]]:
    """Cases with the number of tokens of what was compared, each once, and whether it was within its bound."""
    tried = tuple(tried)
    kinds = {_COUNTS.sub("#", t.what) for t in tried if not t.fine}
    raised = any(t.what.startswith("raised ") for t in tried if not t.fine)
    found: dict[str, tuple[tuple[dict[str, Any], int | None], bool]] = {}
    for t in tried:
        if raised or _COUNTS.sub("#", t.what) in kinds:
            tokens = _tokens(t)
            key = f"{t.case} {tokens}"
            found[key] = ((t.case, tokens), t.fine and found.get(key, (None, True))[1])
    return list(found.values())


def _tokens(t: Tried) -> int | None:
    match = _TOKENS.search(t.what)
    return int(match.group(1)) if match else dict(t.case["sizes"]).get("t")


def _conditions(cases: Sequence[tuple[dict[str, Any], int | None]]) -> list[Condition]:
    """What can be said of these cases, the most telling first."""
    flags = sorted({f for case, _ in cases for f in case["flags"]})
    dtypes = sorted({case["dtype"] for case, _ in cases})
    found = [
        *_either("T = 0", "T > 0", lambda c, t: None if t is None else t == 0),
        *_either("T = 1", "T ≠ 1", lambda c, t: None if t is None else t == 1),
        *(x for m in MODULI for x in _either(f"T mod {m} ≠ 0", f"T mod {m} = 0", lambda c, t, m=m: None if t is None else t % m != 0)),
        *_either("T < C", "T ≥ C", lambda c, t: _compare(c, t, lambda n, chunk: n < chunk)),
        *_either("T > C", "T ≤ C", lambda c, t: _compare(c, t, lambda n, chunk: n > chunk)),
        *_either("T mod C ≠ 0", "T mod C = 0", lambda c, t: _compare(c, t, lambda n, chunk: n % chunk != 0)),
        *(x for m in (1, *MODULI) for x in _either(f"T > {m}", f"T ≤ {m}", lambda c, t, m=m: None if t is None else t > m)),
        *(x for m in MODULI for x in _either(f"T ≥ {m}", f"T < {m}", lambda c, t, m=m: None if t is None else t >= m)),
        *_lacking("an initial state is given", "no initial state is given", lambda c, t: "start" in c["flags"]),
        *_either("K ≠ V", "K = V", lambda c, t: _sizes(c, "k", "v", lambda k, v: k != v)),
        *_either("K > 1", "K = 1", lambda c, t: _sizes(c, "k", "k", lambda k, _: k > 1)),
        *_either("V > 1", "V = 1", lambda c, t: _sizes(c, "v", "v", lambda v, _: v > 1)),
        *_lacking("heads share keys", "no heads share keys", lambda c, t: _sizes(c, "groups", "groups", lambda g, _: g > 1)),
        *_either("there are several heads", "there is one head", lambda c, t: _sizes(c, "h", "h", lambda h, _: h > 1)),
        *(x for m in (1, 2, 4) for x in _either(f"B > {m}", f"B ≤ {m}", lambda c, t, m=m: _sizes(c, "b", "b", lambda b, _: b > m))),
        *(x for d in dtypes for x in _lacking(f"inputs are {d}", f"inputs are not {d}", lambda c, t, d=d: c["dtype"] == d)),
        *_either("inputs have 16 bits", "inputs have 32 or 64 bits", lambda c, t: c["dtype"] in ("bfloat16", "float16")),
        *_either("inputs are large", "inputs are small", lambda c, t: c["scale"] == "large"),
        *(x for f in flags if f != "start" for x in _lacking(f"the case is {f}", f"it is not {f}", lambda c, t, f=f: f in c["flags"])),
    ]
    return found


def _either(says: str, otherwise: str, holds: Callable[..., bool | None]) -> tuple[Condition, Condition]:
    """A condition and its opposite."""

    def opposite(case: dict[str, Any], tokens: int | None) -> bool | None:
        found = holds(case, tokens)
        return None if found is None else not found

    return Condition(says, holds), Condition(otherwise, opposite)


def _lacking(says: str, otherwise: str, holds: Callable[..., bool | None]) -> tuple[Condition, Condition]:
    """A condition and its opposite, which is that something is not there."""
    there, not_there = _either(says, otherwise, holds)
    return there, replace(not_there, only=True)


def _compare(case: dict[str, Any], tokens: int | None, holds: Callable[[int, int], bool]) -> bool | None:
    chunk = dict(case["sizes"]).get("chunk")
    return None if tokens is None or not chunk else holds(tokens, chunk)


def _sizes(case: dict[str, Any], a: str, b: str, holds: Callable[[int, int], bool]) -> bool | None:
    sizes = dict(case["sizes"])
    return holds(sizes[a], sizes[b]) if a in sizes and b in sizes else None


def _joined(needed: Sequence[Condition], passing: Sequence[tuple[dict[str, Any], int | None]], few: float) -> tuple[Condition, ...]:
    """Conditions that hold in all failing cases, and together in as few of the others as can be had by adding the best."""
    chosen: list[Condition] = []
    left = list(passing)
    while len(left) > few and len(chosen) < CONJUNCTS:
        best = min(needed, key=lambda c: sum(bool(c.holds(*case)) for case in left), default=None)
        kept = left if best is None else [case for case in left if best.holds(*case)]
        if best is None or len(kept) == len(left):
            break
        chosen.append(best)
        left = kept
    return tuple(chosen)


def _count(conditions: Sequence[Condition], cases: Sequence[tuple[tuple[dict[str, Any], int | None], bool]]) -> Seen:
    inside = [fine for case, fine in cases if all(c.holds(*case) for c in conditions)]
    says = " and ".join(c.says for c in conditions)
    return Seen(says, inside.count(False), len(inside), len(cases) - len(inside))


def _sentence(group: Sequence[tuple[str, Seen]]) -> str:
    """What one condition says of the laws that it is about."""
    names = ", ".join(law for law, _ in group)
    verb = "fails" if len(group) == 1 else "fail"
    failed, inside, outside = (sum(getattr(s, n) for _, s in group) for n in ("failed", "inside", "outside"))
    says = group[0][1].says
    if says:
        return f"{names} {verb} only where {says}: {failed} of {inside} such cases, 0 of {outside} others"
    if inside == 1:
        return f"{names} {verb} in the one case that was tried"
    return f"{names} {verb} in {f'all {inside}' if failed == inside else f'{failed} of {inside}'} cases that were tried"


CORE = ("form-equals-oracle", "state-equals-oracle")
BESIDE = {
    "split-and-resume": "a sequence at once is right, its parts one after the other are not",
    "gradient-of-inputs": "the forward pass is right, the backward pass is not",
    "packed-equals-alone": "sequences alone are right, packed ones are not",
    "finite-at-the-edges": "ordinary inputs are right, those at the edges of the domain are not",
    "layout": "contiguous inputs are right, views are not: strides are not followed",
    "batch-company": "what else is in the batch matters",
}
"""What it says that a law is violated where outputs and states are right."""
UNSEEN = ("prefix-invariance", "padding-mask", "sight")
NONFINITE = (
    "only NaN and infinity reach rows that do not see them (0 · NaN), numbers do not: "
    "a kernel that does not claim to hold them off is checked with --limits 'no nonfinite'"
)


def _only_nonfinite(law: LawReport) -> bool:
    """Whether a law fails in nothing but comparisons beside tokens that are NaN or infinite."""
    return all("hidden" in t.case["flags"] or re.search(r"\b(nan|inf)\b", t.what, re.IGNORECASE) for t in law.tried if not t.fine)


def _patterns(laws: Sequence[LawReport]) -> Iterator[Diagnosis]:
    """What the laws that hold say beside those that are violated."""
    verdicts = {law.law: law.verdict for law in laws}
    outputs, states = (verdicts.get(n) for n in CORE)
    violated = [law for law in laws if law.verdict == "violated"]
    unseen = tuple(law.law for law in violated if _only_nonfinite(law))
    if {*UNSEEN, *CORE[:1]} & {*unseen} and not {law.law for law in violated if law.law in UNSEEN} - {*unseen}:
        yield Diagnosis(NONFINITE, unseen)
    if outputs == "holds" and states == "violated":
        yield Diagnosis("the outputs are right, the state that is handed out is not", CORE[1:])
    elif outputs == "violated" and states == "holds":
        yield Diagnosis("the state is right, so the update is: the read-out is not", CORE[:1])
    elif outputs == "holds":
        yield from (Diagnosis(says, (law,)) for law, says in BESIDE.items() if verdicts.get(law) == "violated")
