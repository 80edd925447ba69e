"""A run: the verdict on a claim, computed from what the two engines find."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.metadata import version
from time import perf_counter

import sympy

from .claim import Claim, ClaimResult, Evidence, NearMiss, NearMissResult
from .evaluate import Certificate, Counterexample, EvaluationError, certify, recheck, refute
from .kernel.assumed import ASSUMED
from .kernel.counterexample import refuted_by
from .kernel.formulas import Statement
from .kernel.proof import Proof, Unproved
from .kernel.prove import prove
from .kernel.terms import Apply, Rec, Var, unnamed, walk
from .registry import UnknownClaim, claim
from .writing import Writing

KERNEL = "isoform kernel"
SECOND = "evaluator"


class Circular(Unproved):
    """A lemma rests on itself."""


_open: list[str] = []


@cache
def _proved(id: str) -> Proof:
    """The proof of a registered claim's statement, lemmas first. Raises Unproved."""
    return _as_lemma(id, None, ())


def _as_lemma(id: str, own: Claim | None, among: tuple[Claim, ...]) -> Proof:
    """The proof of a claim that another one rests on."""
    if id in _open:
        raise Circular(f"the lemmas go in a circle: {' -> '.join([*_open, id])}")
    _open.append(id)
    try:
        c = own or claim(id)
        return prove(c.statement, c.proof, lambda id: _lemma(id, among))
    finally:
        _open.pop()


def _lemma(id: str, among: tuple[Claim, ...] = ()) -> Statement:
    own = next((c for c in among if c.id == id), None)
    try:
        proof = _proved(id) if own is None else _as_lemma(id, own, among)
        if proof.scope != "all sizes":
            raise Unproved(f"it is proved for {proof.scope} only")
        return (own or claim(id)).statement
    except UnknownClaim:
        raise Unproved(f"there is no claim {id} to use as a lemma") from None
    except Circular:
        raise
    except Unproved as e:
        raise Unproved(f"the lemma {id} is not proved: {e}") from e


def prove_claim(c: Claim, among: tuple[Claim, ...] = ()) -> Proof:
    """The proof of a claim; one that is registered is proved once, for itself and for what rests on it. Raises Unproved.

    The lemmas of one that is not registered may be claims ``among`` which it stands.
    """
    return _proved(c.id) if _registered(c) else prove(c.statement, c.proof, lambda id: _lemma(id, among))


def _registered(c: Claim) -> bool:
    try:
        return claim(c.id) is c
    except UnknownClaim:
        return False


def verify_claim(c: Claim, *, seed: int = 0, among: tuple[Claim, ...] = ()) -> ClaimResult:
    """Prove, certify, and reject the near misses. A claim that fails gives a result that says why; what raises is a bug.

    ``among`` are the claims beside one that is not registered, which may be lemmas of it.
    """
    start = perf_counter()
    reasons: list[str] = []
    proof = _attempt(c, among, reasons)
    certificate = certify(c.statement, seed=seed)
    if certificate.holds is not True:
        reasons.append(_disagreement(proof, certificate))
    written = _counterexample(NearMiss("as written", c.as_written, at=c.as_written_at), seed, c) if c.as_written else None
    if written and not written.rejected:
        reasons.append(f"no counterexample to the statement as written: {written.reason}")
    misses = tuple(_counterexample(n, seed, c) for n in c.near_misses)
    reasons += [f"near miss not rejected: {n.name}: {n.reason}" for n in misses if not n.rejected]
    unfinished = _unfinished(c, proof)
    writing = Writing(c, proof)
    return ClaimResult(
        id=c.id,
        version=c.version,
        fingerprint=c.fingerprint(),
        title=c.title,
        statement=writing.text(c.statement.conclusion),
        statement_latex=writing.latex(c.statement.conclusion),
        parts=writing.parts(),
        parts_latex=writing.parts_latex(),
        definitions=writing.definitions(),
        verdict=_verdict(c, proof, certificate, written),
        expected=c.expected,
        scope=proof.scope if proof else "",
        assumptions=writing.assumptions(),
        assumptions_latex=writing.assumptions_latex(),
        unneeded=tuple(a.name for a in c.statement.assumptions if proof and a.name not in proof.used),
        sources=c.sources,
        evidence=_evidence(proof, certificate, written),
        near_misses=tuple(_described(r, n, writing) for n, r in zip(c.near_misses, misses, strict=True)),
        steps=writing.steps(),
        as_written=writing.text(c.as_written) if c.as_written else "",
        as_written_latex=writing.as_written_latex(),
        counterexample=written.counterexample if written else "",
        lemmas=tuple(sorted(proof.lemmas)) if proof else (),
        assumed=tuple(sorted(proof.assumed)) if proof else (),
        unfinished=unfinished,
        operator=c.operator.operator if c.operator else "",
        seconds=perf_counter() - start,
        reason="; ".join(r for r in (*reasons, *unfinished) if r),
    )


def _described(r: NearMissResult, n: NearMiss, writing: Writing) -> NearMissResult:
    return replace(r, changes=writing.changes(n), changes_latex=writing.changes_latex(n))


def _attempt(c: Claim, among: tuple[Claim, ...], reasons: list[str]) -> Proof | None:
    try:
        return prove_claim(c, among)
    except Unproved as e:
        reasons.append(f"not proved: {e}")
        return None


def _disagreement(proof: Proof | None, certificate: Certificate) -> str:
    if certificate.holds is None:
        return f"not certified: {certificate.reason}"
    loud = "THE ENGINES DISAGREE: the kernel proves what the evaluator refutes" if proof else "refuted"
    return f"{loud} at {certificate.counterexample}"


def _verdict(c: Claim, proof: Proof | None, certificate: Certificate, written: NearMissResult | None) -> str:
    """proved, qualified or refuted as the engines find; unknown for everything else."""
    if proof is None or certificate.holds is not True:
        return "unknown"
    if c.as_written is None or written is None:
        return "proved"
    if not written.rejected:
        return "unknown"
    return "qualified" if _adds_assumptions(c.as_written, c.statement) else "refuted"


def _adds_assumptions(written: Statement, mended: Statement) -> bool:
    """Whether the mended statement is the written one under further named assumptions."""
    from .kernel.fingerprint import canonical

    if any(canonical(a) != canonical(b) for a, b in ((written.conclusion, mended.conclusion), (written.where, mended.where))):
        return False
    old = {canonical(a.formula) for a in written.assumptions}
    new = {canonical(a.formula) for a in mended.assumptions}
    return old < new


def _counterexample(n: NearMiss, seed: int, c: Claim) -> NearMissResult:
    """Find a point where a false statement fails, and have the kernel look at the same point, also for the claim itself."""
    try:
        found = refute(n.statement, seed=seed, at=n.at)
    except KeyError as e:
        return NearMissResult(n.name, False, "", (), f"it fixes {e}, which is not in the statement")
    except (EvaluationError, ValueError, TypeError, ArithmeticError) as e:
        return NearMissResult(n.name, False, "", (), f"the search for a counterexample failed: {e}")
    if found is None:
        return NearMissResult(n.name, False, "", (), "the search found no counterexample")
    if not recheck(n.statement, found):
        return NearMissResult(n.name, False, str(found), (), "the evaluator does not confirm its own counterexample", kind=found.kind)
    reason = _kernel_rejects(n.statement, found)
    if not (reason or _kernel_rejects(c.statement, found)):
        reason = f"the claim itself fails at {found}"
    engines = (SECOND,) if reason else (SECOND, KERNEL)
    return NearMissResult(n.name, not reason, str(found), engines, reason, kind=found.kind)


def _kernel_rejects(statement: Statement, found: Counterexample) -> str:
    """Why the kernel does not see the statement fail at this point; empty if it does."""
    return refuted_by(statement, dict(found.sizes), dict(found.values))


def _unfinished(c: Claim, proof: Proof | None) -> tuple[str, ...]:
    """What a finished claim has: a source, and different near misses about its subject, one for each assumption that the proof needs."""
    from .kernel.fingerprint import canonical

    different = {canonical(n.statement) for n in c.near_misses}
    out = [] if len(different) >= 2 else [f"a claim needs two near misses, this one has {len(different)}"]
    out += [] if c.sources else ["a claim needs a source, this one has none"]
    others = [("the statement as written", c.as_written), *((f"near miss {n.name}", n.statement) for n in c.near_misses)]
    out += [f"{name} is about something else" for name, other in others if other and not _akin(c.statement, other)]
    if proof and proof.scope != c.scope:
        out.append(f"proved for {proof.scope}, where {c.scope} is claimed")
    dropped = {n.drops for n in c.near_misses if _drops(n, c.statement)}
    for a in c.statement.assumptions if proof else ():
        if a.name in (proof.used if proof else ()) and a.name not in dropped:
            out.append(f"no near miss drops the assumption {a.name}")
    return tuple(out)


def _drops(n: NearMiss, statement: Statement) -> bool:
    """Whether a near miss is the statement without the assumption that it says it drops: same conclusion, same conditions."""
    from .kernel.fingerprint import canonical

    other = n.statement
    if not n.drops:
        return False
    pairs = ((other.conclusion, statement.conclusion), (other.where, statement.where))
    same = all(a == b or canonical(a) == canonical(b) for a, b in pairs)
    gone = {canonical(a.formula) for a in statement.assumptions if a.name == n.drops}
    return same and bool(gone) and gone.isdisjoint(canonical(a.formula) for a in other.assumptions)


def _akin(statement: Statement, other: Statement) -> bool:
    """Whether two statements speak of anything in common; two that speak of no atom at all do."""
    a, b = (_subject(s) for s in (statement, other))
    return bool(a & b) or not (a or b)


def _subject(s: Statement) -> frozenset[tuple[str, str]]:
    nodes = (n for p in (s.conclusion, *(a.formula for a in s.assumptions)) for n in walk(unnamed(p)))
    return frozenset((type(n).__name__, n.name) for n in nodes if isinstance(n, (Apply, Rec, Var)))


def _evidence(proof: Proof | None, certificate: Certificate, written: NearMissResult | None) -> tuple[Evidence, ...]:
    out: list[Evidence] = []
    if proof:
        methods = sorted({o.method for o in proof.obligations})
        detail = f"{len(proof.obligations)} obligations by {', '.join(methods)}"
        out.append(Evidence("proved", KERNEL, f"SymPy {sympy.__version__}", detail))
        for name in sorted(proof.assumed):
            out.append(Evidence("assumed", KERNEL, f"SymPy {sympy.__version__}", f"{name}: {ASSUMED[name].source}"))
    if certificate.holds:
        out.append(Evidence("certified", SECOND, certificate.engine_version, _certified(certificate)))
    if written and written.rejected:
        out.append(Evidence(written.kind, SECOND, certificate.engine_version, f"as written fails: {written.counterexample}"))
    return tuple(out)


def _certified(c: Certificate) -> str:
    parts = [f"{c.draws} draws in {c.system}", f"acceptance {c.acceptance:.2f}"]
    parts += [f"{count} {what}" for count, what in ((c.undecided, "undecided"), (c.singular, "singular, drawn again")) if count]
    if c.sizes:
        parts.append(c.sizes)
    if c.failure_probability is not None:
        parts.append(f"failure probability of one draw <= {c.failure_probability:.1e}")
    if c.radius is not None:
        parts.append(f"largest radius {c.radius:.1e}")
    return "; ".join(parts)


def engine_versions() -> dict[str, str]:
    """The engines and the versions of what they stand on."""
    return {KERNEL: f"SymPy {sympy.__version__}", SECOND: f"python-flint {version('python-flint')}"}
