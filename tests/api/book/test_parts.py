"""What the pages are made of: formulas, pictures, plots, costs, links, and the folder."""

import itertools
import json
from dataclasses import replace
from string import Template

import pytest

from isoform.book import documents, folder, graph, plots
from isoform.book.linking import Links, ticked
from isoform.book.mathematics import convert, mathml
from isoform.book.operators import Operator, operators
from isoform.derivations import registry
from isoform.derivations.kernel.spelling import LATEX
from isoform.derivations.verification import verify_claim
from isoform.derivations.writing import Writing

from .conftest import LAWS

# formulas


def formulas(result):
    lines = (*result.assumptions_latex, *result.as_written_latex, *(line for miss in result.near_misses for line in miss.changes_latex))
    steps = [latex for step in result.steps for latex in (step.latex, *step.sides_latex)]
    return [latex for latex in (*result.parts_latex, *(d[1] for d in result.definitions), *(line[1] for line in lines), *steps) if latex]


class Anything(dict):
    def __missing__(self, key):
        return "x"


@pytest.mark.parametrize("name", [name for name in LATEX.templates if name not in ("Cell", "Line")])
def test_every_construct_of_the_printer_is_mathml(name):
    made = convert(Template(LATEX.templates[name]).substitute(Anything()))
    assert made.startswith("<math") and "\\" not in made


def test_every_letter_and_accent_is_mathml():
    for letter in LATEX.letters.values():
        assert "\\" not in convert(rf"\bar{{{letter}}} {letter}")


def test_the_statements_of_all_claims_are_mathml():
    for claim in registry.claims():
        writing = Writing(replace(claim, near_misses=()), None)
        for latex in (*writing.parts_latex(), *(latex for _, latex in writing.as_written_latex() if latex)):
            assert "\\" not in convert(latex)


@pytest.mark.deep
def test_every_formula_of_all_claims_is_mathml():
    for claim in registry.claims():
        for latex in formulas(verify_claim(claim)):
            made = convert(latex)
            assert made.startswith("<math") and "\\" not in made, (claim.id, latex)


def test_a_formula_that_is_not_known_is_shown_as_its_text():
    assert mathml(r"\nosuchthing{x}", "a < b") == '<code class="unset">a &lt; b</code>'
    assert "<math" in mathml("a < b")


# the graph


def test_a_lemma_stands_left_of_what_rests_on_it_and_nothing_overlaps():
    below = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "f": ["a", "d"], "y": ["x"], "z": ["x"]}
    drawn = graph.picture(below)
    nodes = {node.key: node for node in drawn.nodes}
    assert set(nodes) == set("abcdfxyz") and len(drawn.edges) == 8
    assert all(edge.source.x + edge.source.width < edge.target.x for edge in drawn.edges)
    for a, b in itertools.combinations(drawn.nodes, 2):
        apart = a.x + a.width < b.x or b.x + b.width < a.x or abs(a.y - b.y) >= graph.LINE - 1e-6
        assert apart, (a, b)
    assert all(n.x > 0 and n.x + n.width < drawn.width and 0 < n.y < drawn.height for n in drawn.nodes)


def test_overlapping_boxes_would_be_seen():
    assert graph._spread(["a", "b"], {"a": 0.0, "b": 0.0}) == {"a": -15.0, "b": 15.0}


def test_a_circle_is_no_graph_of_proofs():
    with pytest.raises(ValueError, match="in a circle: a, b"):
        graph.picture({"a": ["b"], "b": ["a"]})


# the plot


def operator(*laws):
    return Operator("delta-rule", None, (), laws)


def test_a_violation_is_right_of_the_bound_and_zero_left_of_all():
    drawn = plots.plot(operator(*LAWS))
    places = {dot.says: dot.x for dot in drawn.dots}
    assert places["recurrent, forms-agree: 0.014"] < drawn.bound < places["chunkwise, forms-agree: 7.5"]
    assert places["recurrent, exact-bits: 0"] == drawn.zero == min(places.values())
    assert places["chunkwise, exact-bits: inf"] == max(places.values()) <= drawn.width
    assert [law for _, law in drawn.rows] == ["forms-agree", "exact-bits"]


def test_a_dot_stands_where_its_ratio_is_on_the_scale():
    drawn = plots.plot(operator(replace(LAWS[0], worst_error_over_bound=0.01)))
    ticks = {power: x for x, power in drawn.ticks}
    assert drawn.dots[0].x == pytest.approx(ticks[-2]) and ticks[0] == drawn.bound


def test_what_is_no_number_is_beyond_the_bound():
    drawn = plots.plot(operator(replace(LAWS[1], worst_error_over_bound=float("nan"))))
    assert drawn.dots[0].x >= drawn.bound


def test_nothing_measured_is_no_plot():
    assert plots.plot(operator(LAWS[4])) is None


# operators


def test_an_operator_has_what_is_declared_and_what_computes_it():
    (found,) = operators("delta-rule", LAWS)
    assert [(f.name, f.part) for f in found.functions] == [("recurrent", "form"), ("chunkwise", "form"), ("step", "step")]
    assert dict(found.declared.cost)["numbers kept"] == "d_{k} d_{v}" and found.declared.uncounted == ""
    assert [i.name for i in found.declared.inputs] == ["q", "k", "v", "beta"]
    assert found.rows["forms-agree"]["chunkwise"].verdict == "violated" and found.idle == ("roll-back",)
    assert operators("affine", LAWS) == ()


# text


def test_ids_become_links_and_the_rest_is_escaped():
    links = Links(["delta-rule/wy", "delta-rule", "gated-delta-rule/wy"])
    text = links.linked({"root": "../"}, "lemma: gated-delta-rule/wy, <b>, delta-rule/wy2, delta-rule")
    link = '<a href="../claims/gated-delta-rule/wy.html">gated-delta-rule/wy</a>'
    assert text == f"lemma: {link}, &lt;b&gt;, delta-rule/wy2, delta-rule"


def test_what_stands_between_backticks_is_code():
    assert ticked("``a`` < `b`") == "<code>a</code> &lt; <code>b</code>"


def test_documents_link_to_pages_and_out_of_the_site_only(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "FOLDER", tmp_path)
    assert documents.there() == {}
    (tmp_path / "what-proved-means.md").write_text("# Words")
    targets = "[the kernel](kernel.md), [words](what-proved-means.md), [deep](what-proved-means.md#no), [a *paper*](https://arxiv.org/abs/1)"
    (tmp_path / "findings.md").write_text(f"# Findings\n\nSee `delta-rule/wy`, `x < y`, {targets}, <b>.\n\n|a|b|\n|-|-|\n|1|2|\n")
    assert list(documents.there()) == ["findings", "what-proved-means"]
    made = documents.html("findings", Links(["delta-rule/wy"]))
    assert '<a href="claims/delta-rule/wy.html"><code>delta-rule/wy</code></a>' in made
    assert "<code>x &lt; y</code>" in made and "the kernel" in made and "kernel.md" not in made
    assert '<a href="what-proved-means.html">words</a>' in made and "deep, " in made
    assert '<a href="https://arxiv.org/abs/1">a <em>paper</em></a>' in made and "&lt;b&gt;" in made and "<table>" in made


# the folder


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(folder.UnusableFolder, match="is not empty and holds no report"):
        folder.reserve(tmp_path)
    with pytest.raises(folder.UnusableFolder, match="cannot be a folder"):
        folder.reserve(tmp_path / "thesis.tex")
    (tmp_path / folder.MARKER).write_text('{"files": 3}')
    with pytest.raises(folder.UnusableFolder, match="cannot be read"):
        folder.reserve(tmp_path)


def test_a_new_report_replaces_the_old_one_and_nothing_else(tmp_path):
    target = folder.reserve(tmp_path / "new" / "site")
    folder.replace(target, {"index.html": "1", "claims/a/b.html": "1"})
    (target / "claims" / "mine.txt").write_text("kept")
    folder.replace(folder.reserve(target), {"index.html": "2", "graph.html": "2"})
    assert sorted(p.name for p in target.rglob("*") if p.is_file()) == [folder.MARKER, "graph.html", "index.html", "mine.txt"]
    assert (target / "index.html").read_text() == "2" and not (target / "claims" / "a").exists()


def test_a_marker_deletes_nothing_outside_its_folder(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    target = folder.reserve(tmp_path / "site")
    (target / folder.MARKER).write_text(json.dumps({"files": ["../thesis.tex", str(tmp_path / "thesis.tex")]}))
    folder.replace(target, {"index.html": ""})
    assert (tmp_path / "thesis.tex").read_text() == "years"
