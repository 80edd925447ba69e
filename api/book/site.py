"""The pages of the site, made of a report by templates."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from isoform.book import documents, plots
from isoform.book.contents import Contents, page_of
from isoform.book.linking import Links, ticked
from isoform.book.mathematics import mathml
from isoform.citing.citation import Citation
from isoform.citing.release import release
from isoform.derivations.registry import summary
from isoform.inspection import TRUSTED
from isoform.outcome import LAW_VERDICTS, VERDICTS, verdict_line
from isoform.selection import architecture

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult
    from isoform.outcome import Report

STATIC = ("book.css", "book.js")
MEANS = {
    "proved": "the statement is proved",
    "qualified": "false as its source has it; proved under a further assumption, which is named",
    "refuted": "false as its source has it; the nearest true statement is proved",
    "unknown": "not decided; this fails a run",
}
KINDS = {
    "proved": "by the kernel, step by step",
    "certified": "evaluated at random points by the second engine, exactly or in balls",
    "enclosed": "in ball arithmetic",
    "exact": "every bit is right",
    "bounded": "in floating point, within the derived bound",
    "tested": "by examples",
    "assumed": "a textbook theorem, taken for granted",
}


def files_of(report: Report) -> dict[str, str]:
    """Return the files of the site, text by path."""
    contents = Contents(report)
    links = Links((*contents.claims, *contents.architectures))
    environment = _environment(contents, links)

    def page(template: str, path: str, **context: Any) -> str:
        return environment.get_template(template).render(root="../" * path.count("/"), path=path, **context) + "\n"

    out = {name: files("isoform.book").joinpath("static", name).read_text("utf-8") for name in STATIC}
    out["index.js"] = f"const ISOFORM_INDEX = {json.dumps(_index(contents), ensure_ascii=False, separators=(',', ':'))};\n"
    out["report.json"] = json.dumps(report.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    out["index.html"] = page("index.html", "index.html")
    out["graph.html"] = page("graph.html", "graph.html", picture=contents.picture(claim.id for claim in contents.tied))
    for name, title in documents.there().items():
        path = f"{name}.html"
        out[path] = page("document.html", path, title=title, text=documents.html(name, links))
    for name, claims in contents.architectures.items():
        path = page_of(name)
        out[path] = page("architecture.html", path, name=name, claims=claims, picture=contents.picture(claim.id for claim in claims))
    for claim in report.claims:
        path = page_of(claim.id)
        out[path] = page("claim.html", path, claim=claim)
    return out


def _environment(contents: Contents, links: Links) -> Environment:
    made = Environment(
        loader=PackageLoader("isoform.book"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {"math": mathml, "linked": links.linked, "ticked": ticked, "ratio": _ratio}
    made.globals |= {
        "book": contents,
        "report": contents.report,
        "documents": documents.there(),
        "means": MEANS,
        "kinds": KINDS,
        "trusted": TRUSTED,
        "verdicts": VERDICTS,
        "law_verdicts": LAW_VERDICTS,
        "verdict_line": verdict_line,
        "architecture": architecture,
        "page_of": page_of,
        "plot": plots.plot,
        "cite": _cite,
        "summary": summary,
    }
    return made


def _index(contents: Contents) -> list[list[str]]:
    """What the search box looks through: name, title, mark, page."""
    claims = [[c.id, c.title, contents.state(c.id), page_of(c.id)] for c in contents.report.claims]
    return [*([name, "architecture", "", page_of(name)] for name in contents.architectures), *claims]


def _cite(claim: ClaimResult) -> str:
    return Citation((claim,), release(), ()).bibtex


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"
