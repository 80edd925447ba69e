"""Cite claims: what was found, by which release, after which papers (`isoform cite`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform import certificate as certificates
from isoform import runner
from isoform.citing import references
from isoform.citing.bibtex import Entry, escape, names, slug, verbatim
from isoform.citing.release import Release, release
from isoform.environment import columns
from isoform.outcome import SCHEMA, Failure, Report, claim_to_dict, exit_code, failure_to_dict, judge_claim, verdict_line
from isoform.selection import architecture, select

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult, Source


@dataclass(frozen=True)
class Citation:
    """How to cite claims: the results of a run or a certificate, the release that they are of, and what keeps a claim from holding.

    ``columns`` names the packages of the columns that are not isoform's. ``certificate`` is the digest of the certificate that the
    results are taken from; empty, if they were verified just now.
    """

    claims: tuple[ClaimResult, ...]
    release: Release
    failures: tuple[Failure, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    certificate: str = ""

    @property
    def exit_code(self) -> int:
        """0 if every claim holds."""
        return exit_code(self.failures)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The BibTeX entries: each claim, the release, each source once."""
        own = (claim_entry(claim, self.release, self.columns.get(architecture(claim.id), ""), self.certificate) for claim in self.claims)
        sources = (source_entry(source.citation) for claim in self.claims for source in claim.sources)
        return (*own, release_entry(self.release), *{entry.key: entry for entry in sources}.values())

    @property
    def bibtex(self) -> str:
        """The entries as one text."""
        return "\n\n".join(map(str, self.entries))

    def to_dict(self) -> dict[str, Any]:
        """Return what `isoform cite --json` prints."""
        kept = ("id", "version", "fingerprint", "title", "verdict", "expected", "scope", "assumed", "evidence", "sources")
        claims = [{key: value for key, value in claim_to_dict(claim).items() if key in kept} for claim in self.claims]
        return {
            "schema": SCHEMA,
            "claims": claims,
            "release": {**vars(self.release), "authors": list(self.release.authors)},
            "certificate": self.certificate or None,
            "entries": [{"key": entry.key, "bibtex": str(entry)} for entry in self.entries],
            "failures": [failure_to_dict(failure) for failure in self.failures],
        }

    def _repr_html_(self) -> str:
        from html import escape as escaped

        return f"<pre>{escaped(self.bibtex)}</pre>"


def cite(*ids: str, certificate: str | Path | None = None, seed: int = 0, time_limit: float = 60.0) -> Citation:
    """Return how to cite the named claims, verified just now, or as a certificate has them.

    Raises UnknownName for a claim that does not exist, or is not in the certificate; certificate.Malformed or .Altered for a file
    that cannot be trusted.
    """
    if not ids:
        raise ValueError("cite needs the id of a claim")
    if certificate is not None:
        return of_certificate(certificates.read(Path(certificate)), *ids)
    return of_report(runner.verify(*ids, seed=seed, time_limit=time_limit, symbolic_only=True))


def of_report(report: Report) -> Citation:
    """Return how to cite the claims of a run."""
    return Citation(report.claims, release(), report.failures, columns())


def of_certificate(content: Mapping[str, Any], *ids: str) -> Citation:
    """Return how to cite claims as a certificate has them; of another version of isoform, nothing but that is known."""
    theirs = {claim["id"]: claim for claim in content["claims"]}
    try:
        results = tuple(certificates.result_of(theirs[id]) for id in select(ids, tuple(theirs)))
        version, others = str(content["environment"]["isoform"]), dict(content["environment"]["columns"])
    except (KeyError, TypeError) as error:
        raise certificates.Malformed(f"the certificate lacks what is cited: {error}") from None
    of = release()
    of = of if version == of.version else replace(of, version=version, date="", doi="")
    failures = tuple(failure for result in results for failure in judge_claim(result))
    return Citation(results, of, failures, others, content["digest"])


def claim_entry(claim: ClaimResult, of: Release, package: str = "", certificate: str = "") -> Entry:
    """Return the entry of a claim: what it says in words, where it stands, and what was found.

    Of a claim of another package that package is named; who wrote it, and when, is not known here.
    """
    where = f"claim {claim.id}, version {claim.version}"
    fields = {
        "author": "" if package else names(of.authors),
        "title": verbatim(claim.title),
        "howpublished": escape(f"{package}, {where}, verified by isoform {of.version}" if package else f"isoform {of.version}, {where}"),
        "year": "" if package else of.year,
        "url": "" if package else escape(of.url),
        "note": escape(". ".join(_facts(claim, certificate)) + "."),
    }
    return Entry(f"isoform:{claim.id.replace('/', ':')}", fields)


def release_entry(of: Release) -> Entry:
    """Return the entry of the release."""
    fields = {
        "author": names(of.authors),
        "title": verbatim(of.title),
        "howpublished": escape(f"Version {of.version}"),
        "year": of.year,
        "doi": escape(of.doi),
        "url": escape(of.url),
        "note": escape(f"Licence {of.license}") if of.license else "",
    }
    return Entry("isoform", fields)


def source_entry(citation: str) -> Entry:
    """Return the entry of a source: what its citation says, or the citation whole."""
    found = references.read(citation)
    if found is None:
        return Entry(slug(citation), {"note": escape(citation)})
    paper = found.arxiv
    fields = {
        "author": names(found.authors),
        "title": verbatim(found.title),
        "howpublished": escape(found.where),
        "year": found.year or (f"20{paper[:2]}" if paper else ""),
        "eprint": paper,
        "archiveprefix": "arXiv" if paper else "",
        "url": f"https://arxiv.org/abs/{paper}" if paper else "",
    }
    return Entry(f"arXiv:{paper}" if paper else slug(citation), fields)


def _facts(claim: ClaimResult, certificate: str) -> Iterator[str]:
    yield f"Verdict: {verdict_line(claim)}" + (f" ({claim.scope})" if claim.scope else "")
    engines = dict.fromkeys(f"{item.engine} ({item.engine_version})" for item in claim.evidence)
    if engines:
        yield f"Engines: {', '.join(engines)}"
    yield f"Statement fingerprint: {claim.fingerprint}"
    if certificate:
        yield f"Certificate: SHA-256 {certificate}"
    yield f"After {'; '.join(_sources(claim.sources))}"


def _sources(sources: Iterable[Source]) -> Iterator[str]:
    for source in sources:
        yield ", ".join(filter(None, (source.citation, source.where)))
