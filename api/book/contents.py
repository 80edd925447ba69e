"""A report beside all that its pages look up in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from isoform.book import graph
from isoform.book.operators import Operator, operators
from isoform.selection import architecture

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult
    from isoform.outcome import Failure, Report


def page_of(id: str) -> str:
    """Return the path of a claim's page, or of an architecture's.

    >>> page_of("delta-rule/unrolled"), page_of("delta-rule")
    ('claims/delta-rule/unrolled.html', 'architectures/delta-rule.html')
    """
    return f"claims/{id}.html" if "/" in id else f"architectures/{id}.html"


class Contents:
    """What a run found, by claim and by architecture."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.claims = {claim.id: claim for claim in report.claims}
        self.architectures: dict[str, list[ClaimResult]] = {}
        for claim in report.claims:
            self.architectures.setdefault(architecture(claim.id), []).append(claim)
        self.operators = {name: operators(name, report.laws) for name in self.architectures}

    @cached_property
    def used_by(self) -> dict[str, tuple[str, ...]]:
        """The claims that each claim is a lemma of."""
        found: dict[str, list[str]] = {id: [] for id in self.claims}
        for claim in self.report.claims:
            for lemma in claim.lemmas:
                found.setdefault(lemma, []).append(claim.id)
        return {id: tuple(users) for id, users in found.items()}

    def operator_of(self, claim: ClaimResult) -> Operator | None:
        """The operator that a claim is about, if there are functions that compute it."""
        found = [o for o in self.operators[architecture(claim.id)] if o.name == claim.operator]
        return found[0] if found and found[0].functions else None

    def failures_at(self, id: str) -> tuple[Failure, ...]:
        """What keeps a claim, or anything of an architecture, from holding."""
        operators = {o.name for o in self.operators.get(id, ())}
        column = id.replace("-", "_")
        return tuple(
            failure
            for failure in self.report.failures
            if failure.where in (id, column) or failure.where.startswith(f"{id}/") or failure.where.partition(".")[0] in operators
        )

    def state(self, id: str) -> str:
        """What a claim's mark says: failed, its verdict, or absent where it was not run."""
        claim = self.claims.get(id)
        return "absent" if claim is None else "failed" if self.failures_at(id) else claim.verdict

    def rests_on(self, name: str) -> tuple[str, ...]:
        """The other architectures that an architecture's claims have lemmas of."""
        found = {architecture(lemma) for claim in self.architectures[name] for lemma in claim.lemmas}
        return tuple(sorted(found - {name}))

    def under(self, name: str) -> tuple[str, ...]:
        """The other architectures whose claims have lemmas of an architecture's."""
        return tuple(other for other in self.architectures if name in self.rests_on(other))

    @cached_property
    def tied(self) -> tuple[ClaimResult, ...]:
        """The claims that rest on others, or have others rest on them."""
        return tuple(claim for claim in self.report.claims if claim.lemmas or self.used_by[claim.id])

    def picture(self, ids: Iterable[str]) -> graph.Picture | None:
        """The named claims with what they rest on and what rests on them; None if there is no line to draw."""
        chosen = tuple(dict.fromkeys(ids))
        lines = [(id, lemma) for id in chosen for lemma in self.claims[id].lemmas]
        lines += [(user, id) for id in chosen for user in self.used_by[id]]
        rests_on: dict[str, list[str]] = {}
        for claim, lemma in dict.fromkeys(lines):
            rests_on.setdefault(claim, []).append(lemma)
        return graph.picture(rests_on) if rests_on else None
