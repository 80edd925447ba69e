"""Expected failures are strict: what is stale, unknown, expired or not the pinned failure is said in one sentence."""

import json
from datetime import date

import pytest

from isoform.checking.expected import Known, judge, pinned, read, sentence
from isoform.checking.target import Unusable

TODAY = date(2026, 12, 1)
CASE = {"operator": "delta-rule", "sizes": [["b", 1], ["t", 2]], "seed": 0, "dtype": "float32", "scale": "small", "flags": []}
ENTRY = {
    "law": '"layout"',
    "reason": '"strides are not read"',
    "link": '"https://example.org/12"',
    "since": "2026-11-02",
    "expires": "2027-05-01",
    "witness": f"'{json.dumps(CASE)}'",
}


@pytest.fixture
def known(tmp_path):
    def listed(*changes):
        """Read a list with an entry for each change of the right one; None leaves a field out."""
        text = ""
        for change in changes:
            fields = {name: value for name, value in (ENTRY | change).items() if value is not None}
            text += "[[expected]]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())
        (tmp_path / "known.toml").write_text(text, encoding="utf-8")
        return read(tmp_path / "known.toml", TODAY)

    return listed


def test_a_right_entry_has_no_problem(known):
    found = known({}, {"law": '"padding"'})
    assert not found.problems and [e.law for e in found.entries] == ["layout", "padding"]
    assert found.of("layout").expires == date(2027, 5, 1) and found.of("group-map") is None
    assert sentence(found.entries[0]) == "strides are not read (https://example.org/12), since 2026-11-02, until 2027-05-01"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"law": '"layot"'}, "there is no law 'layot'; did you mean 'layout'?"),
        ({"expires": "2026-11-30"}, "the entry of layout has expired on 2026-11-30"),
        ({"since": "2026-12-02"}, "since is 2026-12-02, which is in the future"),
        ({"expires": "2026-11-01"}, "it expires on 2026-11-01, before 2026-11-02, since when it is expected"),
        ({"link": None}, "missing: link"),
        ({"witness": None, "until": "2026-12-01"}, "missing: witness; unknown: until"),
        ({"reason": '" "'}, "reason must be a text that is not empty, not ' '"),
        ({"since": '"2026-11-02"'}, "since must be a date without a time, such as 2027-05-01, not '2026-11-02'"),
        ({"since": "2026-11-02T00:00:00"}, "since must be a date without a time, such as 2027-05-01, not 2026-11-02 00:00:00"),
        ({"law": "3"}, "law must be a text that is not empty, not 3"),
    ],
)
def test_a_wrong_entry_is_one_sentence_and_does_not_count(known, change, says):
    found = known(change)
    assert found.problems == (f"known.toml, entry 1: {says}",) and not found.entries


def test_the_day_of_expiry_is_the_last_one(known):
    assert not known({"expires": "2026-12-01"}).problems


def test_a_law_has_one_entry(known):
    found = known({}, {"reason": '"another"'})
    assert found.problems == ("known.toml, entry 2: layout has an entry already",) and len(found.entries) == 1


@pytest.mark.parametrize("text", ["[[expected]\n", "[expected]\nlaw = 1\n", "other = 1\n", "expected = 3\n", "expected = [1]\n"])
def test_what_is_no_list_is_refused(tmp_path, text):
    (tmp_path / "known.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Unusable, match=r"known\.toml"):
        read(tmp_path / "known.toml", TODAY)


def test_a_list_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Unusable, match=r"there is no file .*none\.toml"):
        read(tmp_path / "none.toml", TODAY)


@pytest.mark.parametrize(
    ("verdict", "fails", "says"),
    [
        ("violated", True, ""),
        ("holds", True, ""),
        ("holds", False, "layout holds now: its entry (strides are not read) is stale, take it out"),
        ("violated", False, "layout is violated elsewhere: the witness to which its entry is pinned (strides are not read) passes"),
        ("not-applicable", True, "layout is expected to be violated (strides are not read) and is not applicable"),
        ("unverified", True, "layout is expected to be violated (strides are not read) and is unverified"),
    ],
)
def test_an_entry_stands_only_while_its_witness_fails(known, verdict, fails, says):
    asked = []
    found = judge("layout", verdict, known({}), lambda case: asked.append(case) or fails)
    assert found == says
    assert asked == ([CASE] if verdict in ("violated", "holds") else [])


def test_a_law_without_an_entry_is_not_expected_to_be_anything():
    assert judge("layout", "violated", Known(), lambda case: False) == ""


@pytest.mark.parametrize("content", [CASE, {"schema": 1, "law": "layout", "witnesses": [{"case": CASE}]}])
def test_a_witness_may_be_a_file_beside_the_list(known, tmp_path, content):
    (tmp_path / "seen.json").write_text(json.dumps(content), encoding="utf-8")
    found = known({"witness": '"seen.json"'})
    assert pinned(found.entries[0], tmp_path) == CASE


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "there is no file"),
        ("{", "is no JSON"),
        ("[]", "is no case"),
        ("{}", "is no case"),
        ('{"law": "layout", "witnesses": []}', "is no case"),
        (json.dumps({"law": "padding", "witnesses": [{"case": CASE}]}), "is one of the law padding"),
    ],
)
def test_a_witness_that_is_none_is_a_problem_of_its_entry(known, tmp_path, content, says):
    if content is not None:
        (tmp_path / "seen.json").write_text(content, encoding="utf-8")
    found = known({"witness": '"seen.json"'})
    assert says in judge("layout", "violated", found, lambda case: True)
