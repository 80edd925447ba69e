"""Citing: BibTeX that a parser reads, with what was found and nothing that is not known."""

import datetime
import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import bibtexparser
import pytest
import yaml
from pylatexenc.latex2text import LatexNodes2Text

import isoform
from isoform import cli
from isoform.citing import bibtex, citation, references, release
from isoform.derivations import registry

ROOT = Path(__file__).parents[2]
CITATIONS = sorted({source.citation for claim in registry.claims() for source in claim.sources})


@pytest.fixture
def run(house, capsys):
    def run(*arguments):
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


def parsed(text):
    """The entries of a BibTeX text, by key."""
    library = bibtexparser.parse_string(text)
    assert library.failed_blocks == []
    return {entry.key: {name: field.value for name, field in entry.fields_dict.items()} for entry in library.entries}


def plain(latex):
    return LatexNodes2Text(math_mode="text").latex_to_text(latex).replace("{", "").replace("}", "")


@pytest.mark.parametrize(
    ("citation", "expected"),
    [
        (
            "Gu, Goel, Ré, Efficiently Modeling Long Sequences, arXiv 2111.00396",
            (("Gu", "Goel", "Ré"), "Efficiently Modeling Long Sequences", "", "", "2111.00396"),
        ),
        ("Martin and Cundy, Parallelizing Nets, arXiv 1709.04057", (("Martin", "Cundy"), "Parallelizing Nets", "", "", "1709.04057")),
        (
            "Fu, Dao et al., Hungry Hippos: Towards X, arXiv 2212.14052",
            (("Fu", "Dao", "et al."), "Hungry Hippos: Towards X", "", "", "2212.14052"),
        ),
        ("Beltagy, Peters, Longformer, arXiv 2004.05150", (("Beltagy", "Peters"), "Longformer", "", "", "2004.05150")),
        ("DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434", (("DeepSeek-AI",), "DeepSeek-V2", "", "", "2405.04434")),
        (
            "Press, Lewis, Train Short, Test Long (ALiBi), arXiv 2108.12409",
            (("Press", "Lewis"), "Train Short, Test Long (ALiBi)", "", "", "2108.12409"),
        ),
        (
            "Joffrain et al., Updates, Revisited, ACM TOMS 32 (2006)",
            (("Joffrain", "et al."), "Updates, Revisited", "ACM TOMS 32", "2006", ""),
        ),
        ("Welch, Lower bounds, IEEE Trans. 20, 1974", (("Welch",), "Lower bounds", "IEEE Trans. 20", "1974", "")),
        ("Van Loan, Computing Integrals, IEEE Trans. 23 (1978)", (("Van Loan",), "Computing Integrals", "IEEE Trans. 23", "1978", "")),
        ("Voelker, Kajić, Legendre Memory Units, NeurIPS 2019", (("Voelker", "Kajić"), "Legendre Memory Units", "NeurIPS", "2019", "")),
        ("Anderson and Moore, Optimal Filtering (1979)", (("Anderson", "Moore"), "Optimal Filtering", "", "1979", "")),
        ("Baker, Graves-Morris, Padé, 2nd ed., 1996", (("Baker", "Graves-Morris"), "Padé", "2nd ed.", "1996", "")),
        ("Rudin, Principles, 3rd ed.", (("Rudin",), "Principles", "3rd ed.", "", "")),
        ("Blelloch, Prefix Sums, CMU-CS-90-190", (("Blelloch",), "Prefix Sums", "CMU-CS-90-190", "", "")),
        ("Hairer and Wanner, Solving Equations II", (("Hairer", "Wanner"), "Solving Equations II", "", "", "")),
    ],
)
def test_what_a_citation_says(citation, expected):
    assert references.read(citation) == references.Reference(*expected)


@pytest.mark.parametrize(
    "citation",
    [
        "08 - Transformer and Variants (a blog note)",
        "Transformer结构 (a blog note on the architecture)",
        "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)",
        "SciPy, scipy.signal.cont2discrete, method foh",
        "mamba_ssm, selective_scan_ref",
        "Gu",
        "Gu et al.",
        "",
    ],
)
def test_what_does_not_say_it_stays_whole(citation):
    assert references.read(citation) is None


@pytest.mark.parametrize("text", CITATIONS)
def test_nothing_is_lost_and_nothing_is_added(text):
    """What is read from a citation, put together again, is the citation."""
    found = references.read(text)
    if found is None:
        assert plain(citation.source_entry(text).fields["note"]) == text
        return
    *first, last = found.authors
    joined = {"et al.": " ", found.authors[-1]: " and "}.get(last, "") if first else ""
    names = {f"{', '.join(first)}{' ' if last == 'et al.' else joined}{last}" if first else last, ", ".join(found.authors)}
    where = f"arXiv {found.arxiv}" if found.arxiv else found.where
    ends = {
        ", ".join(filter(None, (found.title, where, found.year))),
        f"{found.title}, {where} ({found.year})",
        f"{found.title}, {where} {found.year}",
        f"{found.title} ({found.year})",
    }
    assert text in {f"{name}, {end}" for name in names for end in ends}


def test_most_papers_are_read():
    """Everything on arXiv says who and what, and one paper has one citation."""
    papers = [text for text in CITATIONS if "arXiv" in text]
    assert len(papers) > 30
    assert [text for text in papers if references.read(text) is None] == []


def test_different_sources_have_different_keys():
    keys = [citation.source_entry(text).key for text in CITATIONS]
    assert sorted(set(keys)) == sorted(keys)
    assert all(re.fullmatch(r"[A-Za-z0-9:./-]+", key) for key in keys)


def test_every_source_and_title_is_bibtex_that_says_the_same():
    found = parsed("\n".join(str(citation.source_entry(text)) for text in CITATIONS))
    assert len(found) == len(CITATIONS)
    for text in CITATIONS:
        fields = found[citation.source_entry(text).key]
        said = " ".join(map(plain, fields.values()))
        assert all(word in said for word in re.findall(r"[^\W\d_]{4,}", text.replace("et al", "").replace("arXiv", "")))
    titles = {claim.id: claim.title for claim in registry.claims()}
    entries = parsed("\n".join(str(bibtex.Entry(id, {"title": bibtex.verbatim(title)})) for id, title in titles.items()))
    assert entries.keys() == titles.keys()
    for id, title in titles.items():
        latex = entries[id]["title"]
        assert latex.count("{") == latex.count("}")
        assert set(re.findall(r"\w{3,}", title)) <= set(re.findall(r"\w{3,}", plain(latex))) | set(
            re.findall(r"\w*[^\x00-\x7f_]\w*|\w*_\w*", title)
        )


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50% & #1 $x_i$", r"50\% \& \#1 \$x\_i\$"),
        ("{a}", r"{\textbraceleft}a{\textbraceright}"),
        ("}{", r"{\textbraceright}{\textbraceleft}"),
        ("a\\b~c^d", r"a{\textbackslash}b{\textasciitilde}c{\textasciicircum}d"),
        ("Ré Szegő", r"R{\'{e}} Szeg{\H{o}}"),
        ("C̃ B̄", r"{\~{C}} {\={B}}"),
        ("x² λ₁ Qᵀ", r"x\textsuperscript{2} \ensuremath{\lambda}\textsubscript{1} Q\textsuperscript{T}"),
        ("one\n  line", "one line"),
        ("结构", "结构"),
    ],
)
def test_text_is_escaped(text, latex):
    assert bibtex.escape(text) == latex


def test_an_empty_field_is_not_written():
    assert parsed(str(bibtex.Entry("k", {"title": "{T}", "year": ""}))) == {"k": {"title": "{T}"}}


def test_cite_prints_claim_release_and_source(run, house):
    code, out, err = run("cite", "alpha/holds")
    assert (code, err) == (0, "")
    found = parsed(out)
    assert list(found) == ["isoform:alpha:holds", "isoform", "a-author"]
    claim = found["isoform:alpha:holds"]
    assert claim["howpublished"] == f"isoform {isoform.__version__}, claim alpha/holds, version 1"
    assert claim["title"] == r"{50\% of a title}"
    for text in ("Verdict: proved (all sizes)", "Engines: kernel (1), evaluate (2)", "A. Author, eq. 3"):
        assert text in claim["note"]
    assert found["a-author"] == {"note": "A. Author"}


def test_a_claim_that_does_not_hold_is_cited_as_that(run):
    code, out, err = run("cite", "alpha/unknown", "beta-net/refuted")
    found = parsed(out)
    assert code == 1
    assert "Verdict: unknown" in found["isoform:alpha:unknown"]["note"]
    assert "Verdict: refuted" in found["isoform:beta-net:refuted"]["note"]
    assert len(err.splitlines()) == 1 and "alpha/unknown: unknown, where proved is expected" in err


def test_cite_json(run):
    code, out, err = run("cite", "alpha/holds", "beta-net/refuted", "--json")
    found = json.loads(out)
    assert (code, err, found["schema"], found["certificate"], found["failures"]) == (0, "", 1, None, [])
    assert [(claim["id"], claim["verdict"]) for claim in found["claims"]] == [("alpha/holds", "proved"), ("beta-net/refuted", "refuted")]
    assert found["claims"][0]["evidence"][0]["engine_version"] == "1"
    assert found["release"]["version"] == isoform.__version__
    assert parsed("\n".join(entry["bibtex"] for entry in found["entries"])).keys() == {entry["key"] for entry in found["entries"]}


def test_cite_from_a_certificate(run, tmp_path):
    file = tmp_path / "c.json"
    assert run("verify", "alpha/holds", "alpha/differs", "--symbolic-only", "--certificate", str(file))[0] == 1
    code, out, _ = run("cite", "alpha/holds", "--from", str(file))
    content = json.loads(file.read_text())
    assert code == 0
    assert f"Certificate: SHA-256 {content['digest']}" in parsed(out)["isoform:alpha:holds"]["note"]
    assert run("cite", "alpha/differs", "--from", str(file))[0] == 1
    code, out, err = run("cite", "beta-net/refuted", "--from", str(file))
    assert (code, out) == (2, "") and "no claim or architecture" in err
    file.write_text(json.dumps(content).replace("proved", "proven"))
    code, out, err = run("cite", "alpha/holds", "--from", str(file))
    assert (code, out) == (1, "") and "changed after it was written" in err


def test_an_older_certificate_is_not_given_the_date_of_this_release(house):
    release_here = release.release()
    claim = {"id": "a/b", "version": 1, "fingerprint": "f", "title": "T", "statement": "s", "statement_latex": "s", "verdict": "proved"}
    claim |= {"expected": "proved", "scope": "all sizes", "reason": "", "assumptions": [], "assumed": [], "unfinished": [], "sources": []}
    claim |= {"evidence": [], "near_misses": {"list": []}}
    content = {"claims": [claim], "environment": {"isoform": "0.0.1", "columns": {}}, "digest": "d"}
    found = citation.of_certificate(content, "a/b")
    assert (found.release.version, found.release.year, release_here.year) == ("0.0.1", "", release_here.date[:4])
    assert found.exit_code == 3  # one engine's word, or none, does not suffice
    del claim["title"]
    with pytest.raises(citation.certificates.Malformed, match="title"):
        citation.of_certificate(content, "a/b")


def test_a_claim_of_another_package_is_not_ours(house, monkeypatch):
    monkeypatch.setattr(citation, "columns", lambda: {"alpha": "their-layers 2.0"})
    found = parsed(isoform.cite("alpha/holds", "beta-net/refuted").bibtex)
    theirs, ours = found["isoform:alpha:holds"], found["isoform:beta-net:refuted"]
    assert theirs["howpublished"] == f"their-layers 2.0, claim alpha/holds, version 1, verified by isoform {isoform.__version__}"
    assert theirs.keys().isdisjoint({"author", "year"})
    assert ours["author"] == "{The isoform authors}" and ours["year"]


def test_cite_needs_a_claim(run):
    assert run("cite")[0] == 2
    with pytest.raises(ValueError, match="needs the id"):
        isoform.cite()


def test_the_citation_file_is_complete():
    data = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert data["cff-version"] == "1.2.0" and data["type"] == "software"
    assert all(isinstance(data[key], str) and data[key] for key in ("message", "title", "abstract", "version", "license"))
    assert isinstance(data["date-released"], datetime.date)
    assert (data["license"], data["version"]) == (project["license"], project["version"])
    assert [author["name"] for author in data["authors"]] == [author["name"] for author in project["authors"]]
    assert all(isinstance(word, str) for word in data["keywords"])
    assert "isoform cite" in data["message"]


def test_the_release_is_read_where_isoform_is_installed(monkeypatch, tmp_path):
    here = release.release()
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    monkeypatch.setattr(release, "__file__", str(tmp_path / "isoform" / "citing" / "release.py"))
    found = tmp_path / "isoform-9.dist-info" / "licenses" / "CITATION.cff"
    found.parent.mkdir(parents=True)
    found.write_text(text, encoding="utf-8")
    monkeypatch.setattr(release, "distribution", lambda name: metadata.PathDistribution(found.parents[1]))
    assert release.release() == here
    found.unlink()
    with pytest.raises(RuntimeError, match=r"lacks CITATION\.cff"):
        release.release()


def test_the_docs_show_what_is_printed(house):
    """Keys, fields and commands, not the values."""
    text = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ isoform ([a-z]+)", text, re.MULTILINE)
    assert {"cite", "verify"} == set(commands) <= set(cli.COMMANDS)
    shown, *_ = re.findall(r"^\$ isoform cite .*?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    claim, source = (f"@misc{block}" for block in shown.split("@misc") if "author" in block)
    (keys, fields), (paper_key, paper) = (next(iter(parsed(block).items())) for block in (claim, source))
    assert keys == "isoform:delta-rule:unrolled"
    assert fields.keys() == parsed(isoform.cite("alpha/holds").bibtex)["isoform:alpha:holds"].keys()
    delta = next(text for text in CITATIONS if paper_key.removeprefix("arXiv:") in text)
    assert paper == parsed(str(citation.source_entry(delta)))[paper_key]


def test_names_of_persons():
    author = {"given-names": "Ada", "name-particle": "van", "family-names": "Dam", "name-suffix": "Jr."}
    assert release._name(author) == "Ada van Dam Jr."
    assert bibtex.names(("Ré", "et al.")) == r"{R{\'{e}}} and others"
