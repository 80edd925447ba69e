"""The pages of a small run: complete, well formed, and every link of them leads somewhere."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import PurePosixPath
from posixpath import normpath

import html5lib
import pytest

from isoform.book import site
from isoform.book.contents import page_of
from isoform.derivations import cost
from isoform.exits import Exit
from isoform.outcome import Failure, judge_claim
from isoform.runner import unknown

from .conftest import CLAIMS, LAWS, make

PARTS = ("statement", "assumptions", "sources", "derivation", "near", "rests", "evidence", "code", "cite")


def parsed(text):
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def words(element):
    return " ".join(" ".join(element.itertext()).split())


def section(tree, id):
    (found,) = [e for e in tree.iter("section") if e.get("aria-labelledby") == id]
    return found


def count(element, tag):
    return sum(str(e.tag).rpartition("}")[2] == tag for e in element.iter())


def pages(files):
    return {name: parsed(text) for name, text in files.items() if name.endswith(".html")}


@pytest.fixture(scope="module")
def trees(files):
    return pages(files)


def test_there_is_a_page_for_everything(trees):
    assert {page_of(id) for id in CLAIMS} | {"index.html", "graph.html"} <= set(trees)
    assert {page_of(id.partition("/")[0]) for id in CLAIMS} <= set(trees)


def test_every_claim_s_page_has_all_parts(trees, results):
    for claim in results:
        tree = trees[page_of(claim.id)]
        assert count(section(tree, "statement"), "math") == len(claim.definitions) + len(claim.parts)
        assert count(section(tree, "assumptions"), "math") == len(claim.assumptions)
        assert count(section(tree, "sources"), "li") == len(claim.sources)
        steps = section(tree, "derivation").find("ol").findall("li")
        assert len(steps) == len(claim.steps) > 0
        assert all(count(step, "math") >= 1 for step in steps)
        near = section(tree, "near")
        assert count(near, "article") == len(claim.near_misses) > 0
        assert all(miss.counterexample.rpartition(": ")[2] in words(near) for miss in claim.near_misses)
        assert count(section(tree, "evidence").find(".//tbody"), "tr") == len(claim.evidence) > 1
        assert all(words(section(tree, part)) for part in PARTS)
        assert claim.id in words(section(tree, "cite")) and claim.fingerprint in words(section(tree, "cite"))
        assert bool(claim.as_written) == any(e.get("aria-labelledby") == "written" for e in tree.iter("section"))


def test_what_a_claim_is_about_stands_beside_its_laws(trees):
    text = words(section(trees[page_of("delta-rule/unrolled")], "code"))
    for part in ("recurrent", "chunkwise", "2 holds", "1 unverified", "2 violated"):
        assert part in text
    assert count(trees[page_of("delta-rule/unrolled")], "circle") == 4 + 2  # ratios that were measured, and the legend
    text = words(section(trees[page_of("delta-rule")], "delta-rule"))
    assert "0.014 in 8 examples" in text and "inf in 1 examples" in text and "all 4 comparisons are blind" in text
    assert "Not applicable to any form: roll-back" in text


def test_what_follows_from_what_is_said_on_both_sides(trees):
    assert "delta-product/interleaved" in words(section(trees[page_of("delta-rule/unrolled")], "rests"))
    assert "delta-rule/unrolled" in words(section(trees[page_of("delta-product/interleaved")], "rests"))
    assert "the textbook theorem exp-above-tangent" in words(section(trees[page_of("mamba/discretization")], "rests"))
    table = words(trees["graph.html"].find(".//main"))
    assert "delta-rule/unrolled proved" in table and "mamba/hold-expansion" in table


def test_an_architecture_s_page_has_its_declaration_and_cost(trees):
    text = words(section(trees[page_of("delta-rule")], "delta-rule"))
    for part in ("As it is declared", "multiplications", "real, 0 <= beta |k|^2 <= 2", "Token by token", "def recurrent("):
        assert part in text


def test_a_cost_that_is_not_counted_says_why(results, monkeypatch):
    def refuse(*terms):
        raise cost.Uncounted("no operations are counted for <E>")

    monkeypatch.setattr(cost, "operations", refuse)
    tree = pages(site.files_of(make(results[:1])))[page_of("delta-rule")]
    assert "Not counted: no operations are counted for <E>." in words(section(tree, "delta-rule"))


def test_a_failure_is_shown_where_it_belongs(trees, files):
    assert all("at <t = 2>" in words(trees[name]) for name in ("index.html", page_of("delta-rule")))
    assert "What does not hold" not in files[page_of("attention/zero-mask")]


def test_an_undecided_claim_and_one_that_fails_have_pages_that_say_so(results):
    from isoform.derivations.registry import claim

    lost = unknown(claim("delta-rule/wy"), "not run: interrupted", 0.0)
    kept = replace(results[0], near_misses=tuple(replace(m, rejected=False, reason="no <point>") for m in results[0].near_misses))
    failures = (*judge_claim(lost), *judge_claim(kept))
    trees = pages(site.files_of(make([lost, kept], failures=failures, state="interrupted")))
    text = words(trees[page_of("delta-rule/wy")])
    assert "Not stated" in text and "unknown" in text and "not run: interrupted" in text
    text = words(trees[page_of("delta-rule/unrolled")])
    assert "not rejected" in text and "no <point>" in text
    index = words(trees["index.html"])
    assert "1 not decided" in index and "violated" in index and ", interrupted" in index


def test_a_run_without_lemmas_and_laws_has_no_picture(results):
    tree = pages(site.files_of(make([results[4]])))["graph.html"]
    assert "No claim of this run is a lemma" in words(tree)


def test_a_column_that_did_not_run_is_shown_on_its_page(results):
    failure = Failure("delta_rule", Exit.FAILED, "its worker died")
    tree = pages(site.files_of(make(results, failures=[failure])))[page_of("delta-rule")]
    assert "its worker died" in words(tree)


def test_ids_are_unique_and_links_lead_somewhere(trees, files):
    ids = {name: Counter(e.get("id") for e in tree.iter() if e.get("id")) for name, tree in trees.items()}
    assert {name: id for name, found in ids.items() for id, n in found.items() if n > 1} == {}
    links = [(name, e.get(a)) for name, tree in trees.items() for e in tree.iter() for a in ("href", "src") if e.get(a)]
    assert len(links) > 100
    assert [link for link in links if not leads(*link, files, ids)] == []
    assert not leads("index.html", "nowhere.html", files, ids) and not leads("index.html", "#nowhere", files, ids)


def leads(page, href, files, ids):
    if href.startswith(("data:", "https://")):
        return True
    path, _, fragment = href.partition("#")
    target = normpath(str(PurePosixPath(page).parent / path)) if path else page
    return target in files and (not fragment or fragment in ids[target])


def test_aria_names_what_is_there(trees):
    for tree in trees.values():
        ids = {e.get("id") for e in tree.iter() if e.get("id")}
        named = [e.get(a) for e in tree.iter() for a in ("aria-labelledby", "aria-controls", "aria-describedby", "for") if e.get(a)]
        assert set(named) <= ids
        assert all(e.get("aria-label") for e in tree.iter() if e.get("role") in ("img", "region"))
        levels = [int(e.tag[1]) for e in tree.iter() if isinstance(e.tag, str) and re.fullmatch("h[1-6]", e.tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def test_no_tex_is_left_on_a_page(trees):
    for name, tree in trees.items():
        for code in list(tree.iter("pre")):
            code.clear()
        assert "\\" not in words(tree), name
        assert "unset" not in {e.get("class") for e in tree.iter()}, name


def test_the_index_of_the_search_has_every_page(files):
    found = json.loads(files["index.js"].removeprefix("const ISOFORM_INDEX = ").removesuffix(";\n"))
    assert {row[0] for row in found} == {*CLAIMS, *(id.partition("/")[0] for id in CLAIMS)}
    assert all(row[3] in files for row in found)


def test_the_run_is_there_as_json(files, report):
    assert json.loads(files["report.json"]) == json.loads(json.dumps(report.to_dict()))


def test_the_laws_of_this_test_are_those_that_a_report_can_have():
    assert {law.verdict for law in LAWS} == {"holds", "violated", "unverified", "not-applicable"}
